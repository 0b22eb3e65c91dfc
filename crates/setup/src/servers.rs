//! The servers in a configuration file, and the changes that put the gateway before one.

use std::path::Path;

use crate::clients::{ClientFiles, EntryMembers};
use crate::edit::{Op, WrittenValue};
use crate::environment::{Paths, changes_programs, is_in, is_view_of_process};
use crate::tree::{MapMember, Node, NodeValue, PathStep, line_of};

/// A server in a configuration file.
#[derive(Clone, Debug)]
pub struct ServerEntry {
    pub(crate) path: Vec<PathStep>,
    name: String,
    line: usize,
    state: SetupState,
    /// The folder that the client starts it in, as it is written.
    folder: Option<String>,
    is_disabled: bool,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupState {
    /// The client starts it.
    Program {
        /// The command and its arguments.
        command: Vec<String>,
    },
    /// The client connects to it.
    Url {
        /// Its address.
        url: String,
        /// `true` if the file has credentials for it.
        has_credentials: bool,
    },
    /// The gateway is before it.
    Wrapped {
        /// The words before the program, if a launcher such as npx starts it.
        launcher: Vec<String>,
        /// The program of the gateway.
        program: String,
        /// The arguments that follow the program.
        args: Vec<String>,
    },
    /// The gateway cannot be put before it.
    Unsupported {
        /// The reason, as a clause.
        why: String,
    },
}

impl ServerEntry {
    /// Returns its name in the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the folder that the client starts it in, as it is written.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// Returns the line on which it begins, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns its state.
    pub fn state(&self) -> &SetupState {
        &self.state
    }

    /// Counts a gateway's program in this folder of a project as any other program, also one that a link leads to, or that
    /// a package runner or the shell of Windows finds in the project.
    pub(crate) fn refuse_program_in(&mut self, folder: &Path) {
        let SetupState::Wrapped {
            launcher,
            program,
            args,
        } = &self.state
        else {
            return;
        };
        let node = ["npx", "npm", "bunx", "bun", "pnpx", "pnpm", "yarn"];
        let is_launched_by = |names: &[&str]| {
            let mut launchers = launcher.iter().map(|word| last_part(word));
            launchers.any(|name| names.contains(&name))
        };
        // The folder that its entry names, which a variable of the client may be a part of.
        let start = self
            .folder
            .as_deref()
            .map_or(Ok(folder.to_owned()), |named| {
                let is_filled_in = named.contains(['$', '~', '%', '{']);
                if is_filled_in {
                    Err(())
                } else {
                    Ok(folder.join(named))
                }
            });
        let runs_packages = is_launched_by(&node)
            && start
                .as_ref()
                .map_or(true, |start| has_own_packages(folder, start));
        // It looks into its own folder before the PATH.
        let is_beside = is_launched_by(&["cmd"]) && {
            let start = start.as_deref().unwrap_or(folder);
            let endings = ["exe", "cmd", "bat", "com"];
            let is_there = |word: &String| {
                endings
                    .iter()
                    .any(|ending| start.join(format!("{word}.{ending}")).exists())
            };
            launcher.iter().any(is_there) || is_there(program)
        };
        let is_found = launcher
            .iter()
            .chain([program])
            .any(|word| is_in(folder, word));
        if !(is_found || runs_packages || is_beside) {
            return;
        }
        let program = std::slice::from_ref(program);
        let command = [launcher.as_slice(), program, args.as_slice()].concat();
        self.state = SetupState::Program { command };
    }

    /// Returns `true` if its command names a gateway, but in a way that the project can lead to another program.
    pub fn is_doubtful_gateway(&self) -> bool {
        let SetupState::Program { command } = &self.state else {
            return false;
        };
        let mut pairs = command.windows(2);
        pairs.any(|pair| pair[1] == "gateway" && last_part(&pair[0]) == PROGRAM)
    }

