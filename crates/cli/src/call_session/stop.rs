//! Signals that stop the process.

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
