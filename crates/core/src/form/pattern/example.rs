//! An example of a pattern, for a person: of each choice the first, of each class the next character, of each repetition
//! a few.

use std::collections::HashMap;

/// The characters that a class or an escape stands for, in the order in which examples take them.
const DIGITS: &str = "1234567890";
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
/// The longest example, in characters.
const LONGEST: usize = 40;
/// The deepest nesting of groups.
const DEEPEST: usize = 30;
/// The most characters of a class, and the most of them that examples take in turn.
const CLASS: usize = 200;
const IN_TURN: usize = 26;

/// Returns a text that the pattern matches, as `fits` says; `None` if none is found.
pub(super) fn of(pattern: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let examples = [2, 1, 0, 4, 8, 16].into_iter().filter_map(|more| {
        let source: Vec<char> = pattern.chars().collect();
        let mut example = Example {
            source: &source,
            at: 0,
            taken: HashMap::new(),
            more,
        };
        let text = example.choice(DEEPEST)?;
        let is_whole = example.at == source.len();
        (is_whole && !text.is_empty() && text.chars().count() <= LONGEST).then_some(text)
    });
    examples.into_iter().find(|text| fits(text))
}

/// A part of a pattern: characters to choose from, or the example of a group.
enum ExamplePart {
    Chars(String),
    Text(String),
}

struct Example<'p> {
    source: &'p [char],
    at: usize,
    /// The number of characters that were taken of each class.
    taken: HashMap<String, usize>,
    /// The number of repetitions beyond the fewest, where any number is allowed.
    more: usize,
}