    /// Returns `true` if the client does not use it now.
    pub fn is_disabled(&self) -> bool {
        self.is_disabled
    }
}

/// Headers that the gateway writes itself.
const RESERVED: [&str; 6] = [
    "accept",
    "content-type",
    "content-length",
    "host",
    "last-event-id",
    "connection",
];

/// Words that are in the names of URL parameters with secrets.
const SECRETS: [&str; 8] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "auth",
    "credential",
    "signature",
];

/// Whole names of URL parameters with secrets, which are too short to be looked for in other names.
const SECRET_NAMES: [&str; 7] = ["code", "sig", "sas", "pat", "jwt", "bearer", "session"];

/// Members that make a client sign in at a server by itself.
const OWN_SIGN_IN: [&str; 5] = [
    "auth",
    "oauth",
    "headersHelper",
    "requiresOAuth",
    "authProviderType",
];

/// Returns the number of servers, with the members above them that are looked into.
pub(crate) fn count(client: &ClientFiles, root: &Node) -> usize {
    fn below(node: &Node, keys: &[String]) -> usize {
        let members = node.members();
        let Some((key, rest)) = keys.split_first() else {
            return members.len();
        };
        let named = members.iter().filter(|one| key == "*" || *key == one.key);
        named.map(|one| 1 + below(&one.value, rest)).sum()
    }
    client.servers.iter().map(|keys| below(root, keys)).sum()
}

/// Returns the servers of a file, in its order.
pub(crate) fn find(client: &ClientFiles, text: &str, root: &Node) -> Vec<ServerEntry> {
    let mut found = Vec::new();
    for keys in &client.servers {
        descend(client, text, root, keys, &[], None, &mut found);
    }
    found
}

/// `obstacle` is why nothing below may be changed.
fn descend(
    client: &ClientFiles,
    text: &str,
    node: &Node,
    keys: &[String],
    path: &[PathStep],
    obstacle: Option<String>,
    found: &mut Vec<ServerEntry>,
) {
    let obstacle = obstacle.or_else(|| {
        let line = line_of(text, node.range.start);
        node.is_shared
            .then(|| format!("an anchor, an alias or a tag is above it, on line {line}"))
    });
    let Some((key, rest)) = keys.split_first() else {
        return entries(client, text, node, path, obstacle.as_deref(), found);
    };
    for member in node.members() {
        if key == "*" || *key == member.key {
            let obstacle = obstacle.clone().or_else(|| twice(text, node, member));
            let mut path = path.to_vec();
            path.push(PathStep::Key(member.key.clone()));
            descend(client, text, &member.value, rest, &path, obstacle, found);
        }
    }
}

fn twice(text: &str, map: &Node, member: &MapMember) -> Option<String> {
    let is_twice = map.member(&member.key).is_none();
    let last = map
        .members()
        .iter()
        .rev()
        .find(|one| one.key == member.key)?;
    let line = line_of(text, last.key_range.start);
    is_twice.then(|| format!("`{}` is there twice, again on line {line}", member.key))
}

fn entries(
    client: &ClientFiles,
    text: &str,
    node: &Node,
    path: &[PathStep],
    obstacle: Option<&str>,
    found: &mut Vec<ServerEntry>,
) {
    let mut add =
        |step: PathStep, name: &str, at: usize, entry: &Node, obstacle: Option<String>| {
            let mut path = path.to_vec();
            path.push(step);
            let state = match obstacle {
                Some(why) => SetupState::Unsupported { why },
                None => state(client, text, entry),
            };
            found.push(ServerEntry {
                path,
                name: name.to_owned(),
                line: line_of(text, at),
                state,
                folder: entry.get("cwd").and_then(Node::text).map(str::to_owned),
                is_disabled: is_disabled(entry),
            });
        };
    let obstacle = obstacle.map(str::to_owned);
    match &node.value {
        NodeValue::Map(members, _) => {
            for member in members {
                let obstacle = obstacle.clone().or_else(|| twice(text, node, member));
                let step = PathStep::Key(member.key.clone());
                add(
                    step,
                    &member.key,
                    member.key_range.start,
                    &member.value,
                    obstacle,
                );
            }
        }
        NodeValue::List(nodes, _) => {
            for (index, entry) in nodes.iter().enumerate() {
                let Some(name) = entry.get("name").and_then(Node::word) else {
                    continue;
                };
                let twins = nodes
                    .iter()
                    .filter(|one| one.get("name").and_then(Node::word) == Some(name));
                let obstacle = obstacle.clone();
                let obstacle = obstacle.or_else(|| {
                    (twins.count() > 1).then(|| format!("two servers are called `{name}`"))
                });
                add(
                    PathStep::Index(index),
                    name,
                    entry.range.start,
                    entry,
                    obstacle,
                );
            }
        }
        NodeValue::Text(_) | NodeValue::Other(_) => {}
    }
}

