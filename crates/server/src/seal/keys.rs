//! The keys that seal, their sources, and their rotation.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// A key and the id that names it inside each sealed state.
///
/// ```
/// use mcp_elicit_server::seal::Key;
///
/// # fn secret() -> [u8; 32] { [7; 32] }
/// let key = Key::new("2026-07", secret())?;
/// assert_eq!(key.id(), "2026-07");
/// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
/// ```
#[derive(Clone)]
pub struct Key {
    id: String,
    bytes: [u8; 32],
}

impl Key {
    /// Creates a key from 32 random bytes. `id` is visible to clients: letters, digits, `-` and `_`, at most 32 of
    /// them.
    ///
    /// ```
    /// use mcp_elicit_server::seal::{Key, KeyError};
    ///
    /// assert!(Key::new("2026-07", [7; 32]).is_ok());
    /// assert!(matches!(Key::new("not an id", [7; 32]), Err(KeyError::Id)));
    /// ```
    pub fn new(id: impl Into<String>, bytes: [u8; 32]) -> Result<Self, KeyError> {
        let id = id.into();
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.len() > 32 || !id.chars().all(legal) {
            return Err(KeyError::Id);
        }
        Ok(Self { id, bytes })
    }

    /// Returns the id.
    ///
    /// ```
    /// use mcp_elicit_server::seal::Key;
    ///
    /// assert_eq!(Key::new("2026-07", [7; 32])?.id(), "2026-07");
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The reason why keys could not be read. No variant holds key material.
///
/// ```
/// use mcp_elicit_server::seal::{KeyError, Keys};
///
/// /// Lasting keys where the operator gave some, and a key of this process where not.
/// fn keys() -> Result<Keys, KeyError> {
///     match Keys::from_env("MCP_ELICIT_KEYS") {
///         Err(KeyError::Unset(_)) => Keys::per_process(),
///         read => read,
///     }
/// }
/// # assert!(keys().is_ok());
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// An id that is empty, too long, or has a forbidden character.
    #[error("a key id is 1 to 32 letters, digits, - or _")]
    Id,
    /// Not `id:base64 of 32 bytes`.
    #[error("key {0} is not written as id:base64 of 32 bytes")]
    Shape(usize),
    /// Two keys with one id.
    #[error("two keys have the id {0}")]
    Duplicate(String),
    /// No key at all.
    #[error("there is no key")]
    None,
    /// The environment variable is not set, or not text.
    #[error("the environment variable {0} is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("the key file cannot be read: {0}")]
    File(#[from] std::io::Error),
    /// The system has no randomness.
    #[error("no randomness: {0}")]
    NoRandomness(String),
}

/// The keys of a server: one that seals, and older ones that still open.
///
/// To rotate: put the new key in front, keep the old one until every state sealed with it has expired. All replicas
/// need the same keys, and a new key should be known to all of them (as an old one) before any of them seals with it.
///
/// ```
/// use mcp_elicit_server::ServerSettings;
/// use mcp_elicit_server::seal::{Key, Keys};
///
/// let keys = Keys::new(Key::new("2026-08", [8; 32])?).and_still(Key::new("2026-07", [7; 32])?);
/// let settings = ServerSettings::default().keys(keys);
/// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Keys {
    current: Key,
    others: Vec<Key>,
}

impl std::str::FromStr for Keys {
    type Err = KeyError;

