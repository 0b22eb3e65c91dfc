//! Facts learned about a server and its clients, in a form that outlives the process: the tools that were certainly
//! seen to ask, the eras in which the server asked, the timeouts of clients, and the callers of tasks.

use serde::{Deserialize, Serialize};

use crate::parts::asking_targets::LearnedAsker;
use crate::parts::client_waits::LearnedWait;
use crate::parts::server_eras::AskedEras;
use crate::parts::task_owners::LearnedTask;
use crate::settings::RelaySettings;

/// The facts, as the record stores them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Tools, prompts and resources that were seen to ask.
    askers: Vec<LearnedAsker>,
    /// Clients that were seen to give up.
    waits: Vec<LearnedWait>,
    /// Tasks and the callers that began them.
    #[serde(default)]
    tasks: Vec<LearnedTask>,
    /// The eras in which the server was seen to ask.
    #[serde(default)]
    eras: AskedEras,
}

impl Learned {
    /// Returns the eras in which the server was seen to ask.
    pub const fn eras(&self) -> AskedEras {
        self.eras
    }
}

/// The facts about a server's eras alone, which hold for all that run the same program.
impl From<AskedEras> for Learned {
    fn from(eras: AskedEras) -> Self {
        Self {
            eras,
            ..Self::default()
        }
    }
}

impl RelaySettings {
    /// Returns the facts, if any are new since the last time.
    pub fn newly_learned(&self) -> Option<Learned> {
        let askers = self.askers.take_changed();
        let waits = self.client_waits.take_changed();
        let tasks = self.task_owners.take_changed();
        let eras = self.eras.take_changed();
        (askers || waits || tasks || eras).then(|| self.learned())
    }

    /// Returns all facts.
    pub fn learned(&self) -> Learned {
        Learned {
            askers: self.askers.certain(),
            waits: self.client_waits.known(),
            tasks: self.task_owners.known(),
            eras: self.eras.known(),
        }
    }

    /// Adds the facts learned by another process, or an earlier one.
    pub fn learn(&self, learned: &Learned) {
        self.askers.add(&learned.askers);
        self.client_waits.add(&learned.waits);
        self.task_owners.add(&learned.tasks);
        self.eras.add(learned.eras);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn learned(askers: &Value, millis: u64) -> Learned {
        let waits = json!([{"client": "c", "millis": millis}]);
        serde_json::from_value(json!({"askers": askers, "waits": waits})).unwrap()
    }

    fn asker(kind: &str, target: &str, form: bool, url: bool) -> Value {
        json!({"kind": kind, "target": target, "form": form, "url": url})
    }

    #[test]
    fn what_one_process_learned_another_knows_and_is_no_news_there() {
        let settings = RelaySettings::default();
        let first = learned(&json!([asker("tool", "deploy", true, false)]), 5_000);
        settings.learn(&first);
        assert_eq!(settings.newly_learned(), None);
        let text = serde_json::to_string(&settings.learned()).unwrap();
        assert_eq!(serde_json::from_str::<Learned>(&text).unwrap(), first);
        // Of two processes each adds its observations; the shorter timeout counts.
        let modes = asker("tool", "deploy", false, true);
        let unknown = asker("elsewhere", "x", true, true);
        settings.learn(&learned(&json!([modes, unknown]), 9_000));
        let both = learned(&json!([asker("tool", "deploy", true, true)]), 5_000);
        assert_eq!(settings.learned(), both);
    }
}
