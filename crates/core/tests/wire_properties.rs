//! Wire under generated input: nothing panics, values are written as they were read, and no other byte changes.

use mcp_elicit_core::wire::members::Members;
use mcp_elicit_core::wire::{
    Action, Capability, ElicitRequest, ElicitResult, ElicitationMessage, Envelope, Id,
    InputRequest, InputRequired, InputResponses, MessageKind, Mode, Revision, UrlRequired, message,
    method, rounds,
};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

/// JSON as peers write it: any spacing, numbers that a double cannot hold, escapes.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("12345678901234567890".to_owned()),
        Just("1.0".to_owned()),
        Just("-1e-7".to_owned()),
        Just("\"\\u0061\\ud83d\\ude00\\/\"".to_owned()),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
    ];
    let space = prop_oneof![Just(""), Just(" "), Just("\n\t")];
    leaf.prop_recursive(3, 24, 5, move |inner| {
        let members = prop::collection::btree_map("[a-z_]{0,6}", inner.clone(), 0..5);
        prop_oneof![
            (prop::collection::vec(inner, 0..5), space.clone()).prop_map(|(items, space)| format!(
                "[{space}{}{space}]",
                items.join(&format!("{space},"))
            )),
            (members, space.clone()).prop_map(|(members, space)| object_text(&members, space)),
        ]
    })
}

fn object_text(members: &std::collections::BTreeMap<String, String>, space: &str) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{space}\"{key}\"{space}:{space}{value}"))
        .collect();
    format!("{{{}{space}}}", members.join(&format!("{space},")))
}

fn object() -> impl Strategy<Value = String> {
    (
        prop::collection::btree_map("[a-z_]{0,6}", json_text(), 0..6),
        prop_oneof![Just(""), Just(" ")],
    )
        .prop_map(|(members, space)| object_text(&members, space))
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![
        any::<u64>().prop_map(Id::number),
        any::<String>().prop_map(|text| Id::text(&text))
    ]
}

fn request() -> impl Strategy<Value = ElicitRequest> {
    let form = (
        any::<String>(),
        prop::collection::btree_map(any::<String>(), any::<bool>(), 0..4),
    )
        .prop_map(|(message, fields)| {
            let fields: Map<String, Value> = fields
                .into_keys()
                .map(|name| (name, json!({"type": "string"})))
                .collect();
            ElicitRequest::form(message, &json!({"type": "object", "properties": fields}))
        });
    prop_oneof![form, url()]
}

fn url() -> impl Strategy<Value = ElicitRequest> {
    (any::<String>(), any::<String>(), ".+").prop_map(|(message, url, id)| ElicitRequest::Url {
        message,
        url,
        elicitation_id: Some(id),
    })
}

fn reply() -> impl Strategy<Value = ElicitResult> {
    let content = prop::collection::btree_map(any::<String>(), any::<i32>(), 0..4);
    prop_oneof![
        content.prop_map(|content| ElicitResult::accept(&json!(content))),
        Just(ElicitResult::bare(Action::Decline)),
        Just(ElicitResult::bare(Action::Cancel)),
    ]
}

