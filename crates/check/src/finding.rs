//! The codes of findings: what each says, how grave it is, and its clause of the specification.

use std::fmt;

use mcp_elicit_core::wire::{Era, Revision};
use serde::Serialize;

/// The verdict of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellVerdict {
    /// The revision or the tool does not have what the cell needs.
    NotApplicable,
    /// The tool asked nothing.
    NotAsked,
    /// Nothing was found.
    Pass,
    /// Legal, but a person or a client will stumble over it.
    Warn,
    /// The specification forbids it, it is unsafe, or the server hangs or dies.
    Fail,
}

impl CellVerdict {
    /// Every verdict, the gravest first.
    pub const ALL: [Self; 5] = [
        Self::Fail,
        Self::Warn,
        Self::Pass,
        Self::NotAsked,
        Self::NotApplicable,
    ];

    /// Returns the verdict as reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Pass => "pass",
            Self::NotAsked => "not-asked",
            Self::NotApplicable => "not-applicable",
        }
    }
}

/// The kind of a finding. Its name is stable, for `--allow` and for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// A question in a mode that the client did not declare.
    AskedUndeclared,
    /// `elicitation/create` sent to a client of 2026-07-28.
    PushedInRounds,
    /// A question that the specification does not allow.
    IllegalQuestion,
    /// A message of more than 1,000 characters.
    LongMessage,
    /// The call got no response.
    NeverEnds,
    /// The server ended, or closed the connection.
    Died,
    /// The server does not respond to other requests after the call.
    Stuck,
    /// More questions or messages than a call can need.
    Flood,
    /// An accepted question ended in an error.
    AcceptFailed,
    /// The required fields alone ended in an error.
    LeastFailed,
    /// Content that breaks the form's rules was taken as an answer.
    WrongContentAccepted,
    /// An action that the protocol does not have was taken as accept.
    UnknownActionAccepted,
    /// A decline or cancel gave the words of accept.
    RefusalLikeAccept,
    /// The same question again, without a reason.
    AskedAgain,
    /// The work was done although nobody accepted.
    EffectWithoutAccept,
    /// The work was done more than once for one accept.
    EffectTwice,
    /// The server waits for an answer without end.
    NoTimeout,
    /// The process goes on after its client has left.
    OutlivesClient,
    /// Two calls at once do not both end as one does.
    CallsMixed,
    /// A changed state was accepted.
    ChangedStateAccepted,
    /// The state of another call was accepted.
    ForeignStateAccepted,
    /// Answers without the state were accepted.
    MissingStateAccepted,
    /// The call succeeded without an answer to its question.
    MissingAnswerAccepted,
    /// A missing answer is an error, and not asked for again.
    MissingAnswerRefused,
    /// An unexpected key is an error, and not ignored.
    ExtraKeyRefused,
}

/// A clause of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// The page below `https://modelcontextprotocol.io/specification/REVISION/`.
    pub page: &'static str,
    /// The section.
    pub section: &'static str,
    /// The rule, in few words.
    pub rule: &'static str,
}

impl Clause {
    /// Returns the clause as reports cite it.
    pub fn cite(&self, revision: Revision) -> String {
        format!(
            "{revision}/{}, \"{}\": {}",
            self.page, self.section, self.rule
        )
    }
}

const ELICITATION: &str = "client/elicitation";
const ROUNDS: &str = "basic/patterns/mrtr";

const fn clause(page: &'static str, section: &'static str, rule: &'static str) -> Clause {
    Clause {
        page,
        section,
        rule,
    }
}

