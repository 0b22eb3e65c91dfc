//! Keys that were revoked or have expired while their calls wait for people: no caller returns with one, so the
//! questions of these calls are withdrawn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_inbox::api_tokens::{ApiToken, ApiTokens, Scope};
use mcp_elicit_record::Record;
use mcp_elicit_record::clock::now;
use mcp_elicit_record::principal::Principal;

/// The interval at which the keys are checked.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of intervals before questions are withdrawn: the sessions of an ended key are ended within a second, so
/// that the results of its unanswered calls reach no client.
const DELAY: u8 = 2;
/// The number of times that questions are looked up afterwards, since one may be in creation.
const TIMES: u8 = 3;

/// The keys of a state folder at the last check.
#[derive(Debug, Default)]
struct FolderKeys {
    /// The valid ones.
    valid: BTreeSet<String>,
    /// Those that were valid before, or are listed as ended.
    ended: BTreeSet<String>,
    /// The number of intervals after which the last questions are withdrawn.
    due: u8,
}

impl FolderKeys {
    /// Updates the keys: the ids of all in the list, with `true` for valid ones.
    fn update(&mut self, listed: &[(String, bool)]) {
        if listed.is_empty() {
            // The file is gone, or never had a key, which says nothing about any key.
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

    /// Returns `true` if questions are to be looked up now.
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

/// Withdraws the questions of callers with ended keys, while the process runs.
pub(crate) async fn withdraw_questions(tokens: ApiTokens, record: Arc<Record>) {
    let mut keys = FolderKeys::default();
    loop {
        let now = now();
        // An unreadable file ends no key permanently.
        if let Ok(listed) = tokens.list() {
            let is_valid = |token: &ApiToken| token.is_valid(now) && token.permits(Scope::Call);
            let listed = listed.iter();
            let listed = listed.map(|token| (token.id.clone(), is_valid(token)));
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
        let mut keys = FolderKeys::default();
        let list = |keys: &mut FolderKeys, listed: &[(&str, bool)]| {
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
