//! Runs the real binary with a clean environment, so that a test sees what a user sees.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The result of a run.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `mcp-elicit` with arguments and stdin.
pub(crate) fn run(args: &[&str], stdin: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(args)
        .env_clear()
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut input = child.stdin.take().expect("stdin is piped");
    let bytes = stdin.to_vec();
    // A command that does not read its stdin closes it, which is no failure of the test.
    let writer = std::thread::spawn(move || input.write_all(&bytes).is_ok());
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("the writer ends");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// A folder with files in it, removed at the end of the test.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).expect("a file is written");
        }
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.to_str().expect("a UTF-8 path").to_owned()
    }
}