// The clauses. A name that ends in `IN_ROUNDS` is for the revisions with rounds, and one that begins with `FIRST` for
// 2025-06-18.
const DECLARED_REQUESTS: Clause = clause(
    ROUNDS,
    "Server Requirements",
    "servers MUST NOT send inputRequests that the client has not declared support for",
);
const NEGOTIATED_CAPABILITIES: Clause = clause(
    "basic/lifecycle",
    "Operation",
    "both parties MUST only use capabilities that were negotiated",
);
const DECLARED_MODES: Clause = clause(
    ELICITATION,
    "Capabilities",
    "servers MUST NOT send elicitation requests with modes that the client does not support",
);
const REQUESTS_IN_RESULTS: Clause = clause(
    ROUNDS,
    "Note",
    "servers MUST send elicitation/create in an InputRequiredResult",
);
const FIRST_SCHEMAS: Clause = clause(
    ELICITATION,
    "Request Schema",
    "schemas are flat objects with primitive properties; no sensitive information",
);
const REQUEST_MEMBERS: Clause = clause(
    ELICITATION,
    "Elicitation Requests",
    "requests MUST have the listed members, and schemas the listed keywords; no sensitive information in a form",
);
const FIRST_CONTENT: Clause = clause(
    ELICITATION,
    "Security Considerations",
    "both parties SHOULD validate elicitation content against the schema",
);
const CONTENT: Clause = clause(
    ELICITATION,
    "Form Mode Security",
    "servers SHOULD validate that received data matches the requested schema",
);
const RESPONSE_ACTIONS: Clause = clause(
    ELICITATION,
    "Response Actions",
    "three actions; the server handles each of them appropriately",
);
const TIMEOUTS_IN_ROUNDS: Clause = clause(
    "basic/patterns/cancellation",
    "Timeouts",
    "implementations SHOULD establish timeouts for all sent requests",
);
const TIMEOUTS: Clause = clause(
    "basic/lifecycle",
    "Timeouts",
    "implementations SHOULD establish timeouts for all sent requests",
);
const SHUTDOWN_IN_ROUNDS: Clause = clause(
    "basic/transports/stdio",
    "Shutdown",
    "the client closes stdin and waits for the server to exit",
);
const SHUTDOWN: Clause = clause(
    "basic/lifecycle",
    "Shutdown",
    "the client closes stdin and waits for the server to exit",
);
const FAILED_REQUESTS: Clause = clause(
    ELICITATION,
    "Error Handling",
    "servers MUST handle a decline, a cancel, and a client that fails to process the request",
);
const RESPONSES: Clause = clause(
    "basic",
    "Responses",
    "a request gets a response with its id, a result or an error",
);
const RESPONSE_ID: Clause = clause(
    "basic",
    "Responses",
    "a response MUST carry the id of its request",
);
const STATE_INTEGRITY: Clause = clause(
    ROUNDS,
    "Server Requirements",
    "servers MUST protect the integrity of requestState and MUST reject state that fails verification",
);
const STATE_BINDING: Clause = clause(
    ROUNDS,
    "Server Requirements",
    "servers SHOULD bind requestState to the originating request",
);
const STATE_AS_INPUT: Clause = clause(
    ROUNDS,
    "Server Requirements",
    "servers MUST treat requestState as an attacker-controlled input",
);
const MISSING_ANSWERS: Clause = clause(
    ROUNDS,
    "Error Handling",
    "servers SHOULD ask again for missing information",
);
const UNEXPECTED_ANSWERS: Clause = clause(
    ROUNDS,
    "Error Handling",
    "servers SHOULD ignore unexpected parameters in inputResponses",
);

impl Code {
    /// Every code.
    pub const ALL: [Self; 25] = [
        Self::AskedUndeclared,
        Self::PushedInRounds,
        Self::IllegalQuestion,
        Self::LongMessage,
        Self::NeverEnds,
        Self::Died,
        Self::Stuck,
        Self::Flood,
        Self::AcceptFailed,
        Self::LeastFailed,
        Self::WrongContentAccepted,
        Self::UnknownActionAccepted,
        Self::RefusalLikeAccept,
        Self::AskedAgain,
        Self::EffectWithoutAccept,
        Self::EffectTwice,
        Self::NoTimeout,
        Self::OutlivesClient,
        Self::CallsMixed,
        Self::ChangedStateAccepted,
        Self::ForeignStateAccepted,
        Self::MissingStateAccepted,
        Self::MissingAnswerAccepted,
        Self::MissingAnswerRefused,
        Self::ExtraKeyRefused,
    ];