/// Returns the part of a request that a revision supports: only 2025-11-25 has the id of a url.
fn on(request: &ElicitRequest, revision: Revision) -> ElicitRequest {
    match (request.clone(), revision) {
        (
            ElicitRequest::Url { message, url, .. },
            Revision::V2025_06_18 | Revision::V2026_07_28,
        ) => ElicitRequest::Url {
            message,
            url,
            elicitation_id: None,
        },
        (request, _) => request,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(envelope) = Envelope::parse(&bytes) {
            prop_assert_eq!(envelope.as_text().as_bytes(), &bytes[..]);
        }
    }

    #[test]
    fn any_object_is_read_by_every_part_without_a_panic(text in object()) {
        let raw = raw(&text);
        for revision in Revision::ALL {
            let _ = ElicitRequest::parse(&raw, revision);
        }
        let _ = (ElicitResult::parse(&raw, Mode::Form), InputRequired::parse(&raw), UrlRequired::parse(&raw));
        let _ = (InputResponses::from_params(&raw), rounds::state_of_params(&raw));
    }

    #[test]
    fn a_message_is_what_it_was_made_of(id in id(), name in any::<String>(), body in object()) {
        let body = raw(&body);
        for (text, kind) in [
            (message::request(&id, &name, Some(&body)), MessageKind::Request),
            (message::notification(&name, Some(&body)), MessageKind::Notification),
            (message::result(&id, &body), MessageKind::Result),
            (message::error(Some(&id), &body), MessageKind::Error),
        ] {
            let envelope = Envelope::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(envelope.kind(), kind);
            let part = envelope.params().or(envelope.result()).or(envelope.error());
            prop_assert_eq!(part.unwrap().get(), body.get());
            match kind {
                MessageKind::Notification => prop_assert_eq!(envelope.id(), None),
                MessageKind::Request | MessageKind::Result | MessageKind::Error => {
                    prop_assert_eq!(envelope.raw_id().unwrap().get(), id.as_json());
                }
            }
        }
    }

    #[test]
    fn one_part_changes_and_no_other_byte(old in id(), new in id(), body in object(), other in object()) {
        let text = message::request(&old, "tools/call", Some(&raw(&body)));
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        let there = envelope.with_id(&new);
        let back = Envelope::parse(there.as_bytes()).unwrap().with_id(&old);
        prop_assert_eq!(&back, &text);
        let there = envelope.with_body(&raw(&other)).unwrap();
        let back = Envelope::parse(there.as_bytes()).unwrap().with_body(&raw(&body)).unwrap();
        prop_assert_eq!(&back, &text);
    }

    #[test]
    fn a_member_put_in_and_taken_out_leaves_the_object(text in object(), value in json_text()) {
        let whole = raw(&text);
        let members = Members::read(&whole, "test").unwrap();
        let with = members.with("NEW", Some(&raw(&value)));
        let more = Members::read(&with, "test").unwrap();
        prop_assert_eq!(more.get("NEW").unwrap().get(), value.as_str());
        let without = more.with("NEW", None);
        prop_assert_eq!(without.get(), whole.get());
        prop_assert_eq!(more.iter().count(), members.iter().count() + 1);
    }

    #[test]
    fn any_member_can_be_replaced_or_taken_out(text in object(), pick in any::<prop::sample::Index>()) {
        let whole = raw(&text);
        let members = Members::read(&whole, "test").unwrap();
        let names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
        prop_assume!(!names.is_empty());
        let name = names[pick.index(names.len())];
        let replaced = members.with(name, Some(&raw("[7]")));
        let without = members.with(name, None);
        let mut value: Value = serde_json::from_str(whole.get()).unwrap();
        let mut gone = value.clone();
        value[name] = json!([7]);
        gone.as_object_mut().unwrap().shift_remove(name);
        prop_assert_eq!(serde_json::from_str::<Value>(replaced.get()).unwrap(), value);
        prop_assert_eq!(serde_json::from_str::<Value>(without.get()).unwrap(), gone);
    }

    #[test]
    fn a_question_reads_back_on_every_revision_that_can_say_it(request in request()) {
        for revision in Revision::ALL {
            match request.to_raw_params(revision) {
                Ok(params) => {
                    prop_assert_eq!(ElicitRequest::parse(&params, revision).unwrap(), on(&request, revision));
                    let bears = message::request(&Id::number(1), method::CREATE, Some(&params));
                    let bears = Envelope::parse(bears.as_bytes()).unwrap().elicitation();
                    prop_assert_eq!(bears, Some(ElicitationMessage::Create));
                }
                Err(_) => prop_assert!(!revision.has_mode(request.mode())),
            }
        }
    }

    #[test]
    fn a_reply_reads_back(reply in reply()) {
        let again = ElicitResult::parse(&reply.to_raw(), Mode::Form).unwrap();
        prop_assert_eq!(again.action(), reply.action());
        prop_assert_eq!(again.content_or_empty(), reply.content_or_empty());
        prop_assert_eq!(again.to_value(), reply.to_value());
    }

    #[test]
    fn a_round_reads_back_and_its_retry_carries_every_answer(
        questions in prop::collection::btree_map(any::<String>(), request(), 0..4),
        state in any::<Option<String>>(),
        params in object(),
    ) {
        let asked = questions.iter().map(|(key, request)| (key.clone(), request.clone()));
        let required = InputRequired::asking(asked, state.clone());
        let result = required.to_result().unwrap();
        let text = message::result(&Id::number(1), &result);
        prop_assert_eq!(Envelope::parse(text.as_bytes()).unwrap().elicitation(), Some(ElicitationMessage::InputRequired));
        let read = InputRequired::parse(&result).unwrap();
        for ((key, question), (read_key, read_question)) in questions.iter().zip(read.requests.iter().flatten()) {
            prop_assert_eq!(key, read_key);
            prop_assert_eq!(&InputRequest::Elicit(on(question, Revision::V2026_07_28)), read_question);
        }

        let mut responses = InputResponses::default();
        for key in questions.keys() {
            responses.reply(key, &ElicitResult::bare(Action::Decline));
        }
        let params = raw(&params);
        let retry = rounds::retry_params(Some(&params), &read, &responses).unwrap();
        prop_assert_eq!(rounds::state_of_params(&retry).unwrap(), state);
        let carried = InputResponses::from_params(&retry).unwrap().unwrap();
        prop_assert_eq!(carried.keys().collect::<Vec<_>>(), questions.keys().collect::<Vec<_>>());
        // Every other member of the call stays as it was written.
        let before = Members::read(&params, "test").unwrap();
        let after = Members::read(&retry, "test").unwrap();
        for (name, value) in before.iter() {
            prop_assert_eq!(after.get(name).unwrap().get(), value.get());
        }
    }

    #[test]
    fn required_urls_read_back(elicitations in prop::collection::vec(url(), 0..4), words in any::<String>()) {
        let required = UrlRequired { message: words, elicitations };
        prop_assert_eq!(UrlRequired::parse(&required.to_error().unwrap()).unwrap(), required);
    }

    #[test]
    fn ids_are_equal_when_their_json_is(one in json_text(), two in json_text()) {
        let (Some(one_id), Some(two_id)) = (Id::read(&raw(&one)), Id::read(&raw(&two))) else { return Ok(()) };
        let values: [Value; 2] = [serde_json::from_str(&one).unwrap(), serde_json::from_str(&two).unwrap()];
        prop_assert_eq!(one_id == two_id, values[0] == values[1]);
    }

    #[test]
    fn any_capability_value_is_read(value in json_text()) {
        let value: Value = serde_json::from_str(&value).unwrap();
        for revision in Revision::ALL {
            let read = Capability::read(Some(&value), revision);
            // A client that declares an object supports something, unless it denies each named part. PHP writes `[]` for `{}`.
            let is_empty_list = value.as_array().is_some_and(Vec::is_empty);
            if is_empty_list || value.as_object().is_some_and(Map::is_empty) {
                prop_assert_eq!(read, Capability::FORM);
            }
            prop_assert!(value.is_object() || is_empty_list || read.is_none());
        }
    }
}
