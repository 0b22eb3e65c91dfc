use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use mcp_elicit_core::answer::Outcome;

use super::charset::{AsciiOnly, Charset};
use super::echo::Echo;
use super::handle::QuestionHandle;
use super::lines::TimedLines;
use super::plain::Plain;
use super::screen::Screen;
use super::visit;
use crate::view::date_time::zone_here;
use crate::view::{FrontendError, QuestionView, Submission};

type Clock = dyn Fn() -> SystemTime + Send + Sync;
type LinkOpener = dyn Fn(&str) -> io::Result<()> + Send + Sync;

/// The terminal frontend.
///
/// One question is shown at a time; another thread that asks meanwhile waits for its turn. Every call blocks, so
/// asynchronous callers use `spawn_blocking` and keep a [`QuestionHandle`] to withdraw the question.
pub struct Frontend {
    device: Mutex<FrontendDevice>,
    clock: Box<Clock>,
    open: Box<LinkOpener>,
    /// `true` if the host prints the line about the person's action.
    no_outcome_line: bool,
    /// The zone that is proposed for a time without one.
    zone: String,
    /// `true` if an address that could not be opened is on the terminal, to be copied.
    to_copy: AtomicBool,
}

/// The device that shows questions.
enum FrontendDevice {
    /// Keys of the controlling terminal, and this output.
    Screen {
        out: Box<dyn Write + Send>,
        color: bool,
        charset: Charset,
    },
    /// Lines from an input to an output; `person` if a person types them.
    Lines {
        lines: TimedLines,
        out: Box<dyn Write + Send>,
        person: bool,
        echo: Echo,
    },
}

impl Frontend {
    /// Detects the best frontend for this process: a screen on stderr (or on the controlling terminal, if stderr is
    /// redirected) if stdin is a terminal, and lines from stdin otherwise. `TERM=dumb` also selects lines.
    ///
    /// # Errors
    /// [`FrontendError::Broken`] if the thread that reads lines cannot be started.
    pub fn detect() -> Result<Self, FrontendError> {
        if !io::stdin().is_terminal() || is_dumb() {
            return Self::plain();
        }
        if io::stderr().is_terminal() {
            return Ok(Self::screen(io::stderr()));
        }
        Self::on_tty().or_else(|_| Self::plain())
    }

    /// Creates a frontend with lines from stdin and prompts on stderr, terminals or not.
    ///
    /// # Errors
    /// [`FrontendError::Broken`] if the thread that reads lines cannot be started.
    pub fn plain() -> Result<Self, FrontendError> {
        let person = io::stdin().is_terminal();
        let echo = Echo::from_input(&io::stdin());
        let frontend = Self::lines_from(BufReader::new(io::stdin()), io::stderr(), person, echo)?;
        Ok(frontend.with_charset(Charset::of_locale()))
    }

    /// Creates a frontend on the controlling terminal, for a process whose stdin and stdout carry MCP. A terminal that
    /// cannot move its cursor (`TERM=dumb`) is asked line by line.
    ///
    /// # Errors
    /// [`FrontendError::NoTerminal`] if there is none.
    pub fn on_tty() -> Result<Self, FrontendError> {
        let out = OpenOptions::new()
            .write(true)
            .open(TTY_OUT)
            .map_err(|_| FrontendError::NoTerminal)?;
        if is_dumb() {
            return Self::plain_on_tty();
        }
        Ok(Self::screen(out))
    }

    /// Creates a frontend with lines on the controlling terminal, for `--plain` in a process whose stdin and stdout are
    /// in use.
    ///
    /// # Errors
    /// [`FrontendError::NoTerminal`] if there is none.
    pub fn plain_on_tty() -> Result<Self, FrontendError> {
        let out = OpenOptions::new().write(true).open(TTY_OUT);
        let input = OpenOptions::new().read(true).open(TTY_IN);
        let (Ok(out), Ok(input)) = (out, input) else {
            return Err(FrontendError::NoTerminal);
        };
        let echo = Echo::from_input(&input);
        let frontend = Self::lines_from(BufReader::new(input), out, true, echo)?;
        Ok(frontend.with_charset(Charset::of_locale()))
    }