    /// Reads the keys with [`Keys::parse`].
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl Keys {
    /// Creates keys that seal and open with `key`.
    ///
    /// ```
    /// use mcp_elicit_server::seal::{Key, Keys};
    ///
    /// let keys = Keys::new(Key::new("2026-07", [7; 32])?);
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn new(key: Key) -> Self {
        Self {
            current: key,
            others: Vec::new(),
        }
    }

    /// Adds a `key` that opens and never seals.
    ///
    /// ```
    /// use mcp_elicit_server::seal::{Key, Keys};
    ///
    /// let keys = Keys::new(Key::new("new", [8; 32])?).and_still(Key::new("old", [7; 32])?);
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    #[must_use]
    pub fn and_still(mut self, key: Key) -> Self {
        self.others.push(key);
        self
    }

    /// Reads `id:base64` pairs, separated by commas or white space. The first one seals.
    ///
    /// ```
    /// use mcp_elicit_server::seal::{KeyError, Keys};
    ///
    /// let keys = Keys::parse(
    ///     "new:CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=
    ///      old:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=",
    /// )?;
    /// assert!(matches!(Keys::parse("too-short:AAAA"), Err(KeyError::Shape(1))));
    /// # Ok::<(), KeyError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys: Vec<Key> = Vec::new();
        let words = text
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|word| !word.is_empty());
        for (index, word) in words.enumerate() {
            let (id, encoded) = word.split_once(':').ok_or(KeyError::Shape(index + 1))?;
            let bytes = STANDARD
                .decode(encoded)
                .or_else(|_| URL_SAFE_NO_PAD.decode(encoded));
            let bytes: [u8; 32] = bytes
                .ok()
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or(KeyError::Shape(index + 1))?;
            if keys.iter().any(|key| key.id == id) {
                return Err(KeyError::Duplicate(id.to_owned()));
            }
            keys.push(Key::new(id, bytes)?);
        }
        let mut keys = keys.into_iter();
        let current = keys.next().ok_or(KeyError::None)?;
        Ok(Self {
            current,
            others: keys.collect(),
        })
    }

    /// Reads the keys from an environment variable, see [`parse`](Self::parse).
    ///
    /// ```
    /// use mcp_elicit_server::seal::{KeyError, Keys};
    ///
    /// assert!(matches!(Keys::from_env("NO_SUCH_VARIABLE"), Err(KeyError::Unset(_))));
    /// ```
    pub fn from_env(variable: &str) -> Result<Self, KeyError> {
        let text = std::env::var(variable).map_err(|_| KeyError::Unset(variable.to_owned()))?;
        Self::parse(&text)
    }

    /// Reads the keys from a file, see [`parse`](Self::parse).
    ///
    /// ```no_run
    /// use mcp_elicit_server::seal::Keys;
    ///
    /// let keys = Keys::from_file("/etc/my-server/keys")?;
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, KeyError> {
        Self::parse(&std::fs::read_to_string(path)?)
    }

    /// Generates a key that lives as long as this process.
    ///
    /// Questions that are open when the process ends can be answered neither by its successor nor by another replica.
    ///
    /// ```
    /// use mcp_elicit_server::ServerSettings;
    /// use mcp_elicit_server::seal::Keys;
    ///
    /// let settings = ServerSettings::default().keys(Keys::per_process()?);
    /// # Ok::<(), mcp_elicit_server::seal::KeyError>(())
    /// ```
    #[expect(
        clippy::disallowed_methods,
        reason = "a key is drawn where no operator gave one"
    )]
    pub fn per_process() -> Result<Self, KeyError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| KeyError::NoRandomness(error.to_string()))?;
        Ok(Self::new(Key {
            id: "process".into(),
            bytes,
        }))
    }

    pub(crate) fn current(&self) -> &Key {
        &self.current
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Key> {
        std::iter::once(&self.current)
            .chain(&self.others)
            .find(|key| key.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_order() {
        let a = STANDARD.encode([1; 32]);
        let b = URL_SAFE_NO_PAD.encode([0xff; 32]);
        let keys = Keys::parse(&format!("new:{a},\nold:{b}\n")).unwrap();
        assert_eq!(keys.current().id(), "new");
        assert_eq!(keys.find("old").unwrap().bytes(), &[0xff; 32]);
        assert!(keys.find("older").is_none());
    }

    #[test]
    fn bad_keys_are_named_by_number_and_never_shown() {
        let good = STANDARD.encode([1; 32]);
        for (text, word) in [
            ("", "no key"),
            ("a:c2hvcnQ=", "key 1"),
            ("justtext", "key 1"),
            (&format!("a:{good} a:{good}"), "the id a"),
            (&format!("a.b:{good}"), "key id"),
        ] {
            let message = Keys::parse(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text:?}: {message}");
            assert!(!message.contains(&good) && !message.contains("c2hvcnQ"));
        }
        assert!(!format!("{:?}", Keys::parse(&format!("a:{good}")).unwrap()).contains("1, 1"));
    }
}