fn is_disabled(entry: &Node) -> bool {
    let is = |name: &str, value: &str| {
        entry
            .get(name)
            .and_then(Node::word)
            .is_some_and(|word| word.eq_ignore_ascii_case(value))
    };
    is("disabled", "true") || is("enabled", "false")
}

/// The command of a server, with its place in the entry.
struct ServerCommand<'a> {
    /// The map that holds it.
    at: Vec<PathStep>,
    member: &'a str,
    args: Option<&'a str>,
    /// The command and its arguments, as they are written.
    words: Vec<String>,
    /// `true` if one list holds both.
    is_list: bool,
}

fn command<'a>(names: &'a EntryMembers, entry: &Node) -> Result<Option<ServerCommand<'a>>, String> {
    let Some(node) = entry.get(&names.command) else {
        return Ok(None);
    };
    let not_text = || "its command or an argument is not a text".to_owned();
    let words = |node: Option<&Node>| -> Result<Vec<String>, String> {
        let Some(node) = node else {
            return Ok(Vec::new());
        };
        let elements = node
            .elements()
            .ok_or_else(|| "its arguments are not a list".to_owned())?;
        elements
            .iter()
            .map(|one| one.word().map(str::to_owned).ok_or_else(not_text))
            .collect()
    };
    let command = match &node.value {
        NodeValue::Text(first) => ServerCommand {
            at: Vec::new(),
            member: &names.command,
            args: Some(&names.args),
            words: [vec![first.clone()], words(entry.get(&names.args))?].concat(),
            is_list: false,
        },
        NodeValue::List(..) => ServerCommand {
            at: Vec::new(),
            member: &names.command,
            args: None,
            words: words(Some(node))?,
            is_list: true,
        },
        NodeValue::Map(..) => ServerCommand {
            at: vec![PathStep::Key(names.command.clone())],
            member: "path",
            args: Some("args"),
            words: [
                vec![
                    node.get("path")
                        .and_then(Node::text)
                        .ok_or_else(not_text)?
                        .to_owned(),
                ],
                words(node.get("args"))?,
            ]
            .concat(),
            is_list: false,
        },
        NodeValue::Other(_) => return Err(not_text()),
    };
    match command.words.first() {
        Some(first) if !first.trim().is_empty() => Ok(Some(command)),
        _ => Err("its command is empty".to_owned()),
    }
}

fn state(client: &ClientFiles, text: &str, entry: &Node) -> SetupState {
    match checked_state(client, text, entry) {
        Ok(state) => state,
        Err(why) => SetupState::Unsupported { why },
    }
}

