//! The tools, prompts and resources of a server that were seen to ask.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::wire::{Capability, Mode};
use serde::{Deserialize, Serialize};

use crate::CallKind;

/// The number of tools, prompts and resources of one server that are remembered.
const REMEMBERED: usize = 4_096;
/// The total size of their names and URIs, in bytes: a server may ask for each URI of a template.
const TARGET_BYTES: usize = 4 * 1024 * 1024;

/// The tools, prompts and resources that were seen to ask: shared by all relays of one server.
#[derive(Clone, Debug, Default)]
pub struct AskingTargets {
    known: Arc<Mutex<Known>>,
    /// `true` if one was seen to ask since the last check.
    changed: Arc<AtomicBool>,
    /// Increases with every change of a habit.
    changes: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Known {
    habits: BTreeMap<(&'static str, String), Habit>,
    /// The total size of the names and URIs, in bytes.
    bytes: usize,
}

/// A tool, prompt or resource that was seen to ask, in these modes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedAsker {
    kind: String,
    target: String,
    form: bool,
    url: bool,
}

/// The known behaviour of one tool, prompt or resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// One of several, one of which asked.
    Suspected,
    /// It asked in these modes.
    Asks { form: bool, url: bool },
}

impl Habit {
    fn has(self, mode: Mode) -> bool {
        match (self, mode) {
            (Self::Suspected, _) => true,
            (Self::Asks { form, .. }, Mode::Form) => form,
            (Self::Asks { url, .. }, Mode::Url) => url,
        }
    }
}

impl AskingTargets {
    fn all(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if one was seen to ask since the last time.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Returns a number that increases with every change of a habit.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns those that were certainly seen to ask.
    pub(crate) fn certain(&self) -> Vec<LearnedAsker> {
        let all = self.all();
        let certain = all
            .habits
            .iter()
            .filter_map(|((kind, target), habit)| match *habit {
                Habit::Asks { form, url } => Some(LearnedAsker {
                    kind: (*kind).to_owned(),
                    target: target.clone(),
                    form,
                    url,
                }),
                Habit::Suspected => None,
            });
        certain.collect()
    }

    /// Adds those seen by another process, or an earlier one.
    pub(crate) fn add(&self, learned: &[LearnedAsker]) {
        let kinds = [CallKind::Tool, CallKind::Prompt, CallKind::Resource];
        for asker in learned {
            let Some(kind) = kinds.into_iter().find(|kind| kind.word() == asker.kind) else {
                continue;
            };
            self.set(kind, &asker.target, |before| match before {
                Some(Habit::Asks { form, url }) => Habit::Asks {
                    form: form || asker.form,
                    url: url || asker.url,
                },
                Some(Habit::Suspected) | None => Habit::Asks {
                    form: asker.form,
                    url: asker.url,
                },
            });
        }
    }

    /// Returns `true` if none was seen to ask.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().habits.is_empty()
    }

    /// Returns `true` if this one was seen to ask, or is one of several, one of which did.
    pub(crate) fn knows(&self, kind: CallKind, target: &str) -> bool {
        self.get(kind, target).is_some()
    }

    /// Returns `true` if this one was certainly seen to ask in this mode.
    pub(crate) fn surely_asks(&self, kind: CallKind, target: &str, mode: Mode) -> bool {
        let habit = self.get(kind, target);
        habit.is_some_and(|habit| habit != Habit::Suspected && habit.has(mode))
    }

    /// Returns `true` if this one may ask in a mode that the client does not show itself.
    pub(crate) fn may_ask_people(&self, kind: CallKind, target: &str, shown: Capability) -> bool {
        let habit = self.get(kind, target);
        let asks = |mode| habit.is_some_and(|habit| habit.has(mode) && !shown.has(mode));
        asks(Mode::Form) || asks(Mode::Url)
    }

    /// Records that this one, or one of several including it, was seen to ask in this mode.
    pub(crate) fn saw(&self, kind: CallKind, target: &str, mode: Mode, is_certain: bool) {
        let is_news = self.set(kind, target, |known| match known {
            Some(Habit::Asks { form, url }) => Habit::Asks {
                form: form || (is_certain && mode == Mode::Form),
                url: url || (is_certain && mode == Mode::Url),
            },
            Some(Habit::Suspected) | None if is_certain => Habit::Asks {
                form: mode == Mode::Form,
                url: mode == Mode::Url,
            },
            Some(Habit::Suspected) | None => Habit::Suspected,
        });
        if is_news {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    fn get(&self, kind: CallKind, target: &str) -> Option<Habit> {
        let key = (kind.word(), target.to_owned());
        self.all().habits.get(&key).copied()
    }

    /// Changes the habit of one; returns `true` if this makes it newly certain.
    fn set(
        &self,
        kind: CallKind,
        target: &str,
        change: impl FnOnce(Option<Habit>) -> Habit,
    ) -> bool {
        let mut all = self.all();
        let key = (kind.word(), target.to_owned());
        let before = all.habits.get(&key).copied();
        let bytes = all.bytes + target.len();
        if before.is_none() && (all.habits.len() >= REMEMBERED || bytes > TARGET_BYTES) {
            return false;
        }
        let now = change(before);
        if before.is_none() {
            all.bytes = bytes;
        }
        let is_other = all.habits.insert(key, now) != Some(now);
        if is_other {
            self.changes.fetch_add(1, Ordering::Release);
        }
        is_other && now != Habit::Suspected
    }

    /// Clears the suspicion of one that had its turn and did not ask.
    pub(crate) fn clear_suspicion(&self, kind: CallKind, target: &str) {
        let mut all = self.all();
        let key = (kind.word(), target.to_owned());
        if all.habits.get(&key) == Some(&Habit::Suspected) {
            all.habits.remove(&key);
            all.bytes -= target.len();
            self.changes.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_those_that_ask_are_bounded_together() {
        let seen = AskingTargets::default();
        let uri = |n: usize| n.to_string() + &"x".repeat(65_536 - n.to_string().len());
        let ask = |n: usize, is_certain| {
            seen.saw(CallKind::Resource, &uri(n), Mode::Form, is_certain);
            seen.knows(CallKind::Resource, &uri(n))
        };
        let known: Vec<_> = (0..70).filter(|n| ask(*n, *n > 0)).collect();
        assert_eq!(known, (0..64).collect::<Vec<_>>());
        assert!(ask(5, true), "what is known counts once");
        assert!(!ask(70, true));
        seen.clear_suspicion(CallKind::Resource, &uri(0));
        assert!(ask(70, true) && !ask(71, true));
        assert_eq!(seen.certain().len(), 64);
    }
}
