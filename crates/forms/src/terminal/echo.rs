//! Keeps a line off the screen while it is typed.

#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};

#[cfg(unix)]
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

/// The terminal that lines are typed on, where there is one whose echo can be turned off.
#[derive(Debug, Default)]
pub(super) struct Echo {
    #[cfg(unix)]
    terminal: Option<OwnedFd>,
}

impl Echo {
    /// The terminal behind an input; none where the input is not a terminal.
    #[cfg(unix)]
    pub(super) fn from_input(input: &impl AsFd) -> Self {
        let input = input.as_fd();
        Self {
            terminal: input
                .try_clone_to_owned()
                .ok()
                .filter(|terminal| isatty(terminal)),
        }
    }

    /// The terminal behind an input; `None` on systems other than Unix, where echo cannot be turned off.
    #[cfg(not(unix))]
    pub(super) fn from_input<I>(_: &I) -> Self {
        Self {}
    }

    /// Shows nothing but line breaks of what is typed until the value is dropped. `None` if that cannot be done.
    #[cfg(unix)]
    pub(super) fn hide(&self) -> Option<Hidden> {
        let terminal = self.terminal.as_ref()?.try_clone().ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut hiding = before.clone();
        hiding.local_modes.remove(LocalModes::ECHO);
        hiding.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&terminal, OptionalActions::Now, &hiding).ok()?;
        Some(Hidden { terminal, before })
    }

    /// Shows nothing but line breaks of what is typed until the value is dropped. `None` if that cannot be done.
    #[cfg(not(unix))]
    pub(super) fn hide(&self) -> Option<Hidden> {
        None
    }
}

/// The terminal as it was, which it is again when this is dropped.
pub(super) struct Hidden {
    #[cfg(unix)]
    terminal: OwnedFd,
    #[cfg(unix)]
    before: Termios,
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
