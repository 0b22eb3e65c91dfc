//! The settings of a file that let others than a person answer, for a check of it.

use toml::{Table, Value};

/// A setting that lets others than a person answer, or open the gateway to other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiskySetting {
    /// A program answers the questions of a server.
    AnswerCommand,
    /// Unauthenticated callers are served.
    Insecure,
    /// Programs of the user may answer.
    AnyPresence,
}

impl RiskySetting {
    /// Returns the setting as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnswerCommand => "answer-command",
            Self::Insecure => "insecure",
            Self::AnyPresence => "presence = \"any\"",
        }
    }
}

/// Returns these settings of a file whose other settings may be invalid; none if it is not TOML.
pub fn risky_settings(text: &str) -> Vec<RiskySetting> {
    let file: Table = toml::from_str(text).unwrap_or_default();
    let servers = file.get("servers").and_then(Value::as_table);
    let is_answered = |server: &Value| {
        server.get("answer-command").is_some()
            || server.get("answer-with").and_then(Value::as_str) == Some("command")
    };
    let has_program = servers.is_some_and(|all| all.values().any(is_answered));
    let is_insecure = file.get("insecure").and_then(Value::as_bool) == Some(true);
    let is_any = file.get("presence").and_then(Value::as_str) == Some("any");
    [
        (has_program, RiskySetting::AnswerCommand),
        (is_insecure, RiskySetting::Insecure),
        (is_any, RiskySetting::AnyPresence),
    ]
    .into_iter()
    .filter_map(|(is_set, setting)| is_set.then_some(setting))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_which_no_person_answers_are_found_in_a_file_with_other_mistakes() {
        use RiskySetting::{AnswerCommand, AnyPresence, Insecure};
        for (text, found) in [
            (
                "presence = \"page\"\ninsecure = false\n[servers.a]\nanswer-with = \"inbox\"",
                vec![],
            ),
            (
                "presence = \"any\"\ninsecure = true",
                vec![Insecure, AnyPresence],
            ),
            (
                "wrong = 1\n[servers.a]\ncommand = [\"a\"]\n[servers.b]\nanswer-with = \"command\"",
                vec![AnswerCommand],
            ),
            (
                "[servers.b]\nanswer-command = [\"yes\"]",
                vec![AnswerCommand],
            ),
            ("[servers.b", vec![]),
        ] {
            assert_eq!(risky_settings(text), found, "{text}");
        }
    }
}
