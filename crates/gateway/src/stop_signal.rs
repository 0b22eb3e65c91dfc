//! The operator's signal to stop.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

use crate::Runtime;
use crate::transports::process::kill_servers;

/// The time in which several signals count as one.
const SAME: Duration = Duration::from_millis(500);

/// The function that is called before the process ends.
static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

/// Calls this before a gateway ends the process itself, so that the last lines of a log are written. Only the first one
/// counts. It must not wait for long.
pub fn before_exit(run: fn()) {
    let _first = BEFORE_EXIT.set(run);
}

/// Ends the process.
pub(crate) fn exit(code: i32) -> ! {
    if let Some(run) = BEFORE_EXIT.get() {
        run();
    }
    std::process::exit(code)
}

/// The signals that stop a gateway. They are caught from the moment in which this is made, so that none of them ends a
/// gateway that has said it is there.
pub struct StopSignal(Option<Signals>);

impl StopSignal {
    /// Begins to catch SIGTERM and SIGINT (Ctrl-C elsewhere), and SIGHUP too, which means that the terminal was closed,
    /// unless the gateway reloads its file at it. Must be called in a tokio runtime.
    pub fn catch(runtime: &Runtime) -> Self {
        let signals = Signals::new(runtime.reads_file_again());
        if signals.is_none() {
            tracing::error!("the gateway cannot listen for signals");
        }
        Self(signals)
    }

    /// Waits for the first signal. From then on, a further SIGTERM or SIGINT ends the process at once, with every
    /// server. Closing a terminal or forwarding a signal may send several at that moment, which count as one.
    pub(crate) async fn received(self) {
        let Some(mut signals) = self.0 else {
            return std::future::pending().await;
        };
        signals.next().await;
        tokio::spawn(async move {
            let first = Instant::now();
            signals.hangup_counts_no_more();
            loop {
                signals.next().await;
                if first.elapsed() > SAME {
                    break;
                }
            }
            kill_servers();
            exit(1);
        });
    }
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new(reads_again: bool) -> Option<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = if reads_again || ignores_hangup() {
            None
        } else {
            Some(signal(SignalKind::hangup()).ok()?)
        };
        Some(Self {
            terminate: signal(SignalKind::terminate()).ok()?,
            interrupt: signal(SignalKind::interrupt()).ok()?,
            hangup,
        })
    }

    /// Ignores further hangups, because a terminal closes once.
    fn hangup_counts_no_more(&mut self) {
        // The process keeps its handler, so that a further one does not end it.
        self.hangup = None;
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Returns `true` if this process was started to outlive its terminal, as by `nohup`.
#[cfg(target_os = "linux")]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    hangup_is_ignored(&status)
}

/// Returns the same from the process's status, whose mask has a bit for each signal from 1 on.
#[cfg(target_os = "linux")]
fn hangup_is_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// Returns `true` if this process may have been started to outlive its terminal, as by `nohup`, because it does not
/// read it.
#[cfg(all(unix, not(target_os = "linux")))]
fn ignores_hangup() -> bool {
    !std::io::IsTerminal::is_terminal(&std::io::stdin())
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
    fn new(_reads_again: bool) -> Option<Self> {
        Some(Self)
    }

    #[expect(clippy::unused_self, reason = "elsewhere there is something to do")]
    fn hangup_counts_no_more(&mut self) {}

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::hangup_is_ignored;

    #[test]
    fn a_process_that_outlives_its_terminal_is_known_by_its_mask() {
        assert!(hangup_is_ignored(
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"
        ));
        assert!(!hangup_is_ignored(
            "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n"
        ));
        assert!(!hangup_is_ignored(""));
    }
}
