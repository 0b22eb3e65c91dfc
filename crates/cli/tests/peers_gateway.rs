//! Real clients and servers on other SDKs, with the gateway between them: each era on each side, clients that can be
//! asked and clients that cannot, every way to ask, stdio and HTTP. The inbox is answered through its API.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod gateway_chain;

use gateway_chain::{Client, Gateway, PROGRAM, Told, contact, on_stdio, seat};
use mcp_elicit_testkit::peers::mcpdo::{InspectorEra, Mcpdo};
use mcp_elicit_testkit::peers::{self, PeerProgram};
use serde_json::{Value, json};

/// Returns every client that can run here, by name.
fn clients() -> Vec<(String, Client)> {
    let scripts = [
        ("ts1-client.mjs", &["auto"][..]),
        ("ts2-client.mjs", &["auto", "pushed"]),
        ("mcp_client.py", &["auto", "pushed"]),
        ("fastmcp_client.py", &["auto", "pushed"]),
    ];
    let mut found = Vec::new();
    for (script, revisions) in scripts {
        for revision in revisions {
            if let Some(program) = script_of(script) {
                found.push((
                    format!("{script} {revision}"),
                    Client::Script { program, revision },
                ));
            }
        }
    }
    found.extend(ours());
    found
}

/// Returns the clients that start fast enough to be started often: only one of Python's.
fn quick_clients() -> impl Iterator<Item = (String, Client)> {
    clients()
        .into_iter()
        .filter(|(name, _)| !name.contains(".py") || name == "mcp_client.py auto")
}

/// Returns `mcp-elicit call` on every revision: the client that starts fastest.
fn ours() -> impl Iterator<Item = (String, Client)> {
    ["2025-06-18", "2025-11-25", "2026-07-28"]
        .into_iter()
        .map(|protocol| (format!("rmcp {protocol}"), Client::Ours { protocol }))
}

fn script_of(name: &str) -> Option<PeerProgram> {
    if name.contains("_client.py") {
        peers::python_script(name)
    } else {
        peers::node_script(name)
    }
}

/// Returns TypeScript 2 as a server that speaks only the rounds era.
fn rounds_only() -> Option<PeerProgram> {
    Some(peers::node_script("ts2-server.mjs")?.with(["--rounds-only"]))
}

fn is(told: &Told, asked: usize, text: &Value, place: &str) {
    assert_eq!(
        (told.asked, &told.text),
        (asked, text),
        "{place}: {}",
        told.all
    );
}

/// Runs every client before one server over HTTP: with the capability the client is asked, without it the inbox.
fn every_client(server: &PeerProgram, clients: impl IntoIterator<Item = (String, Client)>) {
    let server = server.listen();
    let upstream = ["--upstream".to_owned(), server.url().to_owned()];
    let gateway = Gateway::listen(&upstream);
    for (name, client) in clients {
        let told = client.play(&gateway.target(), "contact", &[contact()]);
        is(&told, 1, &contact(), &name);
        assert_eq!(
            gateway.person.answered(),
            [""; 0],
            "{name}: the client can be asked"
        );
    }
    for (name, client) in quick_clients() {
        if matches!(client, Client::Script { .. }) {
            let told = client.play(&gateway.target(), "contact", &[]);
            is(&told, 0, &contact(), &format!("{name}, not capable"));
            assert_eq!(
                gateway.person.answered().len(),
                1,
                "{name}: the inbox is asked"
            );
        }
    }
}

