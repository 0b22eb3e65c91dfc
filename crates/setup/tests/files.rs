//! Real configuration files through setup and back: what is written, what stays, and what is left alone.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod corpus;

use std::fs;
use std::path::Path;

use mcp_elicit_setup::{ClientFiles, Document, SetupState, Wish};

const PROGRAM: &str = "/opt/mcp elicit/mcp-elicit";

fn wrap() -> Wish {
    Wish::Wrap {
        program: PROGRAM.to_owned(),
    }
}

fn document(client: &str, bytes: &[u8]) -> Document {
    Document::read(ClientFiles::find(client).unwrap(), bytes).unwrap()
}

/// Wraps all servers; returns the text afterwards, and the reasons of those that were left alone.
fn wrapped(client: &str, text: &str) -> (String, Vec<String>) {
    let document = document(client, text.as_bytes());
    let wishes: Vec<_> = document
        .servers()
        .iter()
        .map(|server| (server, wrap()))
        .collect();
    let plan = document.plan(&wishes);
    let left = plan
        .left_alone
        .iter()
        .map(|one| format!("{} (line {}): {}", one.name, one.line, one.why));
    (String::from_utf8(plan.after).unwrap(), left.collect())
}

#[test]
fn every_file_is_wrapped_and_comes_back_byte_for_byte() {
    let samples = corpus::all();
    assert!(samples.len() >= 60, "{}", samples.len());
    for sample in samples {
        let name = &sample.name;
        let before = document(sample.client, &sample.bytes);
        let wishes: Vec<_> = before
            .servers()
            .iter()
            .map(|server| (server, wrap()))
            .collect();
        let plan = before.plan(&wishes);
        let changed: Vec<_> = plan
            .changed
            .iter()
            .map(|changed| changed.name.as_str())
            .collect();
        assert_eq!(
            changed,
            sample.servers,
            "{name}: {:?}\n{}",
            plan.left_alone,
            String::from_utf8_lossy(&sample.bytes)
        );
        assert_eq!(plan.before, sample.bytes, "{name}");

        let after = document(sample.client, &plan.after);
        let is_wrapped = |server: &&mcp_elicit_setup::ServerEntry| matches!(server.state(), SetupState::Wrapped { program, .. } if program == PROGRAM);
        assert_eq!(
            after.servers().iter().filter(is_wrapped).count(),
            sample.servers.len(),
            "{name}"
        );
        // A second time: nothing.
        let again: Vec<_> = after
            .servers()
            .iter()
            .map(|server| (server, wrap()))
            .collect();
        assert_eq!(after.plan(&again).after, plan.after, "{name}");

        // Back, from the changes alone: the file may have other changes by then.
        let wishes = plan.changed.iter().map(|changed| {
            let server = after.find(&changed.undo).unwrap();
            (
                server,
                Wish::Unwrap {
                    undo: Some(changed.undo.clone()),
                },
            )
        });
        let wishes: Vec<_> = wishes.collect();
        let back = after.plan(&wishes);
        assert_eq!(back.left_alone, [], "{name}");
        assert_eq!(
            String::from_utf8(back.after).unwrap(),
            String::from_utf8(sample.bytes).unwrap(),
            "{name}:\n{}",
            String::from_utf8(plan.after).unwrap()
        );
    }
}

#[test]
fn bytes_outside_the_changed_values_stay() {
    for sample in corpus::all() {
        let text = String::from_utf8(sample.bytes).unwrap();
        let (after, _) = wrapped(sample.client, &text);
        // All characters of the old text are in the new one, in their order, but for the values that were replaced.
        let comments = |text: &str| -> Vec<String> {
            let found = text.lines().filter_map(|line| {
                line.find(" # ")
                    .or_else(|| line.find("// "))
                    .map(|at| line[at..].to_owned())
            });
            found.collect()
        };
        let (old, new) = (comments(&text), comments(&after));
        assert_eq!(old, new, "{}:\n{after}", sample.name);
        assert_eq!(
            text.contains("\r\n"),
            after.contains("\r\n"),
            "{}",
            sample.name
        );
        let bare = after.replace("\r\n", "");
        assert!(
            !text.contains("\r\n") || !bare.contains('\n'),
            "{}",
            sample.name
        );
        assert_eq!(
            text.starts_with('\u{feff}'),
            after.starts_with('\u{feff}'),
            "{}",
            sample.name
        );
    }
}

