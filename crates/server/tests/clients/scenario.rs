//! The scenarios: the person's actions, and the results that every server must give.

use serde_json::{Value, json};

/// One call of a tool, with the answers that the person gives.
pub(crate) struct Play {
    pub(crate) name: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) answers: fn() -> Value,
    /// The time that the person takes, in milliseconds.
    pub(crate) delay_ms: u64,
    /// `true` if the client declares that it can ask.
    pub(crate) capable: bool,
    pub(crate) result: fn(&str) -> Outcome,
}

/// The result for the model.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Text(String),
    /// A result with `isError`.
    Refused(String),
    /// A JSON-RPC error with this code.
    Error(i64),
}

/// The result of a scenario.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) result: Outcome,
    /// The messages that the person saw, sorted, since two at once come in any order.
    pub(crate) asked: Vec<String>,
}

const PLAY: Play = Play {
    name: "",
    tool: "deploy",
    answers: || json!([]),
    delay_ms: 0,
    capable: true,
    result: |_| Outcome::Text(String::new()),
};

pub(crate) const SCENARIOS: [Play; 8] = [
    Play {
        name: "accept",
        answers: || {
            json!([
                accept(&json!({ "environment": "production" })),
                accept(&json!({ "confirm": true }))
            ])
        },
        result: |_| Outcome::Text("deployed to Production".into()),
        ..PLAY
    },
    Play {
        name: "decline",
        answers: || json!([accept(&json!({ "environment": "production" })), { "action": "decline" }]),
        result: |_| {
            Outcome::Refused("The user declined to answer \"Deploy to production?\".".into())
        },
        ..PLAY
    },
    Play {
        name: "cancel",
        answers: || json!([{ "action": "cancel" }]),
        result: |_| {
            Outcome::Refused(
                "The user dismissed the question \"Where to?\" without choosing.".into(),
            )
        },
        ..PLAY
    },
    Play {
        name: "wrong, then right",
        answers: || {
            json!([
                accept(&json!({ "environment": "the moon" })),
                accept(&json!({ "environment": "staging" }))
            ])
        },
        result: |_| Outcome::Text("deployed to Staging".into()),
        ..PLAY
    },
    Play {
        name: "two at once",
        tool: "both",
        answers: || json!([accept(&json!({ "choice": "a" }))]),
        result: |_| Outcome::Text("aa".into()),
        ..PLAY
    },
    Play {
        name: "several choices, first none",
        tool: "toppings",
        // As a list, and as checkboxes on 2025-06-18; values that the form does not have are dropped.
        answers: || {
            json!([
                accept(
                    &json!({ "choices": [], "choices.cheese": false, "choices.ham": false, "choices.olives": false })
                ),
                accept(
                    &json!({ "choices": ["cheese", "olives"], "choices.cheese": true, "choices.olives": true })
                ),
            ])
        },
        result: |_| Outcome::Text("cheese and olives".into()),
        ..PLAY
    },
    Play {
        name: "timeout",
        tool: "hasty",
        answers: || json!([accept(&json!({ "confirm": true }))]),
        // The tool waits for a second.
        delay_ms: 3_000,
        result: |_| Outcome::Error(-32000),
        ..PLAY
    },
    Play {
        name: "cannot ask",
        capable: false,
        // The one difference: each revision has its own code for this error.
        result: |revision| {
            Outcome::Error(if revision == "2026-07-28" {
                -32021
            } else {
                -32601
            })
        },
        ..PLAY
    },
];

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

impl Play {
    /// Returns the play in the format of the scripted clients of `tests/peers`, without the server to call.
    pub(crate) fn told(&self) -> Value {
        json!({
            "name": self.name, "tool": self.tool, "answers": (self.answers)(), "delay": self.delay_ms,
            "capable": self.capable,
        })
    }
}

impl Told {
    /// Parses the line that a scripted client prints.
    pub(crate) fn of(line: &Value) -> Self {
        let messages = line["asked"].as_array().unwrap().iter();
        let asked = messages.map(|asked| asked["message"].as_str().unwrap().to_owned());
        let result = if let Some(code) = line["error"]["code"].as_i64() {
            Outcome::Error(code)
        } else {
            let result = &line["result"];
            let text = result["content"][0]["text"].as_str();
            let text = text.unwrap_or_else(|| panic!("neither result nor error: {line}"));
            Outcome::of(text, result["isError"] == true)
        };
        Self::new(result, asked.collect())
    }

    pub(crate) fn new(result: Outcome, mut asked: Vec<String>) -> Self {
        asked.sort_unstable();
        Self { result, asked }
    }
}

impl Outcome {
    pub(crate) fn of(text: &str, is_error: bool) -> Self {
        if is_error {
            Self::Refused(text.to_owned())
        } else {
            Self::Text(text.to_owned())
        }
    }
}
