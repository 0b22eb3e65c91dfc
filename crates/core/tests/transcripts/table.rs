//! An observer of a conversation that uses only core.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::{Lifecycle, Phase, Timestamp, Transition, Withdrawal};
use mcp_elicit_core::wire::{
    Cancelled, Capability, Complete, ElicitRequest, ElicitResult, ElicitationMessage, Envelope, Id,
    InputRequired, InputResponses, MessageKind, Meta, ProgressNotification, Revision, UrlRequired,
    WireError, method, rounds,
};
use mcp_elicit_testkit::spec::Spec;
use mcp_elicit_testkit::transcript::Side;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

pub(crate) type Held = Result<(), String>;

/// The time for which a question waits.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

pub(crate) struct Table<'s> {
    pub(crate) revision: Revision,
    spec: &'s Spec,
    now: Timestamp,
    pub(crate) declared: Capability,
    /// The client's calls by id, with their params.
    calls: HashMap<Id, Option<Box<RawValue>>>,
    /// Pushed questions by id.
    pushed: HashMap<Id, (Value, Result<ElicitRequest, WireError>)>,
    /// The questions of the last round, and the params of the call that it answered.
    round: Option<(InputRequired, Option<Box<RawValue>>)>,
    visits: Vec<String>,
    /// The last question, and its state.
    pub(crate) asked: Option<ElicitRequest>,
    pub(crate) last: Option<Lifecycle>,
    acts: VecDeque<(String, Option<Value>)>,
    progress: f64,
}

impl<'s> Table<'s> {
    pub(crate) fn new(revision: &str, spec: &'s Spec) -> Self {
        Self {
            revision: revision.parse().expect("a revision"),
            spec,
            now: Timestamp::from_millis(0),
            declared: Capability::NONE,
            calls: HashMap::new(),
            pushed: HashMap::new(),
            round: None,
            visits: Vec::new(),
            asked: None,
            last: None,
            acts: VecDeque::new(),
            progress: 0.0,
        }
    }

    pub(crate) fn said(&mut self, side: Side, message: &Value) -> Held {
        let text = message.to_string();
        let envelope = Envelope::parse(text.as_bytes()).map_err(|defect| defect.to_string())?;
        self.legal("JSONRPCMessage", message)?;
        if envelope.as_text() != text {
            return Err("the bytes changed".into());
        }
        match envelope.elicitation() {
            Some(ElicitationMessage::Create) => self.pushed(&envelope, message),
            Some(ElicitationMessage::Complete) => self.completed(&envelope, message),
            Some(ElicitationMessage::InputRequired) => self.round(&envelope, message),
            Some(ElicitationMessage::UrlRequired) => self.urls_required(&envelope, message),
            Some(ElicitationMessage::Task) => self.task(message),
            None => self.other(side, &envelope, message),
        }
    }

    pub(crate) fn person(&mut self, action: &str, content: Option<&Value>) -> Held {
        self.acts.push_back((action.to_owned(), content.cloned()));
        if !self.last.as_ref().is_some_and(Lifecycle::is_open) {
            return Ok(());
        }
        self.step(&Transition::Show)?;
        let mut result = json!({ "action": action });
        if let Some(content) = content {
            result["content"] = content.clone();
        }
        match self.outcome_of(&result)? {
            // An answer that the form rejects is asked for again: the question stays open.
            None => Ok(()),
            Some(outcome) => self.step(&Transition::acted(&outcome, "person")),
        }
    }

    /// Returns the last question's outcome for a reply; `None` if the form rejects it.
    fn outcome_of(&self, result: &Value) -> Result<Option<Outcome>, String> {
        let request = self.asked.as_ref().ok_or("nothing was asked")?;
        let reply = ElicitResult::from_value(result, request.mode()).map_err(told)?;
        match request {
            ElicitRequest::Url { .. } => Ok(Some(reply.visited())),
            ElicitRequest::Form { schema, .. } => {
                let form = Form::parse(schema.get()).map_err(|defects| defects.to_string())?;
                Ok(reply.against(&form).ok())
            }
        }
    }

    pub(crate) fn time(&mut self, seconds: u64) -> Held {
        self.now = self.now.after(Duration::from_secs(seconds));
        if self
            .last
            .as_ref()
            .is_some_and(|exchange| exchange.is_due(self.now))
        {
            return self.step(&Transition::Expire);
        }
        Ok(())
    }

    pub(crate) fn outcome(&mut self, phase: &str) -> Held {
        let stands = self.last.as_ref().map(Lifecycle::phase);
        if stands.map(Phase::as_str) == Some(phase) {
            return Ok(());
        }
        Err(format!("the question is {stands:?}, not {phase}"))
    }