/// Asks in every way, with clients of both eras that can and cannot be asked.
fn every_shape(server: &PeerProgram) {
    let server = server.listen();
    let upstream = ["--upstream".to_owned(), server.url().to_owned()];
    let gateway = Gateway::listen(&upstream);
    let visited = json!({"action": "accept"});
    let shapes = [
        ("visit", vec![visited.clone()], visited.clone()),
        (
            "two-steps",
            vec![contact(), seat()],
            json!([contact(), seat()]),
        ),
        ("both", vec![contact(), seat()], json!([contact(), seat()])),
    ];
    for (tool, answers, text) in &shapes {
        for (name, client) in ours().skip(1) {
            let told = client.play(&gateway.target(), tool, answers);
            is(&told, answers.len(), text, &format!("{name} {tool}"));
            assert_eq!(gateway.person.answered(), [""; 0], "{name} {tool}");
        }
        for revision in ["auto", "pushed"] {
            let Some(program) = peers::node_script("ts2-client.mjs") else {
                return;
            };
            let client = Client::Script { program, revision };
            let told = client.play(&gateway.target(), tool, &[]);
            is(&told, 0, text, &format!("{revision} {tool}, not capable"));
            assert_eq!(
                gateway.person.answered().len(),
                answers.len(),
                "{revision} {tool}"
            );
        }
    }
}

#[test]
fn typescript_1_server() {
    let Some(server) = peers::node_script("ts1-server.mjs") else {
        return;
    };
    every_client(&server, clients());
    every_shape(&server);
}

#[test]
fn typescript_2_server() {
    let Some(server) = peers::node_script("ts2-server.mjs") else {
        return;
    };
    every_client(&server, quick_clients());
    every_shape(&server);
}

#[test]
fn typescript_2_server_of_the_rounds_era_only() {
    let Some(server) = rounds_only() else { return };
    every_client(&server, clients());
    every_shape(&server);
}

#[test]
fn python_mcp_server() {
    let Some(server) = peers::python_script("mcp_server.py") else {
        return;
    };
    every_client(&server, quick_clients());
    every_shape(&server);
}

#[test]
fn fastmcp_server() {
    let Some(server) = peers::python_script("fastmcp_server.py") else {
        return;
    };
    every_client(&server, quick_clients());
    every_shape(&server);
}

/// The command line of a server behind the gateway.
fn command(program: &PeerProgram) -> Vec<String> {
    let mut command = vec!["--".to_owned()];
    command.extend(program.argv().iter().cloned());
    command
}

/// A client starts the gateway, which starts the server: all processes communicate through pipes.
fn over_pipes(server: &PeerProgram, clients: impl IntoIterator<Item = (String, Client)>) {
    for (name, client) in clients {
        let (target, person) = on_stdio(&command(server));
        let told = client.play(&target, "contact", &[contact()]);
        is(&told, 1, &contact(), &name);
        assert_eq!(
            person.answered(),
            [""; 0],
            "{name}: the client can be asked"
        );
        if matches!(client, Client::Script { .. }) {
            let (target, person) = on_stdio(&command(server));
            let told = client.play(&target, "contact", &[]);
            is(&told, 0, &contact(), &format!("{name}, not capable"));
            assert_eq!(person.answered().len(), 1, "{name}: the inbox is asked");
        }
    }
}

#[test]
fn pipes_to_a_pushed_server() {
    let Some(server) = peers::node_script("ts1-server.mjs") else {
        return;
    };
    over_pipes(&server, quick_clients());
}

#[test]
fn pipes_to_a_rounds_server() {
    let Some(server) = rounds_only() else { return };
    over_pipes(&server, quick_clients());
}

#[test]
fn pipes_to_python_servers() {
    for script in ["mcp_server.py", "fastmcp_server.py"] {
        let Some(server) = peers::python_script(script) else {
            return;
        };
        over_pipes(&server, ours().skip(1));
    }
}

/// Servers that speak both eras and ask only in a session, as most of their SDKs' users write them: nothing is done
/// unasked, whatever the client speaks.
fn asks_only_in_a_session(script: &str) {
    let Some(server) = peers::python_script(script) else {
        return;
    };
    every_client(&server, quick_clients());
    over_pipes(&server, ours());
    // Directly, too.
    let client = Client::Ours { protocol: "auto" };
    let told = client.play(&command(&server), "contact", &[contact()]);
    is(&told, 1, &contact(), "directly");
}

