//! New questions: each is checked, recorded, and only then shown.

use std::sync::Arc;

use mcp_elicit_core::fault::{Fault, PeerFault};
use mcp_elicit_core::form::{DefectCode, Defects, Form};
use mcp_elicit_core::link::Link;
use mcp_elicit_core::question::TaskEntry;
use mcp_elicit_core::secrecy;
use mcp_elicit_core::wire::members::Members;
use mcp_elicit_core::wire::{ElicitRequest, Frame};
use serde_json::json;

use crate::decisions::{Planned, QuestionParts};
use crate::frame_edit::ErrorResponse;
use crate::parts::asks::{Ask, Attribution, NewAsk, Origin};
use crate::parts::calls::OTHERS;
use crate::parts::task_questions::CallsOfTask;
use crate::question_plan::QuestionPlan;
use crate::unknown_members::UnknownMembers;
use crate::{AskId, AskedVia, Audience, CallId, Effect, Ending, Relay, Timer, Timestamp};
use crate::{ByteLimit, CallSummary, NewQuestion, QuestionLimit};

/// The characters of a question's message that its refusal repeats.
const MESSAGE: usize = 60;

/// The result of checking a question.
#[derive(Default)]
pub(crate) struct Checked {
    /// The form, if it has one.
    pub(crate) form: Option<Arc<Form>>,
    /// Warnings for a person.
    warnings: Vec<String>,
    /// `true` if it seems to ask for a credential.
    has_credentials: bool,
}

impl Checked {
    /// Returns the parts that a decision depends on.
    pub(crate) fn parts<'a>(&'a self, request: &'a ElicitRequest) -> QuestionParts<'a> {
        QuestionParts {
            request,
            form: self.form.as_deref(),
            has_credentials: self.has_credentials,
        }
    }
}

