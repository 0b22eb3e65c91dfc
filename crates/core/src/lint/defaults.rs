//! Defaults that are selected before a person has decided. "Accept all" must never delete, pay or agree to something.

use super::report::LintFindings;
use super::texts::shortened;
use crate::form::{Field, Kind};
use crate::secrecy::words::words;

/// Actions that cannot be undone, or that bind a person.
const GRAVE: &str = "delete deletes deleting remove removes erase destroy drop drops wipe purge overwrite overwrites truncate reset force forced \
    forcibly irreversible permanently permanent production prod uninstall revoke terminate shutdown kill pay payment purchase buy charge \
    transfer withdraw publish merge override skip bypass disable unsafe insecure sudo root admin";

/// Words of consent, which only a person may give, not a default.
const CONSENT: &str = "confirm confirmed confirmation agree agreed agreement consent accept accepted approve approved approval authorize \
    authorise acknowledge subscribe newsletter marketing telemetry tracking share terms";

/// Words that make a dangerous word cautious.
const CAUTIOUS: &str =
    "dry dont don not no never without prevent avoid keep protect ask before backup undo restore";

/// Lints the default of a field, if it has one.
pub(super) fn look(at: &str, field: &Field, findings: &mut LintFindings) {
    let at = format!("{at}/default");
    match field.kind() {
        Kind::Boolean(boolean) if boolean.default == Some(true) => {
            let says = |list| {
                [Some(field.name()), field.title(), field.description()]
                    .into_iter()
                    .flatten()
                    .any(|text| speaks_of(text, list))
            };
            if says(CONSENT) {
                let message = "yes is chosen already: a person agrees without having said so";
                findings.warn(
                    &at,
                    "risky-default",
                    message,
                    "let the default be false, or leave it out",
                );
            } else if says(GRAVE) {
                let message = "yes is chosen already for something that is hard to take back";
                findings.warn(
                    &at,
                    "risky-default",
                    message,
                    "let the default be false, or leave it out",
                );
            }
        }
        Kind::Choice(choice) => {
            let picked = choice
                .options
                .iter()
                .find(|option| Some(&*option.value) == choice.default.as_deref());
            if let Some(option) = picked.filter(|option| {
                speaks_of(&option.value, GRAVE) || speaks_of(option.label(), GRAVE)
            }) {
                let message = format!(
                    "\"{}\" is chosen already, and is hard to take back",
                    shortened(option.label())
                );
                findings.warn(
                    &at,
                    "risky-default",
                    message,
                    "choose the harmless option, or leave the default out",
                );
            }
        }
        Kind::Choices(choices) => {
            let picked = choices.default.iter().flatten();
            if choices.options.len() > 1 && picked.clone().count() == choices.options.len() {
                findings.note(
                    &at,
                    "all-chosen",
                    "every option is chosen already",
                    "choose those that most people want",
                );
            }
            if let Some(value) = picked.clone().find(|value| speaks_of(value, GRAVE)) {
                let message = format!(
                    "\"{}\" is chosen already, and is hard to take back",
                    shortened(value)
                );
                findings.warn(
                    &at,
                    "risky-default",
                    message,
                    "choose the harmless options, or leave the default out",
                );
            }
        }
        Kind::Boolean(_)
        | Kind::Text(_)
        | Kind::Number(_)
        | Kind::Integer(_)
        | Kind::Union(_)
        | Kind::Lines(_) => {}
    }
}

fn speaks_of(text: &str, list: &str) -> bool {
    let words = words(text);
    let among = |list: &str, word: &String| list.split_whitespace().any(|listed| listed == word);
    words.iter().any(|word| among(list, word)) && !words.iter().any(|word| among(CAUTIOUS, word))
}
