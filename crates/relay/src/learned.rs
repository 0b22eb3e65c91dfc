//! Facts learned of a server and its clients, in a form that outlives the process: which calls were seen to ask for certain,
//! and how long clients were seen to wait.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::RelaySettings;

/// The facts, as the record keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Tools, prompts and resources that were seen to ask.
    pub(crate) askers: Vec<LearnedAsker>,
    /// Clients that were seen to give up.
    pub(crate) waits: Vec<LearnedWait>,
}

/// A tool, prompt or resource that was seen to ask, in these modes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedAsker {
    pub(crate) kind: String,
    pub(crate) target: String,
    pub(crate) form: bool,
    pub(crate) url: bool,
}

/// A client, by its own name, and the time that it was seen to wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedWait {
    pub(crate) client: String,
    pub(crate) millis: u64,
}

impl LearnedWait {
    pub(crate) fn span(&self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

impl RelaySettings {
    /// Returns what was learned, where anything was since the last time.
    pub fn newly_learned(&self) -> Option<Learned> {
        let askers = self.askers.take_changed();
        let waits = self.client_waits.take_changed();
        (askers || waits).then(|| self.learned())
    }

    /// Returns all that was learned.
    pub fn learned(&self) -> Learned {
        Learned {
            askers: self.askers.certain(),
            waits: self.client_waits.known(),
        }
    }

    /// Adds what was learned by another process, or an earlier one.
    pub fn learn(&self, learned: &Learned) {
        self.askers.add(&learned.askers);
        self.client_waits.add(&learned.waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(kind: &str, target: &str, form: bool, url: bool) -> LearnedAsker {
        LearnedAsker {
            kind: kind.to_owned(),
            target: target.to_owned(),
            form,
            url,
        }
    }

    #[test]
    fn what_one_process_learned_another_knows_and_is_no_news_there() {
        let settings = RelaySettings::default();
        let learned = Learned {
            askers: vec![asker("tool", "deploy", true, false)],
            waits: vec![LearnedWait {
                client: "c".to_owned(),
                millis: 5_000,
            }],
        };
        settings.learn(&learned);
        assert_eq!(settings.newly_learned(), None);
        let text = serde_json::to_string(&settings.learned()).unwrap();
        assert_eq!(serde_json::from_str::<Learned>(&text).unwrap(), learned);
        // Of two processes each adds what it saw; the shorter wait counts.
        settings.learn(&Learned {
            askers: vec![
                asker("tool", "deploy", false, true),
                asker("elsewhere", "x", true, true),
            ],
            waits: vec![LearnedWait {
                client: "c".to_owned(),
                millis: 9_000,
            }],
        });
        let both = settings.learned();
        assert_eq!(both.askers, [asker("tool", "deploy", true, true)]);
        assert_eq!(both.waits, learned.waits);
    }
}
