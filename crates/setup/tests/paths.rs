//! The paths of clients' files on each system.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use mcp_elicit_setup::{ClientFiles, PathFacts, System};

fn paths(client: &str, system: System, folder: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let variable = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let around = PathFacts {
        system,
        variable: &variable,
        folder,
    };
    let locations = ClientFiles::find(client).unwrap().locations(&around);
    locations
        .into_iter()
        .map(|location| location.path)
        .collect()
}

#[test]
fn every_client_has_files_on_every_system() {
    let homes = [
        (System::Linux, "/work", ("HOME", "/home/me")),
        (System::MacOs, "/work", ("HOME", "/Users/me")),
        (
            System::Windows,
            "C:\\work",
            ("USERPROFILE", "C:\\Users\\me"),
        ),
    ];
    assert_eq!(ClientFiles::all().len(), 15);
    for client in ClientFiles::all() {
        for (system, folder, home) in homes {
            let found = paths(client.id(), system, folder, &[home]);
            assert!(!found.is_empty(), "{} {system:?}", client.id());
            for path in found {
                assert!(
                    path.starts_with(home.1) || path.starts_with(folder),
                    "{path}"
                );
                assert_eq!(path.contains('/'), system != System::Windows, "{path}");
                assert!(!path.contains(['{', '}']), "{path}");
            }
        }
    }
}

#[test]
fn paths_are_those_that_the_clients_document() {
    let linux = |client| paths(client, System::Linux, "/work", &[("HOME", "/home/me")]).remove(0);
    let macos = |client| paths(client, System::MacOs, "/work", &[("HOME", "/Users/me")]).remove(0);
    let at_home = [
        ("USERPROFILE", "C:\\Users\\me"),
        ("APPDATA", "C:\\Users\\me\\AppData\\Roaming"),
    ];
    let windows = |client| paths(client, System::Windows, "C:\\work", &at_home).remove(0);
    assert_eq!(
        linux("claude-desktop"),
        "/home/me/.config/Claude/claude_desktop_config.json"
    );
    assert_eq!(
        macos("claude-desktop"),
        "/Users/me/Library/Application Support/Claude/claude_desktop_config.json"
    );
    assert_eq!(
        windows("claude-desktop"),
        "C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json"
    );
    assert_eq!(linux("vscode"), "/home/me/.config/Code/User/mcp.json");
    assert_eq!(
        macos("vscode"),
        "/Users/me/Library/Application Support/Code/User/mcp.json"
    );
    assert_eq!(linux("claude-code"), "/home/me/.claude.json");
    assert_eq!(windows("codex"), "C:\\Users\\me\\.codex\\config.toml");
    assert_eq!(macos("goose"), "/Users/me/.config/goose/config.yaml");
    assert_eq!(
        windows("goose"),
        "C:\\Users\\me\\AppData\\Roaming\\Block\\goose\\config\\config.yaml"
    );
    assert_eq!(
        windows("zed"),
        "C:\\Users\\me\\AppData\\Roaming\\Zed\\settings.json"
    );
    assert_eq!(linux("opencode"), "/home/me/.config/opencode/opencode.json");
}

#[test]
fn variables_move_files() {
    let moved = [
        ("HOME", "/home/me"),
        ("XDG_CONFIG_HOME", "/c"),
        ("CODEX_HOME", "/x"),
        ("CLAUDE_CONFIG_DIR", "/y"),
        ("COPILOT_HOME", ""),
    ];
    let of = |client| paths(client, System::Linux, "/work", &moved).remove(0);
    assert_eq!(of("zed"), "/c/zed/settings.json");
    assert_eq!(of("codex"), "/x/config.toml");
    assert_eq!(of("claude-code"), "/y/.claude.json");
    assert_eq!(of("copilot-cli"), "/home/me/.copilot/mcp-config.json");
    // Without a home, only the files of the project are left.
    assert_eq!(
        paths("cursor", System::Linux, "/work", &[]),
        ["/work/.cursor/mcp.json"]
    );
    assert_eq!(
        paths("windsurf", System::MacOs, "/work", &[("HOME", "")]),
        [""; 0]
    );
}
