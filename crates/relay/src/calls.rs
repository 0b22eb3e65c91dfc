//! The client's requests on their way: who waits for what, and where the answer goes.

use mcp_elicit_core::wire::Frame;
use mcp_elicit_core::wire::FramePart;
use std::collections::HashMap;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use mcp_elicit_core::wire::{CallDefect, CallFrame, Capability, Id, InputRequest};
use sha2::{Digest as _, Sha256};

use crate::log_levels::LogLevel;
use crate::repeated_rounds::AnsweredRound;
use crate::retries::RetryAnswers;
use crate::server_round::Round;
use crate::turns::Queued;
use crate::{AskId, CallId, CallKind, CallSummary, StreamId, Timestamp};
use mcp_elicit_core::wire::frame::FrameIndex;

/// One request of the client.
pub(crate) struct Call {
    /// The stream for its answer; `None` while none is waiting.
    pub(crate) stream: Option<StreamId>,
    /// The id the client knows it by.
    pub(crate) client_id: Id,
    /// The id the server knows it by.
    pub(crate) upstream_id: Id,
    /// The kind of call, where questions may come up in it.
    pub(crate) kind: Option<CallKind>,
    /// The request as it went to the server, kept when questions may come up in it.
    kept: Option<Bytes>,
    /// The modes that the client can ask in, in this call.
    pub(crate) capability: Capability,
    /// The token that the client wants progress on.
    pub(crate) token: Option<Id>,
    /// The token that the server reports progress on.
    pub(crate) upstream_token: Option<Id>,
    /// When it came.
    pub(crate) since: Timestamp,
    /// When it came, or was made again last.
    pub(crate) came_at: Timestamp,
    /// Asks that are open in it.
    pub(crate) questions: Vec<AskId>,
    /// Open questions that are taken to be another call's and may be this one's.
    pub(crate) maybe: Vec<AskId>,
    /// The round that waits to be answered, on a server of the rounds era.
    pub(crate) round: Option<Round>,
    /// The number of rounds that it has asked.
    pub(crate) rounds: u32,
    /// The last progress told to the client.
    pub(crate) progress: f64,
    /// Since when it is held for a person.
    pub(crate) held: Option<Timestamp>,
    /// The response that came while nobody waited, as the server wrote it.
    pub(crate) finished: Option<String>,
    /// The parts that wait for its turn, while it does.
    pub(crate) queued: Option<Queued>,
    /// `true` if it is one of those that take turns, and has its own.
    pub(crate) has_turn: bool,
    /// `true` if it was seen to ask.
    pub(crate) asked: bool,
    /// Records whose answers go to the server when the call is made again.
    pub(crate) delivers: Vec<String>,
    /// The server's answer that wants something first, as it wrote it: links visited (`-32042`), or a round that the client
    /// gets as it is.
    pub(crate) demand: Option<String>,
    /// The level from which on it wants log messages.
    pub(crate) log_level: Option<LogLevel>,
    /// `true` if it asks which tools there are.
    pub(crate) lists_tools: bool,
    /// The round that its client has.
    pub(crate) presented: Vec<(String, InputRequest)>,
    /// The rounds that its client has answered.
    pub(crate) answered: Vec<AnsweredRound>,
    /// The answers that a retry brought for its questions, which are asked anew.
    pub(crate) retry_answers: Option<RetryAnswers>,
    /// The keys that its questions have had in `inputRequests`, and how often each was asked.
    pub(crate) asked_keys: HashMap<String, u32>,
    /// The call, or the reason that it cannot be shown; read when first needed.
    calling: Option<Result<CallSummary, CallDefect>>,
}

impl Call {
    pub(crate) fn new(now: Timestamp, stream: StreamId, id: Id, kind: Option<CallKind>) -> Self {
        Self {
            stream: Some(stream),
            client_id: id.clone(),
            upstream_id: id,
            kind,
            kept: None,
            capability: Capability::NONE,
            token: None,
            upstream_token: None,
            since: now,
            came_at: now,
            questions: Vec::new(),
            maybe: Vec::new(),
            round: None,
            rounds: 0,
            progress: 0.0,
            held: None,
            finished: None,
            queued: None,
            has_turn: false,
            asked: false,
            delivers: Vec::new(),
            demand: None,
            log_level: None,
            lists_tools: false,
            presented: Vec::new(),
            answered: Vec::new(),
            retry_answers: None,
            asked_keys: HashMap::new(),
            calling: None,
        }
    }

    /// Keeps the request, which is text, as it went to the server.
    pub(crate) fn keep(&mut self, frame: Bytes) {
        self.kept = Some(frame);
    }