fn checked_state(client: &ClientFiles, text: &str, entry: &Node) -> Result<SetupState, String> {
    if let Some(node) = entry.shared() {
        let line = line_of(text, node.range.start);
        return Err(format!(
            "it uses an anchor, an alias or a tag, on line {line}"
        ));
    }
    if let Some(member) = entry.duplicate() {
        let line = line_of(text, member.key_range.start);
        return Err(format!(
            "`{}` is there twice, again on line {line}",
            member.key
        ));
    }
    if !matches!(entry.value, NodeValue::Map(..)) {
        return Err("it is not an object".to_owned());
    }
    let names = &client.entry;
    if let Some(command) = command(names, entry)? {
        let urls = [Some(&names.url), names.sse_url.as_ref()];
        let is_text = |member: &String| entry.get(member).and_then(Node::text).is_some();
        if urls.into_iter().flatten().any(is_text) {
            return Err("it has a command and a URL, of which the client uses one".to_owned());
        }
        if let Some(at) = gateway_at(&command.words, names.paths()) {
            return Ok(SetupState::Wrapped {
                launcher: command.words[..at].to_vec(),
                program: command.words[at].clone(),
                args: command.words[at + 1..].to_vec(),
            });
        }
        return Ok(SetupState::Program {
            command: command.words,
        });
    }
    let url = url_node(names, entry)?;
    let has_credentials = [
        Some(&names.headers),
        names.header_variables.as_ref(),
        names.token_variable.as_ref(),
    ]
    .into_iter()
    .flatten()
    .any(|member| entry.get(member).is_some());
    Ok(SetupState::Url {
        url,
        has_credentials,
    })
}

/// A kind of program that starts the program in its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Launcher {
    /// Downloads a package, and starts its program.
    Package,
    /// The shell of Windows.
    Cmd,
    /// Changes the environment.
    Env,
    /// Changes the priority.
    Nice,
}

/// Programs that start the program in their arguments, with the words that have to follow the program's name. Those that
/// start what a project has are not among them.
const LAUNCHERS: [(&str, &[&str], Launcher); 13] = [
    ("npx", &[], Launcher::Package),
    ("bunx", &[], Launcher::Package),
    ("pnpx", &[], Launcher::Package),
    ("uvx", &[], Launcher::Package),
    ("npm", &["exec"], Launcher::Package),
    ("pnpm", &["dlx"], Launcher::Package),
    ("yarn", &["dlx"], Launcher::Package),
    ("bun", &["x"], Launcher::Package),
    ("uv", &["tool", "run"], Launcher::Package),
    ("pipx", &["run"], Launcher::Package),
    ("cmd", &[], Launcher::Cmd),
    ("env", &[], Launcher::Env),
    ("nice", &[], Launcher::Nice),
];

impl Launcher {
    /// Returns its options without a value. With any other option, the launcher counts as an unknown program: some run
    /// another command than the one that follows.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Package => &[
                "--",
                "-y",
                "--yes",
                "-q",
                "--quiet",
                "-s",
                "--silent",
                "--bun",
                "--offline",
            ],
            Self::Cmd => &["/c", "/C", "/d", "/D", "/s", "/S"],
            Self::Env => &["--", "-i"],
            Self::Nice => &["--"],
        }
    }

    /// Returns `true` if this option may have this value.
    fn accepts(self, option: &str, value: &str) -> bool {
        match (self, option) {
            (Self::Package, "-p" | "--package" | "--from") => is_own_package(value),
            (Self::Package, "--python") => !value.contains(['/', '\\']),
            (Self::Nice, "-n" | "--adjustment") => true,
            _ => false,
        }
    }
}

/// The name of the program, and of its packages.
const PROGRAM: &str = "mcp-elicit";

/// Returns `true` for the name of the gateway's package, with or without a version. What follows `@` could name another
/// package, or a folder.
fn is_own_package(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '^' | '~');
    match word.split_once('@') {
        None => word == PROGRAM,
        Some((name, version)) => {
            name == PROGRAM && !version.is_empty() && version.chars().all(plain)
        }
    }
}

/// Files with which a project tells package runners of Node where packages are, or which code they run.
const OF_PACKAGE_RUNNERS: [&str; 6] = [
    ".npmrc",
    "bunfig.toml",
    ".yarnrc.yml",
    ".yarnrc",
    "pnpm-workspace.yaml",
    ".pnpmfile.cjs",
];

