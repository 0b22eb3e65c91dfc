//! Texts as they come from outside: shortened between characters, and without a byte order mark.

/// The byte order mark in UTF-8. JSON has none; a reader may ignore it (RFC 8259, 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns a text without a byte order mark at its start, which some programs, editors and shells write.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Returns a string like [`without_mark`].
pub fn str_without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the beginning of a text: at most `most` bytes, without splitting a character.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns a text of at most `most` characters as it is, and the beginning of a longer one with an ellipsis.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{beginning, shortened, str_without_mark, without_mark};

    #[test]
    fn a_longer_text_is_shortened_with_an_ellipsis() {
        assert_eq!(shortened("häuser", 6), "häuser");
        assert_eq!(shortened("häuser", 2), "hä…");
        assert_eq!(shortened("", 0), "");
    }

    #[test]
    fn one_byte_order_mark_is_left_out_and_only_at_the_start() {
        for rest in ["{\"a\":\"\u{feff}\"}", "", "\u{feff}"] {
            let marked = format!("\u{feff}{rest}");
            assert_eq!(without_mark(marked.as_bytes()), rest.as_bytes());
            assert_eq!(str_without_mark(&marked), rest);
        }
        assert_eq!(without_mark(b"\xEF\xBB{}"), b"\xEF\xBB{}");
    }

    #[test]
    fn a_text_is_cut_before_the_character_that_does_not_fit() {
        assert_eq!(beginning("häuser", 1), "h");
        assert_eq!(beginning("häuser", 2), "h");
        assert_eq!(beginning("häuser", 3), "hä");
        assert_eq!(beginning("häuser", 100), "häuser");
        assert_eq!(beginning("ä", 0), "");
    }
}
