//! The one gate through which this program opens anything outside itself: links that a person agreed to visit, and pages
//! that this process has just written.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mcp_elicit_core::link::{Link, LinkPolicy};
use tempfile::NamedTempFile;

/// The longest address that is opened, in bytes: that of a sign-in holds scopes, a challenge and a state.
const LONGEST: usize = 16_384;

/// The time that the system's opener has to report that there is no browser. One that runs longer is the browser
/// itself.
const OPENED_WITHIN: Duration = Duration::from_secs(1);

/// Opens a link with the system's browser. Called only after the person agreed. Only http and https are opened: the
/// system's opener would start a program for another scheme.
pub(crate) fn open_link(address: &str) -> io::Result<()> {
    let mut policy = LinkPolicy::default();
    policy.max_bytes = LONGEST;
    let link = Link::parse_with(address, &policy)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    open(OsStr::new(link.as_str()))
}

/// Opens a page that this process has written for the person.
pub(crate) fn open_page(page: &NamedTempFile) -> io::Result<()> {
    open(page.path().as_os_str())
}

/// The address is passed as an argument of its own, so that no part of it is read as a command.
fn open(address: &OsStr) -> io::Result<()> {
    match opened(address)?.recv_timeout(OPENED_WITHIN) {
        Ok(Ok(status)) if !status.success() => Err(io::Error::other("there is no browser")),
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// Starts the system's opener and returns a channel for its exit status. A browser may keep running: only the opener is
/// waited for, so that it leaves no zombie process.
fn opened(address: &OsStr) -> io::Result<Receiver<io::Result<ExitStatus>>> {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut child = Command::new(program)
        .args(arguments)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(child.wait()));
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::open_link;

    #[test]
    fn no_address_of_another_kind_gets_to_the_opener() {
        for address in [
            "file:///etc/passwd",
            "javascript:alert(1)//",
            "vscode://x/y",
            "ssh://-oProxyCommand=x/",
            "-h",
            "/etc/passwd",
            "",
        ] {
            let refused = open_link(address).expect_err(address);
            assert_eq!(
                refused.kind(),
                std::io::ErrorKind::InvalidInput,
                "{address}"
            );
        }
    }
}
