//! The size of a condition's text, before it is parsed: the parser and later stages use stack for each level.

/// The longest condition, in bytes.
const MAX_BYTES: usize = 2_048;
/// The most tokens.
const MAX_TOKENS: usize = 500;
/// The deepest nesting of brackets, prefix operators, and conditionals.
const MAX_DEPTH: usize = 8;

/// Returns the error if a condition is too large.
pub(super) fn too_large(source: &str) -> Option<String> {
    if source.len() > MAX_BYTES {
        return Some(format!(
            "the condition has {} bytes; at most {MAX_BYTES} are allowed",
            source.len()
        ));
    }
    let (mut tokens, mut depth, mut deepest, mut prefixes, mut choices) = (0, 0_usize, 0, 0, 0);
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => text_length(rest, false),
            c if is_word(c) => {
                let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let is_raw = rest[..word].eq_ignore_ascii_case("r")
                    || rest[..word].eq_ignore_ascii_case("br");
                if is_raw && rest[word..].starts_with(['\'', '"']) {
                    word + text_length(&rest[word..], true)
                } else {
                    word
                }
            }
            c => c.len_utf8(),
        };
        rest = &rest[length..];
        if first.is_whitespace() {
            continue;
        }
        tokens += 1;
        prefixes = if matches!(first, '!' | '-') {
            prefixes + 1
        } else {
            0
        };
        match first {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '?' => choices += 1,
            _ => {}
        }
        deepest = deepest.max(depth + prefixes + choices);
    }
    if tokens > MAX_TOKENS {
        return Some(format!(
            "the condition has {tokens} words and signs; at most {MAX_TOKENS} are allowed"
        ));
    }
    (deepest > MAX_DEPTH).then(|| format!("the condition is nested more than {MAX_DEPTH} deep"))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of a text with its quotes; the whole rest if it has no end.
fn text_length(rest: &str, is_raw: bool) -> usize {
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let end = if rest.starts_with(&triple) {
        triple.as_str()
    } else {
        quote
    };
    let mut at = end.len();
    while let Some(next) = rest[at..].chars().next() {
        if rest[at..].starts_with(end) {
            return at + end.len();
        }
        at += next.len_utf8();
        if next == '\\' && !is_raw {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_token_whatever_they_hold() {
        for source in [
            r#"tool == "((((((((((((((((((((""#,
            r"tool == '\'((((((((((((((((((('",
            r#"tool == r"\" && tool == "((((((((((((((((((""#,
            r"tool == '''a'((((((((((((((((('''",
        ] {
            assert_eq!(too_large(source), None, "{source}");
        }
        assert!(too_large(&"(".repeat(9)).is_some());
        assert!(too_large(&format!("{}true", "!".repeat(9))).is_some());
        assert!(too_large(&format!("{}1", "true ? ".repeat(9))).is_some());
        assert!(too_large(&"a ".repeat(501)).is_some());
    }
}
