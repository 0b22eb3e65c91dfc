//! Real clients on other SDKs call `mcp-elicit demo-server`: on stdio and Streamable HTTP, on both eras, with accept,
//! decline, cancel and an answer that the form rejects.

use mcp_elicit_testkit::peers::{self, Listening, PeerProgram};
use serde_json::{Value, json};

const PUSHED: &str = "2025-11-25";
const ROUNDS: &str = "2026-07-28";

/// The demo server, over stdio or at its URL.
enum Demo {
    Stdio,
    Http(Listening),
}

impl Demo {
    fn http() -> Self {
        let port = peers::free_port();
        let server = binary().with(["demo-server", "--http", &format!("127.0.0.1:{port}")]);
        Self::Http(server.listen_on(port, format!("http://127.0.0.1:{port}/mcp")))
    }

    /// Returns the report of this scripted client about one call.
    fn called_by(&self, client: &PeerProgram, script: &[&str]) -> Value {
        let client = client.clone().with(script.iter().copied());
        let client = match self {
            Self::Stdio => client
                .with(["--"])
                .with(binary().with(["demo-server"]).argv().iter().cloned()),
            Self::Http(listening) => client.with(["--url", listening.url()]),
        };
        client.run().last_json_line()
    }
}

fn binary() -> PeerProgram {
    PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit"))
}

fn text(told: &Value) -> &str {
    told["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {told}"))
}

/// Gives every answer to `deploy`, with this client on this revision.
fn every_answer(demo: &Demo, client: &PeerProgram, revision: &str, spoken: &str) {
    let play = |script: &[&str]| {
        let mut all = vec!["--revision", revision];
        all.extend(script);
        demo.called_by(client, &all)
    };

    let accepted = play(&[
        "--tool",
        "deploy",
        "--content",
        r#"{"environment":"staging"}"#,
    ]);
    assert_eq!(accepted["protocol"], spoken);
    assert_eq!(accepted["asked"][0]["mode"], "form");
    let environment = &accepted["asked"][0]["schema"]["properties"]["environment"];
    assert_eq!(environment["type"], "string", "{accepted}");
    assert!(text(&accepted).contains("staging"), "{accepted}");
    assert_ne!(accepted["result"]["isError"], true, "{accepted}");
    assert_eq!(
        accepted["asked"].as_array().map(Vec::len),
        Some(1),
        "staging needs no confirmation"
    );

    let declined = play(&["--tool", "deploy", "--answer", "decline"]);
    assert!(text(&declined).contains("declined"), "{declined}");
    let cancelled = play(&["--tool", "deploy", "--answer", "cancel"]);
    assert!(text(&cancelled).contains("dismissed"), "{cancelled}");
    assert!(!text(&cancelled).contains("decline"), "{cancelled}");

    let wrong = play(&["--tool", "deploy", "--answer", "wrong"]);
    let asked = wrong["asked"].as_array().map_or(0, Vec::len);
    assert!(asked > 1, "a wrong answer is asked again: {wrong}");
    let again = wrong["asked"][1]["message"].as_str().unwrap_or_default();
    assert!(
        again.to_lowercase().contains("environment"),
        "and says which field: {again}"
    );
    assert!(
        !again.contains("the moon"),
        "but does not repeat the person's value: {again}"
    );
    let refused = wrong["error"].is_object() || wrong["result"]["isError"] == true;
    assert!(refused, "a wrong answer was taken: {wrong}");

    let incapable = play(&["--tool", "deploy", "--no-capability"]);
    assert_eq!(incapable["asked"], json!([]));
    let refused = incapable["error"].is_object() || incapable["result"]["isError"] == true;
    assert!(refused, "nobody could be asked: {incapable}");
}

/// The questions of the demo server that are not a single form.
fn every_shape(demo: &Demo, client: &PeerProgram) {
    let production =
        r#"[{"action":"accept","content":{"environment":"production"}},{"action":"decline"}]"#;
    let production = demo.called_by(client, &["--tool", "deploy", "--answers", production]);
    assert_eq!(
        production["asked"].as_array().map(Vec::len),
        Some(2),
        "{production}"
    );
    assert!(text(&production).contains("declined"), "{production}");

    let visit = demo.called_by(
        client,
        &["--tool", "connect-account", "--answer", "decline"],
    );
    assert_eq!(visit["asked"][0]["mode"], "url", "{visit}");
    assert!(text(&visit).contains("declined"), "{visit}");
}

#[test]
fn typescript_1_client() {
    let Some(client) = peers::node_script("ts1-client.mjs") else {
        return;
    };
    let over_http = Demo::http();
    every_answer(&over_http, &client, "pushed", PUSHED);
    every_shape(&over_http, &client);
    every_shape(&Demo::Stdio, &client);
}

#[test]
fn typescript_2_client() {
    let Some(client) = peers::node_script("ts2-client.mjs") else {
        return;
    };
    for demo in [Demo::Stdio, Demo::http()] {
        every_answer(&demo, &client, "auto", ROUNDS);
        every_answer(&demo, &client, "pushed", PUSHED);
        every_shape(&demo, &client);
    }
}

#[test]
fn python_mcp_client() {
    let Some(client) = peers::python_script("mcp_client.py") else {
        return;
    };
    for demo in [Demo::Stdio, Demo::http()] {
        every_answer(&demo, &client, "auto", ROUNDS);
        every_answer(&demo, &client, "pushed", PUSHED);
        every_shape(&demo, &client);
    }
}

#[test]
fn fastmcp_client() {
    let Some(client) = peers::python_script("fastmcp_client.py") else {
        return;
    };
    for demo in [Demo::Stdio, Demo::http()] {
        every_answer(&demo, &client, "auto", ROUNDS);
        every_answer(&demo, &client, "pushed", PUSHED);
    }
}
