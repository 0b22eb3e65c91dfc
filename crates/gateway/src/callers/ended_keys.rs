//! Keys that were revoked or have expired while calls of theirs wait for people: nobody comes back with one, so the
//! questions that were asked for them are withdrawn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_inbox::api_tokens::{ApiToken, ApiTokens, Scope};
use mcp_elicit_record::Record;
use mcp_elicit_record::clock::now;
use mcp_elicit_record::principal::Principal;

/// The interval at which the keys are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of intervals that pass before questions are withdrawn: the sessions of a key that has ended are ended within
/// a second, so that the results of its calls, which go on without an answer, reach nobody.
const DELAY: u8 = 2;
/// The number of times that questions are looked for after that: one may be on its way.
const TIMES: u8 = 3;

/// The keys of a state folder, as they were when they were looked at last.
#[derive(Debug, Default)]
struct KnownKeys {
    /// Those that are valid.
    valid: BTreeSet<String>,
    /// Those that were, or that the list says have ended.
    ended: BTreeSet<String>,
    /// The number of intervals after which the last questions are withdrawn.
    due: u8,
}

impl KnownKeys {
    /// Takes the keys as they are now: the ids of all in the list, and `true` for those that are valid.
    fn update(&mut self, listed: &[(String, bool)]) {
        if listed.is_empty() {
            // The file is gone, or nothing was ever in it. That says nothing of any key.
            return;
        }
        let of = |wanted: bool| {
            let those = listed.iter().filter(move |(_, valid)| *valid == wanted);
            those.map(|(id, _)| id.clone())
        };
        let valid: BTreeSet<String> = of(true).collect();
        let vanished = self.valid.difference(&valid).cloned();
        let before = self.ended.len();
        let ended: Vec<String> = vanished.chain(of(false)).collect();
        self.ended.extend(ended);
        self.valid = valid;
        if self.ended.len() > before {
            self.due = DELAY + TIMES;
        }
    }

    /// Returns `true` if questions are to be looked for now.
    fn is_due(&mut self) -> bool {
        let is_due = (1..=TIMES).contains(&self.due);
        self.due = self.due.saturating_sub(1);
        is_due
    }

    /// Returns `true` if this caller had a key that has ended.
    fn is_gone(&self, caller: &str) -> bool {
        matches!(Principal::parse(caller), Some(Principal::Key(id)) if self.ended.contains(id))
    }
}

/// Withdraws the questions of callers whose keys have ended, as long as the process runs.
pub(crate) async fn withdraw_questions(tokens: ApiTokens, record: Arc<Record>) {
    let mut keys = KnownKeys::default();
    loop {
        let now = now();
        // A file that cannot be read ends no key for good.
        if let Ok(listed) = tokens.list() {
            let is_valid = |token: &ApiToken| token.is_valid(now) && token.permits(Scope::Call);
            let listed = listed.iter();
            let listed = listed.map(|token| (token.id().to_owned(), is_valid(token)));
            keys.update(&listed.collect::<Vec<_>>());
        }
        if keys.is_due() {
            let withdrawn = record.withdraw_for(|caller| keys.is_gone(caller)).await;
            if let Err(error) = withdrawn {
                tracing::warn!(%error, "questions of keys that have ended could not be withdrawn");
                keys.due = TIMES;
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_when_it_is_revoked_or_removed_and_not_when_the_file_is_gone() {
        let mut keys = KnownKeys::default();
        let list = |keys: &mut KnownKeys, listed: &[(&str, bool)]| {
            let listed = listed.iter();
            let listed = listed.map(|(id, valid)| ((*id).to_owned(), *valid));
            keys.update(&listed.collect::<Vec<_>>());
        };
        list(&mut keys, &[("a", true), ("b", true), ("c", true)]);
        assert!(!keys.is_due());
        list(&mut keys, &[]);
        assert!(!keys.is_due() && !keys.is_gone("key-a"));
        list(&mut keys, &[("a", true), ("b", false)]);
        for _ in 0..DELAY {
            assert!(!keys.is_due(), "its sessions end first");
        }
        for _ in 0..TIMES {
            assert!(keys.is_due());
        }
        assert!(!keys.is_due());
        for (caller, gone) in [
            ("key-a", false),
            ("key-b", true),
            ("key-c", true),
            ("key-unknown", false),
            ("anonymous", false),
            (r#"["https://id","b"]"#, false),
        ] {
            assert_eq!(keys.is_gone(caller), gone, "{caller}");
        }
        list(&mut keys, &[("a", true), ("b", false)]);
        assert!(!keys.is_due(), "nothing has changed");
    }
}
