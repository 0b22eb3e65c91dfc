//! `mcp-elicit call` answers questions of real servers on other SDKs: on stdio and Streamable HTTP, on both eras, with
//! accept, decline, cancel and an answer that the form rejects.

use std::io::Write as _;

use mcp_elicit_testkit::peers::{self, Finished, Listening, PeerProgram};
use serde_json::{Value, json};

const PUSHED: &str = "2025-11-25";
const ROUNDS: &str = "2026-07-28";

const CONTACT: [&str; 6] = [
    "--answer",
    "name=Ada Lovelace",
    "--answer",
    "email=ada@example.com",
    "--answer",
    "age=36",
];

/// A server to call, over stdio or at its URL.
enum Server {
    Stdio(PeerProgram),
    Http(Listening),
}

impl Server {
    /// Runs `mcp-elicit call TOOL ARGS... --json` against it.
    fn call(&self, tool: &str, args: &[&str]) -> Called {
        let call =
            PeerProgram::new(env!("CARGO_BIN_EXE_mcp-elicit")).with(["call", tool, "--json"]);
        let call = call.with(args.iter().copied());
        Called(match self {
            Self::Stdio(program) => call.with(["--"]).with(program.argv().iter().cloned()).run(),
            Self::Http(listening) => call.with(["--url", listening.url()]).run(),
        })
    }

    fn transport(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
        }
    }
}

/// The output of one call.
struct Called(Finished);

impl Called {
    fn event(&self, name: &str) -> Option<Value> {
        self.0
            .lines()
            .into_iter()
            .find(|line| line["event"] == name)
    }

    fn expect_event(&self, name: &str) -> Value {
        self.event(name)
            .unwrap_or_else(|| panic!("no {name} in\n{}\n{}", self.0.stdout, self.0.stderr))
    }

    /// Returns the text of the tool's result, which the test servers write as JSON.
    fn text(&self) -> Value {
        let result = self.expect_event("result");
        let text = result["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default();
        serde_json::from_str(text).unwrap_or_else(|_| json!(text))
    }

    fn exit(&self) -> Option<i32> {
        self.0.status.code()
    }
}

/// Gives every answer to the contact form, on one revision.
fn every_answer(server: &Server, asked_for: &str, spoken: &str) {
    let call = |tool: &str, args: &[&str]| {
        let mut all = vec!["--protocol", asked_for];
        all.extend(args);
        server.call(tool, &all)
    };

    let accepted = call("contact", &CONTACT);
    let connected = accepted.expect_event("connected");
    assert_eq!(connected["protocol"], spoken);
    assert_eq!(connected["transport"], server.transport());
    let asked = accepted.expect_event("asked");
    assert_eq!(asked["mode"], "form");
    assert_eq!(asked["message"], peers::questions()["contact"]["message"]);
    assert_eq!(asked["schema"]["properties"]["email"]["format"], "email");
    let content = json!({"name": "Ada Lovelace", "email": "ada@example.com", "age": 36});
    let answered = accepted.expect_event("answered");
    assert_eq!(answered["action"], "accept");
    assert_eq!(
        accepted.text(),
        json!({"action": "accept", "content": content})
    );
    assert_eq!(accepted.exit(), Some(0));

    for action in ["decline", "cancel"] {
        let refused = call("contact", &[&format!("--{action}")]);
        assert_eq!(refused.expect_event("answered")["action"], action);
        assert_eq!(refused.text(), json!({"action": action}));
        assert_eq!(
            refused.exit(),
            Some(0),
            "{action}: a refusal is an answer, no failure"
        );
    }

    let wrong = call(
        "contact",
        &["--answer", "name=Ada", "--answer", "email=nope"],
    );
    assert_ne!(wrong.exit(), Some(0));
    assert!(
        wrong.0.stderr.contains("email") || wrong.0.stdout.contains("email"),
        "which field?"
    );
    assert!(
        wrong.event("answered").is_none(),
        "a refused answer was sent:\n{}",
        wrong.0.stdout
    );
    // On the pushed era, the server is told that its question failed, and may end its call in its own way.
    if let Some(result) = wrong.event("result") {
        assert_eq!(
            result["result"]["isError"], true,
            "a refused answer was sent:
{result}"
        );
    }

    let every_kind = call(
        "every-kind",
        &["--accept-defaults", "--answer", "email=ada@example.com"],
    );
    let content = json!({
        "nickname": "ada", "email": "ada@example.com", "height": 1.75, "guests": 2, "newsletter": false,
        "color": "green", "size": "m", "toppings": ["cheese"],
    });
    assert_eq!(
        every_kind.text(),
        json!({"action": "accept", "content": content})
    );
}

/// A visit that the server requires before the call (`-32042`, 2025-11-25): accepted and made, then the call is
/// repeated.
fn a_required_visit(server: &Server) {
    let script = script(&json!([{"action": "accept"}]));
    let path = script.path().to_str().expect("the path is UTF-8");
    let called = server.call("require-visit", &["--protocol", PUSHED, "--answers", path]);
    assert_eq!(
        called.expect_event("asked")["url"],
        peers::questions()["visit"]["url"]
    );
    assert_eq!(called.text(), json!({"visited": true}));
    assert_eq!(called.exit(), Some(0));
}

/// A file of prepared answers.
fn script(answers: &Value) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(answers.to_string().as_bytes())
        .expect("it can be written");
    file
}

