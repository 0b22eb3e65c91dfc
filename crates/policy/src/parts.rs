//! The parts of `each`: groups of which some people each must confirm. One person counts for one part.
//!
//! A vote is complete as soon as some assignment of its people to the parts fills every part, so people are never
//! assigned one by one: the largest assignment is computed again for each vote.

use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};

use crate::people::Addressee;

/// The most parts of one rule.
pub const MAX_PARTS: usize = 10;

/// A part: this many of these people must confirm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The people and groups.
    pub to: Vec<Addressee>,
    /// The number of people who must confirm.
    pub need: NonZeroU8,
}

/// The confirmations that are missing from the parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingParts<'p> {
    /// The number of missing confirmations.
    pub count: usize,
    /// The parts of which a confirmation would count, each with the most that would.
    pub of: Vec<(&'p Part, usize)>,
}

impl MissingParts<'_> {
    /// Returns the missing confirmations in words: `1 of the group platform and 1 of the group security`. `name`
    /// returns an addressee in words. `None` if none is missing.
    pub fn in_words(&self, name: &dyn Fn(&Addressee) -> String) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let each: usize = self.of.iter().map(|(_, most)| most).sum();
        let named = |part: &Part| {
            let names: Vec<String> = part.to.iter().map(name).collect();
            joined(&names, "or")
        };
        // A person who is in several groups may count for any of them, so the others are not known yet.
        if each > self.count {
            let groups: Vec<String> = self.of.iter().map(|(part, _)| named(part)).collect();
            return Some(format!("{} of {}", self.count, joined(&groups, "or")));
        }
        let parts: Vec<String> = self
            .of
            .iter()
            .map(|(part, most)| format!("{most} of {}", named(part)))
            .collect();
        Some(joined(&parts, "and"))
    }
}

/// Returns names in one phrase, such as `Ada, Bob and Cy`.
fn joined(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// Returns the confirmations that are missing; `votes` has the indexes of the parts that each voter may count for.
pub fn missing<'p>(parts: &'p [Part], votes: &[Vec<usize>]) -> MissingParts<'p> {
    let counted = most_counted(parts, votes);
    let need: usize = parts.iter().map(places).sum();
    let mut of = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let mut more = votes.to_vec();
        more.extend(std::iter::repeat_n(vec![index], places(part)));
        let most = most_counted(parts, &more) - counted;
        if most > 0 {
            of.push((part, most));
        }
    }
    MissingParts {
        count: need - counted,
        of,
    }
}

fn places(part: &Part) -> usize {
    usize::from(part.need.get())
}

/// Returns the largest number of people who can count, each for one part; `people` has the indexes of the parts that
/// each may count for.
pub fn most_counted(parts: &[Part], people: &[Vec<usize>]) -> usize {
    let mut assigned: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
    let mut counted = 0;
    for person in 0..people.len() {
        let mut visited = vec![false; parts.len()];
        if assign(person, parts, people, &mut assigned, &mut visited) {
            counted += 1;
        }
    }
    counted
}

/// Assigns a person to a part, moving others to other parts of theirs if necessary. Returns `false` if there is no
/// place.
fn assign(
    person: usize,
    parts: &[Part],
    people: &[Vec<usize>],
    assigned: &mut [Vec<usize>],
    visited: &mut [bool],
) -> bool {
    for &part in &people[person] {
        if std::mem::replace(&mut visited[part], true) {
            continue;
        }
        if assigned[part].len() < places(&parts[part]) {
            assigned[part].push(person);
            return true;
        }
        for at in 0..assigned[part].len() {
            let other = assigned[part][at];
            if assign(other, parts, people, assigned, visited) {
                assigned[part][at] = person;
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(needs: &[u8]) -> Vec<Part> {
        let part = |(index, need): (usize, &u8)| Part {
            to: vec![Addressee::Group(format!("g{index}"))],
            need: NonZeroU8::new(*need).unwrap(),
        };
        needs.iter().enumerate().map(part).collect()
    }

    fn words(needs: &[u8], votes: &[Vec<usize>]) -> Option<String> {
        let parts = parts(needs);
        let name = |to: &Addressee| to.to_string().replace("group:", "");
        missing(&parts, votes).in_words(&name)
    }

    #[test]
    fn the_missing_are_named_and_a_person_in_two_groups_leaves_both_open() {
        assert_eq!(words(&[1, 1], &[]).unwrap(), "1 of g0 and 1 of g1");
        assert_eq!(words(&[1, 1], &[vec![0]]).unwrap(), "1 of g1");
        assert_eq!(words(&[1, 1], &[vec![0, 1]]).unwrap(), "1 of g0 or g1");
        assert_eq!(words(&[2, 1], &[vec![0]]).unwrap(), "1 of g0 and 1 of g1");
        assert_eq!(words(&[1, 1], &[vec![0], vec![0]]).unwrap(), "1 of g1");
        assert_eq!(words(&[1, 1], &[vec![0, 1], vec![0]]), None);
    }

    /// Returns the most people who can count, by trying every assignment.
    fn by_trial(left: &mut [usize], people: &[Vec<usize>]) -> usize {
        let Some((first, rest)) = people.split_first() else {
            return 0;
        };
        let mut most = by_trial(left, rest);
        for &part in first {
            if left[part] > 0 {
                left[part] -= 1;
                most = most.max(1 + by_trial(left, rest));
                left[part] += 1;
            }
        }
        most
    }

    proptest! {
        #[test]
        fn no_assignment_counts_more_people(
            needs in prop::collection::vec(1_u8..3, 1..4),
            people in prop::collection::vec(prop::collection::btree_set(0_usize..4, 0..4), 0..6),
        ) {
            let parts = parts(&needs);
            let people: Vec<Vec<usize>> = people
                .into_iter()
                .map(|may| may.into_iter().filter(|part| *part < parts.len()).collect())
                .collect();
            let mut left: Vec<usize> = needs.iter().map(|need| usize::from(*need)).collect();
            prop_assert_eq!(most_counted(&parts, &people), by_trial(&mut left, &people));
        }
    }
}
