//! Shortening of texts, between characters.

/// Returns the beginning of a text: at most `most` bytes, without splitting a character.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn a_text_is_cut_before_the_character_that_does_not_fit() {
        assert_eq!(beginning("häuser", 1), "h");
        assert_eq!(beginning("häuser", 2), "h");
        assert_eq!(beginning("häuser", 3), "hä");
        assert_eq!(beginning("häuser", 100), "häuser");
        assert_eq!(beginning("ä", 0), "");
    }
}