    /// The request as it went to the server, where it is kept.
    pub(crate) fn frame(&self) -> Option<&str> {
        std::str::from_utf8(self.kept.as_ref()?).ok()
    }

    /// Returns whether it waits for its turn: the server knows nothing of it.
    pub(crate) fn is_queued(&self) -> bool {
        self.queued.is_some()
    }

    /// Returns whether it can be made on another connection instead, with nothing lost.
    pub(crate) fn can_move(&self) -> bool {
        self.is_queued() && self.stream.is_some() && self.retry_answers.is_none()
    }

    /// Reads the token for progress out of the request, where that was not done yet.
    pub(crate) fn learn_token(&mut self) {
        if self.token.is_none() && self.upstream_token.is_none() {
            self.token = self.frame().and_then(|frame| {
                let index = FrameIndex::at(frame.as_bytes())?;
                progress_token(Frame::of_text(frame, &index))
            });
            self.upstream_token = self.token.clone();
        }
    }

    /// Returns what is called; `None` when no question may come up in it, or when that cannot be read.
    pub(crate) fn summary(&mut self) -> Option<&CallSummary> {
        self.read_calling()?.ok()
    }

    /// Why what is called cannot be shown to a person, if it cannot.
    pub(crate) fn unreadable(&mut self) -> Option<CallDefect> {
        self.read_calling()?.err()
    }

    fn read_calling(&mut self) -> Option<Result<&CallSummary, CallDefect>> {
        if self.calling.is_none() {
            let frame = self.frame()?;
            let index = FrameIndex::at(frame.as_bytes());
            let frame = index.as_ref().map(|index| Frame::of_text(frame, index));
            let read = frame.ok_or(CallDefect::Target);
            let kind = self.kind?;
            self.calling = Some(read.and_then(|frame| summary(kind, frame)));
        }
        Some(self.calling.as_ref()?.as_ref().map_err(|defect| *defect))
    }
}

/// The name or URI that a request calls; `None` where that cannot be read.
pub(crate) fn target(frame: &str) -> Option<String> {
    let index = FrameIndex::at(frame.as_bytes())?;
    let call = CallFrame::read(frame, &index).ok()?;
    Some(call.target.into_owned())
}

/// Reads what a request of this kind calls.
pub(crate) fn summary(kind: CallKind, frame: Frame<'_>) -> Result<CallSummary, CallDefect> {
    let call = CallFrame::read(frame.text(), frame.index())?;
    let digest = digest(kind, &call.target, &call.canonical_arguments()?);
    Ok(CallSummary {
        kind,
        target: call.target.into_owned(),
        arguments: call.arguments.map(str::to_owned),
        digest,
    })
}

/// The token in `params._meta.progressToken`.
pub(crate) fn progress_token(frame: Frame<'_>) -> Option<Id> {
    let token = frame.member(FramePart::Meta, "progressToken")?;
    Id::read(serde_json::from_str(token).ok()?)
}

/// Equal for two calls of the same thing with the same arguments, in whatever order and spelling.
fn digest(kind: CallKind, target: &str, canonical_arguments: &str) -> String {
    let mut hash = Sha256::new();
    for part in [kind.word(), target, canonical_arguments] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize())
}

/// All requests on their way.
#[derive(Default)]
pub(crate) struct Calls {
    by_key: HashMap<CallId, Call>,
    by_upstream: HashMap<Id, CallId>,
    last: u64,
}

impl Calls {
    /// No calls yet; the first gets the key after this.
    pub(crate) fn after(last: u64) -> Self {
        Self {
            last,
            ..Self::default()
        }
    }

    /// Takes a call in. Its upstream id must be free.
    pub(crate) fn insert(&mut self, call: Call) -> CallId {
        self.last += 1;
        let key = CallId(self.last);
        self.by_upstream.insert(call.upstream_id.clone(), key);
        self.by_key.insert(key, call);
        key
    }

    pub(crate) fn get(&self, key: CallId) -> Option<&Call> {
        self.by_key.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: CallId) -> Option<&mut Call> {
        self.by_key.get_mut(&key)
    }

    pub(crate) fn remove(&mut self, key: CallId) -> Option<Call> {
        self.end_upstream(key);
        self.by_key.remove(&key)
    }

    /// The call that the server answers with this id.
    pub(crate) fn by_upstream(&self, id: &Id) -> Option<CallId> {
        self.by_upstream.get(id).copied()
    }

    /// The call goes to the server once more, under another id.
    pub(crate) fn renew(&mut self, key: CallId, id: Id) {
        self.end_upstream(key);
        if let Some(call) = self.by_key.get_mut(&key) {
            call.upstream_id = id.clone();
            self.by_upstream.insert(id, key);
        }
    }

