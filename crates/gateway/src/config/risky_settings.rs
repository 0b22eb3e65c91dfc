//! The settings of a file that let others than a person answer, for a check of it.

use toml::{Table, Value};

/// A setting that lets others than a person answer, or open the gateway to other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiskySetting {
    /// A program answers the questions of a server.
    AnswerCommand,
    /// Only the client is asked the questions of a server.
    AnswerWithClient,
    /// There is no inbox.
    NoInbox,
    /// Unauthenticated callers are served.
    Insecure,
    /// Programs of the user may answer.
    AnyPresence,
    /// The record is in this database. Named in files that others have written too, as the next two are.
    Record,
    /// A program is run for the password of the database.
    RecordPasswordCommand,
    /// The state is in this folder.
    State,
}

impl RiskySetting {
    /// Returns the setting as it is written. [`Self::NoInbox`] is the name of the setting that is missing.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnswerCommand => "answer-command",
            Self::AnswerWithClient => "answer-with = \"client\"",
            Self::NoInbox => "inbox",
            Self::Insecure => "insecure",
            Self::AnyPresence => "presence = \"any\"",
            Self::Record => "record",
            Self::RecordPasswordCommand => "record-password-command",
            Self::State => "state",
        }
    }

    /// Returns `true` for a setting that matters only if others have written the file too.
    pub fn is_of_shared_file(self) -> bool {
        matches!(
            self,
            Self::Record | Self::RecordPasswordCommand | Self::State
        )
    }
}

/// Returns these settings of a file whose other settings may be invalid; none if it is not TOML.
pub fn risky_settings(text: &str) -> Vec<RiskySetting> {
    let Ok(file) = toml::from_str::<Table>(text) else {
        return Vec::new();
    };
    let servers = file.get("servers").and_then(Value::as_table);
    let is_asked =
        |server: &Value, whom| server.get("answer-with").and_then(Value::as_str) == Some(whom);
    let is_answered =
        |server: &Value| server.get("answer-command").is_some() || is_asked(server, "command");
    let has_program = servers.is_some_and(|all| all.values().any(is_answered));
    let asks_client =
        servers.is_some_and(|all| all.values().any(|server| is_asked(server, "client")));
    // The address of the inbox is its switch.
    let has_no_inbox = file
        .get("inbox")
        .and_then(Value::as_str)
        .is_none_or(|at| at == "off");
    let is_insecure = file.get("insecure").and_then(Value::as_bool) == Some(true);
    let is_any = file.get("presence").and_then(Value::as_str) == Some("any");
    [
        (has_program, RiskySetting::AnswerCommand),
        (asks_client, RiskySetting::AnswerWithClient),
        (has_no_inbox, RiskySetting::NoInbox),
        (is_insecure, RiskySetting::Insecure),
        (is_any, RiskySetting::AnyPresence),
        (file.contains_key("record"), RiskySetting::Record),
        (
            file.contains_key("record-password-command"),
            RiskySetting::RecordPasswordCommand,
        ),
        (file.contains_key("state"), RiskySetting::State),
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
        use RiskySetting::{
            AnswerCommand, AnswerWithClient, AnyPresence, Insecure, NoInbox, Record,
            RecordPasswordCommand, State,
        };
        let inbox = "inbox = \"127.0.0.1:7878\"\n";
        for (text, found) in [
            ("inbox = \"off\"", vec![NoInbox]),
            ("insecure = false", vec![NoInbox]),
        ] {
            assert_eq!(risky_settings(text), found, "{text}");
        }
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
            (
                "[servers.b]\nanswer-with = \"client\"",
                vec![AnswerWithClient],
            ),
            ("[servers.b", vec![]),
            (
                "state = \"./s\"\nrecord = \"postgres://u@h/d\"\nrecord-password-command = [\"a\"]",
                vec![Record, RecordPasswordCommand, State],
            ),
        ] {
            let text = format!("{inbox}{text}");
            assert_eq!(risky_settings(&text), found, "{text}");
        }
    }
}