/// Returns `true` if a package runner that is started in this folder of the project may run something that the project has,
/// or ask a registry that the project names.
fn has_own_packages(project: &Path, folder: &Path) -> bool {
    let bin = format!("node_modules/.bin/{PROGRAM}");
    let package = format!("node_modules/{PROGRAM}");
    folder.ancestors().any(|above| {
        let has = |name: &str| above.join(name).symlink_metadata().is_ok();
        has(&bin)
            || has(&package)
            || above.starts_with(project) && OF_PACKAGE_RUNNERS.iter().any(|name| has(name))
    })
}

/// Returns the index of the gateway's program in a command: as it is, or started by known launchers. A program that only
/// names the gateway in its arguments is not the gateway, nor is one of the same name in a relative folder, which may be the
/// project's.
fn gateway_at(words: &[String], paths: Paths<'_>) -> Option<usize> {
    let mut at = 0;
    let mut last = None;
    loop {
        let word = words.get(at)?;
        let is_own = match last {
            Some(Launcher::Package) => is_own_package(word),
            _ => program_name(word, paths) == Some(PROGRAM),
        };
        if is_own {
            return (words.get(at + 1)? == "gateway").then_some(at);
        }
        if last == Some(Launcher::Package) {
            return None;
        }
        let name = program_name(word, paths)?;
        let rest = &words[at + 1..];
        let (_, follows, launcher) = LAUNCHERS.iter().find(|(launcher, follows, _)| {
            *launcher == name
                && follows.len() <= rest.len()
                && rest.iter().zip(*follows).all(|(word, known)| word == known)
        })?;
        last = Some(*launcher);
        at += 1 + follows.len();
        loop {
            let word = words.get(at)?.as_str();
            if launcher.flags().contains(&word) {
                at += 1;
            } else if word.starts_with('-') {
                let (option, value, length) = match word.split_once('=') {
                    Some((option, value)) => (option, value, 1),
                    None => (word, words.get(at + 1)?.as_str(), 2),
                };
                launcher.accepts(option, value).then_some(())?;
                at += length;
            } else if let (Launcher::Env, Some((variable, _))) = (launcher, word.split_once('=')) {
                (!changes_programs(variable)).then_some(())?;
                at += 1;
            } else {
                break;
            }
        }
    }
}

/// Returns the name of a program that is named alone or by its whole path; `None` for a path that depends on a folder.
fn program_name<'w>(word: &'w str, paths: Paths<'_>) -> Option<&'w str> {
    let Some((folder, file)) = word.rsplit_once(['/', '\\']) else {
        return Some(without_ending(word));
    };
    let mut parts = folder.split(['/', '\\']);
    let is_plain = paths.is_whole(word) && parts.all(|part| !matches!(part, "." | ".."));
    (is_plain && !is_view_of_process(word)).then(|| without_ending(file))
}

/// Returns the last part of a path, without the ending of programs on Windows.
fn last_part(word: &str) -> &str {
    without_ending(word.rsplit(['/', '\\']).next().unwrap_or(word))
}

/// Returns the name of a file without the ending of programs on Windows.
fn without_ending(file: &str) -> &str {
    let endings = [".exe", ".cmd"];
    let known = endings.iter().find_map(|ending| file.strip_suffix(ending));
    known.unwrap_or(file)
}

