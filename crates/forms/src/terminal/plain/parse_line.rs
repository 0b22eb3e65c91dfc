//! The meaning of a line, which depends on the state of the form.

use mcp_elicit_core::answer::DraftValue;

use crate::view::{AnswerEvent, AnswerStage, AnswerState, Control, FieldView, Pick};

/// The meaning of a line.
#[derive(Debug)]
pub(super) enum ParsedLine {
    /// An event of the question.
    Event(AnswerEvent),
    /// The field with this index was answered; if the answer is valid, the next one follows.
    Answer(usize, DraftValue),
    /// A request for an explanation of the choices.
    Help,
    /// The line has no meaning; tell the person why.
    Unclear(String),
}

/// Parses one line. Commands begin with a colon; `:=` takes the rest of the line literally.
pub(super) fn parse(state: &AnswerState, line: &str) -> ParsedLine {
    let line = line.trim();
    match line {
        "?" | ":?" | ":help" => return ParsedLine::Help,
        ":back" => return ParsedLine::Event(AnswerEvent::Back),
        ":decline" => return ParsedLine::Event(AnswerEvent::Decline),
        ":cancel" => return ParsedLine::Event(AnswerEvent::Cancel),
        ":never" if state.offers_from_now_on() => {
            return ParsedLine::Event(AnswerEvent::DeclineFromNowOn);
        }
        _ => {}
    }
    match state.stage() {
        AnswerStage::Warnings => allow_credentials(line),
        AnswerStage::Confirm => yes_or_no(line, AnswerEvent::Accept),
        AnswerStage::Review => review(state, line),
        AnswerStage::Field(index) => match state.fields().get(index) {
            Some(field) => {
                let right = state.problems(index).is_empty();
                answer(
                    field,
                    index,
                    if right {
                        state.typed(index)
                    } else {
                        &field.default
                    },
                    line,
                )
            }
            None => ParsedLine::Event(AnswerEvent::Review),
        },
    }
}

fn allow_credentials(line: &str) -> ParsedLine {
    if line.eq_ignore_ascii_case("allow") {
        ParsedLine::Event(AnswerEvent::AllowCredentials)
    } else {
        ParsedLine::Unclear(
            "Type allow to answer anyway, :decline to say no, or :cancel to leave.".to_owned(),
        )
    }
}

fn yes_or_no(line: &str, yes: AnswerEvent) -> ParsedLine {
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => ParsedLine::Event(yes),
        "n" | "no" => ParsedLine::Event(AnswerEvent::Decline),
        _ => {
            ParsedLine::Unclear("Type yes or no, or :cancel to leave without choosing.".to_owned())
        }
    }
}

fn review(state: &AnswerState, line: &str) -> ParsedLine {
    match line.parse::<usize>() {
        Ok(number) if (1..=state.fields().len()).contains(&number) => {
            ParsedLine::Event(AnswerEvent::Goto(number - 1))
        }
        Ok(_) => ParsedLine::Unclear(format!(
            "There are {} answers to change.",
            state.fields().len()
        )),
        Err(_) => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "send" => ParsedLine::Event(AnswerEvent::Accept),
            "n" | "no" => ParsedLine::Unclear(
                "Nothing is sent yet. Type a number to change that answer, :decline or :cancel."
                    .to_owned(),
            ),
            _ => ParsedLine::Unclear(
                "Type yes to send, or a number to change that answer.".to_owned(),
            ),
        },
    }
}

fn answer(field: &FieldView, index: usize, held: &DraftValue, line: &str) -> ParsedLine {
    if line.is_empty() {
        return ParsedLine::Answer(index, held.clone());
    }
    if line == ":skip" {
        return ParsedLine::Answer(index, DraftValue::Nothing);
    }
    let line = match line.strip_prefix(":=") {
        Some(literal) => literal,
        None if line.starts_with(':') => {
            return ParsedLine::Unclear(format!(
                "There is no such command. To answer with it, type :={line}"
            ));
        }
        None => line,
    };
    let typed = match &field.control {
        Control::One(options) => pick(options, line).map(|found| vec![found.value.clone()]),
        Control::Several { options, .. } => several(options, line),
        Control::YesNo => return ParsedLine::Answer(index, flag(line)),
        // This frontend reads one line for each answer.
        _ if field.is_list && !line.starts_with('[') => {
            let values = line.split(',').map(str::trim);
            let values = values.filter(|value| !value.is_empty());
            let values = values.map(str::to_owned).collect();
            return ParsedLine::Answer(index, DraftValue::Picked(values));
        }
        _ => return ParsedLine::Answer(index, DraftValue::Text(line.to_owned())),
    };
    match typed {
        Ok(values) => ParsedLine::Answer(index, DraftValue::Picked(values)),
        Err(unclear) => ParsedLine::Unclear(unclear),
    }
}

