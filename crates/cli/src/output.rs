//! Output: text for programs on stdout, text for people on stderr. Colours are used only on a terminal.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use mcp_elicit_core::view::sanitize::acts_on_a_screen;
use mcp_elicit_forms::terminal::Charset;
use serde::Serialize;

use crate::failure::{Exit, Failure};

/// The style of the word `error`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The style of the word `warning`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The style of success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// The style of the next step.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();

/// Returns one word in a style, which is dropped if colours are not wanted.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// `true` if lines on stderr are JSON, like the log of a gateway.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes each line on stderr as a record of JSON from now on.
pub(crate) fn write_lines_as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Returns a record in the form of the log's.
fn as_json(level: &str, fields: &serde_json::Value) -> String {
    let at = i64::try_from(mcp_elicit_record::clock::now().as_millis()).unwrap_or(i64::MAX);
    let at =
        jiff::Timestamp::from_millisecond(at).map_or_else(|_| String::new(), |at| at.to_string());
    let record = serde_json::json!({"timestamp": at, "level": level, "fields": fields, "target": "mcp_elicit"});
    let line = record.to_string();
    harmless_json(&line).into_owned()
}

/// Returns the line of a log in which lines are missing.
pub(crate) fn missing_lines(dropped: u64) -> String {
    let why = format!("{dropped} lines are missing here: stderr was not read in time");
    if AS_JSON.load(Ordering::Relaxed) {
        return as_json("WARN", &serde_json::json!({"message": why}));
    }
    format!("{} {why}", styled(WARNING, "warning:"))
}

/// Writes a line on stderr; where a thread does that, only adds it. A closed stderr does not stop the program.
fn write_line(line: &str) {
    if !crate::stderr::write(format!("{line}\n").as_bytes()) {
        let _ignored = writeln!(anstream::stderr().lock(), "{line}");
    } else if std::io::stderr().is_terminal() {
        // A question to the person there may follow.
        crate::stderr::flush();
    }
}

/// Prints one line for people.
pub(crate) fn say(line: impl Display) {
    let line = line.to_string();
    if AS_JSON.load(Ordering::Relaxed) {
        let message = anstream::adapter::strip_str(&line).to_string();
        return write_line(&as_json("INFO", &serde_json::json!({"message": message})));
    }
    write_line(&Charset::of_locale().spell(&line));
}

/// Prints commands to try next, each with its purpose on a line of its own.
pub(crate) fn say_what_to_try(commands: &[(&str, &str)]) {
    say("");
    say(styled(HINT, "Try next:"));
    let me = called_as(
        std::env::var_os("CARGO").is_some(),
        std::env::var_os("PATH"),
        std::env::current_exe().ok(),
    );
    for (command, what) in commands {
        say(format_args!("  {}", command.replace(NAME, me.words())));
        say(format_args!("      {what}"));
    }
    if let CalledAs::File(file) = &me {
        say(format_args!(
            "  (`{NAME}` is {}, which is not on the PATH)",
            harmless(&file.to_string_lossy())
        ));
    }
}

/// This program's name.
const NAME: &str = "mcp-elicit";

/// The way to call this program again.
#[derive(Debug, PartialEq, Eq)]
enum CalledAs {
    /// Through cargo, which built it.
    Cargo,
    /// By its name, which the shell finds.
    Name,
    /// By its name, once this file is on the PATH.
    File(PathBuf),
}

impl CalledAs {
    fn words(&self) -> &'static str {
        match self {
            Self::Cargo => "cargo run --",
            Self::Name | Self::File(_) => NAME,
        }
    }
}

fn called_as(by_cargo: bool, path: Option<OsString>, now: Option<PathBuf>) -> CalledAs {
    let file = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let is_found = path.is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(&file).is_file())
    });
    match now {
        _ if by_cargo => CalledAs::Cargo,
        Some(now) if !is_found => CalledAs::File(now),
        _ => CalledAs::Name,
    }
}

/// Prints one line on stdout and flushes it.
pub(crate) fn print(line: impl Display) -> Result<(), Failure> {
    let line = line.to_string();
    // A program gets the line unchanged; a terminal gets only characters that it can draw.
    let line = if std::io::stdout().is_terminal() {
        Charset::of_locale().spell(&line)
    } else {
        Cow::Borrowed(&*line)
    };
    let mut out = anstream::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Prints one line on stdout. On a terminal it is broken between words, and the rows after the first are indented below it.
pub(crate) fn print_wrapped(line: &str) -> Result<(), Failure> {
    let is_terminal = std::io::stdout().is_terminal();
    match crossterm::terminal::size().ok().filter(|_| is_terminal) {
        Some((columns, _)) => wrapped(line, usize::from(columns))
            .iter()
            .try_for_each(print),
        None => print(line),
    }
}

/// Returns a line as rows of at most `columns` columns.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let (first, next) = (" ".repeat(indent), " ".repeat(indent + 4));
    let options = textwrap::Options::new(columns.max(20))
        .initial_indent(&first)
        .subsequent_indent(&next);
    textwrap::wrap(line.trim_start(), options)
        .into_iter()
        .map(Cow::into_owned)
        .collect()
}

/// Prints text on stdout as it is, for programs, and flushes it.
pub(crate) fn print_part(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints one JSON value as one line on stdout and flushes it.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(value)
        .map_err(|error| Failure::usage("cannot write JSON").because(error))?;
    let mut out = std::io::stdout().lock();
    out.write_all(harmless_json(&line).as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Escapes the characters of JSON that act on a terminal. The meaning stays the same, since they occur in strings only;
/// whitespace between values becomes a space.
pub(crate) fn harmless_json(json: &str) -> Cow<'_, str> {
    if !json.contains(acts_on_a_screen) {
        return Cow::Borrowed(json);
    }
    json.chars()
        .fold(String::new(), |mut text, c| {
            if matches!(c, '\t' | '\r' | '\n') {
                text.push(' ');
            } else if acts_on_a_screen(c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _written = write!(text, "\\u{unit:04x}");
                }
            } else {
                text.push(c);
            }
            text
        })
        .into()
}