fn url_node(names: &EntryMembers, entry: &Node) -> Result<String, String> {
    let transport = entry.get("type").or_else(|| entry.get("transport"));
    let is_sse = transport.and_then(Node::text) == Some("sse");
    let sse_only = names
        .sse_url
        .as_ref()
        .is_some_and(|member| entry.get(member).is_some());
    let url = entry.get(&names.url).and_then(Node::text);
    if is_sse || sse_only && url.is_none() {
        return Err("it speaks HTTP+SSE, which the gateway does not".to_owned());
    }
    let Some(url) = url else {
        return Err("it has neither a command nor an address".to_owned());
    };
    if url.contains("{{") {
        return Err("its address differs for each user".to_owned());
    }
    if has_secret(url) {
        return Err(
            "its address holds what may be a secret, which every user of this machine could read among the arguments of the \
             gateway: give it as a header"
                .to_owned(),
        );
    }
    if let Some(own) = OWN_SIGN_IN
        .iter()
        .find(|member| entry.get(member).is_some())
    {
        return Err(format!("the client signs in by itself (`{own}`)"));
    }
    let headers = [Some(&names.headers), names.header_variables.as_ref()];
    for map in headers
        .into_iter()
        .flatten()
        .filter_map(|member| entry.get(member))
    {
        if !matches!(map.value, NodeValue::Map(..)) {
            return Err("its headers are not an object".to_owned());
        }
        for member in map.members() {
            let Some(value) = member.value.text() else {
                return Err(format!(
                    "the value of its header `{}` is not a text",
                    member.key
                ));
            };
            if value.contains("{{") {
                return Err(format!("its header `{}` differs for each user", member.key));
            }
            let lower = member.key.to_ascii_lowercase();
            if RESERVED.contains(&lower.as_str()) || lower.starts_with("mcp-") {
                return Err(format!(
                    "it sets the header `{}`, which the gateway writes",
                    member.key
                ));
            }
        }
    }
    if entry.get(&names.headers).is_some() && entry.get(&names.env).is_some() {
        return Err(format!(
            "it has both `{}` and `{}`",
            names.headers, names.env
        ));
    }
    Ok(url.to_owned())
}

/// Returns `true` for an address with a user name or password, or with a parameter whose name is that of a secret. A
/// variable that the client replaces counts too: the gateway's arguments would have its value.
fn has_secret(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let names = rest
        .split(['?', '&', ';', '#'])
        .skip(1)
        .filter_map(|part| part.split('=').next());
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRET_NAMES.contains(&name.as_str()) || SECRETS.iter().any(|word| name.contains(word))
    };
    rest[..end].contains('@') || names.into_iter().any(is_secret)
}

/// Returns the beginning of the gateway's arguments for a server of this name.
fn gateway_args(name: &str) -> Vec<String> {
    let mut args = vec!["gateway".to_owned()];
    if name.starts_with('-') {
        args.push(format!("--name={name}"));
    } else if !name.is_empty() {
        args.extend(["--name".to_owned(), name.to_owned()]);
    }
    args
}

/// Returns the changes that put this program before a server.
pub(crate) fn wrap(
    client: &ClientFiles,
    entry: &Node,
    name: &str,
    program: &str,
) -> Result<Vec<Op>, String> {
    let names = &client.entry;
    let Some(found) = command(names, entry)? else {
        return wrap_url(names, entry, name, program);
    };
    let mut prefix = gateway_args(name);
    prefix.push("--".to_owned());
    let at = found.at;
    if found.is_list {
        prefix.insert(0, program.to_owned());
        return Ok(vec![Op::Prepend {
            at,
            member: found.member.to_owned(),
            texts: prefix,
        }]);
    }
    prefix.push(found.words[0].clone());
    let set = Op::Set {
        at: at.clone(),
        member: found.member.to_owned(),
        new: WrittenValue::Text(program.to_owned()),
    };
    let args = found.args.unwrap_or_default();
    let has_args = entry.at(&at).is_some_and(|map| map.get(args).is_some());
    let add = if has_args {
        Op::Prepend {
            at,
            member: args.to_owned(),
            texts: prefix,
        }
    } else {
        Op::AddAfter {
            at,
            after: found.member.to_owned(),
            member: args.to_owned(),
            new: WrittenValue::Texts(prefix),
        }
    };
    Ok(vec![set, add])
}

