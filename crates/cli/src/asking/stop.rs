//! What this process does to others: it hears the wish to stop, and opens links.

use std::io;
use std::process::{Command, Stdio};

use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// Cancelled when the person or the system wants this process to end: Ctrl-C, or SIGTERM and SIGHUP.
pub(crate) fn listen() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let token = stop.clone();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let hear = |kind| {
            signal(kind).map_err(|error| Failure::usage("cannot hear signals").because(error))
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

/// Opens a link with the system's browser. Called only after the person agreed; the address is an argument of its own,
/// so nothing in it is read as a command.
pub(crate) fn open_in_browser(address: &str) -> io::Result<()> {
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
    // The browser may live on; only its starter is waited for, so that it leaves no zombie.
    std::thread::spawn(move || child.wait());
    Ok(())
}