#[test]
fn the_new_text_is_the_expected_one() {
    let (after, _) = wrapped(
        "claude-desktop",
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\"\n      ]\n    },\n    \"b\": {\"command\": \"run\"}\n  }\n}\n",
    );
    assert_eq!(
        after,
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"/opt/mcp elicit/mcp-elicit\",\n      \"args\": [\n        \"gateway\", \"--name\", \"a\", \"--\", \"npx\",\n        \"-y\"\n      ]\n    },\n    \"b\": {\"command\": \"/opt/mcp elicit/mcp-elicit\", \"args\": [\"gateway\", \"--name\", \"b\", \"--\", \"run\"]}\n  }\n}\n"
    );
    let (after, _) = wrapped(
        "codex",
        "[mcp_servers.f] # f\nurl = \"https://f/mcp\" # u\nbearer_token_env_var = \"T\"\n",
    );
    assert_eq!(
        after,
        "[mcp_servers.f] # f\ncommand = \"/opt/mcp elicit/mcp-elicit\"\nargs = [\"gateway\", \"--name\", \"f\", \"--upstream\", \"https://f/mcp\", \"--token-env\", \"T\"] # u\nenv_vars = [\"T\"]\n"
    );
    let (after, _) = wrapped(
        "goose",
        "extensions:\n  w:\n    type: streamable_http\n    uri: https://w/mcp\n    headers:\n      X-Key: abc # k\n",
    );
    assert_eq!(
        after,
        "extensions:\n  w:\n    type: \"stdio\"\n    cmd: \"/opt/mcp elicit/mcp-elicit\"\n    args: [\"gateway\", \"--name\", \"w\", \"--upstream\", \"https://w/mcp\", \"--header-env\", \"X-Key=MCP_ELICIT_HEADER_1\"]\n    envs:\n      MCP_ELICIT_HEADER_1: abc # k\n"
    );
    let (after, _) = wrapped(
        "goose",
        "extensions:\n  w:\n    cmd: uvx\n    args:\n    - x\n    type: stdio\n",
    );
    assert_eq!(
        after,
        "extensions:\n  w:\n    cmd: \"/opt/mcp elicit/mcp-elicit\"\n    args:\n    - \"gateway\"\n    - \"--name\"\n    - \"w\"\n    - \"--\"\n    - \"uvx\"\n    - x\n    type: stdio\n"
    );
    let (after, _) = wrapped(
        "opencode",
        "{\"mcp\": {\"o\": {\"type\": \"remote\", \"url\": \"https://o/mcp\"}, \"l\": {\"type\": \"local\", \"command\": [\"run\"]}}}",
    );
    assert_eq!(
        after,
        "{\"mcp\": {\"o\": {\"type\": \"local\", \"command\": [\"/opt/mcp elicit/mcp-elicit\", \"gateway\", \"--name\", \"o\", \"--upstream\", \"https://o/mcp\", \"--sign-in\"]}, \"l\": {\"type\": \"local\", \"command\": [\"/opt/mcp elicit/mcp-elicit\", \"gateway\", \"--name\", \"l\", \"--\", \"run\"]}}}"
    );
}