fn wrap_url(
    names: &EntryMembers,
    entry: &Node,
    name: &str,
    program: &str,
) -> Result<Vec<Op>, String> {
    let url = url_node(names, entry)?;
    let top = Vec::new;
    let mut args = gateway_args(name);
    args.extend(["--upstream".to_owned(), url.clone()]);
    let mut ops = vec![Op::Rename {
        at: top(),
        member: names.url.clone(),
        new: names.command.clone(),
        raw: None,
    }];
    if let Some(headers) = entry.get(&names.headers) {
        ops.push(Op::Rename {
            at: top(),
            member: names.headers.clone(),
            new: names.env.clone(),
            raw: None,
        });
        for (number, member) in (1..).zip(headers.members()) {
            let variable = format!("MCP_ELICIT_HEADER_{number}");
            args.extend([
                "--header-env".to_owned(),
                format!("{}={variable}", member.key),
            ]);
            let at = vec![PathStep::Key(names.headers.clone())];
            ops.push(Op::Rename {
                at,
                member: member.key.clone(),
                new: variable,
                raw: None,
            });
        }
    }
    if let Some(member) = names
        .header_variables
        .as_ref()
        .filter(|member| entry.get(member).is_some())
    {
        return Err(format!(
            "its headers come from variables (`{member}`): write `--header-env NAME=VARIABLE` by hand"
        ));
    }
    let token = names
        .token_variable
        .as_ref()
        .filter(|member| entry.get(member).is_some());
    if let (Some(member), Some(passed)) = (token, &names.passed_variables) {
        let variable = entry.get(member).and_then(Node::text);
        let variable = variable.ok_or_else(|| format!("its `{member}` is not a text"))?;
        if entry.get(passed).is_some() {
            return Err(format!("it has both `{member}` and `{passed}`"));
        }
        args.extend(["--token-env".to_owned(), variable.to_owned()]);
        ops.push(Op::Set {
            at: top(),
            member: member.clone(),
            new: WrittenValue::Texts(vec![variable.to_owned()]),
        });
        ops.push(Op::Rename {
            at: top(),
            member: member.clone(),
            new: passed.clone(),
            raw: None,
        });
    }
    let has_headers = entry.get(&names.headers).is_some();
    if !has_headers && token.is_none() {
        args.push("--sign-in".to_owned());
    }
    if let (Some(stdio), Some(_)) = (&names.stdio_type, entry.get("type")) {
        ops.push(Op::Set {
            at: top(),
            member: "type".to_owned(),
            new: WrittenValue::Text(stdio.clone()),
        });
    }
    let mut command = WrittenValue::Text(program.to_owned());
    if names.command_is_list {
        args.insert(0, program.to_owned());
        command = WrittenValue::Texts(args);
    } else {
        ops.push(Op::AddAfter {
            at: top(),
            after: names.url.clone(),
            member: names.args.clone(),
            new: WrittenValue::Texts(args),
        });
    }
    ops.push(Op::Set {
        at: top(),
        member: names.url.clone(),
        new: command,
    });
    Ok(ops)
}

/// Returns the changes that take the gateway from before a server, from its arguments alone: for a program only.
pub(crate) fn unwrap(client: &ClientFiles, entry: &Node) -> Result<Vec<Op>, String> {
    let names = &client.entry;
    let by_hand = || "nothing is known of its form before: change it by hand".to_owned();
    let found = command(names, entry)?.ok_or_else(by_hand)?;
    let end = found
        .words
        .iter()
        .position(|word| word == "--")
        .ok_or_else(by_hand)?;
    let original = found.words.get(end + 1).ok_or_else(by_hand)?;
    if gateway_at(&found.words[..end], names.paths()) != Some(0) {
        return Err(by_hand());
    }
    let at = found.at;
    if found.is_list {
        let texts = found.words[..=end].to_vec();
        return Ok(vec![Op::Unprepend {
            at,
            member: found.member.to_owned(),
            texts,
        }]);
    }
    let texts = found.words[1..=end + 1].to_vec();
    let member = found.args.unwrap_or_default().to_owned();
    let new = WrittenValue::Text(original.clone());
    Ok(vec![
        Op::Set {
            at: at.clone(),
            member: found.member.to_owned(),
            new,
        },
        Op::Unprepend { at, member, texts },
    ])
}