    /// Creates a frontend with a screen drawn on `out`, with keys from stdin if it is a terminal, else from the
    /// controlling terminal. There is no colour if `NO_COLOR` is set and not empty.
    pub fn screen(out: impl Write + Send + 'static) -> Self {
        let color = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        let frontend = Self::at(FrontendDevice::Screen {
            out: Box::new(out),
            color,
            charset: Charset::Unicode,
        });
        frontend.with_charset(Charset::of_locale())
    }

    /// Creates a frontend with lines from any input and prompts to any output. If `person` is set, a person types them:
    /// the answer is shown and confirmed before it is sent. Otherwise it is sent when the last field is answered, and
    /// input that keeps giving invalid answers is abandoned.
    ///
    /// # Errors
    /// [`FrontendError::Broken`] if the thread that reads lines cannot be started.
    pub fn lines(
        input: impl BufRead + Send + 'static,
        out: impl Write + Send + 'static,
        person: bool,
    ) -> Result<Self, FrontendError> {
        Self::lines_from(input, out, person, Echo::default())
    }

    fn lines_from(
        input: impl BufRead + Send + 'static,
        out: impl Write + Send + 'static,
        person: bool,
        echo: Echo,
    ) -> Result<Self, FrontendError> {
        Ok(Self::at(FrontendDevice::Lines {
            lines: TimedLines::new(input)?,
            out: Box::new(out),
            person,
            echo,
        }))
    }

    fn at(device: FrontendDevice) -> Self {
        Self {
            device: Mutex::new(device),
            clock: Box::new(system_time),
            open: Box::new(no_browser),
            zone: zone_here(),
            no_outcome_line: false,
            to_copy: AtomicBool::new(false),
        }
    }

    /// Opens links with `open` once the person agreed; it receives the address as returned by
    /// [`Link::as_str`](mcp_elicit_core::link::Link::as_str). Without it, or if it fails, the person is shown the
    /// address to copy.
    #[must_use]
    pub fn opening(
        mut self,
        open: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.open = Box::new(open);
        self
    }

    /// Restricts the drawing to these characters. By default a screen follows the locale, and custom streams get
    /// Unicode.
    #[must_use]
    pub fn with_charset(self, charset: Charset) -> Self {
        let device = self
            .device
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let drawn = |out: Box<dyn Write + Send>| -> Box<dyn Write + Send> {
            match charset {
                Charset::Unicode => out,
                Charset::Ascii => Box::new(AsciiOnly(out)),
            }
        };
        let device = match device {
            FrontendDevice::Screen { out, color, .. } => FrontendDevice::Screen {
                out: drawn(out),
                color,
                charset,
            },
            FrontendDevice::Lines {
                lines,
                out,
                person,
                echo,
            } => FrontendDevice::Lines {
                lines,
                out: drawn(out),
                person,
                echo,
            },
        };
        Self {
            device: Mutex::new(device),
            ..self
        }
    }

    /// Omits the line about the person's action, for a host that prints its own. The result of opening a link, and the
    /// reason why a question ended, are still printed.
    #[must_use]
    pub fn without_outcome_line(mut self) -> Self {
        self.no_outcome_line = true;
        self
    }