impl Example<'_> {
    fn peek(&self) -> Option<char> {
        self.source.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += 1;
        Some(char)
    }

    fn choice(&mut self, depth: usize) -> Option<String> {
        let first = self.sequence(depth)?;
        while self.peek() == Some('|') {
            self.at += 1;
            self.sequence(depth)?;
        }
        Some(first)
    }

    fn sequence(&mut self, depth: usize) -> Option<String> {
        let mut text = String::new();
        while self.peek().is_some_and(|char| !"|)".contains(char)) {
            let part = self.part(depth)?;
            for _ in 0..self.count()? {
                if text.chars().count() > LONGEST {
                    break;
                }
                match &part {
                    ExamplePart::Text(part) => text.push_str(part),
                    ExamplePart::Chars(chars) => text.push(self.next_of(chars)?),
                }
            }
        }
        Some(text)
    }

    fn part(&mut self, depth: usize) -> Option<ExamplePart> {
        Some(match self.take()? {
            '^' | '$' => ExamplePart::Text(String::new()),
            '.' => ExamplePart::Chars(LETTERS.to_owned()),
            '[' => ExamplePart::Chars(self.class()?),
            '(' => {
                let depth = depth.checked_sub(1)?;
                if self.peek() == Some('?') {
                    self.at += 1;
                    self.opening()?;
                }
                let text = self.choice(depth)?;
                (self.take()? == ')').then_some(ExamplePart::Text(text))?
            }
            '\\' => self.escape()?,
            char => ExamplePart::Text(char.to_string()),
        })
    }

    /// Passes over the rest of the opening of a group without a number or with a name; `None` for look-around.
    fn opening(&mut self) -> Option<()> {
        match self.take()? {
            ':' => Some(()),
            '<' if self.peek()?.is_ascii_alphabetic() => {
                while self.take()? != '>' {}
                Some(())
            }
            _ => None,
        }
    }

    fn escape(&mut self) -> Option<ExamplePart> {
        Some(match self.take()? {
            'd' => ExamplePart::Chars(DIGITS.to_owned()),
            'w' => ExamplePart::Chars(LETTERS.to_owned()),
            's' => ExamplePart::Text(" ".to_owned()),
            'b' | 'B' => ExamplePart::Text(String::new()),
            char if char.is_ascii_alphanumeric() => return None,
            char => ExamplePart::Text(char.to_string()),
        })
    }

    fn class(&mut self) -> Option<String> {
        let mut chars = String::new();
        if self.peek()? == '^' {
            return None;
        }
        while self.peek()? != ']' {
            let mut char = self.take()?;
            if char == '\\' {
                match self.escape()? {
                    ExamplePart::Chars(more) => {
                        chars.push_str(&more);
                        continue;
                    }
                    ExamplePart::Text(text) => char = text.chars().next()?,
                }
            }
            let to = self.source.get(self.at + 1).copied();
            let to = to.filter(|to| self.peek() == Some('-') && !"]\\".contains(*to));
            if let Some(to) = to {
                self.at += 2;
                let room = CLASS.saturating_sub(chars.chars().count());
                chars.extend((char..=to).take(room));
            } else {
                chars.push(char);
            }
        }
        self.at += 1;
        // A digit reads better from 1 on.
        Some(match chars.strip_prefix('0') {
            Some(rest) if rest.starts_with("123") => format!("{rest}0"),
            _ => chars,
        })
        .filter(|chars| !chars.is_empty())
    }

    fn next_of(&mut self, chars: &str) -> Option<char> {
        let taken = self.taken.entry(chars.to_owned()).or_default();
        let at = *taken % chars.chars().count().clamp(1, IN_TURN);
        *taken += 1;
        chars.chars().nth(at)
    }

    /// Returns the number of repetitions of the part before.
    fn count(&mut self) -> Option<usize> {
        let count = match self.peek() {
            Some('?') => 0,
            Some('*') => self.more,
            Some('+') => 1 + self.more,
            Some('{') => return self.counted(),
            _ => return Some(1),
        };
        self.at += 1;
        self.lazy();
        Some(count)
    }

    fn counted(&mut self) -> Option<usize> {
        self.at += 1;
        let least = self.number()?;
        let count = match self.take()? {
            '}' => least,
            ',' => {
                let most = self.number();
                (self.take()? == '}').then_some(())?;
                (least.saturating_add(self.more)).min(most.unwrap_or(usize::MAX))
            }
            _ => return None,
        };
        self.lazy();
        // More than the longest example need no counting.
        Some(count.min(LONGEST + 1))
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|char| char.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.source[start..self.at].iter().collect();
        digits.parse().ok()
    }

    /// Passes over the mark of the fewest repetitions.
    fn lazy(&mut self) {
        if self.peek() == Some('?') {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::form::Form;
    use crate::form::Kind;

    fn example(pattern: &str) -> Option<String> {
        let form = serde_json::json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
        let form = Form::from_value(&form).unwrap();
        let Kind::Text(text) = form.fields()[0].kind() else {
            panic!("a text")
        };
        text.pattern.as_ref().unwrap().example()
    }

    #[test]
    fn usual_patterns_have_an_example() {
        for (pattern, expected) in [
            ("^[A-Z]{3}-[0-9]{2}$", "ABC-12"),
            (r"^\d{4}-\d{2}$", "1234-56"),
            ("^(dev|prod)$", "dev"),
            ("^[a-z][a-z0-9-]*$", "aab"),
            (r"^\w+@\w+\.com$", "abc@def.com"),
            ("^v?(?<major>[0-9]+)(?:[.][0-9]+){2}$", "123.456.456"),
            ("^.{4,}?$", "abcdef"),
        ] {
            assert_eq!(example(pattern).as_deref(), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_without_an_example_has_none() {
        for pattern in ["^[^a]$", "^$", r"^\u0041{50}$", "^a{41}$", "(?=a)b"] {
            assert_eq!(example(pattern), None, "{pattern}");
        }
        let deep = format!("{}a{}", "(".repeat(31), ")".repeat(31));
        assert_eq!(example(&deep), None);
    }

    proptest::proptest! {
        #[test]
        fn an_example_is_matched(pattern in "[a-c\\[\\](){}|?*+.,^$\\\\0-9-]{0,24}") {
            let form = serde_json::json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}});
            if let Ok(form) = Form::from_value(&form)
                && let Kind::Text(text) = form.fields()[0].kind()
                && let Some(pattern) = &text.pattern
                && let Some(example) = pattern.example()
            {
                proptest::prop_assert!(pattern.matches(&example));
                proptest::prop_assert!(example.chars().count() <= super::LONGEST);
            }
        }
    }
}
