//! `setup` as a person uses it: files in a home, the program, and the gateway that a client then starts.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod raw;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use raw::{PROGRAM, Raw, inbox, text};
use serde_json::{Value, json};

/// A home with an installed program, and a folder in which commands run.
struct Home(tempfile::TempDir);

impl Home {
    fn new(files: &[(&str, &str)]) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for folder in ["project", "bin"] {
            fs::create_dir(home.path(folder)).unwrap();
        }
        symlink(PROGRAM, home.path("bin/mcp-elicit")).unwrap();
        for (name, text) in files {
            home.write(name, text);
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Runs a command without a terminal.
    fn run(&self, words: &[&str]) -> Run {
        let output: Output = Command::new(PROGRAM)
            .args(words)
            .env_clear()
            .env("HOME", self.0.path())
            .env("PATH", self.path("bin"))
            .env("MCP_ELICIT_STATE", self.state())
            .current_dir(self.path("project"))
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn setup(&self, words: &[&str]) -> Run {
        let program = self.path("bin/mcp-elicit");
        let program = ["--program", program.to_str().unwrap()];
        self.run(&[&["setup"], words, &program].concat())
    }

    fn undo(&self, words: &[&str]) -> Run {
        self.run(&[&["setup", "--undo", "--yes"], words].concat())
    }
}

#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

const CURSOR: &str = ".cursor/mcp.json";
const ONE: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"deploy\": {\"command\": \"run\", \"env\": {\"KEY\": \"s3cret\"}}\n  }\n}\n";

#[test]
fn a_wrapped_server_starts_and_its_question_is_answered() {
    let server = json!({"mcpServers": {"demo": {"command": PROGRAM, "args": ["demo-server"]}}});
    let home = Home::new(&[(CURSOR, &server.to_string())]);
    let done = home.setup(&["--all", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    let written: Value = serde_json::from_str(&home.read(CURSOR)).unwrap();
    let entry = &written["mcpServers"]["demo"];
    let words = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap());
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command
        .args(words)
        .env("MCP_ELICIT_STATE", home.state())
        .stderr(std::process::Stdio::null());
    let mut client = Raw::start(command);
    client.initialize("2025-11-25", &json!({}));
    client.call(2, "deploy", &json!({}));
    assert_eq!(client.next()["method"], "notifications/progress");
    let (_, open) = inbox(&home.state(), &["list"]);
    let id = open[0]["id"].as_str().unwrap();
    assert!(inbox(&home.state(), &["accept", id, "environment=staging"]).0);
    assert!(text(&client.result(2)).contains("staging"));
}

#[test]
fn a_second_run_changes_nothing_and_undo_restores_every_byte() {
    let codex = "# models\nmodel = \"x\" # mine\n\n[mcp_servers.docs]\ncommand = \"npx\" # c\nargs = [\"-y\", \"docs\"]\n";
    let goose = "# goose\nextensions:\n  fetch: # f\n    cmd: uvx\n    args: [mcp-server-fetch] # a\n    type: stdio\n";
    let zed = "{\n  // my theme\n  \"theme\": \"One Dark\",\n  \"context_servers\": {\n    \"s\": {\"command\": \"s\", \"args\": []},\n  },\n}\n";
    let files = [
        (".codex/config.toml", codex),
        (".config/goose/config.yaml", goose),
        (".config/zed/settings.json", zed),
        (CURSOR, ONE),
    ];
    let home = Home::new(&files);
    let done = home.setup(&["--all", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    let after = files.map(|(name, before)| {
        let after = home.read(name);
        assert!(after.contains("gateway") && after != before);
        // Two installers of the field lose these: one replaces Zed's file, another drops comments of TOML and YAML.
        for mark in [
            "# models",
            "# mine",
            "# c",
            "# goose",
            "# f",
            "# a",
            "// my theme",
            "\"One Dark\"",
        ] {
            assert_eq!(
                before.contains(mark),
                after.contains(mark),
                "{name}: {mark}"
            );
        }
        after
    });
    let journal = || fs::read_dir(home.path("state/setup")).unwrap().count();
    let entries = journal();
    let again = home.setup(&["--all", "--yes"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.err.contains("nothing to change"), "{again:?}");
    assert_eq!(journal(), entries);
    for ((name, _), after) in files.iter().zip(&after) {
        assert_eq!(home.read(name), *after);
    }
    let undone = home.undo(&[]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(undone.out.contains("byte for byte"));
    for (name, before) in files {
        assert_eq!(home.read(name), before);
    }
    assert_eq!(home.undo(&[]).code, 0);
}

#[test]
fn a_dry_run_and_a_missing_terminal_change_nothing() {
    let home = Home::new(&[(CURSOR, ONE)]);
    let shown = home.setup(&["--all", "--dry-run"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown.out.contains("+ ") && shown.out.contains("--name") && !shown.out.contains("s3cret"),
        "{shown:?}"
    );
    let asked = home.setup(&["--all"]);
    assert_eq!(asked.code, 2);
    assert!(
        asked.err.contains("--yes") && asked.out.contains("--name"),
        "{asked:?}"
    );
    assert_eq!(home.read(CURSOR), ONE);
    assert!(!home.state().exists());
    let listed = home.run(&["setup"]);
    assert_eq!(listed.code, 0);
    assert!(
        listed.out.contains("deploy") && listed.err.contains("setup --all"),
        "{listed:?}"
    );
}

#[test]
fn names_choose_clients_and_servers() {
    let two = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"x\"}}}";
    let home = Home::new(&[(CURSOR, two), (".codeium/windsurf/mcp_config.json", two)]);
    assert_eq!(home.setup(&["cursor", "b", "--yes"]).code, 0);
    assert!(
        home.read(CURSOR).contains("\"a\": {\"command\": \"x\"}")
            && home.read(CURSOR).contains("\"--name\", \"b\"")
    );
    assert_eq!(home.read(".codeium/windsurf/mcp_config.json"), two);
    let unknown = home.setup(&["cursr", "--yes"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.err.contains("`cursr`") && unknown.err.contains("servers here: a, b"),
        "{unknown:?}"
    );
    assert_eq!(home.undo(&["b"]).code, 0);
    assert_eq!(home.read(CURSOR), two);
}

#[test]
fn files_of_a_project_get_the_name_of_the_program() {
    let home = Home::new(&[(
        "project/.mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
    )]);
    let shown = home.run(&["setup", "--all", "--yes", "--program", "mcp-elicit"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        home.read("project/.mcp.json")
            .contains("\"command\": \"mcp-elicit\"")
    );
    assert!(shown.err.contains("PATH"));
}

#[test]
fn a_variable_that_puts_other_code_into_the_gateway_is_told_with_the_change() {
    let text = r#"{"servers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env"}, "b": {"command": "x", "env": {"PATH": "./bin"}}, "c": {"command": "x"}}}"#;
    let home = Home::new(&[("project/.vscode/mcp.json", text)]);
    let shown = home.run(&["setup", "--all", "--dry-run", "--program", "mcp-elicit"]);
    for words in ["warning: a: `envFile`", "warning: b: `PATH`"] {
        assert!(shown.out.contains(words), "{shown:?}");
    }
    assert!(!shown.out.contains("warning: c"), "{shown:?}");
}

#[test]
fn the_written_program_has_to_be_there_and_to_stay() {
    let home = Home::new(&[(CURSOR, ONE)]);
    home.write("bin/data", "");
    let refused = |program: &str, words: &str| {
        let done = home.run(&["setup", "--all", "--yes", "--program", program]);
        assert_eq!(done.code, 2);
        assert!(
            done.err.contains(words) && done.err.contains("next:"),
            "{done:?}"
        );
    };
    refused("/does/not/exist/mcp-elicit", "there is no such file");
    refused("no-such-program", "no such program on the PATH");
    refused(
        home.path("bin/data").to_str().unwrap(),
        "it may not be executed",
    );
    // The program of a test is in a build folder.
    let own = home.run(&["setup", "--all", "--yes"]);
    assert_eq!(own.code, 2);
    assert!(
        own.err.contains("a build folder") && own.err.contains("--program"),
        "{own:?}"
    );
    assert_eq!(home.read(CURSOR), ONE);
}

#[test]
fn what_cannot_be_changed_is_named_and_the_rest_is_done() {
    let home = Home::new(&[
        (CURSOR, ONE),
        (
            ".config/zed/settings.json",
            "{\n  \"a\": 1\n  \"b\": 2\n}\n",
        ),
        (
            ".gemini/settings.json",
            "{\"mcpServers\": {\"old\": {\"url\": \"https://x/sse\"}, \"g\": {\"command\": \"x\"}}}",
        ),
        (".kiro/settings/mcp.json", ONE),
    ]);
    fs::set_permissions(
        home.path(".kiro/settings/mcp.json"),
        fs::Permissions::from_mode(0o400),
    )
    .unwrap();
    symlink("/does/not/exist", home.path(".codeium")).unwrap();
    fs::create_dir_all(home.path(".copilot")).unwrap();
    symlink("nowhere.json", home.path(".copilot/mcp-config.json")).unwrap();
    fs::create_dir_all(home.path(".codex")).unwrap();
    symlink("config.toml", home.path(".codex/config.toml")).unwrap();
    let done = home.setup(&["--all", "--yes"]);
    assert_eq!(done.code, 1, "{done:?}");
    for words in [
        "line 2: Expected comma",
        "it is read-only",
        "a symbolic link to a file that does not exist",
        "Too many levels of symbolic links",
        "make it writable",
    ] {
        assert!(done.out.contains(words), "{words}: {done:?}");
    }
    assert!(
        home.read(CURSOR).contains("gateway")
            && home
                .read(".gemini/settings.json")
                .contains("\"--name\", \"g\"")
    );
    assert_eq!(home.read(".kiro/settings/mcp.json"), ONE);
    let named = home.setup(&["old", "--yes"]);
    assert_eq!(named.code, 1);
    assert!(named.out.contains("HTTP+SSE"), "{named:?}");
}

#[test]
fn a_symbolic_link_stays_and_its_target_is_changed() {
    let home = Home::new(&[("dotfiles/mcp.json", ONE)]);
    fs::create_dir(home.path(".cursor")).unwrap();
    symlink("../dotfiles/mcp.json", home.path(CURSOR)).unwrap();
    assert_eq!(home.setup(&["--all", "--yes"]).code, 0);
    assert!(
        fs::symlink_metadata(home.path(CURSOR))
            .unwrap()
            .is_symlink()
    );
    assert!(home.read("dotfiles/mcp.json").contains("gateway"));
    assert_eq!(home.undo(&[]).code, 0);
    assert_eq!(home.read("dotfiles/mcp.json"), ONE);
    assert!(
        fs::symlink_metadata(home.path(CURSOR))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn a_file_that_changed_since_keeps_its_changes() {
    let home = Home::new(&[(CURSOR, ONE)]);
    assert_eq!(home.setup(&["--all", "--yes"]).code, 0);
    let changed = home.read(CURSOR).replace("// mine", "// mine, later");
    home.write(CURSOR, &changed);
    let undone = home.undo(&[]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(home.read(CURSOR), ONE.replace("// mine", "// mine, later"));
    assert!(journal_is_empty(&home.path("state/setup")));
}

fn journal_is_empty(folder: &Path) -> bool {
    fs::read_dir(folder)
        .unwrap()
        .all(|entry| entry.unwrap().file_name() == "lock")
}

#[test]
fn an_address_with_a_secret_is_no_argument_of_a_program() {
    let text = r#"{"mcpServers": {
  "query": {"url": "https://e.example/mcp?tenant=a&Api-Key=hush-hush"},
  "user": {"url": "https://u:hush-hush@e.example/mcp"},
  "variable": {"url": "https://e.example/mcp?access_token=${env:HUSH}"},
  "function": {"url": "https://e.example/mcp?code=hush-hush"},
  "sas": {"url": "https://e.example/mcp?sv=1&sig=hush-hush"},
  "shared": {"url": "https://e.example/mcp?SAS=hush-hush"},
  "pat": {"url": "https://e.example/mcp?pat=hush-hush"},
  "jwt": {"url": "https://e.example/mcp?jwt=hush-hush"},
  "bearer": {"url": "https://e.example/mcp?bearer=hush-hush"},
  "session": {"url": "https://e.example/mcp?session=hush-hush"},
  "fragment": {"url": "https://e.example/mcp#token=hush-hush"},
  "plain": {"url": "https://e.example/mcp?project_ref=abc@d"},
  "encoded": {"url": "https://e.example/mcp?country_code=de&design=a"}
}}"#;
    let home = Home::new(&[(CURSOR, text)]);
    let done = home.setup(&["--all", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!done.out.contains("hush-hush"), "{done:?}");
    assert!(done.out.contains("what may be a secret"), "{done:?}");
    let changed = home.read(CURSOR);
    assert_eq!(changed.matches("gateway").count(), 2, "{changed}");
    assert!(changed.contains("\"--upstream\", \"https://e.example/mcp?project_ref=abc@d\""));
    assert!(changed.contains("\"--upstream\", \"https://e.example/mcp?country_code=de&design=a\""));
    for line in text
        .lines()
        .filter(|line| line.to_lowercase().contains("hush"))
    {
        assert!(changed.contains(line), "{changed}");
    }
}
