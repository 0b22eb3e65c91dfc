//! The drafts of people in this process only, with a record that no other gateway shares.

use indexmap::IndexMap;
use mcp_elicit_core::answer::{Draft, DraftValue};
use mcp_elicit_record::store::drafts::{MOST_DRAFT_BYTES as MOST_BYTES, MOST_DRAFTS as MOST};

/// The drafts of several people. If there is no room, a new draft replaces the same person's least recently changed
/// ones, and another person's only if all have too much.
#[derive(Default)]
pub(crate) struct Drafts {
    /// By question and person, the least recently changed first.
    kept: IndexMap<(String, String), (Draft, usize)>,
}

impl Drafts {
    /// Returns the person's draft of the question.
    pub(crate) fn get(&self, question: &str, person: &str) -> Option<Draft> {
        let key = (question.to_owned(), person.to_owned());
        self.kept.get(&key).map(|(draft, _)| draft.clone())
    }

    /// Stores the person's draft, replacing the previous one.
    pub(crate) fn keep(&mut self, question: &str, person: &str, draft: Draft) {
        let key = (question.to_owned(), person.to_owned());
        self.kept.shift_remove(&key);
        let bytes = bytes_of(&draft);
        self.make_room(|of| of == person, MOST.0, MOST_BYTES.0, bytes);
        self.make_room(|_| true, MOST.1, MOST_BYTES.1, bytes);
        self.kept.insert(key, (draft, bytes));
    }

    /// Drops all drafts of the question.
    pub(crate) fn forget(&mut self, question: &str) {
        self.kept.retain(|(of, _), _| of != question);
    }

    /// Drops the oldest drafts of these people until there is room for one more of `bytes` bytes.
    fn make_room(
        &mut self,
        is_theirs: impl Fn(&str) -> bool,
        most: usize,
        most_bytes: usize,
        more: usize,
    ) {
        let theirs = || self.kept.iter().filter(|((_, of), _)| is_theirs(of));
        let mut count = theirs().count();
        let mut bytes: usize = theirs().map(|(_, (_, bytes))| bytes).sum();
        let is_too_much =
            |count: usize, bytes: usize| count >= most || bytes.saturating_add(more) > most_bytes;
        if !is_too_much(count, bytes) {
            return;
        }
        self.kept.retain(|(_, of), (_, size)| {
            if !is_theirs(of) || !is_too_much(count, bytes) {
                return true;
            }
            count -= 1;
            bytes -= *size;
            false
        });
    }
}

/// Returns the approximate size of a draft in bytes.
fn bytes_of(draft: &Draft) -> usize {
    let fields = draft.iter().map(|(name, value)| {
        let value = match value {
            DraftValue::Nothing | DraftValue::Flag(_) => 0,
            DraftValue::Text(text) => text.len(),
            DraftValue::Picked(all) => all.iter().map(|one| one.len() + size_of::<String>()).sum(),
        };
        name.len() + value + size_of::<(String, DraftValue)>()
    });
    fields.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(bytes: usize) -> Draft {
        let mut draft = Draft::new();
        draft.set("text", DraftValue::Text("x".repeat(bytes)));
        draft
    }

    #[test]
    fn a_person_who_types_much_takes_the_room_of_their_own_drafts() {
        let mut drafts = Drafts::default();
        drafts.keep("q", "bob", draft(10));
        for number in 0..200 {
            drafts.keep(&format!("q{number}"), "ada", draft(10));
        }
        assert!(drafts.get("q", "bob").is_some());
        let of_ada = drafts.kept.keys().filter(|(_, of)| of == "ada");
        assert_eq!(of_ada.count(), MOST.0);
        assert!(drafts.get("q99", "ada").is_none() && drafts.get("q100", "ada").is_some());
        // Fewer long ones are kept, and always the most recently changed.
        for number in 0..10 {
            drafts.keep(&format!("long{number}"), "ada", draft(1_000_000));
        }
        let bytes: usize = drafts.kept.values().map(|(_, bytes)| bytes).sum();
        assert!(bytes < MOST_BYTES.0 + 1_000, "{bytes}");
        assert!(drafts.get("long9", "ada").is_some() && drafts.get("long5", "ada").is_none());
        assert!(drafts.get("q", "bob").is_some());
        // A new version of a draft replaces it.
        for _ in 0..10 {
            drafts.keep("long9", "ada", draft(1_000_000));
        }
        assert!(drafts.get("long8", "ada").is_some());
        drafts.forget("long9");
        assert!(drafts.get("long9", "ada").is_none());
    }

    #[test]
    fn the_drafts_of_all_are_bounded() {
        let mut drafts = Drafts::default();
        for number in 0..100 {
            drafts.keep("q", &format!("person{number}"), draft(1_000_000));
        }
        let bytes: usize = drafts.kept.values().map(|(_, bytes)| bytes).sum();
        assert!(bytes <= MOST_BYTES.1, "{bytes}");
        assert!(drafts.get("q", "person99").is_some());
        for number in 0..MOST.1 + 10 {
            drafts.keep("q", &format!("person{number}"), draft(1));
        }
        assert_eq!(drafts.kept.len(), MOST.1);
    }
}