    fn step(&mut self, step: &Transition) -> Held {
        let exchange = self.last.as_mut().ok_or("nothing was asked")?;
        let seen = exchange.version();
        exchange
            .compare_and_step(seen, step, self.now)
            .map_err(|refused| refused.to_string())
    }

    fn ask(&mut self, request: &ElicitRequest) {
        self.asked = Some(request.clone());
        self.last = Some(Lifecycle::ask(self.now, Some(self.now.after(PATIENCE))));
    }

    fn pushed(&mut self, envelope: &Envelope<'_>, message: &Value) -> Held {
        let request = ElicitRequest::parse(envelope.params().ok_or("no params")?, self.revision);
        if let Ok(request) = &request {
            self.same_request(request, &message["params"])?;
            self.ask(request);
        }
        let id = envelope.id().ok_or("no id")?;
        self.pushed.insert(id, (message.clone(), request));
        Ok(())
    }

    fn same_request(&self, request: &ElicitRequest, params: &Value) -> Held {
        let mut written = request
            .to_params(self.revision)
            .map_err(|unaskable| unaskable.to_string())?;
        if params.get("mode").is_none() {
            // Absent, as is allowed for a form.
            written.as_object_mut().expect("params").remove("mode");
        }
        same(&written, params)
    }

    fn completed(&mut self, envelope: &Envelope<'_>, message: &Value) -> Held {
        self.legal("ElicitationCompleteNotification", message)?;
        let complete = Complete::parse(envelope.params().ok_or("no params")?).map_err(told)?;
        same_text(&complete.to_message(), message)?;
        if self.visits.contains(&complete.elicitation_id) {
            Ok(())
        } else {
            Err("for an unknown id".into())
        }
    }

    fn round(&mut self, envelope: &Envelope<'_>, message: &Value) -> Held {
        self.legal("InputRequiredResult", &message["result"])?;
        let required = InputRequired::parse(envelope.result().ok_or("no result")?).map_err(told)?;
        let call = envelope
            .id()
            .and_then(|id| self.calls.remove(&id))
            .ok_or("answers no call")?;
        for (key, question) in required.questions() {
            if !self.declared.has(question.mode()) {
                return Err("asked in an undeclared mode".into());
            }
            self.same_request(question, &message["result"]["inputRequests"][key]["params"])?;
        }
        let written = required
            .to_result()
            .map_err(|unaskable| unaskable.to_string())?;
        let again = InputRequired::parse(&written).map_err(told)?;
        if again != required {
            return Err("the round changed".into());
        }
        if let Some((_, question)) = required.questions().next() {
            self.ask(question);
        }
        self.round = Some((required, call));
        Ok(())
    }

    fn urls_required(&mut self, envelope: &Envelope<'_>, message: &Value) -> Held {
        self.legal("URLElicitationRequiredError", message)?;
        let required = UrlRequired::parse(envelope.error().ok_or("no error")?).map_err(told)?;
        for request in &required.elicitations {
            if let ElicitRequest::Url {
                elicitation_id: Some(id),
                ..
            } = request
            {
                self.visits.push(id.clone());
            }
        }
        same_text(
            required
                .to_error()
                .map_err(|unaskable| unaskable.to_string())?
                .get(),
            &message["error"],
        )
    }

    fn task(&mut self, message: &Value) -> Held {
        let requests =
            to_raw_value(&message["result"]["inputRequests"]).map_err(|error| error.to_string())?;
        let requests = rounds::read_requests(&requests).map_err(told)?;
        let required = InputRequired {
            requests: Some(requests),
            state: None,
        };
        if let Some((_, question)) = required.questions().next() {
            self.ask(question);
        }
        self.round = Some((required, None));
        Ok(())
    }

    fn other(&mut self, side: Side, envelope: &Envelope<'_>, message: &Value) -> Held {
        match envelope.kind() {
            MessageKind::Request => self.call(envelope),
            MessageKind::Notification => self.noticed(envelope, message),
            MessageKind::Result | MessageKind::Error if side == Side::Client => {
                self.replied(envelope, message)
            }
            MessageKind::Result => Ok(()),
            MessageKind::Error => self.call_failed(message),
        }
    }

