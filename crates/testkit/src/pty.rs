//! A real pseudo-terminal with a child process on it, and its screen as a person would see it. Errors panic, because
//! they end the test.
#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "what goes wrong ends the test, as the module says"
)]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub use portable_pty::CommandBuilder;
use portable_pty::{Child, MasterPty, PtySize, SlavePty, native_pty_system};
pub use vt100::{Color, Screen};

/// The interval at which the screen is read, and the number of readings before a test gives up, which is far more than
/// any machine needs.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLLS: usize = 3_000;

/// The time after a text in which no person can have read it, with a good margin, and the notice of lines that came within it.
const TIME_TO_READ: Duration = Duration::from_millis(400);
const EARLY: &str = "type it again";
/// The text on a full screen whose question has only just appeared, so that no key counts yet.
const UNREAD: &str = "Read first";

/// A terminal of a given size, and the child process that asks on it.
pub struct TestTerminal {
    screen: Arc<Mutex<vt100::Parser>>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Kept open: a terminal that no process has open for a moment looks closed from this side.
    _slave: Box<dyn SlavePty + Send>,
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

/// Returns a command with the environment of a common terminal with colours and UTF-8.
pub fn command(program: impl AsRef<OsStr>) -> CommandBuilder {
    let mut command = CommandBuilder::new(program);
    command.env("TERM", "xterm-256color");
    command.env("LC_ALL", "C.UTF-8");
    command.env_remove("NO_COLOR");
    command
}

impl TestTerminal {
    /// Starts the command on a new terminal of this size.
    pub fn start(command: CommandBuilder, columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let mut output = pair.master.try_clone_reader().unwrap();
        let seen = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                seen.lock().unwrap().process(&bytes[..count]);
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Self {
            screen,
            keys,
            master: pair.master,
            child,
            _slave: pair.slave,
        }
    }

    /// Returns the content of the screen, without trailing blanks.
    pub fn seen(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let (_, columns) = screen.screen().size();
        let rows: Vec<_> = screen
            .screen()
            .rows(0, columns)
            .map(|row| row.trim_end().to_owned())
            .collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Inspects the terminal itself: cursor, modes, colours.
    pub fn look<T>(&self, at: impl FnOnce(&Screen) -> T) -> T {
        at(self.screen.lock().unwrap().screen())
    }

    /// Waits until the screen shows `text` and keys count, and returns the screen.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |seen| !seen.contains(UNREAD))
    }

    /// Waits until the screen shows `text`, where keys may not count yet, and returns the screen.
    pub fn wait_for_first(&self, text: &str) -> String {
        self.wait_until(text, |_| true)
    }

    fn wait_until(&self, text: &str, holds: impl Fn(&str) -> bool) -> String {
        let mut before = String::new();
        for _ in 0..MAX_POLLS {
            let seen = self.seen();
            // A frame may arrive in pieces: it is complete when two readings are equal.
            if seen == before && seen.contains(text) && holds(&seen) {
                return seen;
            }
            before = seen;
            thread::sleep(POLL_INTERVAL);
        }
        panic!("never saw {text:?}; the screen is:\n{}", self.seen());
    }

    /// Sends keys, as the bytes that a terminal sends for them.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Sends keys and waits until the screen shows `text`.
    pub fn press_for(&mut self, keys: &str, text: &str) -> String {
        self.press(keys);
        self.wait_for(text)
    }

    /// Types a line once a person can have read the text before it, and waits until the screen shows `text`. A line that
    /// was too early after all is typed again.
    pub fn type_line(&mut self, line: &str, text: &str) -> String {
        let early = |seen: &str| seen.matches(EARLY).count();
        for _ in 0..10 {
            thread::sleep(TIME_TO_READ);
            let before = early(&self.seen());
            self.press(line);
            for _ in 0..MAX_POLLS {
                let seen = self.seen();
                if seen.contains(text) {
                    return self.wait_for(text);
                }
                if early(&seen) > before {
                    break;
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
        panic!("never saw {text:?}; the screen is:\n{}", self.seen());
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.screen
            .lock()
            .unwrap()
            .screen_mut()
            .set_size(rows, columns);
        self.master.resize(size(columns, rows)).unwrap();
    }

    /// Waits for the child to end and returns `true` if it succeeded.
    pub fn ended_well(&mut self) -> bool {
        self.ended() == 0
    }

    /// Waits for the child to end and returns its exit code.
    pub fn ended(&mut self) -> u32 {
        for _ in 0..MAX_POLLS {
            if let Some(ended) = self.child.try_wait().unwrap() {
                return ended.exit_code();
            }
            thread::sleep(POLL_INTERVAL);
        }
        panic!("it did not end; the screen is:\n{}", self.seen());
    }

    /// Returns the process id of the child, for signals.
    pub fn process(&self) -> Option<u32> {
        self.child.process_id()
    }

    /// Returns `true` if the terminal edits and echoes lines again, as before the question.
    #[cfg(unix)]
    pub fn is_given_back(&self) -> bool {
        let (alternate, hidden, paste) = self.look(|screen| {
            (
                screen.alternate_screen(),
                screen.hide_cursor(),
                screen.bracketed_paste(),
            )
        });
        let modes = self
            .master
            .get_termios()
            .map(|modes| format!("{:?}", modes.local_flags));
        // The names of other modes, such as `ECHOE`, begin like that of `ECHO`.
        let has = |modes: &str, mode: &str| {
            modes
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|known| known == mode)
        };
        let cooked = modes.is_some_and(|modes| has(&modes, "ICANON") && has(&modes, "ECHO"));
        cooked && !alternate && !hidden && !paste
    }
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
