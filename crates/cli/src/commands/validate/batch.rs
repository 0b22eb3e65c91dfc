//! Many verdicts, one per line, in the order of the lines.
//!
//! Each line is judged as it arrives, and the output is flushed before a read that could wait. A line that cannot be
//! judged gives an error line and has no other effect.

use std::io::{BufReader, Read, Write};

use mcp_elicit_core::form::Form;
use mcp_elicit_core::text::without_mark;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::verdict::ContentVerdict;
use crate::failure::{Exit, Failure};
use crate::input::{LineResult, next_line};
use crate::output::harmless_json;

/// The longest line, in bytes: enough for the longest schema and the longest content.
const LONGEST: usize = 8 << 20;

/// The question of one line. Texts are judged as written, so that nothing is lost in parsing.
#[derive(Deserialize)]
struct LineQuestion<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Serialize)]
struct JudgedLine<'a> {
    id: Option<&'a RawValue>,
    #[serde(flatten)]
    verdict: ContentVerdict,
}

#[derive(Serialize)]
struct Unjudged<'a> {
    id: Option<&'a RawValue>,
    error: UnreadLine,
}

#[derive(Serialize)]
struct UnreadLine {
    line: u64,
    message: String,
}

/// Judges every line of `source`. A line that cannot be judged makes the exit code 2, after all other lines have their
/// verdicts.
pub(super) fn run(source: &mut impl Read, sink: &mut impl Write) -> Result<Exit, Failure> {
    let mut source = BufReader::with_capacity(64 << 10, source);
    let mut line = Vec::new();
    let mut answer = Vec::new();
    let mut exit = Exit::Done;
    for number in 1.. {
        let read = next_line(&mut source, &mut line, LONGEST)
            .map_err(|error| Failure::usage("cannot read stdin").because(error))?;
        let judged = match read {
            LineResult::End => break,
            LineResult::TooLong => Err(UnreadLine {
                line: number,
                message: format!("the line is longer than {LONGEST} bytes"),
            }),
            LineResult::Whole if line.trim_ascii().is_empty() => continue,
            LineResult::Whole => Ok(()),
        };
        let text = if number == 1 {
            without_mark(&line)
        } else {
            &line
        };
        answer.clear();
        let readable = match judged {
            Ok(()) => judge(text, number, &mut answer)?,
            Err(error) => write_line(&Unjudged { id: None, error }, &mut answer).map(|()| false)?,
        };
        if !readable {
            exit = Exit::Usage;
        }
        sink.write_all(&answer)?;
        if !source.buffer().contains(&b'\n') {
            sink.flush()?;
        }
    }
    sink.flush()?;
    Ok(exit)
}

/// Writes the answer to one line. Returns `false` if the line could not be read.
fn judge(line: &[u8], number: u64, answer: &mut Vec<u8>) -> Result<bool, Failure> {
    match object::<LineQuestion<'_>>(line) {
        Ok(asked) => {
            let verdict = match Form::parse(asked.schema.get()) {
                Ok(form) => ContentVerdict::of_text(&form, asked.content.get()),
                Err(defects) => ContentVerdict::illegal(&defects),
            };
            write_line(
                &JudgedLine {
                    id: asked.id,
                    verdict,
                },
                answer,
            )?;
            Ok(true)
        }
        Err(error) => {
            let error = UnreadLine {
                line: number,
                message: format!("not a line {{\"id\",\"schema\",\"content\"}}: {error}"),
            };
            write_line(
                &Unjudged {
                    id: id_of(line),
                    error,
                },
                answer,
            )?;
            Ok(false)
        }
    }
}

/// Returns the id of a line that lacks another member.
fn id_of(line: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    object::<OnlyId<'_>>(line).ok()?.id
}

/// Parses the members of a line. A list of them in order, which serde would accept too, is rejected.
fn object<'l, T: Deserialize<'l>>(line: &'l [u8]) -> serde_json::Result<T> {
    if line.trim_ascii_start().starts_with(b"[") {
        return Err(serde::de::Error::custom(
            "a list, where an object should be",
        ));
    }
    serde_json::from_slice(line)
}

