//! The real peers understand each other, so that a failure elsewhere is this project's.

use mcp_elicit_testkit::peers::mcpdo::{InspectorEra, Mcpdo};
use mcp_elicit_testkit::peers::{self, Finished, PeerProgram, conformance};
use serde_json::{Value, json};

const CONTACT: &str = r#"{"name":"Ada Lovelace","email":"ada@example.com","age":36}"#;

/// Returns the answer that the server reports.
fn got(finished: &Finished) -> Value {
    let told = finished.last_json_line();
    let text = told["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no result in {told}"));
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// Accept, decline, cancel and a wrong answer, from this client (on this revision) to this server.
fn four_answers(client: &PeerProgram, revision: &str, server: &PeerProgram) {
    let play = |answer: &[&str]| {
        let client = client
            .clone()
            .with(["--revision", revision])
            .with(answer.iter().copied());
        client
            .with(["--"])
            .with(server.argv().iter().cloned())
            .run()
    };
    let accepted = play(&["--content", CONTACT]);
    let content: Value = serde_json::from_str(CONTACT).expect("CONTACT is JSON");
    assert_eq!(
        got(&accepted),
        json!({"action": "accept", "content": content})
    );
    assert_eq!(
        accepted.last_json_line()["asked"][0]["message"],
        peers::questions()["contact"]["message"]
    );
    assert_eq!(
        got(&play(&["--answer", "decline"])),
        json!({"action": "decline"})
    );
    assert_eq!(
        got(&play(&["--answer", "cancel"])),
        json!({"action": "cancel"})
    );
    let wrong = play(&["--answer", "wrong"]).last_json_line();
    let refused = wrong["error"].is_object() || wrong["result"]["isError"] == true;
    assert!(refused, "the server took a wrong answer: {wrong}");
}

#[test]
fn typescript_1_on_both_sides() {
    let Some(client) = peers::node_script("ts1-client.mjs") else {
        return;
    };
    let Some(server) = peers::node_script("ts1-server.mjs") else {
        return;
    };
    four_answers(&client, "pushed", &server);
}

#[test]
fn typescript_2_on_both_sides() {
    let Some(client) = peers::node_script("ts2-client.mjs") else {
        return;
    };
    let Some(server) = peers::node_script("ts2-server.mjs") else {
        return;
    };
    four_answers(&client, "auto", &server);
    four_answers(&client, "pushed", &server);
}

#[test]
fn python_on_both_sides() {
    let Some(client) = peers::python_script("mcp_client.py") else {
        return;
    };
    let Some(server) = peers::python_script("mcp_server.py") else {
        return;
    };
    four_answers(&client, "auto", &server);
}

#[test]
fn fastmcp_on_both_sides_over_http() {
    let Some(client) = peers::python_script("fastmcp_client.py") else {
        return;
    };
    let Some(server) = peers::python_script("fastmcp_server.py") else {
        return;
    };
    let server = server.listen();
    for revision in ["auto", "pushed"] {
        let client = client
            .clone()
            .with(["--revision", revision, "--url", server.url()]);
        let accepted = client.with(["--content", CONTACT]).run();
        assert_eq!(
            got(&accepted)["content"]["name"],
            "Ada Lovelace",
            "{}",
            accepted.stderr
        );
    }
}

#[test]
fn a_client_without_the_capability_is_not_asked() {
    let Some(client) = peers::node_script("ts2-client.mjs") else {
        return;
    };
    let Some(server) = peers::node_script("ts2-server.mjs") else {
        return;
    };
    let client = client
        .with(["--no-capability", "--"])
        .with(server.argv().iter().cloned());
    let told = client.run().last_json_line();
    assert_eq!(told["asked"], json!([]));
    assert_eq!(told["error"]["code"], -32021, "{told}");
}

#[test]
fn mcpdo_sends_what_the_form_does_not_allow() {
    let Some(server) = peers::node_script("ts2-server.mjs") else {
        return;
    };
    let server = server.listen();
    for era in [InspectorEra::Modern, InspectorEra::Legacy] {
        let Some(mcpdo) = Mcpdo::connect(server.url(), era) else {
            return;
        };
        let asked = mcpdo.call("contact", &[]);
        assert_eq!(asked["elicitationPending"]["mode"], "form", "{asked}");
        let told = mcpdo.respond(&asked, &["name:=7"]);
        assert_eq!(told["isError"], true, "{told}");
    }
}

#[test]
fn the_conformance_suite_gives_verdicts() {
    let Some(server) = peers::node_script("ts2-server.mjs") else {
        return;
    };
    let server = server.listen();
    let verdict = |scenario| conformance::of_server(server.url(), scenario, "2026-07-28");
    // The peer lists tools correctly, and has none of the tools that the suite requires for elicitation.
    let Some(good) = verdict("tools-list") else {
        return;
    };
    assert!(good.is_good(), "{good}");
    let Some(bad) = verdict("input-required-result-basic-elicitation") else {
        return;
    };
    assert!(!bad.is_good(), "{bad}");
    assert!(bad.to_string().contains("not found"), "{bad}");
}
