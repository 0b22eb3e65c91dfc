//! Texts for Slack. A server's text is plain text, without links, mentions or emphasis.

use serde_json::{Value, json};

/// The longest text of a section.
pub(super) const SECTION: usize = 3_000;
/// The longest header.
pub(super) const HEADER: usize = 150;
/// The longest label of a button or text of an option.
pub(super) const OPTION: usize = 75;

/// Returns the maximum length that Slack may count: in UTF-16 units.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns the longest beginning of at most `most` units, and the rest.
pub(super) fn split(text: &str, most: usize) -> (&str, &str) {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > most {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// Returns the text, cut with an ellipsis to `most` units.
pub(super) fn cut(text: &str, most: usize) -> String {
    if length(text) <= most {
        return text.to_owned();
    }
    format!("{}…", split(text, most - 1).0)
}

/// Returns a plain text object. Slack rejects an empty one, so a dash replaces it.
pub(super) fn plain(text: &str, most: usize) -> Value {
    let text = cut(text, most);
    let text = if text.trim().is_empty() {
        "–"
    } else {
        &*text
    };
    json!({"type": "plain_text", "text": text, "emoji": false})
}

/// Returns sections with the whole text, none of which Slack folds.
pub(super) fn sections(text: &str) -> Vec<Value> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, more) = split(rest, SECTION);
        blocks.push(json!({"type": "section", "text": plain(part, SECTION), "expand": true}));
        rest = more;
    }
    blocks
}

/// Returns text for the parts of a message that Slack reads as its own markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(split("a\u{1f600}b", 2), ("a", "\u{1f600}b"));
        assert_eq!(split("a\u{1f600}b", 3), ("a\u{1f600}", "b"));
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(plain(" ", 5)["text"], "–");
        let whole = "x\u{1f600}".repeat(4_000);
        let parts = sections(&whole);
        let texts = parts
            .iter()
            .map(|part| part["text"]["text"].as_str().unwrap());
        assert!(texts.clone().all(|text| length(text) <= SECTION));
        assert_eq!(texts.collect::<String>(), whole);
    }
}
