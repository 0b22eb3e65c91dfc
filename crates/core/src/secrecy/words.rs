//! Names and sentences split into plain words, so that `githubAPIKey`, `github_api_key` and "GitHub API key" are the
//! same, and fullwidth letters, invisible characters and letters of other scripts hide nothing.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::skeleton;

/// Returns the words of a text: lower case, without accents, split at `camelCase` and at anything but letters and
/// digits.
pub(crate) fn words(text: &str) -> Vec<String> {
    cut(&visible(text))
}

/// Returns the words like [`words`], with Latin look-alikes read as Latin letters (`pаssword` with a Cyrillic а).
pub(crate) fn undisguised_words(text: &str) -> Option<Vec<String>> {
    if text.is_ascii() {
        return None;
    }
    let visible = visible(text);
    let plain: String = visible.chars().flat_map(plain_double).collect();
    (plain != visible).then(|| cut(&plain))
}

/// Returns the text as one lower-case string without accents, for scripts without spaces between words.
pub(crate) fn folded(text: &str) -> String {
    fold(&visible(text))
}

/// Normalizes compatibility forms (NFKC) and removes invisible characters.
fn visible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    text.nfkc().filter(|c| !is_invisible(*c)).collect()
}

fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfd()
        .filter(|c| !is_accent(*c))
        .flat_map(char::to_lowercase)
        .map(unstroked)
        .nfc()
        .collect()
}

/// Returns the base letter of letters whose stroke is not a combining mark.
fn unstroked(c: char) -> char {
    match c {
        'ł' => 'l',
        'ø' => 'o',
        'đ' => 'd',
        'ı' => 'i',
        other => other,
    }
}

fn cut(text: &str) -> Vec<String> {
    if text.is_ascii() {
        return cut_ascii(text);
    }
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = text.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let goes_on = c.is_alphanumeric() || is_accent(*c);
        if !goes_on || starts_word(&chars, at) {
            close(&mut word, &mut words);
        }
        if goes_on {
            word.push(*c);
        }
    }
    close(&mut word, &mut words);
    words
}

/// Does the work of [`cut`] for ASCII text, byte by byte.
fn cut_ascii(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut put = |word: &str| {
        if !word.is_empty() {
            words.push(word.to_ascii_lowercase());
        }
    };
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() {
            put(&text[start..at]);
            start = at + 1;
        } else if byte.is_ascii_uppercase() && at > start {
            let before = bytes[at - 1];
            let next_is_small = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if !before.is_ascii_uppercase() || next_is_small {
                put(&text[start..at]);
                start = at;
            }
        }
    }
    put(&text[start..]);
    words
}

fn close(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(fold(word));
        word.clear();
    }
}

/// Returns `true` if a word begins here: at the B of `aB`, and at the K of `APIKey`, which a small letter follows.
fn starts_word(chars: &[char], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|before| chars.get(before)) else {
        return false;
    };
    let next_is_small = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
    chars[at].is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || (before.is_uppercase() && next_is_small))
}

fn plain_double(c: char) -> impl Iterator<Item = char> {
    let mut double = [c, '\0'];
    if !c.is_ascii() {
        let mut buffer = [0; 4];
        let mut shape = skeleton(c.encode_utf8(&mut buffer));
        if let (Some(first), None) = (shape.next(), shape.next())
            && first.is_ascii_alphanumeric()
        {
            double[0] = first;
        }
    }
    double.into_iter().take(1)
}

/// Returns `true` for combining marks of European scripts, such as the one that distinguishes `ñ` from `n`.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns `true` for invisible characters and those that change how text looks: zero width, direction, tags, soft
/// hyphen.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{1107f}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_gives_the_same_words() {
        for text in [
            "githubAPIKey",
            "github_api_key",
            "GITHUB-API-KEY",
            "Github API key!",
            "ｇithub.api key",
            "Github\u{ad}ApiKey",
        ] {
            assert_eq!(words(text), ["github", "api", "key"], "{text}");
        }
        assert_eq!(words("contraseña"), ["contrasena"]);
        assert_eq!(words("oauth2Token"), ["oauth2", "token"]);
        assert_eq!(words("Пароль"), ["пароль"]);
        assert_eq!(words(""), Vec::<String>::new());
        assert_eq!(words("__--"), Vec::<String>::new());
    }

    #[test]
    fn a_text_within_ascii_is_cut_as_any_other() {
        for text in [
            "",
            " ",
            "githubAPIKey",
            "APIKey2Go",
            "a1B2c3",
            "HTTPServer x",
            "ABC",
            "aB-CdE_fG",
            "X9Y",
            "9Lives",
            "-A",
            "iPhone\tOS\u{7f}x",
        ] {
            // A separate letter that joins no other word makes the text non-ASCII.
            let mut words = cut(&format!("{text} \u{df}"));
            assert_eq!(words.pop().as_deref(), Some("\u{df}"));
            assert_eq!(cut_ascii(text), words, "{text}");
        }
    }

    #[test]
    fn borrowed_letters_are_seen_through() {
        assert_eq!(
            undisguised_words("pаsswоrd"),
            Some(vec!["password".to_owned()])
        );
        assert_eq!(undisguised_words("password"), None);
    }

    #[test]
    fn invisible_characters_hide_nothing() {
        assert_eq!(words("pass\u{200b}word"), ["password"]);
        assert_eq!(folded("密\u{feff}码"), "密码");
    }
}