#[test]
fn fastmcp_server_that_asks_only_in_a_session() {
    asks_only_in_a_session("fastmcp_elicit_server.py");
}

#[test]
fn python_mcp_server_that_asks_only_in_a_session() {
    asks_only_in_a_session("mcp_elicit_server.py");
}

/// A server of both eras whose question is written by hand for 2026-07-28: its session is left for it.
#[test]
fn fastmcp_server_that_asks_only_in_rounds() {
    let Some(server) = peers::python_script("fastmcp_rounds_server.py") else {
        return;
    };
    over_pipes(&server, ours());
    let listening = server.listen();
    let gateway = Gateway::listen(&["--upstream".to_owned(), listening.url().to_owned()]);
    for (name, client) in ours().chain([("auto".to_owned(), Client::Ours { protocol: "auto" })]) {
        let told = client.play(&gateway.target(), "contact", &[contact()]);
        is(&told, 1, &contact(), &name);
    }
    let client = Client::Ours { protocol: "auto" };
    let told = client.play(&command(&server), "contact", &[contact()]);
    is(&told, 1, &contact(), "directly");
}

/// A client on stdio, a server over HTTP; and the other way round.
#[test]
fn pipes_on_one_side_only() {
    let servers = [peers::node_script("ts1-server.mjs"), rounds_only()];
    for server in servers.into_iter().flatten() {
        let listening = server.listen();
        let gateway = Gateway::listen(&command(&server));
        for (name, client) in quick_clients().filter(|(name, _)| name.contains("auto")) {
            let upstream = ["--upstream".to_owned(), listening.url().to_owned()];
            let (target, _person) = on_stdio(&upstream);
            let told = client.play(&target, "contact", &[contact()]);
            is(&told, 1, &contact(), &format!("{name}, stdio to HTTP"));
            let told = client.play(&gateway.target(), "contact", &[contact()]);
            is(&told, 1, &contact(), &format!("{name}, HTTP to stdio"));
        }
    }
}

/// `-32042` of a pushed server, with clients that can visit and clients that cannot.
#[test]
fn a_required_visit() {
    let Some(server) = peers::node_script("ts1-server.mjs") else {
        return;
    };
    let visited = json!({"visited": true});
    // This server ends if it sends a link to a client of 2025-06-18, which has no url mode.
    for (name, client) in ours().skip(1) {
        let (target, person) = on_stdio(&command(&server));
        let told = client.play(&target, "require-visit", &[json!({"action": "accept"})]);
        is(&told, 1, &visited, &name);
        assert_eq!(person.answered(), [""; 0], "{name}");
    }
    for revision in ["auto", "pushed"] {
        let Some(program) = peers::node_script("ts2-client.mjs") else {
            return;
        };
        let (target, person) = on_stdio(&command(&server));
        let told = Client::Script { program, revision }.play(&target, "require-visit", &[]);
        is(&told, 0, &visited, &format!("{revision}, not capable"));
        assert_eq!(person.answered().len(), 1, "{revision}");
    }
}

/// A server on rmcp, which is `demo-server`.
/// A framework that continues by repeating its call from the first round, each time as another process of the agent
/// would: it is asked once for each question of a pushed server.
#[test]
fn langchain_interrupts() {
    let (Some(server), Some(program)) = (
        peers::node_script("ts1-server.mjs"),
        peers::python_script("langchain_client.py"),
    ) else {
        return;
    };
    let server = server.listen();
    let gateway = Gateway::listen(&["--upstream".to_owned(), server.url().to_owned()]);
    let client = Client::Script {
        program,
        revision: "auto",
    };
    for (tool, answers, text) in [
        ("contact", vec![contact()], contact()),
        (
            "two-steps",
            vec![contact(), seat()],
            json!([contact(), seat()]),
        ),
    ] {
        let told = client.play(&gateway.target(), tool, &answers);
        is(&told, answers.len(), &text, tool);
        assert_eq!(gateway.person.answered(), [""; 0], "{tool}");
    }
}

