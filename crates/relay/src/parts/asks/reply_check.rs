//! The check of a client's reply against the question that it answers.

use mcp_elicit_core::answer::{BrokenRule, CheckError, Outcome, Violation};
use mcp_elicit_core::fault::{Finding, PeerFault};
use mcp_elicit_core::form::{Field, FieldKind, FieldKinds, Form};
use mcp_elicit_core::wire::{Action, ElicitResult, InputResponses, Revision, WireError};
use serde_json::json;

use super::{Ask, Origin, WrongAnswer};
use crate::frame_edit::ErrorResponse;

/// The reason why a reply of a client is unusable.
pub(crate) enum UnusableReply {
    /// It breaks the protocol.
    Malformed(Box<ErrorResponse>),
    /// It does not answer the question, which may be asked again.
    Wrong {
        /// The error for the server after the last attempt.
        refusal: Box<ErrorResponse>,
        /// The answer.
        answer: WrongAnswer,
        /// The action that the client sent.
        act: Action,
    },
}

impl Ask {
    /// Checks a reply against the question.
    pub(crate) fn check(
        &self,
        reply: &ElicitResult,
        revision: Revision,
    ) -> Result<Outcome, UnusableReply> {
        let as_it_is = self.is_shown_as_it_is();
        if !as_it_is
            && reply.action() == Action::Accept
            && let Some(form) = self.form().filter(|form| form.emits_other_types())
        {
            // The client was shown the form in its legal spelling, and answered that.
            let content = serde_json::from_str(reply.content_or_empty()).unwrap_or_default();
            let answers = form.check_emitted(content);
            return answers
                .map(Outcome::Accept)
                .map_err(|violations| self.wrong(reply, &violations.into(), revision));
        }
        let outcome = reply.outcome(self.form());
        if as_it_is
            && let Err(CheckError::Violations(violations)) = &outcome
            && let Some(form) = self.form()
            && violations
                .iter()
                .all(|violation| form.is_read_in_part(violation.field()))
        {
            // The client knows the server's own schema, of which these fields could be read only in part.
            let unread = Form::unread("read in part");
            return reply
                .outcome(Some(&unread))
                .map_err(|error| self.wrong(reply, &error, revision));
        }
        outcome.map_err(|error| self.wrong(reply, &error, revision))
    }

    /// Returns `true` if the client is shown the server's own text.
    pub(crate) fn is_shown_as_it_is(&self) -> bool {
        self.server_frame().is_some() || matches!(self.origin(), Origin::PassedRound { .. })
    }

    /// Returns `true` if the client's own reply may be given to the server: it answers the server's own schema.
    pub(crate) fn takes_own_reply(&self) -> bool {
        self.is_shown_as_it_is() || self.form().is_none_or(|form| form.adjustments().is_empty())
    }

    fn wrong(&self, reply: &ElicitResult, error: &CheckError, revision: Revision) -> UnusableReply {
        let violations = Finding::from_check(error);
        let rules = violations
            .iter()
            .map(|finding| format!("{} {}\n", finding.location, finding.code));
        let answer = WrongAnswer::new(error.to_string(), rules.collect(), is_empty(reply))
            .mistyping(self.mistyped(error));
        UnusableReply::Wrong {
            refusal: Box::new(ErrorResponse::fault(
                PeerFault::WrongAnswer {
                    violations,
                    attempts: self.wrong_answers() + 1,
                },
                revision,
            )),
            answer,
            act: reply.action(),
        }
    }

    /// Returns the kinds of the fields whose values have another type than the field.
    fn mistyped(&self, error: &CheckError) -> FieldKinds {
        let (Some(form), CheckError::Violations(violations)) = (self.form(), error) else {
            return FieldKinds::default();
        };
        let is_mistyped = |field: &&Field| {
            let of_type = |violation: &Violation| {
                violation.field() == field.name() && matches!(violation.rule(), BrokenRule::Type(_))
            };
            violations.iter().any(of_type)
        };
        let fields = form.fields().iter().filter(is_mistyped);
        fields.map(|field| FieldKind::of(field.kind())).collect()
    }

    /// Returns the reason why a reply with this defect is unusable. Accepted content that is not an object is a wrong
    /// answer, since the person has acted.
    pub(crate) fn unreadable(defect: WireError, revision: Revision) -> UnusableReply {
        if !matches!(
            defect,
            WireError::Type {
                member: "content",
                ..
            }
        ) {
            let refusal = ErrorResponse::fault(PeerFault::from(defect), revision);
            return UnusableReply::Malformed(Box::new(refusal));
        }
        let reason = "the answer was not an object with the fields of the form".to_owned();
        // The server's request was right.
        let refusal = ErrorResponse::new(-32603, "Elicitation failed").with_data(json!({
            "reason": "the client accepted with content that is not an object",
        }));
        UnusableReply::Wrong {
            refusal: Box::new(refusal),
            answer: WrongAnswer::new(reason, "content type\n".to_owned(), false)
                .mistyping(FieldKinds::ALL),
            act: Action::Accept,
        }
    }

    /// Returns the checked reply under this key in a retry of this revision; `None` if there is none.
    pub(crate) fn reply_in(
        &self,
        entry: &str,
        responses: &InputResponses,
        revision: Revision,
    ) -> Result<Option<Outcome>, UnusableReply> {
        match responses.reply_to(entry, self.request().mode()) {
            None => Ok(None),
            Some(Err(defect)) => Err(Self::unreadable(defect, revision)),
            Some(Ok(reply)) => self.check(&reply, revision).map(Some),
        }
    }
}

/// Returns `true` if a reply has no content at all.
fn is_empty(reply: &ElicitResult) -> bool {
    let content = reply.content_or_empty();
    let members: Option<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(content).ok();
    members.is_some_and(|members| members.is_empty())
}