impl Relay {
    /// Handles a question of the server. `frame` is its own frame, if it pushed one; `params` is read for unknown
    /// members.
    pub(crate) fn open_ask(
        &mut self,
        now: Timestamp,
        mut attribution: Attribution,
        origin: Origin,
        request: ElicitRequest,
        frame: Option<Frame<'_>>,
        params: Option<&Members<'_>>,
    ) -> Result<AskId, ErrorResponse> {
        let unknown = params.map(UnknownMembers::of).transpose()?;
        // A question in the result of one of several calls might be asked in the wrong one.
        let nowhere = attribution.is_ambiguous() && self.client.is_asked_in_results();
        if nowhere
            && self.settings.answer_with == Audience::Client
            && self.settings.decisions.is_none()
        {
            let why = "several calls are at work, so it is not known whose question this is, and there is no inbox; \
                       make the call again";
            return Err(ErrorResponse::new(-32000, why));
        }
        let (call, others) = (attribution.call(), attribution.others().to_vec());
        let of_task = match &origin {
            Origin::Task { task, .. } => self.task_questions.calls_of(task),
            Origin::Pushed { .. }
            | Origin::Round { .. }
            | Origin::PassedRound { .. }
            | Origin::Approval { .. }
            | Origin::Url { .. } => CallsOfTask::default(),
        };
        let revision = self.server.revision_or_latest();
        // Before any work that grows with its form or the open calls, and before the log names it. A question that is
        // refused below counts too.
        self.limits.admit(now, &request, &self.asks, revision)?;
        let checked = match check(&request) {
            Ok(checked) => checked,
            Err(fault) => self.unread(&request, fault, &origin, call, frame.is_some())?,
        };
        // Each call that it may belong to must be shown in full.
        if let Some(defect) = self.calls.defect_in(&attribution.candidates()) {
            let why = format!(
                "nobody is asked, since the call cannot be shown to a person in full: {defect}"
            );
            return Err(ErrorResponse::new(-32603, why));
        }
        let QuestionPlan {
            planned,
            past,
            refused_in,
        } = if let Origin::Approval { .. } = origin {
            self.approvals.planned(&attribution).into()
        } else if let Origin::Task { .. } = origin {
            QuestionPlan {
                planned: self.planned_in_task(now, &of_task, checked.parts(&request)),
                past: of_task.known.get(1..).unwrap_or_default().to_vec(),
                refused_in: None,
            }
        } else {
            self.planned(now, &attribution, checked.parts(&request))?
        };
        let (team, open_for) = match planned {
            Planned::Caller { open_for } => (None, open_for),
            Planned::People(asked) => (Some(asked.team), Some(asked.open_for)),
            Planned::Refuse(refusal) => {
                let call = refused_in.as_ref().or(of_task.known.first());
                self.settings.tell_not_asked(call, &refusal);
                return Err(ErrorResponse::new(
                    -32000,
                    format!("nobody is asked: {refusal}"),
                ));
            }
        };
        let Checked { form, warnings, .. } = checked;
        let place = match team {
            Some(_) => AskedVia::People,
            None => self
                .asked_via(
                    call.filter(|_| !nowhere),
                    &origin,
                    &request,
                    form.as_deref(),
                )
                .map_err(|fault| ErrorResponse::fault(fault, revision))?,
        };
        if place == AskedVia::People
            && let Some(defects) = unread_of(&request, form.as_deref())
        {
            return Err(self.cannot_be_shown(&request, call, &PeerFault::from(&defects).into()));
        }
        let open_for = open_for.unwrap_or(self.settings.open_for);
        let until = now.after(open_for);
        // Only a client's own dialog shows it.
        let may_have_frame = self
            .client
            .may_have_frame(self.server.revision(), request.mode());
        let is_shown = place == AskedVia::Client && may_have_frame;
        let frame = frame.filter(|_| is_shown);
        // The client's own dialog names no call, so its question needs no summary in full.
        let mut candidates = match place {
            AskedVia::People => self.calls.summaries(&others),
            AskedVia::Client => Vec::new(),
        };
        let mut names = self.calls.targets(&others);
        if !past.is_empty() {
            attribution.add_past();
            add_past(&mut names, &mut candidates, past);
        }
        let ask = NewAsk::new(attribution, origin, request, form.clone(), place, open_for)
            .unknown(unknown.unwrap_or_default())
            .frame(frame)
            .candidates(&candidates);
        self.limits.admit_size(&ask, &self.asks)?;
        let asked = NewQuestion {
            call: call
                .and_then(|key| self.calls.get_mut(key))
                .and_then(|call| call.summary().cloned())
                .or_else(|| of_task.known.into_iter().next()),
            others: names,
            candidates,
            request: ask.request().clone(),
            fields: ask
                .form()
                .into_iter()
                .flat_map(Form::fields)
                .map(|field| field.name().to_owned())
                .collect(),
            form,
            warnings,
            via: place,
            server_info: self.server_info(),
            client_info: self
                .client
                .info_for(call.and_then(|key| self.calls.get(key))),
            until,
            outlives: self.client.outlives_connection(place),
            team,
            trace: None,
            task: match ask.origin() {
                Origin::Task { task, entry } => Some(TaskEntry {
                    task: task.clone(),
                    key: entry.clone(),
                }),
                Origin::Pushed { .. }
                | Origin::Round { .. }
                | Origin::PassedRound { .. }
                | Origin::Approval { .. }
                | Origin::Url { .. } => None,
            },
        };
        let entry = self.entry_of(call, ask.origin(), ask.request());
        let key = self.asks.open(ask.entry(entry));
        if let Some(call) = call {
            if let Some(call) = self.calls.get_mut(call) {
                call.add_ask(key);
            }
            self.waiting_calls.add_call(call, self.calls.get_mut(call));
        }
        for other in others {
            if let Some(call) = self.calls.get_mut(other) {
                call.add_possible_ask(key);
            }
        }
        self.timers.set(until, Timer::AskExpired(key));
        self.effects.push(Effect::Record {
            question: key,
            asked: Box::new(asked),
        });
        Ok(key)
    }

    /// Returns the parts of a question whose form cannot be read, if the client is shown it as the server wrote it and no
    /// rule of an operator decides about its fields.
    ///
    /// # Errors
    /// The refusal of a question that would have to be shown, translated or judged here.
    fn unread(
        &mut self,
        request: &ElicitRequest,
        fault: Fault,
        origin: &Origin,
        call: Option<CallId>,
        has_frame: bool,
    ) -> Result<Checked, ErrorResponse> {
        // A client with a session has the same forms, whatever the server's revision: the schema is unchanged.
        let as_it_is = match origin {
            Origin::PassedRound { .. } => true,
            Origin::Pushed { .. } => has_frame && self.client.is_pushed_to(),
            Origin::Round { .. } => self.client.is_pushed_to(),
            Origin::Url { .. } | Origin::Approval { .. } | Origin::Task { .. } => false,
        };
        let ElicitRequest::Form { schema, .. } = request else {
            return Err(ErrorResponse::fault(
                fault,
                self.server.revision_or_latest(),
            ));
        };
        match Form::parse_leniently(schema.get()) {
            Err(defects)
                if as_it_is && self.settings.decisions.is_none() && is_only_unusual(&defects) =>
            {
                tracing::info!(
                    server = %self.settings.server,
                    why = %self.settings.masked(&defects.first().to_string()),
                    "the client is shown a form that cannot be read here; its answer is not checked"
                );
                Ok(Checked {
                    form: Some(Arc::new(Form::unread(&defects.first().to_string()))),
                    warnings: Vec::new(),
                    has_credentials: false,
                })
            }
            Ok(_) | Err(_) => Err(self.cannot_be_shown(request, call, &fault)),
        }
    }