    /// Returns the stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AskedUndeclared => "asked-undeclared",
            Self::PushedInRounds => "pushed-in-rounds",
            Self::IllegalQuestion => "illegal-question",
            Self::LongMessage => "long-message",
            Self::NeverEnds => "never-ends",
            Self::Died => "died",
            Self::Stuck => "stuck",
            Self::Flood => "flood",
            Self::AcceptFailed => "accept-failed",
            Self::LeastFailed => "least-failed",
            Self::WrongContentAccepted => "wrong-content-accepted",
            Self::UnknownActionAccepted => "unknown-action-accepted",
            Self::RefusalLikeAccept => "refusal-like-accept",
            Self::AskedAgain => "asked-again",
            Self::EffectWithoutAccept => "effect-without-accept",
            Self::EffectTwice => "effect-twice",
            Self::NoTimeout => "no-timeout",
            Self::OutlivesClient => "outlives-client",
            Self::CallsMixed => "calls-mixed",
            Self::ChangedStateAccepted => "changed-state-accepted",
            Self::ForeignStateAccepted => "foreign-state-accepted",
            Self::MissingStateAccepted => "missing-state-accepted",
            Self::MissingAnswerAccepted => "missing-answer-accepted",
            Self::MissingAnswerRefused => "missing-answer-refused",
            Self::ExtraKeyRefused => "extra-key-refused",
        }
    }

    /// Returns the code with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// Returns the verdict that the finding causes.
    pub const fn verdict(self) -> CellVerdict {
        match self {
            Self::LongMessage
            | Self::AcceptFailed
            | Self::LeastFailed
            | Self::RefusalLikeAccept
            | Self::AskedAgain
            | Self::NoTimeout
            | Self::OutlivesClient
            | Self::ForeignStateAccepted
            | Self::MissingStateAccepted
            | Self::MissingAnswerRefused
            | Self::ExtraKeyRefused => CellVerdict::Warn,
            Self::AskedUndeclared
            | Self::PushedInRounds
            | Self::IllegalQuestion
            | Self::NeverEnds
            | Self::Died
            | Self::Stuck
            | Self::Flood
            | Self::WrongContentAccepted
            | Self::UnknownActionAccepted
            | Self::EffectWithoutAccept
            | Self::EffectTwice
            | Self::CallsMixed
            | Self::ChangedStateAccepted
            | Self::MissingAnswerAccepted => CellVerdict::Fail,
        }
    }

    /// Returns the clause on which the finding rests.
    pub const fn clause(self, revision: Revision) -> Clause {
        let is_first = matches!(revision, Revision::V2025_06_18);
        match self {
            Self::AskedUndeclared => match revision.era() {
                Era::Rounds => DECLARED_REQUESTS,
                Era::Pushed if is_first => NEGOTIATED_CAPABILITIES,
                Era::Pushed => DECLARED_MODES,
            },
            Self::PushedInRounds => REQUESTS_IN_RESULTS,
            Self::IllegalQuestion if is_first => FIRST_SCHEMAS,
            Self::IllegalQuestion => REQUEST_MEMBERS,
            Self::WrongContentAccepted if is_first => FIRST_CONTENT,
            Self::WrongContentAccepted => CONTENT,
            Self::RefusalLikeAccept
            | Self::UnknownActionAccepted
            | Self::EffectWithoutAccept
            | Self::AcceptFailed
            | Self::LeastFailed
            | Self::EffectTwice
            | Self::AskedAgain
            | Self::LongMessage => RESPONSE_ACTIONS,
            Self::NoTimeout => match revision.era() {
                Era::Rounds => TIMEOUTS_IN_ROUNDS,
                Era::Pushed => TIMEOUTS,
            },
            Self::OutlivesClient => match revision.era() {
                Era::Rounds => SHUTDOWN_IN_ROUNDS,
                Era::Pushed => SHUTDOWN,
            },
            Self::NeverEnds | Self::Died | Self::Stuck | Self::Flood => match revision.era() {
                Era::Rounds => FAILED_REQUESTS,
                Era::Pushed => RESPONSES,
            },
            Self::CallsMixed => RESPONSE_ID,
            Self::ChangedStateAccepted => STATE_INTEGRITY,
            Self::ForeignStateAccepted => STATE_BINDING,
            Self::MissingStateAccepted => STATE_AS_INPUT,
            Self::MissingAnswerAccepted | Self::MissingAnswerRefused => MISSING_ANSWERS,
            Self::ExtraKeyRefused => UNEXPECTED_ANSWERS,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One finding of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFinding {
    /// Its kind.
    pub code: Code,
    /// The sentence for the author.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name_and_has_a_clause_on_each_revision() {
        for code in Code::ALL {
            assert_eq!(Code::named(code.as_str()), Some(code));
            for revision in Revision::ALL {
                assert!(code.clause(revision).cite(revision).len() < 200, "{code}");
            }
        }
        assert_eq!(Code::named("nothing"), None);
    }
}
