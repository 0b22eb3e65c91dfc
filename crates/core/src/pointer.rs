//! The tokens of a JSON Pointer (RFC 6901, sections 3 and 4).

/// Returns a member's name as a token.
pub fn token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the member's name that a token stands for.
pub fn name(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Returns the names along a pointer, which is empty or begins with `/`; `None` for any other text.
pub fn names(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let tokens = pointer.strip_prefix('/')?.split('/');
    Some(tokens.map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::{name, names, token};

    #[test]
    fn a_name_is_written_and_read_as_a_token() {
        for (text, written) in [("a", "a"), ("a/b~c", "a~1b~0c"), ("~1", "~01"), ("", "")] {
            assert_eq!(token(text), written);
            assert_eq!(name(written), text);
        }
    }

    #[test]
    fn a_pointer_is_divided_into_names() {
        assert_eq!(names(""), Some(Vec::new()));
        assert_eq!(names("/"), Some(vec![String::new()]));
        let two = Some(vec!["a/b".to_owned(), "c".to_owned()]);
        assert_eq!(names("/a~1b/c"), two);
        assert_eq!(names("a"), None);
    }
}