/// Asks in every other way: a link to visit, two questions in sequence or at once, and no question.
fn every_shape(server: &Server, protocol: &str) {
    let call = |tool: &str, answers: Value| {
        let file = script(&answers);
        let path = file.path().to_str().expect("the path is UTF-8");
        server.call(tool, &["--protocol", protocol, "--answers", path])
    };
    let contact =
        json!({"action": "accept", "content": {"name": "Ada", "email": "ada@example.com"}});
    let seat = json!({"action": "accept", "content": {"seat": "aisle"}});

    let visited = call("visit", json!([{"action": "accept"}]));
    assert_eq!(
        visited.expect_event("asked")["url"],
        peers::questions()["visit"]["url"]
    );
    assert_eq!(visited.text(), json!({"action": "accept"}));
    assert_eq!(
        call("visit", json!([{"action": "decline"}])).text(),
        json!({"action": "decline"})
    );

    for tool in ["two-steps", "both"] {
        let answered = call(tool, json!([contact, seat]));
        assert_eq!(answered.text(), json!([contact, seat]), "{tool}");
    }

    let nothing = server.call("echo", &["--protocol", protocol, "text=hello"]);
    assert_eq!(nothing.text(), json!({"echo": "hello"}));
    assert!(nothing.event("asked").is_none());
}

fn stdio(program: Option<&PeerProgram>) -> Option<Server> {
    program.cloned().map(Server::Stdio)
}

fn http(program: Option<&PeerProgram>) -> Option<Server> {
    program.map(|program| Server::Http(program.listen()))
}

#[test]
fn typescript_1_stdio() {
    let Some(server) = stdio(peers::node_script("ts1-server.mjs").as_ref()) else {
        return;
    };
    every_answer(&server, "auto", PUSHED);
    every_shape(&server, "auto");
    a_required_visit(&server);
}

#[test]
fn typescript_1_http() {
    let Some(server) = http(peers::node_script("ts1-server.mjs").as_ref()) else {
        return;
    };
    every_answer(&server, "auto", PUSHED);
    every_shape(&server, "auto");
    a_required_visit(&server);
}

#[test]
fn typescript_2_stdio() {
    let Some(server) = stdio(peers::node_script("ts2-server.mjs").as_ref()) else {
        return;
    };
    every_answer(&server, ROUNDS, ROUNDS);
    every_answer(&server, "auto", PUSHED);
    every_shape(&server, ROUNDS);
    every_shape(&server, PUSHED);
    a_required_visit(&server);
}

#[test]
fn typescript_2_http() {
    let Some(server) = http(peers::node_script("ts2-server.mjs").as_ref()) else {
        return;
    };
    every_answer(&server, ROUNDS, ROUNDS);
    every_answer(&server, "auto", PUSHED);
    every_shape(&server, ROUNDS);
    every_shape(&server, PUSHED);
    a_required_visit(&server);
}

#[test]
fn python_mcp_stdio() {
    let Some(server) = stdio(peers::python_script("mcp_server.py").as_ref()) else {
        return;
    };
    every_answer(&server, ROUNDS, ROUNDS);
    every_shape(&server, ROUNDS);
    every_answer(&server, "auto", PUSHED);
    every_shape(&server, PUSHED);
}

#[test]
fn python_mcp_http() {
    let Some(server) = http(peers::python_script("mcp_server.py").as_ref()) else {
        return;
    };
    every_answer(&server, ROUNDS, ROUNDS);
    every_answer(&server, "auto", PUSHED);
    every_shape(&server, PUSHED);
    every_shape(&server, ROUNDS);
}

