//! An error in a rules file, with its position.

use std::fmt;

use serde::Serialize;

/// An error in a rules file, or a warning about a file that is still usable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleDefect {
    /// The kind of error, for programs.
    pub code: &'static str,
    /// The rule that contains it, by name; `None` outside rules.
    pub rule: Option<String>,
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    /// The error, in one sentence.
    pub message: String,
    /// The fix; may be empty.
    pub help: String,
}

impl fmt::Display for RuleDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for RuleDefect {}

/// Returns the known name that is closest to `name`, if one is close enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = 1 + name.chars().count().min(64) / 4;
    known
        .into_iter()
        .map(|known| (distance(name, known), known))
        .filter(|(distance, _)| *distance <= bound)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns the number of characters that differ (Levenshtein), of the first 64 of each.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_may_be_meant() {
        let known = ["mail", "name", "subject"];
        assert_eq!(nearest("mial", known), Some("mail"));
        assert_eq!(nearest("subjetc", known), Some("subject"));
        assert_eq!(nearest("environment", known), None);
        assert_eq!(distance("", "abc"), 3);
    }
}
