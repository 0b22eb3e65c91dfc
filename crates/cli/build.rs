//! Tells the program from which commit it was built. A debug build does not ask, so that a commit makes nothing build
//! anew.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MCP_ELICIT_COMMIT");
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=MCP_ELICIT_COMMIT={commit}");
    }
}

/// Returns the commit that the builder names, else the one that is checked out.
fn commit() -> Option<String> {
    if let Ok(named) = std::env::var("MCP_ELICIT_COMMIT") {
        return Some(named).filter(|named| !named.is_empty());
    }
    if std::env::var("PROFILE").as_deref() == Ok("debug") {
        return None;
    }
    let git = |args: &[&str]| {
        let run = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(run.stdout).ok()?;
        run.status.success().then(|| text.trim().to_owned())
    };
    // A package from a registry may be unpacked inside a repository of something else.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}
