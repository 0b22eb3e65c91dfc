//! Checks that every response of the API matches the served OpenAPI document, errors too.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::gateway::{Gateway, NO_LIMITS};
use crate::http::{Reply, send, send_as_is};
use crate::raw::DEMO_SERVER;

struct Contract {
    document: Value,
    seen: BTreeSet<String>,
}

impl Contract {
    /// Checks the response against the document for this path, method and status. Returns its body.
    fn holds(&mut self, path: &str, method: &str, reply: Option<Reply>) -> Value {
        let reply = reply.expect("an answer");
        let place = format!("{method} {path} {}", reply.status);
        let pointer = format!(
            "/paths/{}/{method}/responses/{}/content/application~1json/schema",
            path.replace('/', "~1"),
            reply.status
        );
        assert!(
            self.document.pointer(&pointer).is_some(),
            "not documented: {place}"
        );
        assert_eq!(
            reply.header("content-type"),
            Some("application/json"),
            "{place}"
        );
        let mut schema = self.document.clone();
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        schema["$ref"] = json!(
            format!("#{pointer}")
                .replace('{', "%7B")
                .replace('}', "%7D")
        );
        let checks =
            jsonschema::validator_for(&schema).expect("the document's schemas are schemas");
        let body = reply.json();
        let wrong: Vec<String> = checks
            .iter_errors(&body)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{place}: {wrong:?}\n{body:#}");
        self.seen.insert(place);
        body
    }
}

#[test]
fn the_api_is_what_its_document_says() {
    let state = tempfile::tempdir().unwrap();
    let mut more = vec!["--hold", "3600"];
    more.extend(NO_LIMITS);
    let mut gateway = Gateway::start(state.path(), &more, &DEMO_SERVER);
    gateway.initialize();
    let document = gateway.api("GET", "/api/openapi.json", "").unwrap();
    let mut contract = Contract {
        document: document.json(),
        seen: BTreeSet::new(),
    };
    contract.holds("/openapi.json", "get", Some(document));
    for (id, tool) in [(2, "deploy"), (3, "profile"), (4, "connect-account")] {
        gateway.call(id, tool, &json!({"n": id}));
        gateway.wait_for(usize::try_from(id).unwrap() - 1);
    }
    let (lists, one, acts) = ("/questions", "/questions/{id}", "/questions/{id}/answer");
    let first = contract.holds(
        lists,
        "get",
        gateway.api("GET", "/api/questions?most=1", ""),
    );
    assert!(first["next"].is_string());
    let all = contract.holds(lists, "get", gateway.api("GET", "/api/questions", ""));
    let ids: Vec<String> = all["questions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    for id in &ids {
        contract.holds(
            one,
            "get",
            gateway.api("GET", &format!("/api/questions/{id}"), ""),
        );
    }
    let hand_in = |id: &str, body: &Value| {
        gateway.api(
            "POST",
            &format!("/api/questions/{id}/answer"),
            &body.to_string(),
        )
    };
    let bad = json!({"action": "accept", "content": {"environment": "moon"}});
    let refused = contract.holds(acts, "post", hand_in(&ids[0], &bad));
    assert_eq!(refused["violations"][0]["field"], "environment");
    assert!(
        !refused.to_string().contains("moon"),
        "a value never comes back: {refused}"
    );
    // A value that the form does not ask for would be lost, so the answer is not taken.
    let strange =
        json!({"action": "accept", "content": {"environment": "staging", "nope": "moon"}});
    let refused = contract.holds(acts, "post", hand_in(&ids[0], &strange));
    assert_eq!(refused["violations"][0]["field"], "nope");
    assert!(!refused.to_string().contains("moon"), "{refused}");
    contract.holds(
        acts,
        "post",
        hand_in(&ids[0], &json!({"action": "perhaps"})),
    );
    contract.holds(
        acts,
        "post",
        hand_in("nobody", &json!({"action": "decline"})),
    );
    let good = json!({"action": "accept", "content": {"environment": "staging"}});
    // The answer cannot name its own author.
    let claimed =
        json!({"action": "accept", "content": {"environment": "staging"}, "by": "the boss"});
    contract.holds(acts, "post", hand_in(&ids[0], &claimed));
    contract.holds(acts, "post", hand_in(&ids[0], &good));
    gateway.result(2);
    contract.holds(acts, "post", hand_in(&ids[0], &good));
    contract.holds(
        acts,
        "post",
        hand_in(&ids[1], &json!({"action": "decline"})),
    );
    contract.holds(acts, "post", hand_in(&ids[2], &json!({"action": "accept"})));
    let huge = json!({"action": "accept", "content": {"x": "x".repeat(3_000_000)}});
    contract.holds(acts, "post", hand_in(&ids[1], &huge));
    let ended = contract.holds(
        lists,
        "get",
        gateway.api("GET", "/api/questions?ended=true", ""),
    );
    assert_eq!(ended["questions"].as_array().unwrap().len(), 3);
    for question in ended["questions"].as_array().unwrap() {
        assert_eq!(question["by"], "over the API");
        assert_eq!(question["onBehalfOf"], "the user of this computer");
        assert_eq!(question["client"], json!({"name": "raw", "version": "1"}));
    }
    contract.holds(
        one,
        "get",
        gateway.api("GET", &format!("/api/questions/{}", ids[0]), ""),
    );
    contract.holds(one, "get", gateway.api("GET", "/api/questions/nobody", ""));
    contract.holds(
        lists,
        "get",
        gateway.api("GET", "/api/questions?most=many", ""),
    );
    let none = gateway.api("GET", "/api/questions?most=0", "");
    let said = none.as_ref().map(|none| (none.status, none.body.clone()));
    contract.holds(lists, "get", none);
    let said = said.expect("an answer");
    assert!(
        said.0 == 400 && said.1.contains("from 1 to 1000"),
        "{said:?}"
    );

    let audit = gateway.api("GET", "/api/audit?from=2&most=1", "");
    let audit = contract.holds("/audit", "get", audit);
    assert_eq!(
        (&audit["links"][0]["number"], &audit["next"]),
        (&json!(2), &json!(3))
    );
    let wrong = gateway.api("GET", "/api/audit?most=0", "");
    contract.holds("/audit", "get", wrong);

    // Each endpoint: without a token, from a page of another site, and as it should be.
    let token = format!("Authorization: Bearer {}", gateway.token);
    for (path, method) in [
        (lists, "get"),
        (one, "get"),
        (acts, "post"),
        ("/events", "get"),
        ("/openapi.json", "get"),
        ("/audit", "get"),
    ] {
        let line = format!(
            "{} /api{} HTTP/1.1",
            method.to_uppercase(),
            path.replace("{id}", "nobody")
        );
        let at = &gateway.inbox;
        contract.holds(path, method, send(at, &[&line], ""));
        contract.holds(path, method, send(at, &[&line, &token, &token], ""));
        contract.holds(
            path,
            method,
            send(at, &[&line, &token, "Origin: http://evil.example"], ""),
        );
        contract.holds(
            path,
            method,
            send_as_is(at, &[&line, "Host: evil.example", &token], ""),
        );
    }

    // Every documented response was seen, except for a broken record and the stream of events.
    let mut documented = BTreeSet::new();
    for (path, methods) in contract.document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for status in operation["responses"].as_object().unwrap().keys() {
                documented.insert(format!("{method} {path} {status}"));
            }
        }
    }
    documented.retain(|place| !place.ends_with(" 500") && place != "get /events 200");
    assert_eq!(contract.seen, documented);
}

#[test]
fn what_is_not_there_says_so_in_the_same_words() {
    let state = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(state.path(), &[], &DEMO_SERVER);
    for (method, path, status) in [
        ("GET", "/api/nothing", 404),
        ("DELETE", "/api/questions", 405),
        ("GET", "/api/questions/x/answer", 405),
    ] {
        let reply = gateway.api(method, path, "").unwrap();
        assert_eq!(reply.status, status, "{method} {path}");
        assert!(
            reply.json()["error"]["code"].is_string(),
            "{method} {path}: {reply:?}"
        );
    }
}
