//! The files of `deploy/`: they fit together and the program, and the gateways of the compose file really serve.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "../raw/browser.rs"]
mod browser;
mod files;
mod guide;
mod running;
mod yaml;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-elicit");
/// The folder in which a container of the compose file finds its secrets.
const SECRETS: &str = "/run/secrets";
/// The state folder in the image.
const STATE: &str = "/var/lib/mcp-elicit";

/// Returns the path of a file of the repository.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// Returns a file of the repository.
fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the search path in which the program under test is found first, as the image's is.
fn search_path() -> String {
    let folder = Path::new(PROGRAM).parent().unwrap().display();
    let others = std::env::var("PATH").unwrap_or_default();
    format!("{folder}:{others}")
}

/// Makes the secrets of the compose file in a folder, beside those that are there. Returns the folder of the secrets.
fn make_secrets(folder: &Path) -> PathBuf {
    let script = folder.join("make-secrets");
    std::fs::copy(path("deploy/compose/make-secrets"), &script).unwrap();
    let done = Command::new("sh").arg(&script).output().unwrap();
    assert!(done.status.success(), "make-secrets: {done:?}");
    folder.join("secrets")
}

/// Runs a script of a container.
fn run_script(script: &str) {
    let done = Command::new("sh").args(["-euc", script]).output().unwrap();
    assert!(done.status.success(), "{script}: {done:?}");
}

/// Returns the user of the container in which the program under test runs: this one.
fn owner() -> String {
    let id = |option| {
        let done = Command::new("id").arg(option).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    format!("{}:{}", id("-u"), id("-g"))
}