/// Reads common words for yes and no; the form itself accepts more of them, or reports the error.
fn flag(said: &str) -> DraftValue {
    match said.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" => DraftValue::Flag(true),
        "n" | "no" | "false" => DraftValue::Flag(false),
        _ => DraftValue::Text(said.to_owned()),
    }
}

/// Returns the option for a line: its exact value or label, its number in the list (`2` or `#2`), or the beginning of
/// exactly one label. An option whose label is `2` takes precedence over the number.
fn pick<'a>(options: &'a [Pick], said: &str) -> Result<&'a Pick, String> {
    let said = said.trim();
    let exact = options
        .iter()
        .find(|pick| pick.value == said)
        .or_else(|| options.iter().find(|pick| pick.label == said))
        .or_else(|| {
            options
                .iter()
                .find(|pick| pick.label.eq_ignore_ascii_case(said))
        });
    if let Some(found) = exact {
        return Ok(found);
    }
    if let Ok(number) = said.strip_prefix('#').unwrap_or(said).parse::<usize>() {
        let found = number.checked_sub(1).and_then(|index| options.get(index));
        return found.ok_or_else(|| {
            format!(
                "There is no number {number} in the list of {}.",
                options.len()
            )
        });
    }
    let start = said.to_lowercase();
    let mut begun = options
        .iter()
        .filter(|pick| pick.label.to_lowercase().starts_with(&start));
    match (begun.next(), begun.next()) {
        (Some(found), None) if !start.is_empty() => Ok(found),
        (Some(_), Some(_)) => Err("More than one of the list begins like that.".to_owned()),
        _ => Err(format!(
            "That is not in the list; type a number from 1 to {} or the words.",
            options.len()
        )),
    }
}

fn several(options: &[Pick], line: &str) -> Result<Vec<String>, String> {
    if let Some(whole) = options
        .iter()
        .find(|pick| pick.value == line || pick.label == line)
    {
        return Ok(vec![whole.value.clone()]);
    }
    let numbers = line
        .split([',', ' '])
        .all(|part| part.is_empty() || part.parse::<usize>().is_ok());
    let parts: Vec<_> = if numbers {
        line.split([',', ' ']).collect()
    } else {
        line.split(',').collect()
    };
    let mut values = Vec::new();
    for part in parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let found = pick(options, part)?;
        if !values.contains(&found.value) {
            values.push(found.value.clone());
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(labels: &[&str]) -> Vec<Pick> {
        labels
            .iter()
            .map(|label| Pick {
                value: label.to_lowercase(),
                label: (*label).to_owned(),
            })
            .collect()
    }

    #[test]
    fn an_option_is_meant_by_value_label_number_or_beginning() {
        let list = options(&["Staging", "Production", "Preview"]);
        for said in ["staging", "Staging", "STAGING", "1", "#1", "st"] {
            assert_eq!(
                pick(&list, said).map(|found| found.value.as_str()),
                Ok("staging"),
                "{said}"
            );
        }
        for said in ["pr", "4", "0", "x", ""] {
            assert!(pick(&list, said).is_err(), "{said}");
        }
    }

    #[test]
    fn an_option_called_by_a_number_wins_over_the_number() {
        let list = options(&["3", "1"]);
        assert_eq!(pick(&list, "1").map(|found| found.value.as_str()), Ok("1"));
        assert_eq!(pick(&list, "#1").map(|found| found.value.as_str()), Ok("3"));
    }

    #[test]
    fn several_take_numbers_words_and_labels_with_commas() {
        let list = options(&["Red", "Green", "Blue, dark"]);
        assert_eq!(
            several(&list, "1 3"),
            Ok(vec!["red".to_owned(), "blue, dark".to_owned()])
        );
        assert_eq!(
            several(&list, "green, 1,1"),
            Ok(vec!["green".to_owned(), "red".to_owned()])
        );
        assert_eq!(
            several(&list, "Blue, dark"),
            Ok(vec!["blue, dark".to_owned()])
        );
        assert!(several(&list, "red, pink").is_err());
    }
}