    /// Returns the refusal of a question that no person can be shown, and tells the operator in the log and the audit.
    fn cannot_be_shown(
        &mut self,
        request: &ElicitRequest,
        call: Option<CallId>,
        fault: &Fault,
    ) -> ErrorResponse {
        tracing::warn!(
            server = %self.settings.server,
            why = %self.settings.masked(&fault.to_string()),
            "a question was refused, since its form cannot be shown to a person; nobody was asked"
        );
        let call = call.and_then(|key| self.calls.get_mut(key));
        let call = call.and_then(|call| call.summary().cloned());
        self.effects.push(Effect::NotShown {
            call,
            message: request.message().chars().take(MESSAGE).collect(),
            why: fault.to_string(),
        });
        let refusal = ErrorResponse::fault(fault.clone(), self.server.revision_or_latest());
        // Servers put the message into their result, where the person reads it.
        let asked: String = request.message().chars().take(MESSAGE).collect();
        let why = format!(
            "{}: nobody was asked {asked:?}, since its form cannot be shown to a person: {fault}",
            refusal.message()
        );
        refusal.with_message(why)
    }

    /// Returns the key of a question in `inputRequests`: the server's if it asks in rounds; otherwise one of the call,
    /// for a client that is asked in rounds.
    fn entry_of(
        &mut self,
        call: Option<CallId>,
        origin: &Origin,
        request: &ElicitRequest,
    ) -> String {
        if let Origin::Round { entry, .. } | Origin::PassedRound { entry, .. } = origin {
            return entry.clone();
        }
        if !self.client.is_asked_in_results() {
            return String::new();
        }
        let call = call.and_then(|call| self.calls.get_mut(call));
        call.map_or_else(String::new, |call| call.rounds_mut().entry_key(request))
    }

    /// Returns the first place where a question is shown: the client, or people.
    fn asked_via(
        &self,
        call: Option<CallId>,
        origin: &Origin,
        request: &ElicitRequest,
        form: Option<&Form>,
    ) -> Result<AskedVia, Fault> {
        let call = call.and_then(|key| self.calls.get(key));
        let audience = self.settings.answer_with;
        let can = self.client.can_be_asked(audience, call, request, form);
        if can || matches!(origin, Origin::PassedRound { .. }) {
            return Ok(AskedVia::Client);
        }
        match self.settings.answer_with {
            Audience::Auto | Audience::People => Ok(AskedVia::People),
            Audience::Client => Err(PeerFault::CapabilityMissing {
                mode: request.mode(),
                declared: self.client.capability(call),
            }
            .into()),
        }
    }

    /// Handles a recorded question: now it may be shown.
    pub(crate) fn recorded(
        &mut self,
        now: Timestamp,
        key: AskId,
        record: String,
        link: Option<String>,
        answered: bool,
    ) {
        let ask = match self.asks.recorded(key, record, link) {
            Ok(ask) => ask,
            Err(record) => {
                // It ended while it was being written.
                self.effects.push(Effect::End {
                    record,
                    ending: Ending::CallEnded,
                });
                return;
            }
        };
        let (via, call) = (ask.via(), ask.call());
        let in_client_round = matches!(ask.origin(), Origin::PassedRound { .. });
        // The same call made again in another session is told of this question.
        let is_detached = |call: &CallId| {
            let call = self.calls.get(*call);
            call.is_some_and(|call| call.stream().is_none())
        };
        if let Some(call) = call.filter(|call| is_detached(call) && self.unattended.has(*call)) {
            self.keep_call(call);
        }
        if answered && !in_client_round {
            self.answered(now, key);
            self.present_rest(now, call);
            return;
        }
        match (via, call) {
            (_, Some(call)) if in_client_round => self.client_round_recorded(now, call),
            (AskedVia::Client, call) => self.ask_client(now, key, call),
            (AskedVia::People, Some(call)) => {
                // The rest of its round is for the client, which can answer it meanwhile.
                self.present_round(now, call);
                self.hold_all(now, key, call);
            }
            (AskedVia::People, None) => {}
        }
    }

    /// Ends a question that could not be recorded.
    pub(crate) fn not_recorded(&mut self, now: Timestamp, key: AskId) {
        let why = if self.asks.get(key).is_some_and(Ask::is_submitting) {
            "the answer could not be recorded, so it does not count"
        } else {
            "the question could not be recorded, so nobody was asked"
        };
        let refusal = ErrorResponse::new(-32603, why);
        let call = self.asks.get(key).and_then(Ask::call);
        self.question_fails(now, key, Ending::CallEnded, &refusal);
        self.present_rest(now, call);
    }

