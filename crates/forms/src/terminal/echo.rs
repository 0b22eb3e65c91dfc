//! Hiding a line while it is typed.

#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};

#[cfg(unix)]
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, isatty, tcflush, tcgetattr, tcsetattr,
};

/// The terminal that lines are typed on, if its echo can be turned off.
#[derive(Debug, Default)]
pub(super) struct Echo {
    #[cfg(unix)]
    terminal: Option<OwnedFd>,
    #[cfg(not(unix))]
    is_terminal: bool,
}

impl Echo {
    /// Creates it from an input; without effect if the input is not a terminal.
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

    /// Creates it without effect, on systems other than Unix, where echo cannot be turned off.
    #[cfg(not(unix))]
    pub(super) fn from_input(input: &impl std::io::IsTerminal) -> Self {
        Self {
            is_terminal: input.is_terminal(),
        }
    }

    /// Returns `true` if there is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        #[cfg(unix)]
        return self.terminal.is_some();
        #[cfg(not(unix))]
        return self.is_terminal;
    }

    /// Discards what was typed and not read so far. Returns `false` if there is no terminal.
    #[cfg(unix)]
    pub(super) fn discard_unread(&self) -> bool {
        let terminal = self.terminal.as_ref();
        terminal.is_some_and(|terminal| tcflush(terminal, QueueSelector::IFlush).is_ok())
    }

    /// Discards nothing, on systems other than Unix.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "as on Unix")]
    pub(super) fn discard_unread(&self) -> bool {
        false
    }

    /// Hides typed text, except line breaks, until the value is dropped. `None` if that is impossible.
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

    /// Hides typed text, except line breaks, until the value is dropped. `None` if that is impossible.
    #[cfg(not(unix))]
    pub(super) fn hide(&self) -> Option<Hidden> {
        None
    }
}

/// The terminal's previous settings, restored when this is dropped.
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