/// Makes untrusted text harmless for a terminal: control characters and those that reverse the direction of the text
/// are spelled out.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_a_screen) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|c| {
            if acts_on_a_screen(c) {
                c.escape_unicode().to_string()
            } else {
                c.to_string()
            }
        })
        .collect::<String>()
        .into()
}

/// Makes untrusted text of several lines harmless for a terminal.
pub(crate) fn harmless_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(harmless).collect();
    lines.join("\n")
}

/// Shows a failure: the error, its causes, and the next step.
pub(crate) fn show_failure(failure: &Failure) -> Exit {
    if !failure.is_silent() && AS_JSON.load(Ordering::Relaxed) {
        let mut fields =
            serde_json::json!({"message": failure.message(), "causes": failure.causes()});
        if !failure.lines().is_empty() {
            fields["lines"] = failure.lines().into();
        }
        if let Some(hint) = failure.next_step() {
            fields["next"] = hint.into();
        }
        write_line(&as_json("ERROR", &fields));
    } else if !failure.is_silent() {
        let label = match failure.exit() {
            Exit::Declined => styled(WARNING, "declined:"),
            _ => styled(ERROR, "error:"),
        };
        say(format_args!("{label} {}", harmless(failure.message())));
        for cause in failure.causes() {
            // A parser's message spans several lines.
            for (label, line) in cause_lines(cause) {
                say(format_args!("  {label} {}", harmless(line)));
            }
        }
        for line in failure.lines() {
            say(format_args!("  {line}"));
        }
        if let Some(hint) = failure.next_step() {
            say(format_args!("  {} {hint}", styled(HINT, "next:")));
        }
    }
    failure.exit()
}

/// Prints clap's output: help and version, which are not failures, or the error in the command line.
pub(crate) fn show_usage(error: &clap::Error) -> ExitCode {
    let _ignored = error.print();
    match error.exit_code() {
        0 => Exit::Done.into(),
        _ => Exit::Usage.into(),
    }
}

/// Returns the lines of a cause that are not empty, the first with its label.
fn cause_lines(cause: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let labels = std::iter::once("caused by:").chain(std::iter::repeat("          "));
    labels.zip(cause.lines().filter(|line| !line.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::{cause_lines, harmless};

    #[test]
    fn a_stranger_cannot_drive_the_terminal() {
        assert_eq!(harmless("plain ümlaut"), "plain ümlaut");
        for hidden in [
            '\u{61c}', '\u{ad}', '\u{34f}', '\u{115f}', '\u{3164}', '\u{180b}', '\u{fffb}',
            '\u{fe00}',
        ] {
            let text = format!("a{hidden}b");
            assert_eq!(harmless(&text), format!("a{}b", hidden.escape_unicode()));
        }
        assert_eq!(
            harmless("a\u{1b}[31mb\u{202e}c\n\u{2028}d\u{2029}"),
            "a\\u{1b}[31mb\\u{202e}c\\u{a}\\u{2028}d\\u{2029}"
        );
    }

    #[test]
    fn json_for_a_terminal_means_the_same_and_acts_on_nothing() {
        let value = serde_json::json!({"text": "a\u{9b}31m\u{202e}b\u{200b}\u{1b}ü"});
        let written = value.to_string();
        let harmless = super::harmless_json(&written);
        assert!(!harmless.contains(super::acts_on_a_screen), "{harmless}");
        assert!(harmless.contains('ü'));
        let read: serde_json::Value = serde_json::from_str(&harmless).expect("it is JSON");
        assert_eq!(read, value);
    }

    #[test]
    fn a_command_to_try_is_short() {
        use super::{CalledAs, called_as};

        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = || Some(folder.path().as_os_str().to_owned());
        let now = || Some("/far/away/target/release/mcp-elicit".into());
        let far = CalledAs::File("/far/away/target/release/mcp-elicit".into());
        assert_eq!(called_as(true, path(), now()).words(), "cargo run --");
        assert_eq!(called_as(false, path(), now()), far);
        assert_eq!(far.words(), "mcp-elicit");
        let file = format!("mcp-elicit{}", std::env::consts::EXE_SUFFIX);
        std::fs::write(folder.path().join(file), "").expect("a file");
        assert_eq!(called_as(false, path(), now()), CalledAs::Name);
        assert_eq!(called_as(false, None, None), CalledAs::Name);
    }

    #[test]
    fn a_long_line_is_shown_whole_on_a_narrow_terminal() {
        let line = format!("  deploy  {}", "word ".repeat(30).trim_end());
        let rows = super::wrapped(&line, 40);
        assert!(
            rows.len() > 3 && rows.iter().all(|row| row.len() <= 40),
            "{rows:?}"
        );
        assert!(rows[0].starts_with("  deploy  word") && rows[1].starts_with("      word"));
        let words = rows.join(" ");
        assert_eq!(words.matches("word").count(), 30);
    }

    #[test]
    fn a_cause_of_several_lines_keeps_them() {
        let lines: Vec<_> = cause_lines("at line 1\n  |\n1 | x=1\n").collect();
        let expected = [
            ("caused by:", "at line 1"),
            ("          ", "  |"),
            ("          ", "1 | x=1"),
        ];
        assert_eq!(lines, expected);
    }
}