    /// Asks a rounds client the other questions of a call, which waited for one that the client is not asked.
    fn present_rest(&mut self, now: Timestamp, call: Option<CallId>) {
        if let Some(call) = call {
            self.present_round(now, call);
        }
    }

    /// Drops a question of a task that another session of its caller has asked: people answer it there.
    pub(crate) fn asked_elsewhere(&mut self, key: AskId) {
        self.drop_question(key, Ending::CallEnded);
    }

    /// Ends a question of a caller that has too many open questions.
    pub(crate) fn not_admitted(&mut self, now: Timestamp, key: AskId, limit: QuestionLimit) {
        let (why, data) = match limit {
            QuestionLimit::Open { most, of_server } => {
                let that_it_asks = if of_server {
                    format!(" that the server {} asks", self.shown_server())
                } else {
                    String::new()
                };
                let why = format!(
                    "nobody was asked, since {most} questions of this caller{that_it_asks} wait for an answer already, in all its sessions: have some of them answered, then ask again"
                );
                (why, json!({"limit": "open-questions", "most": most}))
            }
            QuestionLimit::Bytes(limit) => {
                let ByteLimit { name, most } = limit;
                let why = format!(
                    "nobody was asked, since the stored questions would hold more than {most} bytes (`{name}`): ask again when old questions have been deleted, or let the operator raise `{name}` or lower `keep-ended`"
                );
                (why, limit.data())
            }
            QuestionLimit::RecordBytes(limit) => {
                let ByteLimit { name, most } = limit;
                let why = format!(
                    "nobody was asked, since the record has its most bytes, {most} (`{name}`): let the operator raise `{name}`, or delete old questions and events, then ask again"
                );
                (why, limit.data())
            }
            QuestionLimit::AllOpen { name, most } => {
                let why = format!(
                    "nobody was asked, since {most} questions of all callers wait for an answer already (`{name}`): ask again when some of them are answered, or let the operator raise `{name}`"
                );
                (why, json!({"limit": name, "most": most}))
            }
        };
        let refusal = ErrorResponse::new(-32000, why).with_data(data);
        let ask = self.asks.get(key);
        let call = ask.and_then(Ask::call);
        if let Some(&Origin::Approval { call }) = ask.map(Ask::origin) {
            self.drop_question(key, Ending::CallEnded);
            self.approval_refused(call, &refusal);
            return;
        }
        self.question_fails(now, key, Ending::CallEnded, &refusal);
        self.present_rest(now, call);
    }
}

/// Returns the defects of a form that could not be read.
fn unread_of(request: &ElicitRequest, form: Option<&Form>) -> Option<Defects> {
    let ElicitRequest::Form { schema, .. } = request else {
        return None;
    };
    form.filter(|form| form.is_unread())?;
    Form::parse_leniently(schema.get()).err()
}

/// Returns `true` if every program reads the same schema, which is only not a form of this protocol. A schema with a
/// member twice is another one for each reader, and one over a limit is not passed on either.
fn is_only_unusual(defects: &Defects) -> bool {
    let ambiguous = [
        DefectCode::NotJson,
        DefectCode::TooLarge,
        DefectCode::DuplicateField,
        DefectCode::DuplicateMember,
    ];
    !defects
        .iter()
        .any(|defect| ambiguous.contains(&defect.code))
}

/// Adds calls that have ended here to those that may have asked.
fn add_past(names: &mut Vec<String>, candidates: &mut Vec<CallSummary>, past: Vec<CallSummary>) {
    for call in past {
        if !names.contains(&call.target) {
            names.push(call.target.clone());
        }
        if candidates.len() < OTHERS {
            candidates.push(call);
        }
    }
}

/// Checks the question: a legal form, or a link that may be shown. A legal but risky part becomes a warning.
pub(crate) fn check(request: &ElicitRequest) -> Result<Checked, Fault> {
    match request {
        ElicitRequest::Form { schema, .. } => {
            let form =
                Form::parse_leniently(schema.get()).map_err(|defects| PeerFault::from(&defects))?;
            let warnings = secrecy::inspect_request(request, &form);
            Ok(Checked {
                has_credentials: !warnings.is_empty(),
                warnings: warnings.iter().map(ToString::to_string).collect(),
                form: Some(Arc::new(form)),
            })
        }
        ElicitRequest::Url { url, .. } => {
            let link = Link::parse(url).map_err(PeerFault::IllegalLink)?;
            Ok(Checked {
                form: None,
                has_credentials: false,
                warnings: link.warnings().iter().map(ToString::to_string).collect(),
            })
        }
    }
}
