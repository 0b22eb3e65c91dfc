//! The callers of calls, and their persons in the file. The gateway and `rules simulate` identify callers here.

use crate::facts::{Caller, CallerKind};
use crate::people::People;
use crate::rules::CALLER_UNKNOWN;

/// The facts that match a caller to the people who answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallingPerson {
    /// Unknown: any of them may be the caller.
    Unknown,
    /// The user of the operating system.
    LocalUser,
    /// The subject, at the issuer at which people log in.
    Subject,
    /// The same, if the logins of a gateway identify the person in the file: none for an empty name.
    Known(String),
    /// This person, who owns the API key.
    Owner(String),
    /// No person: a program works by itself.
    Nobody,
}

impl CallingPerson {
    /// Creates a subject of an issuer. `logs_in` is the issuer at which people log in: its subjects are people.
    pub fn of_issuer(issuer: &str, logs_in: Option<&str>) -> Self {
        if logs_in.is_none_or(|logs_in| logs_in == issuer) {
            Self::Subject
        } else {
            Self::Unknown
        }
    }

    /// Creates the holder of an API key, by its owner: a person, no person for `""`, and unknown for `None`.
    pub fn of_key(owner: Option<&str>) -> Self {
        match owner {
            None => Self::Unknown,
            Some("") => Self::Nobody,
            Some(person) => Self::Owner(person.to_owned()),
        }
    }

    /// Creates a caller of this kind for a simulated call, whose issuer is empty if not given.
    pub fn of_kind(
        kind: CallerKind,
        issuer: &str,
        owner: Option<&str>,
        logs_in: Option<&str>,
    ) -> Self {
        match kind {
            CallerKind::Local => Self::LocalUser,
            CallerKind::Subject if issuer.is_empty() => Self::Subject,
            CallerKind::Subject => Self::of_issuer(issuer, logs_in),
            CallerKind::Key => Self::of_key(owner),
        }
    }
}

/// A caller with its facts from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifiedCaller {
    /// The caller, with its person in the file.
    pub caller: Caller,
    /// All its groups: from the file and from its token.
    pub groups: Vec<String>,
    /// The reason if the caller cannot be compared with each person.
    pub unmatched: Option<String>,
}

impl People {
    /// Identifies a caller, with the values of its token's groups claim, and sets the caller's person.
    pub fn identify(
        &self,
        caller: Caller,
        calling: &CallingPerson,
        claims: &[String],
    ) -> IdentifiedCaller {
        let person = match calling {
            CallingPerson::LocalUser => self.local_person(&caller.subject).unwrap_or_default(),
            CallingPerson::Subject => self.find(&caller.subject, &caller.mail).unwrap_or_default(),
            CallingPerson::Known(person) | CallingPerson::Owner(person) => person,
            CallingPerson::Unknown | CallingPerson::Nobody => "",
        };
        let unmatched = match calling {
            CallingPerson::Unknown => Some(CALLER_UNKNOWN.to_owned()),
            CallingPerson::LocalUser => person.is_empty().then(|| CALLER_UNKNOWN.to_owned()),
            CallingPerson::Subject | CallingPerson::Known(_) | CallingPerson::Nobody => None,
            CallingPerson::Owner(person) => (!self.is_person(person)).then(|| {
                format!(
                    "it wants others than the caller to answer, and its key is made for `{person}`, who is not in [people]"
                )
            }),
        };
        let groups = self.groups_of_caller(person, claims);
        let person = person.to_owned();
        IdentifiedCaller {
            caller: Caller { person, ..caller },
            groups,
            unmatched,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Rules;

    #[test]
    fn a_claim_with_the_name_of_a_group_of_the_file_makes_nobody_its_member() {
        let file = "[people.ada]\nmail = \"ada@example.com\"\n[groups]\ntrusted = [\"ada\"]\nleads = { claim = \"x-leads\" }\n";
        let rules = Rules::parse(file).unwrap();
        let claims = ["trusted", "x-leads", "other"].map(str::to_owned);
        let groups = rules.people().groups_of_caller("", &claims);
        assert_eq!(groups, ["leads", "other", "x-leads"]);
        assert_eq!(rules.people().groups_of_caller("ada", &[]), ["trusted"]);
    }
}
