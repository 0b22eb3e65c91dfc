//! The responder of a call, and the display of the conversation: shared by the commands that call a tool.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mcp_elicit_core::digest::canonical;
use mcp_elicit_core::wire::CallDefect;
use mcp_elicit_core::wire::Capability;

use crate::failure::Failure;

/// Options for answering questions. Without any of these, the person at the terminal is asked; where stdin is no
/// terminal, answers are read from it line by line.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Answers")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub(crate) struct AnswerArgs {
    /// Answer the field NAME with VALUE, as a person would type it; repeat for more fields. A name that is empty or has an
    /// `=` is written as a JSON string: '"a=b"=VALUE'
    #[arg(long = "answer", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) named: Vec<(String, String)>,

    /// Answer in order from a JSON list of {"action": "accept"|"decline"|"cancel", "content": {..}}
    #[arg(long = "answers", value_name = "FILE", conflicts_with = "named")]
    pub(crate) file: Option<PathBuf>,

    /// Accept each form's defaults; --answer overrides them
    #[arg(long, conflicts_with = "file")]
    pub(crate) accept_defaults: bool,

    /// Decline every question
    #[arg(long, conflicts_with_all = ["named", "file", "accept_defaults", "cancel"])]
    pub(crate) decline: bool,

    /// Cancel every question
    #[arg(long, conflicts_with_all = ["named", "file", "accept_defaults"])]
    pub(crate) cancel: bool,

    /// Ask in the browser, on pages served only to this machine
    #[arg(long, conflicts_with_all = ["named", "file", "accept_defaults", "decline", "cancel"])]
    pub(crate) browser: bool,

    /// Ask this program: it reads the question on its stdin as JSON, and writes {"action": .., "content": ..}
    #[arg(long, value_name = "PROGRAM ARGUMENT...", conflicts_with_all = ["named", "file", "accept_defaults", "decline", "cancel", "browser"])]
    pub(crate) answer_command: Option<String>,

    /// Send prepared answers even to forms that seem to ask for a credential
    #[arg(long)]
    pub(crate) allow_credentials: bool,

    /// Modes to declare to the server [default: those that the chosen responder can show]
    #[arg(long, value_enum, value_name = "MODES")]
    pub(crate) elicit: Option<ElicitModes>,

    /// Ask line by line, without a screen: for screen readers, logs and slow connections
    #[arg(long, conflicts_with_all = ["named", "file", "accept_defaults", "decline", "cancel", "browser", "answer_command"])]
    pub(crate) plain: bool,

    /// Time limit for the server, and for each answer: 30, 1.5, 500ms, 2m. A person's time does not count against the
    /// server [default: one minute for the server, none for a person]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// Print events as one JSON object per line on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a name and a value. A name may be written as a JSON string, so that it can be empty or have an `=`.
pub(super) fn name_and_value(text: &str) -> Result<(String, String), String> {
    if text.starts_with('"') {
        let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<String>();
        if let Some(Ok(name)) = quoted.next()
            && let Some(value) = text[quoted.byte_offset()..].strip_prefix('=')
        {
            return Ok((name, value.to_owned()));
        }
    }
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) => Err("write it as NAME=VALUE; an empty name is '\"\"=VALUE'".to_owned()),
        None => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Returns a name as [`name_and_value`] reads it.
pub(crate) fn answer_name(name: &str) -> String {
    if name.is_empty() || name.contains('=') || name.starts_with('"') {
        serde_json::Value::from(name).to_string()
    } else {
        name.to_owned()
    }
}

/// The modes of questions that a client declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElicitModes {
    /// Nothing: act as a client that cannot be asked
    Off,
    /// Forms only
    Form,
    /// Visits of URLs only
    Url,
    /// Forms and visits of URLs
    Both,
}

impl ElicitModes {
    /// Returns the modes that may be declared.
    pub(crate) fn capability(self) -> Capability {
        match self {
            Self::Off => Capability::NONE,
            Self::Form => Capability::FORM,
            Self::Url => Capability::URL,
            Self::Both => Capability::BOTH,
        }
    }
}

/// Seconds, or a number with `ms`, `s`, `m` or `h`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds_each = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("the unit is ms, s, m or h".to_owned()),
    };
    let number: f64 = digits
        .trim()
        .parse()
        .map_err(|_| "write it as 30, 1.5, 500ms or 2m".to_owned())?;
    let time = Duration::try_from_secs_f64(number * seconds_each)
        .map_err(|_| "invalid duration; use 30, 1.5s, 500ms or 2m".to_owned())?;
    if time.is_zero() {
        Err("the duration must be greater than zero".to_owned())
    } else {
        Ok(time)
    }
}

/// Returns the arguments of a call from `name=value` pairs, or from one JSON object.
///
/// A value that is JSON (`3`, `true`, `["a"]`) is read as JSON, anything else as text; quotes turn anything into text:
/// `zip='"01234"'`.
pub(crate) fn call_arguments(
    words: &[String],
) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    if let [json] = words
        && json.trim_start().starts_with('{')
    {
        let read = serde_json::from_str(json)
            .map_err(|error| Failure::usage("the arguments are not a JSON object").because(error));
        refuse_duplicate_members("the arguments", json)?;
        return read;
    }
    once_each(words.iter().map(|word| pair(word)))
}

