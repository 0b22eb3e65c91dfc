//! Answers given as values, for testing handlers without a transport. See [`crate::testing`].

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_elicit_core::wire::{Capability, Mode, Revision};

use super::{Admit, Put, cannot_ask};
use crate::journal::{ActionWord, Given, Reply};
use crate::question::{Question, Subject};
use crate::testing::{Answer, Asked};
use crate::unanswered::Unanswered;

/// What the scripted person says, in order, and what was asked so far.
#[derive(Debug)]
pub(crate) struct Script {
    capability: Capability,
    stand: Mutex<Stand>,
}

#[derive(Debug, Default)]
struct Stand {
    answers: VecDeque<Answer>,
    asked: Vec<Asked>,
}

impl Script {
    pub(crate) fn new(capability: Capability, answers: impl IntoIterator<Item = Answer>) -> Self {
        let stand = Stand {
            answers: answers.into_iter().collect(),
            asked: Vec::new(),
        };
        Self {
            capability,
            stand: Mutex::new(stand),
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    pub(crate) fn can_put(&self, mode: Mode) -> Result<(), Unanswered> {
        cannot_ask::declared(self.capability, mode, Revision::LATEST)
    }

    pub(crate) fn put(&self, question: &Question, admit: Admit<'_>) -> Result<Put, Unanswered> {
        admit()?;
        let mut stand = self.lock();
        stand.asked.push(asked(question)?);
        let number = stand.asked.len();
        let answer = stand.answers.pop_front();
        let given = match answer {
            None => {
                return Err(Unanswered::Author(format!(
                    "the script has no answer to question {number}"
                )));
            }
            Some(Answer::Accept(content)) => {
                let content = serde_json::value::to_raw_value(&content);
                let content = content.map_err(|error| Unanswered::Author(error.to_string()))?;
                Given::Reply(Reply {
                    action: ActionWord::Accept,
                    content: Some(content),
                })
            }
            Some(Answer::Visit) => Given::Reply(Reply {
                action: ActionWord::Accept,
                content: None,
            }),
            Some(Answer::Decline) => Given::Reply(Reply {
                action: ActionWord::Decline,
                content: None,
            }),
            Some(Answer::Cancel) => Given::Reply(Reply {
                action: ActionWord::Cancel,
                content: None,
            }),
            Some(Answer::Silence) => {
                return Err(Unanswered::TimedOut {
                    after: question.timeout,
                });
            }
        };
        Ok(Put::fresh(given, Duration::ZERO))
    }

    fn lock(&self) -> MutexGuard<'_, Stand> {
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn asked(question: &Question) -> Result<Asked, Unanswered> {
    let message = question.message.clone();
    Ok(match &question.subject {
        Subject::Form(form) => Asked {
            message,
            schema: Some(form.schema(Revision::LATEST)?),
            url: None,
        },
        Subject::Url { url, .. } => Asked {
            message,
            schema: None,
            url: Some(url.clone()),
        },
    })
}