    /// Sets the zone to propose for a time without one, in place of this machine's: `Europe/Brussels`.
    #[must_use]
    pub fn in_zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = zone.into();
        self
    }

    /// Reads the time from `clock` and not from the system.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Shows the question to the person and waits for their action.
    ///
    /// # Errors
    /// [`FrontendError`] if it ended without an action.
    pub fn ask(&self, question: &QuestionView) -> Result<Outcome, FrontendError> {
        self.ask_with(question, &QuestionHandle::new())
    }

    /// Like [`ask`](Self::ask), with a handle that can withdraw the question while it is shown or waits for its turn.
    ///
    /// # Errors
    /// [`FrontendError`] if it ended without an action.
    pub fn ask_with(
        &self,
        question: &QuestionView,
        handle: &QuestionHandle,
    ) -> Result<Outcome, FrontendError> {
        self.put(question, handle, false).map(|reply| reply.outcome)
    }

    /// Like [`ask_with`](Self::ask_with), and also offers to decline every later question of this server, which the
    /// caller must enforce. The result also contains the person's consent to send a credential.
    ///
    /// # Errors
    /// [`FrontendError`] if it ended without an action.
    pub fn ask_fully(
        &self,
        question: &QuestionView,
        handle: &QuestionHandle,
    ) -> Result<Submission, FrontendError> {
        self.put(question, handle, true)
    }

    fn put(
        &self,
        question: &QuestionView,
        handle: &QuestionHandle,
        offer_always: bool,
    ) -> Result<Submission, FrontendError> {
        let mut device = self.device();
        let clock = self.clock.as_ref();
        let _shown = handle.on_screen();
        if let Some(why) = handle.withdrawn() {
            return Err(FrontendError::Withdrawn { why });
        }
        if question.is_over(clock()) {
            return Err(FrontendError::Expired);
        }
        let open = |address: &str| {
            let opened = (self.open)(address);
            self.to_copy.fetch_or(opened.is_err(), Ordering::Relaxed);
            opened
        };
        match &mut *device {
            FrontendDevice::Screen {
                out,
                color,
                charset,
            } => Screen {
                out,
                color: *color,
                charset: *charset,
                zone: &self.zone,
                no_outcome_line: self.no_outcome_line,
                handle,
                clock,
                open: &open,
                offer_always,
            }
            .ask(question),
            FrontendDevice::Lines {
                lines,
                out,
                person,
                echo,
            } => Plain {
                lines,
                out,
                echo,
                zone: &self.zone,
                handle,
                clock,
                open: &open,
                offer_always,
                person: *person,
                answered: false,
            }
            .ask(question),
        }
    }

    /// Waits while the person visits these hosts, until they say that they are done. The
    /// [handle](QuestionHandle::withdraw) ends the wait if the server announces the end first. Without a person who
    /// types, only the handle ends it.
    ///
    /// # Errors
    /// [`FrontendError::Withdrawn`] if the handle ended the wait; the other kinds as for a question.
    pub fn wait_for_visit(
        &self,
        hosts: &[String],
        handle: &QuestionHandle,
    ) -> Result<(), FrontendError> {
        let mut device = self.device();
        let _shown = handle.on_screen();
        let to_copy = self.to_copy.swap(false, Ordering::Relaxed);
        match &mut *device {
            FrontendDevice::Screen { out, .. } if to_copy => visit::below(out, hosts, handle),
            FrontendDevice::Screen {
                out,
                color,
                charset,
            } => visit::on_screen(out, (*color, *charset), hosts, handle),
            FrontendDevice::Lines {
                lines,
                out,
                person,
                echo,
            } => {
                let typed = person.then_some(&*echo);
                visit::by_lines(lines, out, typed, hosts, handle)
            }
        }
    }

    fn device(&self) -> MutexGuard<'_, FrontendDevice> {
        // A question leaves no inconsistent state, so the device can be used after a panic too.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Frontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontend").finish_non_exhaustive()
    }
}

#[cfg(unix)]
const TTY_IN: &str = "/dev/tty";
#[cfg(unix)]
const TTY_OUT: &str = "/dev/tty";
#[cfg(windows)]
const TTY_IN: &str = "CONIN$";
#[cfg(windows)]
const TTY_OUT: &str = "CONOUT$";

/// Returns a terminal that cannot move its cursor.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the terminal is a shell: this is where it reads the clock"
)]
fn system_time() -> SystemTime {
    SystemTime::now()
}

fn no_browser(_: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "nothing was given to open links with",
    ))
}
