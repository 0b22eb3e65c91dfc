//! Patterns for names: `*` for any characters, `?` for one. Characters are Unicode code points and are compared
//! exactly, without case folding or normalization, so that no name is taken for another.

/// A pattern for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    text: String,
    is_literal: bool,
}

impl Glob {
    /// Creates a pattern from its text.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_literal: !text.contains(['*', '?']),
        }
    }

    /// Returns the pattern as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the pattern matches only the name that it spells.
    pub(crate) fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// Returns `true` if the pattern matches the name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        if self.is_literal {
            return self.text == name;
        }
        like(&self.text, name, |pattern, found| {
            pattern == '?' || pattern == found
        })
    }

    /// Returns `true` if some name may match both.
    pub(crate) fn may_meet(&self, other: &Self) -> bool {
        match (self.is_literal, other.is_literal) {
            (true, _) => other.matches(&self.text),
            (_, true) => self.matches(&other.text),
            (false, false) => true,
        }
    }

    /// Returns `true` if every name that `other` matches certainly matches this pattern too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        // The other pattern is read as a name, in which only `*` matches a `*`, and `?` is one character.
        like(&self.text, &other.text, |pattern, found| match found {
            '*' => false,
            '?' => pattern == '?',
            found => pattern == '?' || pattern == found,
        })
    }
}

/// Matches with one backtracking position: the last `*`. The worst case is proportional to the product of both lengths.
fn like(pattern: &str, name: &str, same: impl Fn(char, char) -> bool) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut again = None;
    loop {
        let before = (pattern.clone(), name.clone());
        match (pattern.next(), name.next()) {
            (Some('*'), _) => {
                again = Some((pattern.clone(), before.1.clone()));
                name = before.1;
            }
            (None, None) => return true,
            (Some(wanted), Some(found)) if same(wanted, found) => {}
            _ => {
                let Some((after_star, mut from)) = again else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                again = Some((after_star.clone(), from.clone()));
                (pattern, name) = (after_star, from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("deploy*", "deploy_app", true),
            ("deploy*", "deploy", true),
            ("deploy*", "Deploy_app", false),
            ("*_all", "delete_all", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab", true),
            ("*a*b", "ba", false),
            ("d?t", "dot", true),
            ("d?t", "dt", false),
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("ü?", "üé", true),
            // One code point differs from two that look the same, and a wildcard matches whole code points.
            ("caf\u{e9}", "cafe\u{301}", false),
            ("caf?", "caf\u{e9}", true),
            ("caf?", "cafe\u{301}", false),
            ("caf??", "cafe\u{301}", true),
            ("?", "\u{1f600}", true),
            ("file:///srv/*", "file:///srv/\u{e4}/b?c*", true),
            ("file:///SRV/*", "file:///srv/a", false),
        ] {
            assert_eq!(
                Glob::new(pattern).matches(name),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn wider_patterns_cover_narrower_ones() {
        for (wide, narrow, expected) in [
            ("*", "delete_*", true),
            ("delete_*", "delete_all", true),
            ("delete_*", "delete_*", true),
            ("delete_?", "delete_*", false),
            ("delete_all", "delete_*", false),
            ("*_all", "delete_*_all", true),
            ("a?c", "a?c", true),
            ("a*c", "a?c", true),
            ("abc", "a?c", false),
        ] {
            let covers = Glob::new(wide).covers(&Glob::new(narrow));
            assert_eq!(covers, expected, "{wide} {narrow}");
        }
    }

    proptest! {
        /// A direct implementation of the definition, which may be slow.
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?]{0,6}", name in "[ab]{0,6}") {
            fn plain(pattern: &[u8], name: &[u8]) -> bool {
                match (pattern, name) {
                    ([], []) => true,
                    ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| plain(rest, &name[at..])),
                    ([b'?', rest @ ..], [_, tail @ ..]) => plain(rest, tail),
                    ([a, rest @ ..], [b, tail @ ..]) => a == b && plain(rest, tail),
                    _ => false,
                }
            }
            prop_assert_eq!(Glob::new(&pattern).matches(&name), plain(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn covering_is_never_wrong(wide in "[ab*?]{0,5}", narrow in "[ab*?]{0,5}", name in "[ab]{0,5}") {
            let (wide, narrow) = (Glob::new(&wide), Glob::new(&narrow));
            if wide.covers(&narrow) && narrow.matches(&name) {
                prop_assert!(wide.matches(&name));
            }
        }
    }
}
