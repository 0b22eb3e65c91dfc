//! The terminal that the gateway was started in.

use mcp_elicit_forms::terminal::Frontend;

use super::StartError;

/// Returns the frontend on the terminal that this process was started in.
pub(super) fn terminal_frontend(plain: bool) -> Result<Frontend, StartError> {
    let frontend = if plain {
        Frontend::plain_on_tty()
    } else {
        Frontend::on_tty()
    };
    let frontend = frontend.map_err(|_| StartError::NoTerminal { background: false })?;
    if in_background() {
        return Err(StartError::NoTerminal { background: true });
    }
    Ok(frontend)
}

/// Returns `true` if the system would stop this process when it uses its terminal: another program is in the
/// foreground, such as a client that starts its servers as separate process groups.
#[cfg(unix)]
fn in_background() -> bool {
    let tty = std::fs::File::open("/dev/tty");
    let foreground = tty
        .ok()
        .and_then(|tty| rustix::termios::tcgetpgrp(&tty).ok());
    foreground.is_some_and(|group| group != rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn in_background() -> bool {
    false
}
