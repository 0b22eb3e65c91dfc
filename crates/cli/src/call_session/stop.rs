//! Signals that stop the process, and the opening of links.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// Returns a token that is cancelled by Ctrl-C, SIGTERM or SIGHUP.
pub(crate) fn listen() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let token = stop.clone();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let hear = |kind| {
            signal(kind)
                .map_err(|error| Failure::usage("cannot install signal handlers").because(error))
        };
        let mut interrupt = hear(SignalKind::interrupt())?;
        let mut terminate = hear(SignalKind::terminate())?;
        let mut hang_up = hear(SignalKind::hangup())?;
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
            token.cancel();
        });
    }
    #[cfg(not(unix))]
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            token.cancel();
        }
    });
    Ok(stop)
}

/// The time that the system's opener has to report that there is no browser. One that runs longer is the browser
/// itself.
const OPENED_WITHIN: Duration = Duration::from_secs(1);

/// Opens a link with the system's browser. Called only after the person agreed. The address is passed as an argument of
/// its own, so that no part of it is read as a command.
pub(crate) fn open_in_browser(address: &str) -> io::Result<()> {
    match opened(address)?.recv_timeout(OPENED_WITHIN) {
        Ok(Ok(status)) if !status.success() => Err(io::Error::other("there is no browser")),
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// Starts the system's opener and returns a channel for its exit status. A browser may keep running: only the opener is
/// waited for, so that it leaves no zombie process.
fn opened(address: &str) -> io::Result<Receiver<io::Result<ExitStatus>>> {
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
