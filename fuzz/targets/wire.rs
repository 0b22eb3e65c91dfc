//! Any bytes as a message: refused, or kept byte for byte and read alike when written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_elicit_core::fault::{Fault, PeerFault};
use mcp_elicit_core::digest::canonical;
use mcp_elicit_core::wire::{
    CallFrame, Cancelled, Complete, Envelope, FrameIndex, Id, InputRequired, InputResponses, Meta,
    Mode, ProgressNotification, ElicitResult, ElicitRequest, Revision, UrlRequired, WireError, meta, rounds,
};
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| {
    scans_alike(bytes);
    match Envelope::parse(bytes) {
        Err(defect) => has_an_error(&defect),
        Ok(envelope) => {
            assert_eq!(envelope.as_text().as_bytes(), bytes);
            let _ = (
                envelope.elicitation(),
                envelope.result_type(),
                envelope.error_code(),
            );
            changes_one_part(&envelope);
            for part in [envelope.params(), envelope.result(), envelope.error()]
                .into_iter()
                .flatten()
            {
                reads_alike(part);
            }
        }
    }
});

/// What the scan of a frame finds is what a parser reads, and it lets through no frame that a parser calls ambiguous.
fn scans_alike(bytes: &[u8]) {
    let (Ok(index), Ok(text)) = (FrameIndex::read(bytes), std::str::from_utf8(bytes)) else {
        return;
    };
    let parsed = Envelope::parse(bytes);
    assert!(!matches!(
        parsed,
        Err(WireError::Duplicate { location: "message" })
    ));
    if let Ok(call) = CallFrame::read(text, &index)
        && let Ok(spelled) = call.canonical_arguments()
        && !spelled.is_empty()
    {
        assert_eq!(canonical(&spelled).as_deref(), Ok(spelled.as_str()));
    }
    let Ok(envelope) = parsed else {
        return;
    };
    assert_eq!(envelope.method(), index.method.map(|range| &text[range]));
    assert_eq!(
        envelope.raw_id().map(RawValue::get),
        index
            .id
            .map(|range| &text[range])
            .filter(|id| *id != "null")
    );
    if let Some(params) = envelope.params() {
        let all = mcp_elicit_core::wire::members::Members::read(params, "params");
        let all = all.expect("params without a member twice");
        for (name, range) in [
            ("_meta", index.meta),
            ("name", index.name),
            ("uri", index.uri),
            ("arguments", index.arguments),
            ("requestState", index.request_state),
            ("inputResponses", index.input_responses),
        ] {
            assert_eq!(
                all.get(name).map(RawValue::get),
                range.map(|range| &text[range]),
                "{name}"
            );
        }
    }
}

fn has_an_error(defect: &WireError) {
    let fault = Fault::from(PeerFault::from(defect.clone()));
    for revision in Revision::ALL {
        let error = fault.to_error(revision).to_raw();
        let message = mcp_elicit_core::wire::message::error(None, &error);
        Envelope::parse(message.as_bytes()).expect("an error is a message");
    }
}

fn changes_one_part(envelope: &Envelope<'_>) {
    let id = Id::text("another");
    let changed = envelope.with_id(&id);
    let again = Envelope::parse(changed.as_bytes()).expect("still a message");
    assert_eq!(again.kind(), envelope.kind());
    assert!(again.id() == envelope.id().map(|_| id));
    if let Some(params) = envelope.params() {
        let same = envelope.with_body(params).expect("still a message");
        assert_eq!(same, envelope.as_text());
    }
}

/// Every part of the protocol that could be in here: what reads, writes, and reads the same.
fn reads_alike(part: &RawValue) {
    for revision in Revision::ALL {
        if let Ok(request) = ElicitRequest::parse(part, revision) {
            let written = request
                .to_raw_params(revision)
                .expect("what was read on a revision can be said on it");
            assert_eq!(ElicitRequest::parse(&written, revision).as_ref(), Ok(&request));
            request.to_params(revision).ok();
        }
    }
    for mode in [Mode::Form, Mode::Url] {
        if let Ok(reply) = ElicitResult::parse(part, mode) {
            let again = ElicitResult::parse(&reply.to_raw(), mode).expect("a reply reads back");
            assert_eq!(again.action(), reply.action());
            assert_eq!(again.content_or_empty(), reply.content_or_empty());
        }
    }
    if let Ok(required) = InputRequired::parse(part) {
        let written = required.to_result().expect("what was read can be said");
        assert_eq!(InputRequired::parse(&written).as_ref(), Ok(&required));
        retries(part, &required);
    }
    if let Ok(required) = UrlRequired::parse(part) {
        let written = required.to_error().expect("what was read can be said");
        assert_eq!(UrlRequired::parse(&written).as_ref(), Ok(&required));
    }
    let _ = (
        Cancelled::parse(part).map(|cancelled| cancelled.to_message()),
        ProgressNotification::parse(part),
    );
    let _ = Complete::parse(part).map(|complete| complete.to_message());
    metas(part);
}

fn retries(params: &RawValue, required: &InputRequired) {
    let mut responses = InputResponses::default();
    for (key, _) in required.questions() {
        responses.reply(key, &ElicitResult::bare(mcp_elicit_core::wire::Action::Cancel));
    }
    let retry =
        rounds::retry_params(Some(params), required, &responses).expect("params are an object");
    assert_eq!(rounds::state_of_params(&retry), Ok(required.state.clone()));
    let sent = InputResponses::from_params(&retry).expect("responses are an object");
    assert_eq!(sent.is_some(), required.requests.is_some());
}

fn metas(params: &RawValue) {
    let Ok(read) = Meta::from_params(Some(params)) else {
        return;
    };
    for revision in Revision::ALL {
        read.capability(revision);
    }
    let token = Id::number(7);
    if let Ok(set) = meta::with(Some(params), meta::PROGRESS_TOKEN, Some(&token.to_raw())) {
        assert_eq!(
            Meta::from_params(Some(&set))
                .expect("still an object")
                .progress_token(),
            Some(token)
        );
    }
}
