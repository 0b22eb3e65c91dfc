//! A configuration file in memory: its servers, and planned changes with their check.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::clients::ClientFiles;
use crate::edit::{self, Edit, FileEditor, Op, WrittenValue};
use crate::environment::{Paths, is_foreign};
use crate::journal::Undo;
use crate::parse::{SyntaxError, parse};
use crate::servers::{self, ServerEntry, SetupState};
use crate::tree::{Data, Node, NodeValue, PathStep, line_of};

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// The most servers of a file, with the members above them, such as projects. A person has some dozens; the work grows with
/// the square.
pub const MAX_ENTRIES: usize = 1_000;

/// A byte order mark in UTF-8.
const BOM: &str = "\u{feff}";

/// A file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not text in UTF-8.
    #[error("it is not text in UTF-8")]
    NotText,
    /// It is larger than [`MAX_BYTES`].
    #[error("it is larger than {} MB", MAX_BYTES >> 20)]
    TooLarge,
    /// It has more than [`MAX_ENTRIES`] servers.
    #[error("it has more than {MAX_ENTRIES} servers, or projects with servers")]
    TooManyEntries,
    /// It is not in its format.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
}

/// A configuration file.
pub struct Document {
    client: &'static ClientFiles,
    /// Without a byte order mark.
    text: String,
    has_bom: bool,
    root: Node,
    servers: Vec<ServerEntry>,
    /// The folder of the project whose file it is.
    project: Option<PathBuf>,
}

/// A wanted change of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Put this program before it.
    Wrap {
        /// The program of the gateway.
        program: String,
    },
    /// Raise its time limit, if calls may end while a person is still asked.
    RaiseTimeLimit,
    /// Take the gateway from before it.
    Unwrap {
        /// The changes from the journal that undo the earlier ones; none if it was wrapped by hand.
        undo: Option<Undo>,
    },
}

/// The planned changes of a file.
#[derive(Clone, Debug)]
pub struct FilePlan {
    /// The bytes before.
    pub before: Vec<u8>,
    /// The bytes afterwards; the same if nothing is to be changed.
    pub after: Vec<u8>,
    /// The changed servers.
    pub changed: Vec<ChangedServer>,
    /// The servers that cannot be changed, each with its line and the reason.
    pub left_alone: Vec<LeftAlone>,
}

/// A changed server.
#[derive(Clone, Debug)]
pub struct ChangedServer {
    /// Its name.
    pub name: String,
    /// The changed lines, with the values of variables and headers left out.
    pub diff: Vec<DiffLine>,
    /// The variable, or the member with more of them, that puts other code into the gateway that was put before it.
    pub foreign_code: Option<String>,
    /// The changes that undo these.
    pub undo: Undo,
}

/// A server that is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// Its name.
    pub name: String,
    /// Its line, from 1.
    pub line: usize,
    /// The reason, as a clause.
    pub why: String,
}

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffLine {
    /// The line in the file at which the following ones are, from 1.
    At(usize),
    /// A line that goes.
    Old(String),
    /// A line that comes.
    New(String),
}

/// A time limit of a client that is shorter than a call may be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortLimit {
    /// The member that sets it.
    pub member: String,
    /// The time, in milliseconds.
    pub milliseconds: u64,
}

/// The shortest time limit that leaves room for the 50 seconds for which the gateway holds a call.
const ENOUGH: u64 = 60_000;

/// The time limit that is set, in milliseconds.
const RAISED: u64 = 300_000;

impl Document {
    /// Reads a file of this client.
    pub fn read(client: &'static ClientFiles, bytes: &[u8]) -> Result<Self, ReadError> {
        if bytes.len() > MAX_BYTES {
            return Err(ReadError::TooLarge);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| ReadError::NotText)?;
        let has_bom = text.starts_with(BOM);
        let text = text.strip_prefix(BOM).unwrap_or(text).to_owned();
        let root = parse(client.format, &text)?;
        if servers::count(client, &root) > MAX_ENTRIES {
            return Err(ReadError::TooManyEntries);
        }
        let servers = servers::find(client, &text, &root);
        Ok(Self {
            client,
            text,
            has_bom,
            root,
            servers,
            project: None,
        })
    }

