//! The names of callers in the record.

use std::borrow::Cow;
use std::fmt;

const LOCAL: &str = "local";
const ANONYMOUS: &str = "anonymous";
const KEY: &str = "key-";

/// A caller, according to its name in the record. [`Display`](fmt::Display) writes the name.
#[derive(Clone, PartialEq, Eq)]
pub enum Principal<'a> {
    /// The user of the operating system.
    Local,
    /// A client over HTTP without credentials.
    Anonymous,
    /// The holder of the API key of this id.
    Key(&'a str),
    /// A subject of an issuer, verified.
    Subject {
        /// The issuer.
        issuer: Cow<'a, str>,
        /// The subject.
        subject: Cow<'a, str>,
    },
}

impl<'a> Principal<'a> {
    /// Creates the subject of an issuer.
    pub fn subject(issuer: &'a str, subject: &'a str) -> Self {
        Self::Subject {
            issuer: issuer.into(),
            subject: subject.into(),
        }
    }

    /// Returns `true` for an authenticated caller. Others have no individual name.
    pub const fn is_verified(&self) -> bool {
        matches!(self, Self::Key(_) | Self::Subject { .. })
    }

    /// Parses a name; `None` for that of a caller whose credentials are not checked, which is a keyed hash.
    pub fn parse(name: &'a str) -> Option<Self> {
        if let Some(id) = name.strip_prefix(KEY) {
            return Some(Self::Key(id));
        }
        match name {
            LOCAL => Some(Self::Local),
            ANONYMOUS => Some(Self::Anonymous),
            _ => {
                let (issuer, subject): (String, String) = serde_json::from_str(name).ok()?;
                Some(Self::Subject {
                    issuer: issuer.into(),
                    subject: subject.into(),
                })
            }
        }
    }
}

impl fmt::Display for Principal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str(LOCAL),
            Self::Anonymous => f.write_str(ANONYMOUS),
            Self::Key(id) => write!(f, "{KEY}{id}"),
            // Escaped, so that neither text can be taken for a part of the other.
            Self::Subject { issuer, subject } => {
                write!(f, "{}", serde_json::json!([issuer, subject]))
            }
        }
    }
}

impl fmt::Debug for Principal<'_> {
    /// Formats the kind only: the rest is about a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "Local",
            Self::Anonymous => "Anonymous",
            Self::Key(_) => "Key",
            Self::Subject { .. } => "Subject",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_caller_and_no_other() {
        for (name, principal) in [
            ("local", Principal::Local),
            ("anonymous", Principal::Anonymous),
            ("key-0a1b", Principal::Key("0a1b")),
            (
                r#"["https://id","a\"]b"]"#,
                Principal::subject("https://id", "a\"]b"),
            ),
            (r#"["","local"]"#, Principal::subject("", "local")),
        ] {
            assert_eq!(principal.to_string(), name);
            let is_verified = !["local", "anonymous"].contains(&name);
            assert_eq!(principal.is_verified(), is_verified, "{name}");
            assert_eq!(Principal::parse(name), Some(principal), "{name}");
        }
        for other in ["", "owner", "[]", r#"["a"]"#, r#"["a","b","c"]"#, "[1,2]"] {
            assert_eq!(Principal::parse(other), None, "{other}");
        }
        assert_eq!(
            format!("{:?}", Principal::subject("i", "secret")),
            "Subject"
        );
    }
}
