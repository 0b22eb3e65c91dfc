//! Output: text for programs on stdout, text for people on stderr. Colours are used only on a terminal.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
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

/// Prints one line for people. A closed stderr does not stop the program.
pub(crate) fn say(line: impl Display) {
    let line = line.to_string();
    let line = Charset::of_locale().spell(&line);
    let _ignored = writeln!(anstream::stderr().lock(), "{line}");
}

/// Prints commands to try next, each with its purpose.
pub(crate) fn say_what_to_try(commands: &[(&str, &str)]) {
    say("");
    say(styled(HINT, "Try next:"));
    let me = called_as(std::env::var_os("PATH"), std::env::args_os().next());
    let commands: Vec<_> = commands
        .iter()
        .map(|(command, what)| (command.replace(NAME, &me), what))
        .collect();
    let width = commands.iter().map(|(command, _)| command.chars().count());
    let width = width.max().unwrap_or_default().max(52);
    for (command, what) in commands {
        say(format_args!("  {command:<width$} {what}"));
    }
}

/// This program's name.
const NAME: &str = "mcp-elicit";

/// Returns the way to call this program again: its name if the shell finds that, else the current path. If there is
/// neither, returns the name.
fn called_as(path: Option<OsString>, now: Option<OsString>) -> String {
    let file = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let is_found = path.is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(&file).is_file())
    });
    let now = now.and_then(|now| now.into_string().ok());
    match now.filter(|now| !now.is_empty() && !now.contains([' ', '\'', '"'])) {
        Some(now) if !is_found => now,
        _ => NAME.to_owned(),
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

/// Prints one JSON value as one line on stdout and flushes it.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(value)
        .map_err(|error| Failure::usage("cannot write JSON").because(error))?;
    let mut out = std::io::stdout().lock();
    out.write_all(harmless_json(&line).as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Escapes the characters of JSON that act on a terminal. The meaning stays the same, since they occur in strings only.
fn harmless_json(json: &str) -> Cow<'_, str> {
    if !json.contains(acts_on_a_terminal) {
        return Cow::Borrowed(json);
    }
    json.chars()
        .fold(String::new(), |mut text, c| {
            if acts_on_a_terminal(c) {
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

/// Returns `true` if a character moves the cursor, is invisible or reverses the direction of the text.
fn acts_on_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}')
}

/// Makes untrusted text harmless for a terminal: control characters and those that reverse the direction of the text
/// are spelled out.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_a_terminal) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .map(|c| {
            if acts_on_a_terminal(c) {
                c.escape_unicode().to_string()
            } else {
                c.to_string()
            }
        })
        .collect::<String>()
        .into()
}

/// Shows a failure: the error, its causes, and the next step.
pub(crate) fn show_failure(failure: &Failure) -> Exit {
    if !failure.is_silent() {
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
        assert_eq!(
            harmless("a\u{1b}[31mb\u{202e}c\n"),
            "a\\u{1b}[31mb\\u{202e}c\\u{a}"
        );
    }

    #[test]
    fn json_for_a_terminal_means_the_same_and_acts_on_nothing() {
        let value = serde_json::json!({"text": "a\u{9b}31m\u{202e}b\u{200b}\u{1b}ü"});
        let written = value.to_string();
        let harmless = super::harmless_json(&written);
        assert!(!harmless.contains(super::acts_on_a_terminal), "{harmless}");
        assert!(harmless.contains('ü'));
        let read: serde_json::Value = serde_json::from_str(&harmless).expect("it is JSON");
        assert_eq!(read, value);
    }

    #[test]
    fn a_command_to_try_can_be_copied() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = || Some(folder.path().as_os_str().to_owned());
        let now = || Some("target/release/mcp-elicit".into());
        assert_eq!(super::called_as(path(), now()), "target/release/mcp-elicit");
        let file = format!("mcp-elicit{}", std::env::consts::EXE_SUFFIX);
        std::fs::write(folder.path().join(file), "").expect("a file");
        assert_eq!(super::called_as(path(), now()), "mcp-elicit");
        assert_eq!(super::called_as(None, None), "mcp-elicit");
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