#[test]
fn what_cannot_be_changed_is_named_and_left_alone() {
    let reasons = [
        (
            "claude-code",
            "{\"mcpServers\": {\"s\": {\"type\": \"sse\", \"url\": \"https://s/sse\"}}}",
            "s (line 1): it speaks HTTP+SSE, which the gateway does not",
        ),
        (
            "gemini",
            "{\"mcpServers\": {\"s\": {\"url\": \"https://s/sse\"}}}",
            "s (line 1): it speaks HTTP+SSE, which the gateway does not",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\n\"s\": {\"command\": \"a\",\n\"command\": \"b\"}}}",
            "s (line 2): `command` is there twice, again on line 3",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\n\"s\": {\"command\": \"a\"},\n\"s\": {\"command\": \"b\"}}}",
            "s (line 2): `s` is there twice, again on line 3",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\"s\": {\"command\": \"a\"}},\n\"mcpServers\": {}}",
            "s (line 1): `mcpServers` is there twice, again on line 2",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\"s\": {\"url\": \"https://s\", \"auth\": {}}}}",
            "s (line 1): the client signs in by itself (`auth`)",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\"s\": {\"url\": \"https://s\", \"headers\": {\"Accept\": \"x\"}}}}",
            "s (line 1): it sets the header `Accept`, which the gateway writes",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\"s\": {\"command\": 7}}}",
            "s (line 1): its command or an argument is not a text",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\"s\": {\"command\": \"a\", \"args\": \"b\"}}}",
            "s (line 1): its arguments are not a list",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\"s\": []}}",
            "s (line 1): it is not an object",
        ),
        (
            "cursor",
            "{\"mcpServers\": {\"s\": {}}}",
            "s (line 1): it has neither a command nor an address",
        ),
        (
            "librechat",
            "mcpServers:\n  s:\n    command: run\n    args: &a [x]\n",
            "s (line 2): it uses an anchor, an alias or a tag, on line 4",
        ),
        (
            "librechat",
            "a: &a\n  command: run\nmcpServers:\n  s:\n    <<: *a\n",
            "s (line 4): it uses an anchor, an alias or a tag, on line 5",
        ),
        (
            "librechat",
            "mcpServers: &m\n  s:\n    command: run\nb: *m\n",
            "s (line 2): an anchor, an alias or a tag is above it, on line 1",
        ),
        (
            "librechat",
            "mcpServers:\n  s:\n    url: https://s/mcp\n    headers:\n      X-User: '{{LIBRECHAT_USER_ID}}'\n",
            "s (line 2): its header `X-User` differs for each user",
        ),
        (
            "goose",
            "extensions:\n  d:\n    type: builtin\n",
            "d (line 2): it has neither a command nor an address",
        ),
        (
            "codex",
            "[mcp_servers]\na.command = \"run\"\n",
            "a (line 2): `command` is written with a dotted key",
        ),
        (
            "codex",
            "[mcp_servers.a]\nurl = \"https://a\"\nenv_http_headers = {X = \"V\"}\n",
            "a (line 1): its headers come from variables (`env_http_headers`): write `--header-env NAME=VARIABLE` by hand",
        ),
        (
            "continue",
            "mcpServers:\n- name: a\n  command: x\n- name: a\n  command: y\n",
            "a (line 2): two servers are called `a`",
        ),
    ];
    for (client, text, reason) in reasons {
        let (after, left) = wrapped(client, text);
        assert_eq!(after, text);
        assert_eq!(
            left.first().map(String::as_str),
            Some(reason),
            "{client}: {text}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_line() {
    let mistakes = [
        (
            "zed",
            "{\n  \"a\": 1,\n  \"context_servers\": {\n  \"s\" {}\n}\n",
            "line 4: ",
        ),
        ("zed", "{'a': 1}", "line 1: "),
        ("zed", "{\"a\": 1} {", "line 1: "),
        ("codex", "a = 1\n[x\n", "line 2: "),
        ("codex", "a = 1\na = 2\n", "line 2: "),
        ("goose", "a: b\n  c: d\n: [", "line "),
        (
            "goose",
            "a: 1\n---\nb: 2\n",
            "line 3: it has several documents",
        ),
    ];
    for (client, text, start) in mistakes {
        let error = Document::read(ClientFiles::find(client).unwrap(), text.as_bytes())
            .err()
            .unwrap();
        assert!(error.to_string().starts_with(start), "{text}: {error}");
    }
    let client = ClientFiles::find("zed").unwrap();
    let error = Document::read(client, b"{\"a\": \"\xff\"}").err().unwrap();
    assert_eq!(error.to_string(), "it is not text in UTF-8");
    let utf16: Vec<u8> = "\u{feff}{}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(Document::read(client, &utf16).is_err());
    let deep = "[".repeat(100_000);
    assert!(Document::read(client, deep.as_bytes()).is_err());
    assert!(Document::read(ClientFiles::find("goose").unwrap(), deep.as_bytes()).is_err());
    assert!(
        Document::read(
            ClientFiles::find("codex").unwrap(),
            format!("a = {deep}").as_bytes()
        )
        .is_err()
    );
    let large = vec![b' '; mcp_elicit_setup::MAX_BYTES + 1];
    assert_eq!(
        Document::read(client, &large).err().unwrap().to_string(),
        "it is larger than 16 MB"
    );
}

#[test]
fn an_empty_file_has_no_servers() {
    for client in ClientFiles::all() {
        for text in ["", "\n", "\u{feff}"] {
            assert!(
                document(client.id(), text.as_bytes()).servers().is_empty(),
                "{}",
                client.id()
            );
        }
    }
    assert!(document("goose", b"# nothing\n").servers().is_empty());
    assert!(document("zed", b"// nothing\n").servers().is_empty());
}

#[test]
fn two_megabytes_are_a_file_like_any_other() {
    let filler = "    \"ü 0123456789 0123456789 0123456789\": [1, 2, 3],\n".repeat(40_000);
    let text = format!("{{\n{filler}\"mcpServers\": {{\"s\": {{\"command\": \"run\"}}}}\n}}\n");
    assert!(text.len() > 2 << 20);
    let (after, left) = wrapped("claude-code", &text);
    // Two members have the same name 39,999 times, far from the server.
    assert_eq!(left, [] as [&str; 0]);
    assert_eq!(
        after.len(),
        text.len() + PROGRAM.len() - 3
            + ", \"args\": [\"gateway\", \"--name\", \"s\", \"--\", \"run\"]".len()
    );
    let filler = "k: ü 0123456789 0123456789 0123456789\n"
        .replace('k', "- k")
        .repeat(50_000);
    let text = format!("a:\n{filler}mcpServers:\n  s:\n    command: run\n");
    let (after, _) = wrapped("librechat", &text);
    assert!(after.starts_with(&text[..text.len() - 4]) && after.contains("\"run\"]"));
}

#[test]
fn a_server_that_a_launcher_or_a_hand_wrapped_counts_as_wrapped() {
    let wrapped = [
        "{\"command\": \"mcp-elicit\", \"args\": [\"gateway\", \"--\", \"x\"]}",
        "{\"command\": \"C:\\\\bin\\\\mcp-elicit.exe\", \"args\": [\"gateway\", \"--\", \"x\"]}",
        "{\"command\": \"npx\", \"args\": [\"-y\", \"mcp-elicit@0.1.0\", \"gateway\", \"--\", \"x\"]}",
        "{\"command\": \"/opt/homebrew/bin/npx\", \"args\": [\"-y\", \"mcp-elicit\", \"gateway\", \"--\", \"x\"]}",
        "{\"command\": \"uvx\", \"args\": [\"mcp-elicit\", \"gateway\", \"--upstream\", \"https://x\"]}",
        "{\"command\": \"cmd\", \"args\": [\"/c\", \"bunx\", \"mcp-elicit\", \"gateway\", \"--\", \"x\"]}",
        "{\"command\": \"env\", \"args\": [\"A=b\", \"nice\", \"-n\", \"5\", \"/opt/mcp-elicit\", \"gateway\", \"--\", \"x\"]}",
        "{\"command\": \"uv\", \"args\": [\"tool\", \"run\", \"--from=mcp-elicit\", \"mcp-elicit\", \"gateway\", \"--\", \"x\"]}",
    ];
    for entry in wrapped {
        let text = format!("{{\"mcpServers\": {{\"s\": {entry}}}}}");
        let document = document("cursor", text.as_bytes());
        assert!(
            matches!(document.servers()[0].state(), SetupState::Wrapped { .. }),
            "{entry}"
        );
    }
    let text =
        "{\"mcpServers\": {\"s\": {\"command\": \"mcp-elicit\", \"args\": [\"demo-server\"]}}}";
    let document = document("cursor", text.as_bytes());
    assert!(matches!(
        document.servers()[0].state(),
        SetupState::Program { .. }
    ));
}

#[test]
fn a_server_that_only_names_the_gateway_in_its_arguments_is_not_behind_it() {
    let others = [
        "{\"command\": \"sh\", \"args\": [\"-c\", \"exec real-server\", \"mcp-elicit\", \"gateway\"]}",
        "{\"command\": \"my-server\", \"args\": [\"--note\", \"mcp-elicit\", \"gateway\"]}",
        "{\"command\": \"npx\", \"args\": [\"-y\", \"my-server\", \"mcp-elicit\", \"gateway\"]}",
        "{\"command\": \"npx\", \"args\": [\"--call=my-server\", \"mcp-elicit\", \"gateway\"]}",
        "{\"command\": \"env\", \"args\": [\"-S\", \"my-server\", \"mcp-elicit\", \"gateway\"]}",
        "{\"command\": \"mcp-elicit\", \"args\": [\"demo-server\", \"mcp-elicit\", \"gateway\"]}",
    ];
    for entry in others {
        let text = format!("{{\"mcpServers\": {{\"s\": {entry}}}}}");
        let document = document("cursor", text.as_bytes());
        assert!(
            matches!(document.servers()[0].state(), SetupState::Program { .. }),
            "{entry}"
        );
    }
}

/// Returns `true` if a server with this command counts as behind the gateway, in a file of the project `/home/ada/project`.
fn is_behind(words: &str) -> bool {
    is_behind_in(Path::new("/home/ada/project"), words)
}

fn is_behind_in(project: &Path, words: &str) -> bool {
    let words: Vec<&str> = words.split(' ').collect();
    let entry = serde_json::json!({"command": words[0], "args": words[1..]});
    let text = serde_json::json!({"mcpServers": {"s": entry}}).to_string();
    let document = document("cursor", text.as_bytes()).of_project(project);
    matches!(document.servers()[0].state(), SetupState::Wrapped { .. })
}

#[cfg(unix)]
#[test]
fn a_program_that_a_link_or_a_package_runner_finds_in_the_project_is_not_the_gateway() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    fs::create_dir_all(project.join("tools")).unwrap();
    fs::write(project.join("tools/mcp-elicit"), "").unwrap();
    std::os::unix::fs::symlink(&project, home.path().join("elsewhere")).unwrap();
    let linked = home.path().join("elsewhere/tools/mcp-elicit");
    let linked = format!("{} gateway -- true", linked.display());
    assert!(!is_behind_in(&project, &linked), "{linked}");
    let npx = "npx -y mcp-elicit gateway -- true";
    assert!(is_behind_in(&project, npx));
    fs::create_dir_all(project.join("node_modules/.bin")).unwrap();
    fs::write(project.join("node_modules/.bin/mcp-elicit"), "").unwrap();
    assert!(
        !is_behind_in(&project, npx),
        "the project's own comes first"
    );
    assert!(is_behind_in(&project, "uvx mcp-elicit gateway -- true"));
    fs::remove_dir_all(project.join("node_modules")).unwrap();
    fs::write(project.join(".npmrc"), "registry=https://example.com/").unwrap();
    assert!(
        !is_behind_in(&project, npx),
        "the project names the registry"
    );
}

#[test]
fn only_this_program_counts_as_the_gateway() {
    for ours in [
        "mcp-elicit gateway -- true",
        "/usr/bin/mcp-elicit gateway -- true",
        "/home/ada/projects/bin/mcp-elicit gateway -- true",
        "${userHome}/.cargo/bin/mcp-elicit gateway -- true",
        "npx -y mcp-elicit gateway -- true",
        "npx -y -p mcp-elicit@0.1.0 mcp-elicit gateway -- true",
        "npm exec -- mcp-elicit@latest gateway -- true",
        "uvx mcp-elicit gateway -- true",
        "uvx --python 3.13 --from mcp-elicit mcp-elicit gateway -- true",
        "env DEBUG=1 npx mcp-elicit gateway -- true",
    ] {
        assert!(is_behind(ours), "{ours}");
    }
    for other in [
        "./tools/mcp-elicit gateway -- true",
        "tools/mcp-elicit gateway -- true",
        ".\\tools\\mcp-elicit.exe gateway -- true",
        "/home/ada/project/tools/mcp-elicit gateway -- true",
        "/proc/self/cwd/mcp-elicit gateway -- true",
        "/proc/thread-self/cwd/tools/mcp-elicit gateway -- true",
        "env -i /proc/self/cwd/mcp-elicit gateway -- true",
        "/home/ada/other/../project/tools/mcp-elicit gateway -- true",
        "${workspaceFolder}/tools/mcp-elicit gateway -- true",
        "~/.cargo/bin/mcp-elicit gateway -- true",
        "$HOME/bin/mcp-elicit gateway -- true",
        "${HOME}/bin/mcp-elicit gateway -- true",
        "${userHome}evil/mcp-elicit gateway -- true",
        "env BASH_ENV=./x.sh npx mcp-elicit gateway -- true",
        "env PYTHONPATH=. uvx mcp-elicit gateway -- true",
        "env GIT_SSH_COMMAND=./x npx mcp-elicit gateway -- true",
        "mcp-elicit@0.1.0 gateway -- true",
        "npx -y @evil/mcp-elicit gateway -- true",
        "npx -y ./mcp-elicit gateway -- true",
        "npx -y /home/ada/mcp-elicit gateway -- true",
        "npx -y mcp-elicit@npm:evil gateway -- true",
        "npx -y mcp-elicit@file:tools gateway -- true",
        "npx -p evil-pkg mcp-elicit gateway -- true",
        "npx --package=evil-pkg mcp-elicit gateway -- true",
        "npx -n --require=./x.js mcp-elicit gateway -- true",
        "npx /c mcp-elicit gateway -- true",
        "npx env mcp-elicit gateway -- true",
        "uvx --from git+https://evil.test/x mcp-elicit gateway -- true",
        "uvx --with evil-pkg mcp-elicit gateway -- true",
        "uvx --python ./python mcp-elicit gateway -- true",
        "uv run mcp-elicit gateway -- true",
        "pnpm exec mcp-elicit gateway -- true",
        "./tools/env mcp-elicit gateway -- true",
        "./npx -y mcp-elicit gateway -- true",
        "env PATH=./tools mcp-elicit gateway -- true",
        "env LD_PRELOAD=./x.so mcp-elicit gateway -- true",
        "env NODE_OPTIONS=--require=./x.js npx mcp-elicit gateway -- true",
        "env npm_config_registry=https://evil.test npx mcp-elicit gateway -- true",
    ] {
        assert!(!is_behind(other), "{other}");
    }
}

/// Returns the member or variable of this entry that puts other code into a gateway.
fn foreign_in(client: &str, entry: &serde_json::Value) -> Option<String> {
    let member = if client == "vscode" {
        "servers"
    } else {
        "mcpServers"
    };
    let text = serde_json::json!({member: {"s": entry}}).to_string();
    let document = document(client, text.as_bytes());
    document.foreign_code(&document.servers()[0])
}

#[test]
fn an_environment_that_puts_code_into_the_gateway_is_named() {
    let by_name = "mcp-elicit gateway -- true";
    let whole = "/usr/bin/mcp-elicit gateway -- true";
    let npx = "npx mcp-elicit gateway -- true";
    let uvx = "/usr/bin/uvx mcp-elicit gateway -- true";
    for (words, name, value, is_foreign) in [
        (whole, "LD_PRELOAD", "./x.so", true),
        (whole, "LD_LIBRARY_PATH", "./lib", true),
        (whole, "LD_LIBRARY_PATH", "lib", true),
        (whole, "LD_LIBRARY_PATH", "/opt/lib", false),
        (whole, "DYLD_FRAMEWORK_PATH", "lib", true),
        (whole, "DYLD_INSERT_LIBRARIES", "/x", true),
        (whole, "GCONV_PATH", ".", true),
        (whole, "PATH", "./tools:/usr/bin", false),
        (by_name, "PATH", "./tools:/usr/bin", true),
        (by_name, "PATH", "${env:PATH}:/opt/bin", false),
        // To this client, those are names of folders.
        (by_name, "PATH", "${PATH}:/opt/bin", true),
        (by_name, "PATH", "~/bin:/usr/bin", true),
        (by_name, "PATH", "${env:HOME}/bin:/usr/bin", false),
        (npx, "PATH", "/usr/bin:.", true),
        (uvx, "PATH", "/usr/bin:.", true),
        (npx, "NODE_OPTIONS", "--require ./x.js", true),
        (npx, "NODE_OPTIONS", "--max-old-space-size=99", false),
        (by_name, "NODE_OPTIONS", "--require ./x.js", false),
        (npx, "NODE_OPTIONS", "\"--require\" ./x.js", true),
        (npx, "NODE_PATH", "./x", true),
        (npx, "NODE_ENV", "production", false),
        (npx, "NPM_CONFIG_REGISTRY", "https://x.test", true),
        (npx, "npm_config_userconfig", "./x", true),
        (npx, "npm_config_loglevel", "error", false),
        (npx, "HOME", "./home", true),
        (npx, "HOME", "/home/ada", false),
        (npx, "BASH_ENV", "./x.sh", true),
        (npx, "GIT_SSH_COMMAND", "./x", true),
        (npx, "RUBYOPT", "-r./x", true),
        (npx, "PERL5OPT", "-Mx", true),
        (uvx, "UV_INDEX_URL", "https://x.test", true),
        (uvx, "UV_DEFAULT_INDEX", "https://x.test", true),
        (uvx, "PIP_INDEX_URL", "https://x.test", true),
        (uvx, "PYTHONPATH", ".", true),
        (uvx, "PYTHONSTARTUP", "./x.py", true),
        (uvx, "PYTHONUNBUFFERED", "1", false),
        (whole, "UV_INDEX_URL", "https://x.test", false),
        (by_name, "PATH", "bin:/usr/bin", true),
        (by_name, "PATH", ":/usr/bin", true),
        (by_name, "PATH", "", true),
        (by_name, "PATH", "/proc/self/cwd/bin:/bin", true),
        (by_name, "PATH", "C:\\bin;D:\\more", false),
        (by_name, "DEBUG", "./x", false),
    ] {
        let (command, args) = words.split_once(' ').unwrap();
        let args: Vec<&str> = args.split(' ').collect();
        let entry = serde_json::json!({"command": command, "args": args, "env": {name: value}});
        let found = foreign_in("cursor", &entry);
        assert_eq!(found.is_some(), is_foreign, "{words} {name}={value}");
    }
}

#[test]
fn a_file_of_variables_in_a_project_is_named_as_they_are() {
    for (file, is_foreign) in [
        ("${workspaceFolder}/.env", true),
        (".env", true),
        ("~/x.env", true),
        ("${userHome}/x.env", false),
        ("/etc/x.env", false),
    ] {
        let entry = serde_json::json!({"command": "/usr/bin/mcp-elicit", "args": ["gateway", "--", "true"], "envFile": file});
        for client in ["vscode", "cursor"] {
            let found = foreign_in(client, &entry);
            assert_eq!(found.as_deref(), is_foreign.then_some("envFile"), "{file}");
        }
    }
    let text = r#"{"servers": {"s": {"command": "x", "envFile": ".env"}, "o": {"command": "x"}}}"#;
    let document = document("vscode", text.as_bytes());
    let wishes: Vec<_> = document
        .servers()
        .iter()
        .map(|server| (server, wrap()))
        .collect();
    let plan = document.plan(&wishes);
    let told: Vec<_> = plan
        .changed
        .iter()
        .map(|one| one.foreign_code.as_deref())
        .collect();
    assert_eq!(told, [Some("envFile"), None]);
}

#[test]
fn the_folder_that_an_entry_names_is_the_projects_too() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    fs::create_dir_all(project.join("sub")).unwrap();
    let is_behind = |folder: &str, command: &[&str]| {
        let entry = serde_json::json!({"command": command[0], "args": command[1..], "cwd": folder,
            "env": {"LD_LIBRARY_PATH": project.join("lib")}});
        let text = serde_json::json!({"mcpServers": {"s": entry}}).to_string();
        let document = document("cursor", text.as_bytes()).of_project(&project);
        let server = &document.servers()[0];
        let is_behind = matches!(server.state(), SetupState::Wrapped { .. });
        assert_eq!(
            document.foreign_code(server).is_some(),
            is_behind,
            "a folder of the project by its whole path"
        );
        assert_ne!(server.is_doubtful_gateway(), is_behind);
        is_behind
    };
    let npx = ["npx", "mcp-elicit", "gateway", "--", "true"];
    let cmd = ["cmd", "/c", "mcp-elicit", "gateway", "--", "true"];
    assert!(is_behind("sub", &npx) && is_behind("sub", &cmd));
    assert!(!is_behind("${workspaceFolder}/sub", &npx));
    fs::write(project.join("sub/.npmrc"), "").unwrap();
    assert!(!is_behind("sub", &npx));
    fs::write(project.join("sub/mcp-elicit.bat"), "").unwrap();
    assert!(!is_behind("sub", &cmd));
}

