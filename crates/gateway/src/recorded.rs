//! The facts about a call in the record and the audit, on which `mcp-elicit rules simulate --audit` evaluates rules. A
//! missing fact is named, and never guessed.

use std::fmt;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::secrecy;
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_policy::rules::Recall;
use mcp_elicit_policy::{
    Annotations, Caller, CallerKind, CallingPerson, Facts, KnownCall, People, QuestionFacts, Rules,
};
use mcp_elicit_record::Record;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::Row;
use mcp_elicit_record::team::TeamCaller;
use mcp_elicit_relay::decisions::QuestionParts;

use crate::bind::question_facts;
use crate::config::zone_of;
use crate::current_rules::now_in;

/// A call in the audit: it asked, waited for approval, or was refused.
#[derive(Clone, Copy, Debug)]
pub struct RecordedCall<'a> {
    /// The operator's name of the server.
    pub server: &'a str,
    /// The caller's name in the record.
    pub principal: &'a str,
    /// The call; `None` if the server did not name the one in which it asks.
    pub call: Option<(CallKind, &'a str)>,
    /// The time.
    pub at: Timestamp,
    /// The mode of the question, if one was asked.
    pub mode: Option<&'a str>,
    /// The question, if it is still in the record.
    pub row: Option<&'a Row>,
    /// `true` if the gateway asked, before the call.
    pub is_approval: bool,
    /// The arguments.
    pub arguments: RecordedArguments<'a>,
}

/// The arguments of a past call.
#[derive(Clone, Copy)]
pub enum RecordedArguments<'a> {
    /// They were not stored.
    Unknown,
    /// The call had none.
    None,
    /// They are still in the record, as JSON.
    Json(&'a str),
}

impl fmt::Debug for RecordedArguments<'_> {
    /// Formats everything but the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "Unknown",
            Self::None => "None",
            Self::Json(_) => "Json(..)",
        })
    }
}

/// Returns the decision of rules about a past call. `logs_in` is the issuer at which people log in, if known.
pub fn recall<'r>(
    rules: &'r Rules,
    logs_in: Option<&str>,
    record: &Record,
    recorded: &RecordedCall<'_>,
) -> Recall<'r> {
    let mut gaps = Vec::new();
    let team = recorded.row.and_then(|row| row.team.as_deref());
    let caller = team.map(|team| &team.caller);
    let people = rules.people();
    let (caller, groups) = caller_of(people, logs_in, recorded.principal, caller, &mut gaps);
    // A configuration with an unknown zone was rejected.
    let zone = zone_of(rules.time_zone()).unwrap_or(jiff::tz::TimeZone::UTC);
    let now = now_in(zone, recorded.at);
    let arguments = match recorded.arguments {
        RecordedArguments::Json(text) => Some(text),
        RecordedArguments::Unknown | RecordedArguments::None => None,
    };
    let call = recorded.call.map(|(kind, target)| KnownCall {
        kind,
        target,
        arguments,
        annotations: Annotations::default(),
    });
    // If the call is unknown, conditions about it are errors, as they were then.
    if call.is_some() {
        gaps.push("annotations");
        if matches!(recorded.arguments, RecordedArguments::Unknown) {
            gaps.push("arguments");
        }
    }
    let facts = Facts {
        caller: &caller,
        groups: &groups,
        server: recorded.server,
        call,
        now: &now,
    };
    // The gateway's own question does not belong to a server: rules decide about its call.
    let question = (!recorded.is_approval).then(|| question_of(record, recorded, &mut gaps));
    rules.recall(&facts, question.as_ref(), &gaps)
}

/// Returns the caller and its groups by the people of a file, as far as its name in the record and its question show.
fn caller_of(
    people: &People,
    logs_in: Option<&str>,
    principal: &str,
    kept: Option<&TeamCaller>,
    gaps: &mut Vec<&'static str>,
) -> (Caller, Vec<String>) {
    let mut caller = Caller::default();
    match Principal::parse(principal) {
        Some(Principal::Subject { issuer, subject }) => {
            // The subject of another issuer is not a person here.
            if CallingPerson::of_issuer(&issuer, logs_in) == CallingPerson::Subject {
                people
                    .find(&subject, "")
                    .unwrap_or_default()
                    .clone_into(&mut caller.person);
                if caller.person.is_empty() {
                    // It may be identified by its mail address.
                    gaps.push("caller.person");
                }
            }
            (caller.issuer, caller.subject) = (issuer.into_owned(), subject.into_owned());
            match kept {
                Some(kept) => caller.name.clone_from(&kept.name),
                None => gaps.push("caller.name"),
            }
            gaps.extend(["caller.mail", "caller.client", "groups"]);
            return (caller, Vec::new());
        }
        Some(Principal::Local) => {
            caller.kind = CallerKind::Local;
            if let Some(kept) = kept {
                caller.subject.clone_from(&kept.subject);
                let person = people.local_person(&kept.subject);
                person.unwrap_or_default().clone_into(&mut caller.person);
            } else {
                gaps.extend(["caller.subject", "caller.person", "groups"]);
            }
        }
        Some(Principal::Key(id)) => {
            caller.kind = CallerKind::Key;
            id.clone_into(&mut caller.subject);
            match kept {
                Some(kept) => {
                    caller.name.clone_from(&kept.name);
                    // The owner of the key.
                    kept.person
                        .as_deref()
                        .unwrap_or_default()
                        .clone_into(&mut caller.person);
                }
                None => gaps.extend(["caller.name", "caller.person", "groups"]),
            }
        }
        Some(Principal::Anonymous) | None => {}
    }
    let groups = people.groups_of(&caller.person, &[]);
    (caller, groups)
}

/// Returns a question as rules see it; of one that is in the record no more, its mode.
fn question_of(
    record: &Record,
    recorded: &RecordedCall<'_>,
    gaps: &mut Vec<&'static str>,
) -> QuestionFacts {
    let Some(parsed) = recorded.row.and_then(|row| record.parsed(row)) else {
        gaps.extend([
            "question.message",
            "question.host",
            "question.credentials",
            "fields",
        ]);
        if recorded.mode.is_none() {
            gaps.push("question.mode");
        }
        return QuestionFacts {
            mode: recorded.mode.unwrap_or_default().to_owned(),
            ..QuestionFacts::default()
        };
    };
    let (request, form) = (&parsed.request, parsed.form());
    let credentials = |form: &Form| !secrecy::inspect_request(request, form).is_empty();
    question_facts(QuestionParts {
        request,
        form,
        has_credentials: form.is_some_and(credentials),
    })
}
