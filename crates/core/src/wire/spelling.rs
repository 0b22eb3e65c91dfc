//! Names as lenient readers see them.
//!
//! Some readers ignore letter case (Go). Others use the name that a member has in their own language
//! (`input_responses`, Python), or derive a function name from a method. All of them depend on its letters and digits,
//! in order. Beside a significant name, another one with the same letters is therefore rejected.

/// Returns `true` if two names have the same letters and digits, in any case and with anything between or around them.
pub fn has_same_letters(one: &str, two: &str) -> bool {
    letters(one).eq(letters(two))
}

/// Returns `true` if a name has the letters and digits of one of these names and is not one of them.
pub fn is_nearly(name: &str, names: &[impl AsRef<str>]) -> bool {
    names
        .iter()
        .map(AsRef::as_ref)
        .any(|known| name != known && has_same_letters(name, known))
}

/// Returns `true` if the letters and digits of a name begin with those of another.
pub fn starts_with_letters(name: &str, start: &str) -> bool {
    let mut name = letters(name);
    letters(start).all(|letter| name.next() == Some(letter))
}

/// Returns the letters and digits of a name, in lower case.
pub(super) fn letters(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter_map(letter)
}

/// Returns the letter or digit that some reader takes this character for.
fn letter(character: char) -> Option<char> {
    if character.is_ascii() {
        return character
            .is_ascii_alphanumeric()
            .then(|| character.to_ascii_lowercase());
    }
    match character {
        // The other case of these is within ASCII.
        '\u{17f}' => Some('s'),
        '\u{212a}' => Some('k'),
        '\u{130}' | '\u{131}' => Some('i'),
        // Full-width forms, which are the same to a reader that normalizes.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0).and_then(letter),
        _ => character.is_alphanumeric().then_some(character),
    }
}

/// Does the work of [`is_nearly`] for a name in bytes, without escapes.
#[inline]
pub(super) fn is_nearly_bytes(name: &[u8], names: &[impl AsRef<[u8]>]) -> bool {
    if name.is_ascii() {
        is_nearly_ascii(name, names)
    } else {
        is_nearly_unicode(name, names)
    }
}

/// Does the work of [`is_nearly_bytes`] for a name within ASCII.
#[inline]
pub(super) fn is_nearly_ascii(name: &[u8], names: &[impl AsRef<[u8]>]) -> bool {
    if names.iter().any(|known| known.as_ref() == name) {
        return false;
    }
    let mut letters = ascii_letters(name);
    let (first, rest) = (letters.next(), letters);
    names.iter().map(AsRef::as_ref).any(|known| {
        let mut letters = ascii_letters(known);
        // Nearly all names differ in their first letter.
        letters.next() == first && letters.eq(rest.clone())
    })
}

fn ascii_letters(name: &[u8]) -> impl Iterator<Item = u8> + Clone + '_ {
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    letters.map(u8::to_ascii_lowercase)
}

/// Does the work of [`is_nearly_bytes`] for a name with characters outside ASCII.
#[cold]
pub(super) fn is_nearly_unicode(name: &[u8], names: &[impl AsRef<[u8]>]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let is_known = |known: &[u8]| letters(name).eq(ascii_letters(known).map(char::from));
    names.iter().any(|known| is_known(known.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_same_letters_are_near_each_other_and_no_others() {
        let known = [
            "inputResponses",
            "_meta",
            "io.modelcontextprotocol/logLevel",
        ];
        for near in [
            "input_responses",
            "InputResponses",
            "INPUT-RESPONSES",
            "input responses",
            "\u{feff}inputResponses",
            "input\u{200b}Responses",
            "\u{131}nputResponses",
            "\u{130}nputResponses",
            "inputRe\u{17f}ponses",
            "\u{ff49}nputResponses",
            "meta",
            "__META__",
            "io_modelcontextprotocol_log_level",
        ] {
            assert!(is_nearly(near, &known), "{near}");
            assert!(is_nearly_bytes(near.as_bytes(), &known), "{near}");
        }
        for far in [
            "inputResponses",
            "_meta",
            "inputResponse",
            "inputResponses2",
            "inputR\u{e9}sponses",
            "metadata",
            "",
            "_",
        ] {
            assert!(!is_nearly(far, &known), "{far}");
            assert!(!is_nearly_bytes(far.as_bytes(), &known), "{far}");
        }
        assert!(!is_nearly_bytes(b"\xffmeta", &known));
        assert!(
            starts_with_letters("Tasks.get", "tasks/") && starts_with_letters("tasks", "tasks/")
        );
        assert!(
            !starts_with_letters("task/s", "tasks/get")
                && !starts_with_letters("mytasks", "tasks/")
        );
    }
}