    /// The server is done with this upstream id, which another call may have by now; the call lives on.
    pub(crate) fn end_upstream(&mut self, key: CallId) {
        if let Some(call) = self.by_key.get(&key)
            && self.is_with(key, call)
        {
            self.by_upstream.remove(&call.upstream_id);
        }
    }

    /// Returns whether the server still works on the call.
    pub(crate) fn is_upstream(&self, key: CallId) -> bool {
        self.get(key)
            .is_some_and(|call| self.is_with(key, call) && !call.is_queued())
    }

    /// Returns whether the server still works on this call of this key.
    fn is_with(&self, key: CallId, call: &Call) -> bool {
        self.by_upstream.get(&call.upstream_id) == Some(&key)
    }

    /// Returns whether the server may be asking in this call of this key right now.
    fn fits(&self, key: CallId, call: &Call) -> bool {
        call.kind.is_some()
            && call.finished.is_none()
            && !call.is_queued()
            && self.is_with(key, call)
    }

    /// The call that the client knows by this id, the one somebody waits for first.
    pub(crate) fn by_client(&self, id: &Id) -> Option<CallId> {
        let mut found: Vec<_> = self
            .by_key
            .iter()
            .filter(|(_, call)| call.client_id == *id)
            .collect();
        found.sort_by_key(|(key, call)| (call.stream.is_none(), std::cmp::Reverse(**key)));
        found.first().map(|(key, _)| **key)
    }

    /// The calls that wait on this stream.
    pub(crate) fn on_stream(&self, stream: StreamId) -> Vec<CallId> {
        self.keys(|call| call.stream == Some(stream))
    }

    /// The call whose progress the server reports with this token.
    pub(crate) fn by_upstream_token(&self, token: &Id) -> Option<CallId> {
        self.by_key
            .iter()
            .find(|(_, call)| call.upstream_token.as_ref() == Some(token))
            .map(|(key, _)| *key)
    }

    /// Returns whether the server may be asking in this call right now.
    pub(crate) fn may_ask(&self, key: CallId) -> bool {
        self.get(key).is_some_and(|call| self.fits(key, call))
    }

    /// Calls in which the server may be asking right now, in no order.
    pub(crate) fn asking(&self) -> impl Iterator<Item = (CallId, &Call)> {
        let calls = self.by_key.iter().map(|(key, call)| (*key, call));
        calls.filter(|(key, call)| self.fits(*key, call))
    }

    /// Keys of the calls that fit, oldest first.
    pub(crate) fn keys(&self, fits: impl Fn(&Call) -> bool) -> Vec<CallId> {
        let mut keys: Vec<_> = self
            .by_key
            .iter()
            .filter(|(_, call)| fits(call))
            .map(|(key, _)| *key)
            .collect();
        keys.sort_unstable();
        keys
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frame: &str) -> CallSummary {
        let index = FrameIndex::at(frame.as_bytes()).unwrap();
        summary(CallKind::Tool, Frame::of_text(frame, &index)).unwrap()
    }

    #[test]
    fn the_same_call_has_the_same_digest_in_any_order() {
        let one = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":{"c":2,"d":3}}}}"#,
        );
        let two = of(
            r#"{"id":2,"method":"tools/call","params":{"_meta":{"progressToken":9},"arguments":{"b":{"d":3,"c":2},"a":1},"name":"t"}}"#,
        );
        assert_eq!(one.digest, two.digest);
        assert_eq!(one.target, "t");
        let other = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":2,"b":{"c":2,"d":3}}}}"#,
        );
        assert_ne!(one.digest, other.digest);
    }

    #[test]
    fn arguments_stay_out_of_debug() {
        let call = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"secret"}}}"#,
        );
        assert!(!format!("{call:?}").contains("secret"));
        assert_eq!(call.arguments.as_deref(), Some(r#"{"a":"secret"}"#));
    }

    #[test]
    fn two_different_calls_never_share_a_digest() {
        let with = |arguments: &str| {
            let frame = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            let index = FrameIndex::at(frame.as_bytes()).unwrap();
            summary(CallKind::Tool, Frame::of_text(&frame, &index)).map(|call| call.digest)
        };
        assert_ne!(
            with(r#"{"a":18446744073709551617}"#),
            with(r#"{"a":18446744073709551616}"#)
        );
        assert_eq!(
            with(r#"{"force":true,"force":false}"#),
            Err(CallDefect::Duplicate)
        );
        assert_eq!(with(r#"{"a":1e999}"#), Err(CallDefect::Number));
    }
}
