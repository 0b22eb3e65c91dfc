//! Configured secrets: text that no debug output shows.

use std::fmt;
use std::io::{self, Read};

use crate::secret_spellings;

/// The longest accepted secret, in bytes.
const LONGEST: u64 = 64 * 1024;

/// A secret. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Creates a secret from text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Reads a secret from one line, such as an environment variable. Surrounding white space is removed. `None` if the
    /// text is empty, longer than 64 KiB or has more than one line.
    pub fn from_line(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_usable = !text.is_empty()
            && u64::try_from(text.len()).is_ok_and(|length| length <= LONGEST)
            && !text.contains(char::is_control);
        is_usable.then(|| Self::new(text))
    }

    /// Reads a secret that is the whole content of a source, such as its own file; `None` if [`SecretText::from_line`]
    /// rejects the text.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn read(source: impl Read) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        source.take(LONGEST + 1).read_to_end(&mut bytes)?;
        let text = std::str::from_utf8(&bytes);
        Ok(text.ok().and_then(Self::from_line))
    }

    /// Returns a text of another program without this secret, however it is usually spelled: in capital letters, with
    /// the escapes of URLs or JSON, in hexadecimal digits or in Base64. Of a secret that was cut, its beginning of eight
    /// bytes is masked.
    pub fn masked_in(&self, text: &str) -> String {
        secret_spellings::masked(text, &self.0)
    }

    /// Returns what other users of the machine may do with a secret's file of this mode of Unix, in words; `None` if nothing.
    /// A group may read it: it is how a container gets one.
    pub fn exposure(mode: u32) -> Option<&'static str> {
        if mode & 0o022 != 0 {
            Some("may change it")
        } else {
            (mode & 0o004 != 0).then_some("may read it")
        }
    }

    /// Returns the secret, for use in a request.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_line_that_no_print_shows() {
        let read = SecretText::from_line(" abc\r\n").unwrap();
        assert_eq!(read, SecretText::new("abc"));
        assert_eq!((read.reveal(), format!("{read:?}")), ("abc", "***".into()));
        for unusable in ["", "\n", "a\nb\n", "a\u{1b}b"] {
            assert_eq!(SecretText::from_line(unusable), None, "{unusable:?}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_or_change_is_exposed() {
        let exposure = |mode: u32| SecretText::exposure(0o100_000 | mode);
        assert_eq!([0o600, 0o400, 0o640].map(exposure), [None; 3]);
        assert_eq!([0o644, 0o604].map(exposure), [Some("may read it"); 2]);
        assert_eq!(
            [0o620, 0o602, 0o666].map(exposure),
            [Some("may change it"); 3]
        );
    }

    #[test]
    fn a_source_is_read_to_its_end_and_no_further_than_the_limit() {
        let read = |bytes: &[u8]| SecretText::read(bytes).unwrap();
        assert_eq!(read(b"abc\n"), Some(SecretText::new("abc")));
        assert_eq!(read(b"\xff"), None);
        assert_eq!(SecretText::read(io::repeat(b'x')).unwrap(), None);
    }
}
