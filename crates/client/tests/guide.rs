//! The code of docs/client.md, compiled and where it can be run.

mod wire;

use std::error::Error;

use mcp_elicit_client::core::answer::Violations;
use mcp_elicit_client::responder::Callback;
use mcp_elicit_client::{ClientSettings, ElicitingClient, Question, QuestionQueue, Routing};
use mcp_elicit_core::wire::Revision;
use rmcp::service::Service;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Map, json};
use wire::{connected, form};

/// With your own rmcp client.
async fn own(transport: tokio::io::DuplexStream) -> Result<(), Box<dyn Error>> {
    let (my_handler, settings) = ((), ClientSettings::default());
    let service = ElicitingClient::new(my_handler, "my server", settings)
        .serve(transport)
        .await?;
    service.cancel().await?;
    Ok(())
}

/// A dialog of the host's own. Its person mistypes the first answer.
fn my_dialog(
    message: &str,
    violations: &Violations,
) -> impl Future<Output = &'static str> + Send + 'static {
    let region = match (message.is_empty(), violations.is_empty()) {
        (true, _) => "nowhere",
        (false, true) => "heer",
        (false, false) => "here",
    };
    std::future::ready(region)
}

#[tokio::test]
async fn a_closure_answers() {
    use mcp_elicit_client::answer::{accept, get_defaults};

    let responder = Callback::forms(async |question: Question| {
        let mut content = get_defaults(&question);
        let dialog = my_dialog(question.message(), question.violations());
        content.insert("region".into(), dialog.await.into());
        Ok(accept(&question, content.into())?)
    });
    let settings = ClientSettings::default().responder(responder);
    let (connection, mut server, _) = connected(Revision::V2025_11_25, settings).await;
    let options = mcp_elicit_client::CallOptions::default();
    let serving = async {
        let request = server.request("tools/call").await;
        let mut asks = form();
        asks["requestedSchema"]["properties"]["region"] =
            json!({"type": "string", "maxLength": 5, "pattern": "e$"});
        server.push("q", asks).await;
        let answer = server.response("q").await;
        server.result(&request["id"], json!({"content": []})).await;
        answer
    };
    let (_, answer) = tokio::join!(connection.call_tool("go", Map::new(), &options), serving);
    assert_eq!(
        answer["result"]["content"],
        json!({"place": "here", "region": "here"})
    );
}

#[test]
fn several_servers_have_responders_of_their_own() {
    use mcp_elicit_client::responder::{Defaults, Script};

    // The guide's global responder is a terminal, which a test has not.
    struct Terminal;
    impl Terminal {
        #[expect(clippy::unnecessary_wraps, reason = "as the terminal's own")]
        fn detect() -> Result<Script, Box<dyn Error>> {
            Ok(Script::decline())
        }
    }
    let hosts = || -> Result<_, Box<dyn Error>> {
        let routing = Routing::new()
            .everywhere(Terminal::detect()?)
            .server("ci", Defaults);
        let queue = QuestionQueue::new();
        let mut hosts = Vec::new();
        for name in ["ci", "deployer"] {
            let mut settings = ClientSettings::default().queue(queue.clone());
            if let Some(responder) = routing.responder(name) {
                settings = settings.responder(responder);
            }
            hosts.push(ElicitingClient::new((), name, settings));
        }
        Ok(hosts)
    };
    // What each declares says which responder it has: defaults cannot agree to a link, a script can.
    let link = |host: &ElicitingClient<()>| {
        let declared = Service::<RoleClient>::get_info(host)
            .capabilities
            .elicitation;
        declared.is_some_and(|modes| modes.url.is_some())
    };
    let hosts = hosts().unwrap();
    assert_eq!(hosts.iter().map(link).collect::<Vec<_>>(), [false, true]);
}

/// Code without what rustfmt and indenting make of it.
fn bare(code: &str) -> String {
    let bare: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    bare.replace(",}", "}").replace(",)", ")")
}

#[test]
fn the_guide_shows_this_very_code() {
    let _: &dyn std::any::Any = &own;
    let here = bare(include_str!("guide.rs"));
    let host = include_str!("../examples/host.rs");
    let prompt = include_str!("../examples/prompt.rs");
    let guide = include_str!("../../../docs/client.md");
    let blocks: Vec<_> = guide
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .map(|(block, _)| block)
        .collect();
    assert!(blocks.len() >= 4 && host.ends_with(blocks[0]));
    let is_prompt = |block: &&str| prompt.ends_with(*block);
    assert_eq!(blocks.iter().filter(|block| is_prompt(block)).count(), 1);
    for block in blocks[1..].iter().filter(|block| !is_prompt(block)) {
        // `use` lines stand once at the top of a file.
        let (uses, code): (Vec<_>, Vec<_>) =
            block.lines().partition(|line| line.starts_with("use "));
        assert!(here.contains(&bare(&code.join("\n"))), "{block}");
        for name in uses
            .iter()
            .flat_map(|line| line.split([':', '{', ',', '}', ';', ' ']))
        {
            assert!(here.contains(name), "{name}");
        }
    }
}
