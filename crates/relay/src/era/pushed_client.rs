//! Clients of the pushed era (2025-06-18, 2025-11-25): questions that are pushed to them, and their responses.

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::question::outcome_json;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::meta::PROTOCOL_VERSION;
use mcp_elicit_core::wire::{
    Capability, ElicitRequest, ElicitResult, Envelope, Id, Meta, Mode, Revision, SessionVersion,
    members, message, method,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Client;
use super::client::ClientEra;
use super::peer_info::{bounded_capabilities, bounded_info};
use crate::frame_edit::{self, ErrorResponse, Splice, may_be_own};
use crate::not_a_person::Attempt;
use crate::parts::asks::{Ask, ClientReply, Origin, UnusableReply, message_again};
use crate::{AskId, CallKind, Ending, Relay, StreamId, Timestamp};

/// A client of this era: it opened a session with `initialize`.
pub(super) struct PushedClient {
    /// The revision whose rules apply to the session's questions.
    revision: Revision,
    /// `true` if it may send several messages in one list.
    has_batches: bool,
    /// The modes that it can ask in, in this session.
    capability: Capability,
    /// `clientInfo`, JSON.
    info: String,
    /// `capabilities`, JSON.
    capabilities: String,
    /// `true` if it declared tasks, of any request.
    has_tasks: bool,
}

impl PushedClient {
    /// Creates a client with these params of `initialize`, at this version.
    pub(super) fn new(params: &RawValue, version: SessionVersion) -> Self {
        let revision = version.rules();
        let member = |name| members::member(params, name).map_or("{}", RawValue::get);
        let capabilities = member("capabilities");
        let declared: Value = serde_json::from_str(capabilities).unwrap_or_default();
        Self {
            revision,
            has_batches: version.has_batches(),
            capability: Capability::from_client(&declared, revision),
            info: bounded_info(member("clientInfo")),
            capabilities: bounded_capabilities(capabilities),
            has_tasks: revision == Revision::V2025_11_25 && declared["tasks"].is_object(),
        }
    }

    /// Returns the session's revision.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the modes that it can ask in.
    pub(super) fn capability(&self) -> Capability {
        self.capability
    }

    /// Returns `clientInfo` as JSON.
    pub(super) fn info(&self) -> &str {
        &self.info
    }

    /// Returns `capabilities` as JSON.
    pub(super) fn capabilities(&self) -> &str {
        &self.capabilities
    }

    /// Returns `true` if it can be shown a question in this mode.
    pub(super) fn can_show(&self, mode: Mode, form: Option<&Form>) -> bool {
        let sayable = form.is_none_or(|form| form.check_words(self.revision).is_ok());
        self.capability.has(mode) && self.revision.has_mode(mode) && sayable
    }

    /// Returns `true` if a frame of a server of this revision expresses a question in the client's revision too.
    fn may_have_frame(&self, server: Revision, mode: Mode) -> bool {
        self.revision >= server || (mode == Mode::Form && server == self.revision)
    }
}

/// The rules of this era's clients.
impl Client {
    /// Returns `true` for a client that may send several messages in one list (2025-03-26, batching).
    pub(crate) fn has_batches(&self) -> bool {
        matches!(&self.0, ClientEra::Pushed(client) if client.has_batches)
    }

    /// Returns `true` for a client that knows tasks (2025-11-25, tasks): it declared them for requests to itself. There is
    /// no declaration for those that it makes.
    pub(crate) fn has_tasks(&self) -> bool {
        matches!(&self.0, ClientEra::Pushed(client) if client.has_tasks)
    }

    /// Returns `true` for a client that answers a question on the connection of its call, as the response to a request
    /// there (2025-11-25, elicitation). Both end with this process.
    pub(crate) fn answers_on_same_connection(&self) -> bool {
        self.is_pushed_to()
    }

    /// Returns `true` for a client that declared url mode, and so knows the error that requires visits (2025-11-25,
    /// `-32042`).
    pub(crate) fn knows_url_required(&self) -> bool {
        matches!(&self.0, ClientEra::Pushed(client) if client.capability.has(Mode::Url))
    }

    /// Returns `true` if the own frame of a server of this revision expresses a question in the client's revision too.
    pub(crate) fn may_have_frame(&self, server: Option<Revision>, mode: Mode) -> bool {
        match (&self.0, server) {
            (ClientEra::Pushed(client), Some(server)) => client.may_have_frame(server, mode),
            _ => false,
        }
    }

    /// Returns the refusal of a request within a session that describes itself in `_meta`, like those of 2026-07-28. A
    /// server of both eras would ask in its result, and the people who are asked in a session would not see the
    /// question.
    pub(crate) fn refusal_in_session(
        &self,
        frame: Frame<'_>,
        method: &str,
    ) -> Option<ErrorResponse> {
        if !self.is_pushed_to() {
            return None;
        }
        if CallKind::of_method(method).is_none() && !method.starts_with("tasks/") {
            return None;
        }
        let has_members = |params: &str| params.starts_with('{');
        if frame.part(FramePart::Params).is_none_or(has_members)
            && frame.sole_member(FramePart::Meta, PROTOCOL_VERSION) == Ok(None)
        {
            // Certain without scanning the arguments.
            return None;
        }
        let why = match Meta::from_params(frame.params()) {
            Ok(meta) if !meta.is_rounds() => return None,
            Ok(_) => format!(
                "this client has opened a session with `initialize`, so its requests have no `{PROTOCOL_VERSION}` in `_meta`"
            ),
            Err(defect) => defect.to_string(),
        };
        Some(ErrorResponse::new(-32602, why))
    }

    /// Returns the refusal of a call with answers or a state, from a client that is never asked in results. A server of
    /// the rounds era, or of both, would take them for answers of a person whom it has not asked.
    pub(crate) fn refusal_of_answers(&self) -> Option<ErrorResponse> {
        if self.is_asked_in_results() {
            return None;
        }
        let why = "`inputResponses` and `requestState` are for clients of 2026-07-28; in a session the server asks with `elicitation/create`";
        Some(ErrorResponse::new(-32602, why))
    }
}

impl Relay {
    /// Pushes a question to a client of this era. A question that cannot be pushed to it ends.
    pub(super) fn push_to_client(&mut self, now: Timestamp, key: AskId) {
        let own = self.new_id();
        let Some((id, frame)) = self.pushed_frame(key, own) else {
            self.ended(now, key, Ending::ClientFailed, true);
            return;
        };
        let stream = self.calls.stream_in_session(self.asks.call_of(key));
        let call = self.asks.get(key).and_then(Ask::call);
        self.asks.shown_in_dialog(key, &id, now);
        if let Some(call) = call {
            self.own_tasks.touch_of(self.calls.get(call));
        }
        self.effects.tell_client(stream, frame, false);
    }

    /// Returns a question as a request to the client, under the server's id or under this one of the gateway's.
    fn pushed_frame(&self, key: AskId, own: Id) -> Option<(Id, String)> {
        let ClientEra::Pushed(client) = &self.client.0 else {
            return None;
        };
        let revision = client.revision;
        let question = self.asks.get(key)?;
        let (Origin::Pushed { id }, Some(frame)) = (question.origin(), question.server_frame())
        else {
            let request = in_revision(question, revision)?;
            let params = request.to_raw_params(revision).ok()?;
            let params = question.unknown().added_to(&params)?;
            let frame = message::request(&own, method::CREATE, Some(&params));
            return Some((own, frame));
        };
        let is_shown = self.asks.by_client_id(id) == Some(key);
        let has_servers_id = !may_be_own(id) && (is_shown || self.is_free_at_client(id));
        match question.reason() {
            None if has_servers_id => Some((id.clone(), frame.text().to_owned())),
            None => {
                let frame = frame_edit::with_id(frame, &own);
                Some((own, frame))
            }
            Some(reason) => {
                let frame = reworded(frame, &own, reason)?;
                Some((own, frame))
            }
        }
    }

    /// Handles an answer of a client of this era.
    pub(crate) fn client_replies(&mut self, now: Timestamp, key: AskId, frame: Frame<'_>) {
        let Some(question) = self.asks.get_mut(key) else {
            // The response is to a question that has ended meanwhile.
            return;
        };
        question.client_responded();
        if question.has_answer() {
            // Answered elsewhere: a late response to the withdrawn dialog decides nothing.
            return;
        }
        let is_open = question.is_open();
        let revision = self.server.revision_or_latest();
        let Some(result) = frame.result() else {
            // An error: the client could not ask. It is not a person's answer.
            if is_open {
                self.client_fails(now, key, frame);
            }
            return;
        };
        let checked = ElicitResult::parse(result, question.request().mode())
            .map_err(|defect| Ask::unreadable(defect, revision))
            .and_then(|reply| Ok((question.check(&reply, revision)?, reply.dropped_content())));
        match checked {
            Ok((outcome, dropped)) => {
                let server_id = match question.origin() {
                    Origin::Pushed { id } if question.server_frame().is_some() && !dropped => {
                        Some(id.clone())
                    }
                    _ => None,
                };
                let is_own = !dropped && question.takes_own_reply();
                if is_open && self.takes_doubted(now, key, outcome.action()) {
                    return;
                }
                let as_it_is = server_id.map(|id| with_same_id(frame, &id).into());
                let reply = is_own.then(|| {
                    ClientReply::new(result.get(), outcome_json(&outcome)).frame(as_it_is)
                });
                self.asks
                    .client_answered(key, outcome, reply, &mut self.effects);
            }
            Err(UnusableReply::Wrong { .. } | UnusableReply::Malformed(_)) if !is_open => {}
            Err(UnusableReply::Wrong {
                refusal,
                answer,
                act,
            }) => {
                if self.takes_doubted(now, key, act) {
                    return;
                }
                match self.unusable(key, answer) {
                    Attempt::Again => self.push_to_client(now, key),
                    Attempt::Moves(why) => self.move_to_people(now, key, why),
                    Attempt::Over => {
                        self.question_fails(now, key, Ending::ClientFailed, &refusal);
                    }
                }
            }
            Err(UnusableReply::Malformed(_)) if self.can_be_moved(key) => {
                self.move_to_people(now, key, NotAPerson::Malformed);
            }
            Err(UnusableReply::Malformed(refusal)) => {
                self.question_fails(now, key, Ending::ClientFailed, &refusal);
            }
        }
    }

    /// Handles an error response of the client to a question: people are asked, or the server gets the error.
    fn client_fails(&mut self, now: Timestamp, key: AskId, frame: Frame<'_>) {
        if self.can_be_moved(key) {
            let code = error_code(frame);
            self.move_to_people(now, key, NotAPerson::Error { code });
        } else {
            self.pass_on_error(now, key, frame);
        }
    }

    fn pass_on_error(&mut self, now: Timestamp, key: AskId, frame: Frame<'_>) {
        let revision = self.server.revision_or_latest();
        let fault = PeerFault::AnsweredWithError {
            code: error_code(frame),
        };
        let server_id = self
            .asks
            .get(key)
            .and_then(|question| match question.origin() {
                Origin::Pushed { id } if question.server_frame().is_some() => Some(id.clone()),
                _ => None,
            });
        if let Some(id) = server_id {
            self.drop_question(key, Ending::ClientFailed);
            self.effects.tell_server(with_same_id(frame, &id), None);
        } else {
            self.question_fails(
                now,
                key,
                Ending::ClientFailed,
                &ErrorResponse::fault(fault, revision),
            );
        }
    }

    /// Pushes a request in a round that is not a question to the client, if the client has this era.
    pub(super) fn push_other(
        &mut self,
        stream: Option<StreamId>,
        method: &str,
        raw: &str,
    ) -> Option<Id> {
        if !self.client.is_pushed_to() || method == method::CREATE {
            return None;
        }
        let request = serde_json::from_str::<&RawValue>(raw).ok()?;
        let params = members::member(request, "params");
        let id = self.new_id();
        self.effects.tell_client(
            stream.unwrap_or(StreamId::SESSION),
            message::request(&id, method, params),
            false,
        );
        Some(id)
    }
}

/// Returns the code of an error response; 0 if it has none that can be read.
fn error_code(frame: Frame<'_>) -> i64 {
    let read = Envelope::parse_within(frame.text().as_bytes(), usize::MAX).ok();
    read.and_then(|all| all.error_code()).unwrap_or_default()
}

/// Returns the client's response under the server's id, which the client may know by another.
fn with_same_id(frame: Frame<'_>, id: &Id) -> String {
    match frame.id() {
        Some(known) if known == *id => frame.text().to_owned(),
        _ => frame_edit::with_id(frame, id),
    }
}

/// Returns the server's question again, with the reason; everything else is unchanged.
fn reworded(frame: Frame<'_>, id: &Id, reason: &str) -> Option<String> {
    let place = frame.member_range(FramePart::Params, "message")?;
    let message: String = serde_json::from_str(&frame.text()[place.clone()]).ok()?;
    let message = members::raw_text(&message_again(&message, reason));
    let message = Splice::new(place, message.get());
    let id = frame_edit::id_splice(frame, id);
    Some(frame_edit::with_splices(
        frame.text(),
        id.iter().chain([&message]),
    ))
}

/// Returns the question as this revision spells it; `None` if it cannot express it.
pub(super) fn in_revision(question: &Ask, revision: Revision) -> Option<ElicitRequest> {
    match &question.request_again() {
        ElicitRequest::Form { message, .. } => {
            if question.form().is_some_and(Form::is_unread) {
                return Some(question.request_again());
            }
            if let Some(form) = question.form()
                && !form.adjustments().is_empty()
            {
                // The client is of another era or revision than the server, and has the form as revisions spell it.
                let schema = form.emit(revision).ok()?;
                return Some(ElicitRequest::form(message.clone(), &schema));
            }
            if revision > Revision::V2025_06_18 {
                // Both revisions have the same forms; unknown members of the request stay.
                return Some(question.request_again());
            }
            let form = question.form()?;
            let schema = form.emit(revision).ok()?;
            if form
                .emit(Revision::LATEST)
                .is_ok_and(|newest| newest == schema)
            {
                // No change of spelling is needed; unknown members of the form stay.
                return Some(question.request_again());
            }
            Some(ElicitRequest::form(message.clone(), &schema))
        }
        ElicitRequest::Url {
            message,
            url,
            elicitation_id,
        } => Some(ElicitRequest::Url {
            message: message.clone(),
            url: url.clone(),
            // 2026-07-28 has no id, and 2025-11-25 needs one: the record's id names the question here.
            elicitation_id: elicitation_id
                .clone()
                .or_else(|| question.record().map(str::to_owned)),
        }),
    }
}