#[test]
fn short_time_limits_are_raised_where_the_client_has_them() {
    let text = "[mcp_servers.a]\ncommand = \"run\"\ntool_timeout_sec = 10.0 # short\n[mcp_servers.b]\ncommand = \"run\"\ntool_timeout_sec = 600\n[mcp_servers.c]\ncommand = \"run\"\n";
    let document = document("codex", text.as_bytes());
    let wishes: Vec<_> = document
        .servers()
        .iter()
        .map(|server| (server, Wish::RaiseTimeLimit))
        .collect();
    let plan = document.plan(&wishes);
    let after = String::from_utf8(plan.after).unwrap();
    assert_eq!(after, text.replace("10.0", "300"));
    let limit = document.short_limit(&document.servers()[0]).unwrap();
    assert_eq!(
        (limit.member.as_str(), limit.milliseconds),
        ("tool_timeout_sec", 10_000)
    );

    let text = "mcpServers:\n  a:\n    command: run\n";
    let document = self::document("librechat", text.as_bytes());
    let server = &document.servers()[0];
    let plan = document.plan(&[(server, wrap()), (server, Wish::RaiseTimeLimit)]);
    let after = String::from_utf8(plan.after.clone()).unwrap();
    assert!(
        after.ends_with("\"--\", \"run\"]\n    timeout: 300000\n"),
        "{after}"
    );
    let changed = self::document("librechat", &plan.after);
    let undo = plan.changed.iter().map(|one| {
        (
            &changed.servers()[0],
            Wish::Unwrap {
                undo: Some(one.undo.clone()),
            },
        )
    });
    let back = changed.plan(&undo.collect::<Vec<_>>());
    assert_eq!(
        String::from_utf8(back.after).unwrap(),
        text,
        "{:?}",
        back.left_alone
    );
}