#[test]
fn fastmcp_stdio() {
    let Some(server) = stdio(peers::python_script("fastmcp_server.py").as_ref()) else {
        return;
    };
    every_answer(&server, "auto", PUSHED);
    every_answer(&server, ROUNDS, ROUNDS);
    every_shape(&server, ROUNDS);
    every_shape(&server, PUSHED);
}

#[test]
fn fastmcp_http() {
    let Some(server) = http(peers::python_script("fastmcp_server.py").as_ref()) else {
        return;
    };
    every_answer(&server, ROUNDS, ROUNDS);
    every_answer(&server, "auto", PUSHED);
    every_shape(&server, ROUNDS);
    every_shape(&server, PUSHED);
}

/// The official reference server: its form with thirteen fields, and its link.
fn everything(server: &Server) {
    let form = "trigger-elicitation-request";
    let accepted = server.call(
        form,
        &["--accept-defaults", "--answer", "name=Ada Lovelace"],
    );
    assert_eq!(accepted.expect_event("connected")["protocol"], PUSHED);
    let result = accepted.expect_event("result")["result"].to_string();
    assert!(result.contains("- Name: Ada Lovelace"), "{result}");
    assert!(result.contains("- Favorite Integer: 42"), "{result}");
    assert_eq!(accepted.exit(), Some(0));

    let declined = server
        .call(form, &["--decline"])
        .expect_event("result")
        .to_string();
    assert!(declined.contains("User declined"), "{declined}");
    let cancelled = server
        .call(form, &["--cancel"])
        .expect_event("result")
        .to_string();
    assert!(cancelled.contains("User cancelled"), "{cancelled}");
    let wrong = server.call(form, &["--answer", "name=Ada", "--answer", "integer=101"]);
    assert_ne!(wrong.exit(), Some(0));
    assert!(wrong.0.stderr.contains("integer") || wrong.0.stdout.contains("integer"));
    assert!(wrong.event("answered").is_none());

    // As a task that asks during its work (2025-11-25).
    let research = [
        "topic=python",
        "ambiguous=true",
        "--task",
        "--answer",
        "interpretation=snake",
    ];
    let researched = server.call("simulate-research-query", &research);
    let asked = researched.expect_event("asked");
    let message = asked["message"].as_str().unwrap_or_default();
    assert!(message.contains("multiple interpretations"), "{asked}");
    assert_eq!(researched.expect_event("answered")["action"], "accept");
    let result = researched.expect_event("result").to_string();
    assert!(result.contains("python (snake)"), "{result}");
    assert_eq!(researched.exit(), Some(0));

    // A visit that it requires first (-32042), and the link after it.
    let agrees = script(&json!([{"action": "accept"}, {"action": "accept"}]));
    let agrees = agrees.path().to_str().expect("the path is UTF-8");
    let link = [
        "url=https://example.com/connect",
        "errorPath=true",
        "--answers",
        agrees,
    ];
    let visits = server.call("trigger-url-elicitation", &link);
    let urls: Vec<_> = visits
        .0
        .lines()
        .into_iter()
        .filter(|line| line["event"] == "asked")
        .map(|line| line["url"].clone())
        .collect();
    assert_eq!(
        urls,
        [
            "https://modelcontextprotocol.io",
            "https://example.com/connect"
        ]
    );
    let result = visits.expect_event("result").to_string();
    assert!(
        result.contains("User completed the URL elicitation"),
        "{result}"
    );

    let link = ["url=https://example.com/connect", "--decline"];
    let visit = server.call("trigger-url-elicitation", &link);
    assert_eq!(
        visit.expect_event("asked")["url"],
        "https://example.com/connect"
    );
    let result = visit.expect_event("result").to_string();
    assert!(result.contains("User declined to open the URL"), "{result}");
}

#[test]
fn server_everything_stdio() {
    let Some(program) = peers::everything() else {
        return;
    };
    everything(&Server::Stdio(program.with(["stdio"])));
}

#[test]
fn server_everything_http() {
    let Some(program) = peers::everything() else {
        return;
    };
    let port = peers::free_port();
    let program = program
        .with(["streamableHttp"])
        .env("PORT", port.to_string());
    everything(&Server::Http(
        program.listen_on(port, format!("http://127.0.0.1:{port}/mcp")),
    ));
}