/// Refuses JSON in which an object has a member twice: one of the two values would be dropped silently.
pub(crate) fn refuse_duplicate_members(what: &str, json: &str) -> Result<(), Failure> {
    match canonical(json) {
        Err(CallDefect::Duplicate) => Err(Failure::usage(format!("{what} have a member twice"))
            .hint("write each name once in an object.")),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Arguments by their names, each of which stands once.
fn once_each(
    pairs: impl Iterator<Item = Result<(String, serde_json::Value), Failure>>,
) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    let mut all = serde_json::Map::new();
    for pair in pairs {
        let (name, value) = pair?;
        if all.contains_key(&name) {
            return Err(
                Failure::usage(format!("the argument {name:?} is given twice"))
                    .hint("write several values as a JSON list: `name=[\"a\",\"b\"]`."),
            );
        }
        all.insert(name, value);
    }
    Ok(all)
}

/// Returns the arguments of a prompt, which are texts, from `name=value` pairs, or from one JSON object.
pub(crate) fn prompt_arguments(
    words: &[String],
) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    if !matches!(words, [json] if json.trim_start().starts_with('{')) {
        let texts = words.iter().map(|word| {
            let (name, value) = argument(word)?;
            Ok((name, serde_json::Value::String(value)))
        });
        return once_each(texts);
    }
    let arguments = call_arguments(words)?;
    match arguments.iter().find(|(_, value)| !value.is_string()) {
        Some((name, _)) => Err(Failure::usage(format!("the argument {name:?} is not text"))
            .hint("a prompt's arguments are text: {\"name\": \"value\"}.")),
        None => Ok(arguments),
    }
}

fn pair(word: &str) -> Result<(String, serde_json::Value), Failure> {
    let (name, value) = argument(word)?;
    let value = match serde_json::from_str(&value) {
        Ok(json) => {
            refuse_duplicate_members(&format!("the values of {name:?}"), &value)?;
            json
        }
        Err(_) => serde_json::Value::String(value),
    };
    Ok((name, value))
}

fn argument(word: &str) -> Result<(String, String), Failure> {
    name_and_value(word).map_err(|_| {
        Failure::usage(format!("{word:?} is not an argument"))
            .hint("write arguments as `name=value`, or all of them as one JSON object; a server's command comes after `--`.")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(2 * 60)));
        for wrong in ["", "0", "-1", "soon", "3 weeks", "1e400", "NaN"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_name_can_be_written() {
        for name in [
            "",
            "=",
            "a=b",
            "\"",
            "\"=",
            "a.b",
            "a b",
            "[0]",
            "😀",
            "x\\",
            "__proto__",
        ] {
            for value in ["", "v", "=v", "\"v\"="] {
                let written = format!("{}={value}", answer_name(name));
                let read = name_and_value(&written);
                assert_eq!(read, Ok((name.to_owned(), value.to_owned())), "{written}");
            }
        }
        // Names that only begin like a JSON string are read as before.
        for (text, name) in [("\"a=1", "\"a"), ("\"a\"b=1", "\"a\"b")] {
            assert_eq!(name_and_value(text), Ok((name.to_owned(), "1".to_owned())));
        }
        for wrong in ["", "a", "=v", "\"a\""] {
            assert!(name_and_value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_pairs_or_one_object() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let read = call_arguments(&words(&["a=3", "b=x=y", "c=[1]", "d=\"3\"", "e="])).unwrap();
        assert_eq!(
            json!(read),
            json!({"a": 3, "b": "x=y", "c": [1], "d": "3", "e": ""})
        );
        assert_eq!(
            json!(call_arguments(&words(&["{\"a\":{}}"])).unwrap()),
            json!({"a": {}})
        );
        for wrong in [&["{\"a\":"][..], &["loose"], &["=x"]] {
            assert!(call_arguments(&words(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn no_value_is_left_out_because_its_name_stands_twice() {
        for twice in [
            &[r#"{"a":1,"a":2}"#][..],
            &[r#"{"a":1,"\u0061":1}"#],
            &[r#"{"a":{"b":1,"b":2}}"#],
            &["a=1", "b=2", "a=3"],
        ] {
            let words: Vec<_> = twice.iter().map(|word| (*word).to_owned()).collect();
            for read in [call_arguments(&words), prompt_arguments(&words)] {
                let failure = read.expect_err(&words.join(" "));
                assert!(failure.message().contains("twice"), "{failure:?}");
            }
        }
        let inner = [r#"a=[{"b":1,"b":2}]"#.to_owned()];
        assert!(call_arguments(&inner).is_err());
        let texts = ["a={\"b\":1,\"b\":2}".to_owned()];
        let text = prompt_arguments(&texts).expect("a prompt's arguments are texts");
        assert_eq!(text["a"], "{\"b\":1,\"b\":2}");
    }
}