#[test]
fn rmcp_server() {
    let server = PeerProgram::new(PROGRAM).with(["demo-server"]);
    let gateway = Gateway::listen(&command(&server));
    let answer = json!({"action": "accept", "content": {"environment": "staging"}});
    for (name, client) in clients() {
        let told = client.play(&gateway.target(), "deploy", std::slice::from_ref(&answer));
        assert_eq!(told.asked, 1, "{name}: {}", told.all);
        assert!(
            told.text.to_string().contains("staging"),
            "{name}: {}",
            told.all
        );
        if matches!(client, Client::Script { .. }) {
            let told = client.play(&gateway.target(), "deploy", &[]);
            assert!(
                told.text.to_string().contains("staging"),
                "{name}: {}",
                told.all
            );
            assert_eq!(gateway.person.answered().len(), 1, "{name}");
        }
    }
}

/// The official reference server behind the gateway, asked by clients of both eras and by the inbox.
#[test]
fn server_everything() {
    let Some(server) = peers::everything() else {
        return;
    };
    let server = server.with(["stdio"]);
    let answer = json!({"action": "accept", "content": {"name": "Ada Lovelace"}});
    let tool = "trigger-elicitation-request";
    let is_ada = |told: &Told| told.all.contains("Name: Ada Lovelace");
    for (name, client) in ours() {
        let (target, person) = on_stdio(&command(&server));
        let told = client.play(&target, tool, std::slice::from_ref(&answer));
        // Its form has a choice of several, which 2025-06-18 cannot express: the inbox shows it.
        let asked = usize::from(!name.contains("2025-06-18"));
        assert!(told.asked == asked && is_ada(&told), "{name}: {}", told.all);
        assert_eq!(person.answered().len(), 1 - asked, "{name}");
    }
    for revision in ["auto", "pushed"] {
        let Some(program) = peers::node_script("ts2-client.mjs") else {
            return;
        };
        let (target, person) = on_stdio(&command(&server));
        let told = Client::Script { program, revision }.play(&target, tool, &[]);
        assert!(told.asked == 0 && is_ada(&told), "{revision}: {}", told.all);
        assert_eq!(person.answered().len(), 1, "{revision}");
    }
}

/// Inspector's command-line client does not check its answers: the gateway does, before the server gets them. It asks
/// again with the reason, three times in all.
#[test]
fn a_client_that_does_not_check() {
    let servers = [peers::node_script("ts1-server.mjs"), rounds_only()];
    for server in servers.into_iter().flatten() {
        let server = server.listen();
        let gateway = Gateway::listen(&["--upstream".to_owned(), server.url().to_owned()]);
        for era in [InspectorEra::Modern, InspectorEra::Legacy] {
            let Some(mcpdo) = Mcpdo::connect(&gateway.url, era) else {
                return;
            };
            let wrong = ["name:=7"];
            let asked = mcpdo.call("contact", &[]);
            assert_eq!(asked["elicitationPending"]["mode"], "form", "{asked}");
            let again = mcpdo.respond(&asked, &wrong);
            assert_eq!(
                again["elicitationPending"]["mode"], "form",
                "{era:?}: {again}"
            );
            let right = ["name:=Ada Lovelace", "email:=ada@example.com", "age:=36"];
            let told = mcpdo.respond(&again, &right);
            assert!(
                told.to_string().contains("ada@example.com"),
                "{era:?}: {told}"
            );

            // The same unusable answer twice is nobody's: the person at the inbox answers.
            let asked = mcpdo.call("contact", &[]);
            let again = mcpdo.respond(&asked, &wrong);
            assert_eq!(
                again["elicitationPending"]["mode"], "form",
                "{era:?}: {again}"
            );
            let told = mcpdo.respond(&again, &wrong);
            assert!(
                told.to_string().contains("ada@example.com"),
                "{era:?}: {told}"
            );
        }
    }
}
