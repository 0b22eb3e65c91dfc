//! The values that people have typed and not sent yet. They live in this process only.

use indexmap::IndexMap;
use mcp_elicit_core::answer::{Draft, DraftValue};

/// The most drafts of one person, and of all.
const MOST: (usize, usize) = (100, 5_000);
/// The most bytes in the drafts of one person, and of all.
const MOST_BYTES: (usize, usize) = (4 * 1024 * 1024, 64 * 1024 * 1024);

/// The drafts of several people. One that has no room takes the place of those of the same person that were changed longest ago, and
/// only where all have too much that of another.
#[derive(Default)]
pub(crate) struct Drafts {
    /// By question and person, the one that was changed longest ago first.
    kept: IndexMap<(String, String), (Draft, usize)>,
}

impl Drafts {
    /// Returns what the person has typed on the question.
    pub(crate) fn get(&self, question: &str, person: &str) -> Option<Draft> {
        let key = (question.to_owned(), person.to_owned());
        self.kept.get(&key).map(|(draft, _)| draft.clone())
    }

    /// Keeps what the person has typed, in place of what it was before.
    pub(crate) fn keep(&mut self, question: &str, person: &str, draft: Draft) {
        let key = (question.to_owned(), person.to_owned());
        self.kept.shift_remove(&key);
        let bytes = bytes_of(&draft);
        self.make_room(|of| of == person, MOST.0, MOST_BYTES.0, bytes);
        self.make_room(|_| true, MOST.1, MOST_BYTES.1, bytes);
        self.kept.insert(key, (draft, bytes));
    }

    /// Drops what everybody has typed on the question.
    pub(crate) fn forget(&mut self, question: &str) {
        self.kept.retain(|(of, _), _| of != question);
    }

    /// Drops the oldest drafts of these people until one more of so many bytes is not too much.
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

/// Returns the bytes that a draft takes up, about.
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
        // Of long ones fewer are kept, and the one that was changed last always is.
        for number in 0..10 {
            drafts.keep(&format!("long{number}"), "ada", draft(1_000_000));
        }
        let bytes: usize = drafts.kept.values().map(|(_, bytes)| bytes).sum();
        assert!(bytes < MOST_BYTES.0 + 1_000, "{bytes}");
        assert!(drafts.get("long9", "ada").is_some() && drafts.get("long5", "ada").is_none());
        assert!(drafts.get("q", "bob").is_some());
        // The same draft anew takes its own place.
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