    /// Treats it as a file of the project in this folder: a program in the folder is the project's, and not the gateway.
    #[must_use]
    pub fn of_project(mut self, folder: &Path) -> Self {
        for server in &mut self.servers {
            server.refuse_program_in(folder);
        }
        self.project = Some(folder.to_owned());
        self
    }

    /// Returns its servers, in its order.
    pub fn servers(&self) -> &[ServerEntry] {
        &self.servers
    }

    /// Returns the variables that the client sets for this server.
    pub fn environment(&self, server: &ServerEntry) -> Vec<(String, String)> {
        let names = &self.client.entry;
        let entry = self.root.at(&server.path);
        let maps = [
            entry.and_then(|entry| entry.get(&names.env)),
            entry.and_then(|entry| entry.get(&names.command)?.get(&names.env)),
        ];
        let members = maps.into_iter().flatten().flat_map(Node::members);
        members
            .filter_map(|member| Some((member.key.clone(), member.value.word()?.to_owned())))
            .collect()
    }

    /// Returns the variable of a server's environment that puts code into the gateway or its launcher, or leads to a program
    /// of the same name in a folder of the project, or the member that names a file of the project with variables; `None` if
    /// there is none, or the gateway is not before the server.
    pub fn foreign_code(&self, server: &ServerEntry) -> Option<String> {
        match server.state() {
            SetupState::Wrapped {
                launcher, program, ..
            } => self.foreign_to(server, launcher, program),
            SetupState::Program { .. }
            | SetupState::Url { .. }
            | SetupState::Unsupported { .. } => None,
        }
    }

    /// Returns the same for a gateway of this program that is put before the server.
    pub fn foreign_code_for(&self, server: &ServerEntry, program: &str) -> Option<String> {
        self.foreign_to(server, &[], program)
    }

    fn foreign_to(
        &self,
        server: &ServerEntry,
        launcher: &[String],
        program: &str,
    ) -> Option<String> {
        let names = &self.client.entry;
        let paths = Paths {
            project: self.project.as_deref(),
            ..names.paths()
        };
        let mut variables = self.environment(server).into_iter();
        let found = variables.find(|(name, value)| {
            let variable = (name.as_str(), value.as_str());
            is_foreign(launcher, program, variable, paths)
        });
        let in_file = || {
            let member = names.env_file.as_ref()?;
            let file = self.root.at(&server.path)?.get(member)?;
            let is_fixed = file.text().is_some_and(|file| paths.is_fixed(file));
            (!is_fixed).then(|| member.clone())
        };
        found.map(|(name, _)| name).or_else(in_file)
    }