#[test]
fn a_diff_shows_changed_lines_and_no_values_of_variables() {
    let text = "{\"mcpServers\": {\"s\": {\"env\": {\"KEY\": \"s3cret\"}, \"command\": \"run\"}, \"o\": {\"command\": \"x\", \"env\": {\"K\": \"other\"}}}, \"token\": \"t0ken\"}";
    let document = document("cursor", text.as_bytes());
    let plan = document.plan(&[(&document.servers()[0], wrap())]);
    let shown = format!("{:?}", plan.changed[0].diff);
    assert!(shown.contains("…") && shown.contains("run"), "{shown}");
    for secret in ["s3cret", "other", "t0ken"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_file_with_too_many_servers_is_left_alone() {
    let entries = |count: usize| {
        let entry = |number: usize| format!("\"s{number}\": {{\"command\": \"x\"}}");
        let entries: Vec<String> = (0..count).map(entry).collect();
        format!("{{\"mcpServers\": {{{}}}}}", entries.join(", "))
    };
    let client = ClientFiles::find("cursor").unwrap();
    assert!(Document::read(client, entries(900).as_bytes()).is_ok());
    let refused = Document::read(client, entries(100_000).as_bytes()).err();
    let refused = refused.unwrap().to_string();
    assert!(refused.contains("more than 1000 servers"), "{refused}");
}