    fn call(&mut self, envelope: &Envelope<'_>) -> Held {
        let params = envelope.params();
        let meta = Meta::from_params(params).map_err(told)?;
        if meta.is_rounds() {
            self.declared = meta.capability(self.revision);
        }
        if envelope.method() == Some(method::INITIALIZE) {
            let params: Value = params
                .and_then(|p| serde_json::from_str(p.get()).ok())
                .ok_or("no params")?;
            self.declared = Capability::from_client(&params["capabilities"], self.revision);
        }
        let responses = params
            .map(InputResponses::from_params)
            .transpose()
            .map_err(told)?
            .flatten();
        if let Some((required, first)) = self.round.take() {
            self.retried(
                &required,
                first.as_deref(),
                params.ok_or("no params")?,
                &responses.unwrap_or_default(),
            )?;
        }
        if self
            .calls
            .insert(envelope.id().ok_or("no id")?, params.map(ToOwned::to_owned))
            .is_some()
        {
            return Err("the id is in use".into());
        }
        Ok(())
    }

    fn retried(
        &mut self,
        required: &InputRequired,
        first: Option<&RawValue>,
        params: &RawValue,
        responses: &InputResponses,
    ) -> Held {
        for (key, question) in required.questions() {
            let reply = responses
                .reply_to(key, question.mode())
                .ok_or("a question has no reply")?
                .map_err(told)?;
            self.as_acted(&reply, responses.get(key).ok_or("no reply")?)?;
        }
        let Some(first) = first else { return Ok(()) };
        let retry = rounds::retry_params(Some(first), required, responses).map_err(told)?;
        let mut expected: Value =
            serde_json::from_str(retry.get()).map_err(|error| error.to_string())?;
        let params: Value =
            serde_json::from_str(params.get()).map_err(|error| error.to_string())?;
        if params["requestState"]
            .as_str()
            .is_some_and(|state| state.starts_with("me1."))
        {
            // The transcript in which a state is changed.
            expected["requestState"] = params["requestState"].clone();
        }
        same(&expected, &params)
    }

    /// Checks that the reply is the person's action, and is read back as it was written.
    fn as_acted(&mut self, reply: &ElicitResult, written: &RawValue) -> Held {
        let written: Value =
            serde_json::from_str(written.get()).map_err(|error| error.to_string())?;
        self.legal("ElicitResult", &written)?;
        same(&reply.to_value(), &written)?;
        let (action, content) = self.acts.pop_front().ok_or("nobody acted")?;
        same(&json!(reply.action().as_str()), &json!(action))?;
        same(&written["content"], &content.unwrap_or_default())
    }

    fn noticed(&mut self, envelope: &Envelope<'_>, message: &Value) -> Held {
        match envelope.method() {
            Some(method::CANCELLED) => {
                self.legal("CancelledNotification", message)?;
                let cancelled =
                    Cancelled::parse(envelope.params().ok_or("no params")?).map_err(told)?;
                same_text(&cancelled.to_message(), message)?;
                if cancelled
                    .request_id
                    .is_some_and(|id| self.pushed.remove(&id).is_some())
                {
                    self.step(&Transition::Withdraw {
                        why: Withdrawal::ByAsker,
                    })?;
                }
                Ok(())
            }
            Some(method::PROGRESS) => {
                self.legal("ProgressNotification", message)?;
                let progress = ProgressNotification::parse(envelope.params().ok_or("no params")?)
                    .map_err(told)?;
                same_text(&progress.to_message(), message)?;
                let before = std::mem::replace(
                    &mut self.progress,
                    progress.progress.as_f64().unwrap_or_default(),
                );
                if self.progress > before {
                    Ok(())
                } else {
                    Err("progress must grow".into())
                }
            }
            _ => Ok(()),
        }
    }

    fn replied(&mut self, envelope: &Envelope<'_>, message: &Value) -> Held {
        let id = envelope.id().ok_or("no id")?;
        let (asked, request) = self.pushed.remove(&id).ok_or("replies to no question")?;
        let Some(result) = envelope.result() else {
            return self.refused(request, &message["error"]);
        };
        let request = request.map_err(told)?;
        self.legal("ElicitRequest", &asked)?;
        if !self.declared.has(request.mode()) {
            return Err("answered in an undeclared mode".into());
        }
        if let ElicitRequest::Url {
            elicitation_id: Some(id),
            ..
        } = &request
        {
            self.visits.push(id.clone());
        }
        let reply = ElicitResult::parse(result, request.mode()).map_err(told)?;
        self.as_acted(&reply, result)
    }

    pub(crate) fn legal(&self, name: &str, value: &Value) -> Held {
        let problems = self.spec.problems(name, value);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn told(defect: WireError) -> String {
    defect.to_string()
}

pub(crate) fn same(one: &Value, two: &Value) -> Held {
    if one == two {
        Ok(())
    } else {
        Err(format!("{one} is not {two}"))
    }
}

fn same_text(text: &str, value: &Value) -> Held {
    same(
        &serde_json::from_str(text).map_err(|error| error.to_string())?,
        value,
    )
}