    /// Returns the time limit of this server, if it is too short for a person.
    pub fn short_limit(&self, server: &ServerEntry) -> Option<ShortLimit> {
        let limit = self.client.time_limit()?;
        let set = self.root.at(&server.path)?.get(&limit.member);
        let number = match set {
            Some(node) => node.word()?.parse::<f64>().ok()?,
            None => Self::as_float(limit.default),
        };
        let milliseconds = number * Self::as_float(limit.milliseconds);
        // A limit of 0 is none with some clients.
        let is_short = milliseconds > 0.0 && milliseconds < Self::as_float(ENOUGH);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 60,000"
        )]
        is_short.then(|| ShortLimit {
            member: limit.member.clone(),
            milliseconds: milliseconds as u64,
        })
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the numbers of the table are small"
    )]
    fn as_float(number: u64) -> f64 {
        number as f64
    }

    /// Plans changes. Each server is changed as a whole or left alone; the result is read again, and differs in exactly
    /// the intended values.
    pub fn plan(&self, wishes: &[(&ServerEntry, Wish)]) -> FilePlan {
        let mut chosen: Vec<(&ServerEntry, Vec<Op>, Vec<Edit>)> = Vec::new();
        let mut left_alone = Vec::new();
        for (server, wish) in wishes {
            match self.planned(server, wish) {
                Ok((ops, _)) if ops.is_empty() => {}
                Ok((ops, edits)) => chosen.push((server, ops, edits)),
                Err(why) => left_alone.push(LeftAlone {
                    name: server.name().to_owned(),
                    line: server.line(),
                    why,
                }),
            }
        }
        let edits: Vec<Edit> = chosen
            .iter()
            .flat_map(|(.., edits)| edits.clone())
            .collect();
        let all: Vec<_> = chosen
            .iter()
            .map(|(server, ops, _)| (*server, ops.as_slice()))
            .collect();
        let after = match self.applied(&edits, &all) {
            Ok(after) => after,
            Err(why) => {
                left_alone.extend(chosen.iter().map(|(server, ..)| LeftAlone {
                    name: server.name().to_owned(),
                    line: server.line(),
                    why: why.clone(),
                }));
                chosen.clear();
                self.text.clone()
            }
        };
        let changed = chosen.iter().filter_map(|(server, ops, edits)| {
            let entry = self.root.at(&server.path)?;
            Some(ChangedServer {
                name: server.name().to_owned(),
                diff: self.diff(entry, edits),
                foreign_code: wishes.iter().find_map(|(wished, wish)| match wish {
                    Wish::Wrap { program } if wished.path == server.path => {
                        self.foreign_code_for(server, program)
                    }
                    _ => None,
                }),
                undo: Undo {
                    path: server.path.clone(),
                    name: server.name().to_owned(),
                    ops: edit::inverse(&self.text, entry, ops).unwrap_or_default(),
                },
            })
        });
        FilePlan {
            before: self.bytes(&self.text),
            changed: changed.collect(),
            after: self.bytes(&after),
            left_alone,
        }
    }

    /// Finds the server that the journal names, if it is still there under its name.
    pub fn find(&self, undo: &Undo) -> Option<&ServerEntry> {
        let same_path = self
            .servers
            .iter()
            .find(|server| server.path == undo.path && server.name() == undo.name);
        let is_list = matches!(undo.path.last(), Some(PathStep::Index(_)));
        let by_name = || {
            self.servers
                .iter()
                .find(|server| is_list && server.name() == undo.name)
        };
        same_path.or_else(by_name)
    }

    fn bytes(&self, text: &str) -> Vec<u8> {
        let bom = if self.has_bom { BOM } else { "" };
        format!("{bom}{text}").into_bytes()
    }

    /// Returns the changes of one server and their edits, which were checked alone.
    fn planned(&self, server: &ServerEntry, wish: &Wish) -> Result<(Vec<Op>, Vec<Edit>), String> {
        let gone = || "it is gone".to_owned();
        if let SetupState::Unsupported { why } = server.state() {
            return Err(why.clone());
        }
        let entry = self.root.at(&server.path).ok_or_else(gone)?;
        let is_wrapped = matches!(server.state(), SetupState::Wrapped { .. });
        let ops = match wish {
            Wish::Wrap { .. } if is_wrapped => Vec::new(),
            Wish::Wrap { program } => servers::wrap(self.client, entry, server.name(), program)?,
            Wish::RaiseTimeLimit => self.raise(server, entry),
            Wish::Unwrap { .. } if !is_wrapped => Vec::new(),
            Wish::Unwrap { undo: Some(undo) } => undo.ops.clone(),
            Wish::Unwrap { undo: None } => servers::unwrap(self.client, entry)?,
        };
        let editor = FileEditor {
            text: &self.text,
            format: self.client.format,
        };
        let edits = ops
            .iter()
            .map(|op| editor.edits(entry, op))
            .collect::<Result<Vec<_>, _>>()?
            .concat();
        self.applied(&edits, &[(server, &ops)])?;
        Ok((ops, edits))
    }

    fn raise(&self, server: &ServerEntry, entry: &Node) -> Vec<Op> {
        let (Some(limit), Some(_)) = (self.client.time_limit(), self.short_limit(server)) else {
            return Vec::new();
        };
        let new = WrittenValue::Number(RAISED / limit.milliseconds);
        let (at, member) = (Vec::new(), limit.member.clone());
        if entry.get(&limit.member).is_some() {
            return vec![Op::Set { at, member, new }];
        }
        let names = &self.client.entry;
        let mut anchors = [&names.args, &names.command, &names.url].into_iter();
        let after = anchors.find(|member| entry.get(member).is_some()).cloned();
        after
            .map(|after| Op::AddAfter {
                at,
                after,
                member,
                new,
            })
            .into_iter()
            .collect()
    }

    /// Applies edits, reads the result, and compares it with the intended values.
    fn applied(&self, edits: &[Edit], changes: &[(&ServerEntry, &[Op])]) -> Result<String, String> {
        let unusual = || "it is written in an unusual form: change it by hand".to_owned();
        let after = edit::apply(&self.text, edits).ok_or_else(unusual)?;
        let mut intended: Data = self.root.data();
        for (server, ops) in changes {
            let entry = intended.at_mut(&server.path).ok_or_else(unusual)?;
            edit::apply_to_data(entry, ops).ok_or_else(unusual)?;
        }
        let read = parse(self.client.format, &after).map_err(|_| unusual())?;
        if read.data() == intended {
            Ok(after)
        } else {
            Err(unusual())
        }
    }

    /// Returns the lines that edits within an entry change.
    fn diff(&self, entry: &Node, edits: &[Edit]) -> Vec<DiffLine> {
        let mut sorted: Vec<&Edit> = edits.iter().collect();
        sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let mut secrets = Vec::new();
        self.secrets(entry, &mut secrets);
        let mut lines = Vec::new();
        let mut rest = sorted.as_slice();
        while let Some(first) = rest.first() {
            let mut range = self.lines(entry, &first.range);
            let mut count = 1;
            while let Some(next) = rest.get(count).filter(|next| next.range.start <= range.end) {
                range.end = range.end.max(self.lines(entry, &next.range).end);
                count += 1;
            }
            let (group, others) = rest.split_at(count);
            rest = others;
            let within = |at: &Range<usize>| range.start <= at.start && at.end <= range.end;
            let masks = secrets
                .iter()
                .filter(|at| within(at))
                .map(|at: &Range<usize>| Edit {
                    range: at.clone(),
                    text: "…".to_owned(),
                });
            let masks: Vec<Edit> = masks.collect();
            let changes: Vec<Edit> = group.iter().map(|edit| (*edit).clone()).collect();
            let show = |edits: &[Edit]| {
                let shifted: Vec<Edit> = edits
                    .iter()
                    .map(|edit| Edit {
                        range: edit.range.start - range.start..edit.range.end - range.start,
                        text: edit.text.clone(),
                    })
                    .collect();
                let text = self.text.get(range.clone()).unwrap_or_default();
                edit::apply(text, &shifted).unwrap_or_default()
            };
            lines.push(DiffLine::At(line_of(&self.text, range.start)));
            let (old, new) = (show(&masks), show(&[masks, changes].concat()));
            lines.extend(old.lines().map(|line| DiffLine::Old(line.to_owned())));
            lines.extend(new.lines().map(|line| DiffLine::New(line.to_owned())));
        }
        lines
    }

    /// Returns the whole lines of a range, without what is outside the entry on them.
    fn lines(&self, entry: &Node, range: &Range<usize>) -> Range<usize> {
        let text = &self.text;
        let mut start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let mut end = text[range.end..]
            .find('\n')
            .map_or(text.len(), |at| range.end + at);
        // A table of TOML may consist of several parts.
        if entry.range.contains(&range.start) && range.end <= entry.range.end {
            start = start.max(entry.range.start.min(range.start));
            end = end.min(entry.range.end);
        }
        start..end
    }

    fn secrets(&self, entry: &Node, found: &mut Vec<Range<usize>>) {
        let names = &self.client.entry;
        for member in entry.members() {
            let is_secret = member.key == names.env || member.key == names.headers;
            if is_secret {
                texts(&member.value, found);
            } else {
                self.secrets(&member.value, found);
            }
        }
    }
}

fn texts(node: &Node, found: &mut Vec<Range<usize>>) {
    match &node.value {
        NodeValue::Text(_) | NodeValue::Other(_) => found.push(node.range.clone()),
        NodeValue::List(nodes, _) => nodes.iter().for_each(|one| texts(one, found)),
        NodeValue::Map(members, _) => members.iter().for_each(|one| texts(&one.value, found)),
    }
}
