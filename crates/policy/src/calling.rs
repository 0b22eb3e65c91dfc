//! The callers of calls, and the people of the file who they are. The gateway and `rules simulate` identify callers here.

use crate::facts::{Caller, CallerKind};
use crate::people::People;
use crate::rules::CALLER_UNKNOWN;

/// The facts by which a caller is matched to the people who answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallingPerson {
    /// Nothing is known: any of them may be the caller.
    Unknown,
    /// The user of the operating system.
    LocalUser,
    /// The subject, at the issuer at which they log in.
    Subject,
    /// The same, where the logins of a gateway say which person of the file it is: none for an empty name.
    Known(String),
    /// This person, whose API key it is.
    Owner(String),
    /// Nobody: a program works by itself.
    Nobody,
}

impl CallingPerson {
    /// A subject of an issuer. `logs_in` is the issuer at which people log in: its subjects are theirs.
    pub fn of_issuer(issuer: &str, logs_in: Option<&str>) -> Self {
        if logs_in.is_none_or(|logs_in| logs_in == issuer) {
            Self::Subject
        } else {
            Self::Unknown
        }
    }

    /// The holder of an API key, by its owner: a person, nobody for `""`, and unknown for `None`.
    pub fn of_key(owner: Option<&str>) -> Self {
        match owner {
            None => Self::Unknown,
            Some("") => Self::Nobody,
            Some(person) => Self::Owner(person.to_owned()),
        }
    }

    /// A caller of this kind, as a call to be simulated gives it: its issuer is empty where the call does not say.
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

/// A caller with what the file knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifiedCaller {
    /// The caller, with the person of the file who it is.
    pub caller: Caller,
    /// All its groups: of the file, and as its token claims.
    pub groups: Vec<String>,
    /// The reason where it is not known of each person whether they are the caller.
    pub unmatched: Option<String>,
}

impl People {
    /// Identifies a caller, with the values of the groups claim of its token. The caller's person is filled in here.
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
