//! A real pseudo-terminal with a child on it, and what a person would see there.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use vt100::Parser;

/// How often the screen is looked at, and how many times before a test gives up: far longer than any machine
/// needs.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: usize = 1_500;

/// A terminal of a given size, and the child that asks on it.
pub(crate) struct Terminal {
    screen: Arc<Mutex<Parser>>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Held open: a terminal that nobody has open for a moment would look closed from this side.
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

impl Terminal {
    /// Starts this test program again on a new terminal, to ask the question called `case`.
    pub(crate) fn ask(case: &str, columns: u16, rows: u16) -> Self {
        Self::ask_with(case, columns, rows, &[])
    }

    /// As [`ask`](Self::ask), with more environment.
    pub(crate) fn ask_with(
        case: &str,
        columns: u16,
        rows: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["--exact", "asked", "--ignored", "--nocapture"]);
        Self::start(command, case, columns, rows, environment)
    }

    /// As [`ask`](Self::ask), with stdin, stdout and stderr going elsewhere.
    pub(crate) fn ask_apart(case: &str, columns: u16, rows: u16) -> Self {
        let mut command = CommandBuilder::new("sh");
        let program = std::env::current_exe().unwrap();
        command.args([
            "-c",
            "exec \"$0\" --exact asked --ignored --nocapture </dev/null >/dev/null 2>/dev/null",
        ]);
        command.arg(program);
        Self::start(command, case, columns, rows, &[])
    }

    fn start(
        mut command: CommandBuilder,
        case: &str,
        columns: u16,
        rows: u16,
        more: &[(&str, &str)],
    ) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        command.env("ELICIT_CASE", case);
        for (name, value) in more {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(Parser::new(rows, columns, 0)));
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

    /// What is on the screen now, without trailing blanks.
    pub(crate) fn seen(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let (_, columns) = screen.screen().size();
        let rows: Vec<_> = screen
            .screen()
            .rows(0, columns)
            .map(|row| row.trim_end().to_owned())
            .collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Looks at the terminal itself: cursor, modes, colours.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.screen.lock().unwrap().screen())
    }

    /// Waits until the screen shows `text`, and gives the screen.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let mut before = String::new();
        for _ in 0..LOOKS {
            let seen = self.seen();
            // A frame may arrive in pieces: the screen is done when it looks the same twice.
            if seen == before && seen.contains(text) {
                return seen;
            }
            before = seen;
            thread::sleep(LOOK);
        }
        panic!("never saw {text:?}; the screen is:\n{}", self.seen());
    }

    /// Presses keys, as the bytes a terminal sends for them.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Presses keys and waits until the screen shows `text`.
    pub(crate) fn press_for(&mut self, keys: &str, text: &str) -> String {
        self.press(keys);
        self.wait_for(text)
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.screen
            .lock()
            .unwrap()
            .screen_mut()
            .set_size(rows, columns);
        self.master.resize(size(columns, rows)).unwrap();
    }

    /// Waits for the child to end and says whether it ended well.
    pub(crate) fn ended_well(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    /// Whether lines are edited and echoed by the terminal again, as before the question.
    #[cfg(unix)]
    pub(crate) fn is_given_back(&self) -> bool {
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
        let cooked = modes.is_some_and(|modes| modes.contains("ICANON") && modes.contains("ECHO"));
        cooked && !alternate && !hidden && !paste
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
