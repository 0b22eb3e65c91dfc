//! The identity of a person besides the name, so that one person with two names does not count as two.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The known facts about a person besides the name.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Issuers, each with its subject.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    logins: BTreeSet<(String, String)>,
    /// Digests of mail addresses: that of the file, and one that an issuer has verified.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    mails: BTreeSet<String>,
}

/// Hides the identity from logs.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The result of comparing two identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// They share a subject or a mail address.
    Same,
    /// They are known to be two people.
    Different,
    /// Too little is known.
    Unknown,
}

impl Identity {
    /// Returns the identity with the subject of an issuer.
    #[must_use]
    pub fn with_login(mut self, issuer: &str, subject: &str) -> Self {
        self.logins.insert((issuer.to_owned(), subject.to_owned()));
        self
    }

    /// Returns the identity with the digest of a mail address.
    #[must_use]
    pub fn with_mail(mut self, digest: &str) -> Self {
        self.mails.insert(digest.to_owned());
        self
    }

    /// Returns the identity combined with that of another name of this person.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.logins.extend(other.logins);
        self.mails.extend(other.mails);
        self
    }

    /// Returns `true` if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.logins.is_empty() && self.mails.is_empty()
    }

    /// Compares two identities. Two subjects of one issuer are two people, and so are two entries of the file
    /// (`are_in_file`) and two people with different mail addresses; if none of these is known, the result is unknown.
    pub fn compare(&self, other: &Self, are_in_file: bool) -> Sameness {
        let is_shared =
            !self.logins.is_disjoint(&other.logins) || !self.mails.is_disjoint(&other.mails);
        let has_issuer = |issuer: &String| other.logins.iter().any(|(known, _)| known == issuer);
        if is_shared {
            Sameness::Same
        } else if are_in_file
            || self.logins.iter().any(|(issuer, _)| has_issuer(issuer))
            || !(self.mails.is_empty() || other.mails.is_empty())
        {
            Sameness::Different
        } else {
            Sameness::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_names_share_or_tells_them_apart() {
        let nobody = Identity::default;
        let login = |subject: &str| nobody().with_login("proxy", subject);
        let mail = |mail: &str| nobody().with_mail(mail);
        for (one, other, in_file, same) in [
            (login("a"), login("a").with_mail("m"), false, Sameness::Same),
            (login("a"), login("b"), false, Sameness::Different),
            // One mailbox is one person, regardless of other facts.
            (
                login("a").with_mail("m"),
                login("b").with_mail("m"),
                true,
                Sameness::Same,
            ),
            (mail("m"), mail("n"), false, Sameness::Different),
            (mail("m"), login("a"), false, Sameness::Unknown),
            (mail("m"), login("a"), true, Sameness::Different),
            (
                login("a"),
                nobody().with_login("other", "b"),
                false,
                Sameness::Unknown,
            ),
            (nobody(), login("a"), false, Sameness::Unknown),
        ] {
            assert_eq!(one.compare(&other, in_file), same, "{one:?} {other:?}");
            assert_eq!(other.compare(&one, in_file), same);
        }
    }
}