fn write_line(value: &impl Serialize, answer: &mut Vec<u8>) -> Result<(), Failure> {
    let line = serde_json::to_string(value)
        .map_err(|error| Failure::usage("cannot write JSON").because(error))?;
    answer.extend_from_slice(harmless_json(&line).as_bytes());
    answer.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &[u8]) -> (Vec<serde_json::Value>, Exit) {
        let mut out = Vec::new();
        let exit = run(&mut &*input, &mut out).expect("memory can be read and written");
        let lines = String::from_utf8(out).expect("UTF-8");
        (
            lines
                .lines()
                .map(|line| serde_json::from_str(line).expect(line))
                .collect(),
            exit,
        )
    }

    #[test]
    fn every_line_has_its_answer_in_order() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}"#;
        let input = format!(
            "{{\"id\":1,\"schema\":{schema},\"content\":{{\"n\":1}}}}\n\
             {{\"id\":\"two\",\"schema\":{schema},\"content\":{{\"n\":0}}}}\r\n\
             \n\
             {{\"schema\":{{\"type\":\"object\"}},\"content\":{{}}}}\n\
             {{\"id\":4,\"schema\":{schema}}}\n\
             nonsense\n\
             {{\"id\":6,\"schema\":{schema},\"content\":[]}}"
        );
        let (lines, exit) = answers(input.as_bytes());
        assert_eq!(exit, Exit::Usage);
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert_eq!(
            lines[0].to_string(),
            r#"{"id":1,"schema":"ok","valid":true,"violations":[],"defects":[]}"#
        );
        assert_eq!(lines[1]["id"], "two");
        assert_eq!(lines[1]["violations"][0]["rule"], "minimum");
        assert_eq!(lines[2]["id"], serde_json::Value::Null);
        assert_eq!(
            (&lines[2]["schema"], &lines[2]["valid"]),
            (&"illegal".into(), &false.into())
        );
        assert_eq!(lines[2]["defects"][0]["code"], "no-properties");
        assert_eq!(
            (&lines[3]["id"], &lines[3]["error"]["line"]),
            (&4.into(), &5.into())
        );
        assert_eq!(lines[4]["error"]["line"], 6);
        assert_eq!(lines[5]["violations"][0]["rule"], "type");
    }

    #[test]
    fn a_list_is_no_line_and_a_byte_order_mark_is_passed_over() {
        let schema = r#"{"type":"object","properties":{}}"#;
        let input = format!(
            "\u{feff}{{\"id\":1,\"schema\":{schema},\"content\":{{}}}}\n[2,{schema},{{}}]\n"
        );
        let (lines, exit) = answers(input.as_bytes());
        assert_eq!((&lines[0]["valid"], exit), (&true.into(), Exit::Usage));
        assert_eq!(
            (&lines[1]["id"], &lines[1]["error"]["line"]),
            (&serde_json::Value::Null, &2.into())
        );
    }

    #[test]
    fn numbers_in_ids_come_back_as_they_were() {
        let mut out = Vec::new();
        let input = br#"{"id":12345678901234567890.0,"schema":{"type":"object","properties":{}},"content":{}}"#;
        assert_eq!(run(&mut &input[..], &mut out).ok(), Some(Exit::Done));
        assert!(out.starts_with(br#"{"id":12345678901234567890.0,"schema":"ok""#));
    }

    #[test]
    fn no_bytes_whatever_stop_the_stream() {
        let good = br#"{"id":9,"schema":{"type":"object","properties":{}},"content":{}}"#;
        let mut input = b"\xff\xfe\x00\n".to_vec();
        input.extend(std::iter::repeat_n(b'[', 500_000));
        input.push(b'\n');
        input.extend(std::iter::repeat_n(b'x', LONGEST + 10));
        input.push(b'\n');
        input.extend(good);
        let (lines, exit) = answers(&input);
        assert_eq!(exit, Exit::Usage);
        assert_eq!(lines.len(), 4);
        assert!(
            lines[..3]
                .iter()
                .all(|line| line["error"]["message"].is_string())
        );
        assert_eq!(
            (&lines[3]["id"], &lines[3]["valid"]),
            (&9.into(), &true.into())
        );
    }
}
