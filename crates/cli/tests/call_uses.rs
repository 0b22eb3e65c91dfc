//! `call` as a client for everything that a server offers, with headers, an environment and modes of a person's choice;
//! and its messages if something is wrong.

mod sandbox;

use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, PromptArgument,
    PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, Role, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

const ME: &str = env!("CARGO_BIN_EXE_mcp-elicit");

/// A server with two tools on two pages, a prompt and a resource.
#[derive(Clone)]
struct Shelf;

fn tool(name: &'static str) -> Tool {
    let schema = json!({"type": "object", "required": ["text"], "properties": {
        "text": {"type": "string", "description": "what to say"}, "loud": {"type": "boolean"}}});
    let schema = schema.as_object().expect("an object").clone();
    Tool::new(name, "Says it", Arc::new(schema))
}

impl ServerHandler for Shelf {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_prompts()
                .enable_resources()
                .build(),
        )
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let second = page.is_some_and(|page| page.cursor.is_some());
        let tools = vec![tool(if second { "shout" } else { "say" })];
        let mut listed = ListToolsResult::with_all_items(tools);
        listed.next_cursor = (!second).then(|| "2".to_owned());
        Ok(listed)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = call.arguments.as_ref().and_then(|all| all.get("text"));
        match (&*call.name, text.and_then(Value::as_str)) {
            ("say", Some(text)) => {
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
            }
            ("say", None) => Err(ErrorData::invalid_params("text is missing", None)),
            ("shout", _) => Err(ErrorData::invalid_params(
                "Client does not support url elicitation",
                None,
            )),
            _ => Err(ErrorData::invalid_params("tool not found", None)),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let city = PromptArgument::new("city").with_required(true);
        let plan = Prompt::new("plan", Some("Plan a trip"), Some(vec![city]));
        Ok(ListPromptsResult::with_all_items(vec![plan]))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = asked.arguments.unwrap_or_default();
        let text = format!("Plan {}", arguments["city"]);
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let notes = Resource::new("file:///notes.txt", "notes");
        Ok(ListResourcesResult::with_all_items(vec![notes]))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = ResourceContents::text("buy milk\u{1b}[31m", asked.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// The server over HTTP, and the values of the header `x-key` that it received.
struct Served {
    url: String,
    keys: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

fn serve() -> Served {
    let service = StreamableHttpService::new(
        || Ok(Shelf),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    serve_router(
        axum::Router::new()
            .nest_service("/mcp", service.clone())
            .nest_service("/%E3%83%91%E3%82%B9", service),
    )
}

fn serve_router(router: axum::Router) -> Served {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&keys);
    let note = move |request: Request, next: Next| {
        let key = request.headers().get("x-key");
        let key = key.map_or("none", |key| key.to_str().expect("text"));
        heard.lock().expect("a lock").push(key.to_owned());
        next.run(request)
    };
    let app = router.layer(from_fn(note));
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .expect("a port");
    let at = listener.local_addr().expect("an address");
    runtime.spawn(async move { axum::serve(listener, app).await });
    Served {
        url: format!("http://{at}/mcp"),
        keys,
        _runtime: runtime,
    }
}

fn call(args: &[&str]) -> sandbox::Run {
    sandbox::run(&[&["call"], args].concat(), b"")
}

#[test]
fn tools_prompts_and_resources_are_listed_page_by_page() {
    let served = serve();
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let run = call(&["--list", "--url", &served.url, "--protocol", revision]);
        assert_eq!(run.code, Some(0), "{revision}: {}", run.stderr);
        for line in [
            "tools",
            "  say  Says it",
            "      text (string, required): what to say",
            "      loud (boolean)",
            "  shout  Says it",
            "  plan  Plan a trip",
            "      city (required)",
            "  file:///notes.txt  notes",
        ] {
            assert!(
                run.stdout.lines().any(|known| known == line),
                "{line}: {}",
                run.stdout
            );
        }
    }
    let run = call(&["--list", "--json", "--url", &served.url]);
    let events: Vec<_> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event per line"))
        .collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].clone()).collect();
    assert_eq!(
        names,
        [
            "connected",
            "tool",
            "tool",
            "prompt",
            "resource",
            "revisions"
        ]
    );
    assert_eq!(events[5]["asked"], json!([]), "{}", events[5]);
    assert_eq!(
        events[1]["tool"]["inputSchema"]["required"],
        json!(["text"])
    );
}

#[test]
fn a_prompt_is_got_and_a_resource_read() {
    let served = serve();
    let prompt = call(&["--prompt", "plan", "city=7", "--url", &served.url]);
    assert_eq!(prompt.code, Some(0), "{}", prompt.stderr);
    assert_eq!(prompt.stdout, "Plan \"7\"\n", "its arguments are texts");
    assert!(prompt.stderr.contains("user:"), "{}", prompt.stderr);
    let resource = call(&["--resource", "file:///notes.txt", "--url", &served.url]);
    assert_eq!(resource.code, Some(0), "{}", resource.stderr);
    assert!(
        resource.stdout.starts_with("buy milk"),
        "{}",
        resource.stdout
    );
    assert!(!resource.stdout.contains('\u{1b}'), "{}", resource.stdout);
    let json = call(&[
        "--resource",
        "file:///notes.txt",
        "--json",
        "--url",
        &served.url,
    ]);
    let last = json.stdout.lines().last().expect("an event");
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(last["result"]["contents"][0]["uri"], "file:///notes.txt");
    for wrong in [
        &["--prompt", "plan", "{\"city\": 7}"][..],
        &["--prompt", "plan", "--resource", "x:y"],
        &["--list", "say"],
        &[],
    ] {
        let run = call(&[wrong, &["--url", &served.url]].concat());
        assert_eq!(run.code, Some(2), "{wrong:?}: {}", run.stderr);
    }
}

#[test]
fn headers_go_with_every_request_and_their_values_are_not_told() {
    let served = serve();
    let to = ["say", "text=hello", "--url", &served.url];
    let run = call(&[&to[..], &["--header", "X-Key=hunter2"]].concat());
    assert_eq!(run.stdout, "hello\n", "{}", run.stderr);
    let heard = std::mem::take(&mut *served.keys.lock().expect("a lock"));
    assert!(
        heard.len() >= 2 && heard.iter().all(|key| key == "hunter2"),
        "{heard:?}"
    );
    // `house` runs with an environment that contains only COLUMNS.
    let run = call(&[&to[..], &["--header-env", "X-Key=COLUMNS"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let heard = std::mem::take(&mut *served.keys.lock().expect("a lock"));
    assert!(heard.iter().all(|key| key == "100"), "{heard:?}");
    for wrong in [
        ["--header-env", "X-Key=NOT_SET"],
        ["--header", "Content-Type=hunter2"],
        ["--header", "two words=hunter2"],
        ["--header", "X-Key=hunter2\n"],
    ] {
        let run = call(&[&to[..], &wrong].concat());
        assert_eq!(run.code, Some(2), "{wrong:?}: {}", run.stderr);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
    assert!(served.keys.lock().expect("a lock").is_empty());
}

#[test]
fn an_address_in_its_own_letters_is_spoken_to() {
    let served = serve();
    let url = served.url.replace("/mcp", "/パス");
    for revision in ["2025-11-25", "2026-07-28"] {
        let run = call(&["say", "text=hello", "--url", &url, "--protocol", revision]);
        assert_eq!(
            (run.code, &*run.stdout),
            (Some(0), "hello\n"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_redirect_is_not_followed_and_takes_no_header_along() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    other.set_nonblocking(true).expect("a listener");
    let to = other.local_addr().expect("an address");
    let redirecting = axum::Router::new().fallback(async move || {
        let location = [("location", format!("http://{to}/stolen"))];
        (StatusCode::TEMPORARY_REDIRECT, location)
    });
    let served = serve_router(redirecting);
    let run = call(&[
        "say",
        "text=hello",
        "--url",
        &served.url,
        "--header",
        "X-K=TOPSECRET",
    ]);
    assert_ne!(run.code, Some(0));
    assert!(run.stderr.contains("redirects"), "{}", run.stderr);
    assert!(run.stderr.contains(&to.to_string()), "{}", run.stderr);
    assert!(!run.stderr.contains("TOPSECRET"), "{}", run.stderr);
    let came = other.accept().map(|_| ());
    let kind = came.expect_err("the other server is not spoken to").kind();
    assert_eq!(kind, std::io::ErrorKind::WouldBlock);
}

#[cfg(unix)]
#[test]
fn a_server_that_is_started_gets_the_environment_named() {
    let run = call(&[
        "--list",
        "--env",
        "GREETING=moin",
        "--",
        "/bin/sh",
        "-c",
        "echo \"$GREETING\" >&2; exit 3",
    ]);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(run.stderr.contains("moin"), "{}", run.stderr);
}

#[test]
fn a_client_may_declare_less_than_it_can() {
    let deploy = |options: &[&str], revision: &str| {
        let args = [
            &["deploy", "--protocol", revision],
            options,
            &["--", ME, "demo-server"],
        ];
        call(&args.concat())
    };
    let accepted = ["--answer", "environment=staging"];
    for revision in ["2025-11-25", "2026-07-28"] {
        let off = deploy(&["--elicit", "off"], revision);
        assert_eq!(off.code, Some(1), "{}", off.stderr);
        assert!(
            off.stderr.contains("leave out `--elicit off`"),
            "{}",
            off.stderr
        );
        let url = deploy(&["--decline", "--elicit", "url"], revision);
        assert_eq!(url.code, Some(1), "{}", url.stderr);
        assert!(!url.stderr.contains("answered"), "{}", url.stderr);
        let form = deploy(&[&["--elicit", "form"], &accepted[..]].concat(), revision);
        assert_eq!(form.code, Some(0), "{}", form.stderr);
    }
    let neither = deploy(&[&["--elicit", "url"], &accepted[..]].concat(), "auto");
    assert_eq!(neither.code, Some(2), "{}", neither.stderr);
}

#[test]
fn a_tool_that_is_not_there_or_called_wrongly_is_explained() {
    let served = serve();
    let unknown = call(&["sya", "--decline", "--url", &served.url]);
    assert_eq!(unknown.code, Some(1));
    for line in [
        "  there is no tool `sya`; the server has:",
        "    say",
        "    shout",
    ] {
        assert!(
            unknown.stderr.lines().any(|known| known == line),
            "{}",
            unknown.stderr
        );
    }
    let wrong = call(&["say", "--decline", "--url", &served.url]);
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong
            .stderr
            .contains("text (string, required): what to say"),
        "{}",
        wrong.stderr
    );
    // A mode that was left out has a next step.
    let undeclared = call(&["shout", "--answer", "a=b", "--url", &served.url]);
    assert!(
        undeclared.stderr.contains("with `--answers FILE`"),
        "{}",
        undeclared.stderr
    );
}

#[test]
fn what_a_form_asks_for_is_named_where_no_answer_is_left() {
    let run = call(&["deploy", "--answer", "colour=red", "--", ME, "demo-server"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    let line = "    environment: required; staging, production";
    assert!(
        run.stderr.lines().any(|known| known.trim_end() == line),
        "{}",
        run.stderr
    );
}

#[test]
fn a_value_that_is_sent_in_another_spelling_is_told() {
    let run = call(&[
        "deploy",
        "--answer",
        "environment=Staging",
        "--",
        ME,
        "demo-server",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr
            .contains("environment: Staging is sent as staging"),
        "{}",
        run.stderr
    );
}

#[cfg(unix)]
#[test]
fn why_nothing_came_is_said_once() {
    let nobody = call(&["go", "--decline", "--url", "http://127.0.0.1:9/mcp"]);
    assert_eq!(nobody.code, Some(3));
    let lines: Vec<_> = nobody.stderr.lines().collect();
    assert_eq!(lines[0], "error: nothing listens at http://127.0.0.1:9/mcp");
    assert_eq!(lines.len(), 2, "{}", nobody.stderr);

    let prints = "echo Usage: my-server DIRECTORY; exit 2";
    let talks = call(&["go", "--decline", "--", "/bin/sh", "-c", prints]);
    assert_eq!(talks.code, Some(3));
    assert!(
        talks.stderr.contains("    Usage: my-server DIRECTORY"),
        "{}",
        talks.stderr
    );
}

#[test]
fn the_server_hears_that_nobody_answered_and_not_that_nobody_could() {
    let files = sandbox::Files::new(&[]);
    let log = files.path("heard");
    let script = format!("tee '{log}' | '{ME}' demo-server");
    let server = ["--protocol", "2025-11-25", "--", "/bin/sh", "-c", &script];
    for (options, code, why) in [
        (&["deploy"][..], 4, "the input ended first"),
        (
            &["deploy", "--answer", "environment=mars"],
            2,
            "did not fit the form",
        ),
        (
            &["deploy", "--answer", "other=mars"],
            4,
            "no prepared answer was left",
        ),
    ] {
        let run = call(&[options, &server].concat());
        assert_eq!(run.code, Some(code), "{}", run.stderr);
        let heard = std::fs::read_to_string(&log).expect("the server heard something");
        let error = heard
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|message| message["error"].is_object())
            .expect("an error");
        assert_eq!(error["error"]["code"], -32000, "{error}");
        let reason = error["error"]["data"]["reason"].as_str().expect("a reason");
        assert!(reason.contains(why), "{error}");
        assert!(!heard.contains("mars"));
        for word in ["Internal error", "unavailable", "responder"] {
            assert!(!run.stderr.contains(word), "{}", run.stderr);
        }
    }
}

#[test]
fn a_password_in_a_url_goes_to_the_server_and_is_in_no_output() {
    let guarded = StreamableHttpService::new(
        || Ok(Shelf),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let guard = async |request: Request, next: Next| {
        let shown = request.headers().get("authorization");
        // `ana:hunter2`, as RFC 7617 writes it.
        if shown.is_some_and(|shown| shown == "Basic YW5hOmh1bnRlcjI=") {
            Ok(next.run(request).await)
        } else {
            Err(StatusCode::UNAUTHORIZED)
        }
    };
    let router = axum::Router::new().nest_service("/mcp", guarded);
    let served = serve_router(router.layer(from_fn(guard)));
    let with_password = served.url.replace("http://", "http://ana:hunter2@");
    let wrong = served.url.replace("http://", "http://bob:hunter2@");
    let run = |args: &[&str], code: i32| {
        let run = sandbox::run(args, b"");
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
        for output in [&run.stdout, &run.stderr] {
            assert!(!output.contains("hunter2"), "{args:?}: {output}");
        }
    };
    run(&["call", "say", "text=hi", "--url", &with_password], 0);
    run(&["call", "--list", "--json", "--url", &with_password], 0);
    run(&["call", "sya", "--url", &with_password], 1);
    run(&["call", "say", "--url", &wrong], 3);
    for (address, code) in [
        ("http://ana:hunter2@127.0.0.1:9/mcp", 3),
        ("http://ana:hunter2@127.0.0.1:none/mcp", 2),
        ("ana:hunter2@127.0.0.1/mcp", 2),
        ("ftp://ana:hunter2@127.0.0.1/mcp", 2),
    ] {
        run(&["call", "--list", "--url", address], code);
        run(&["call", "--list", "--json", "--url", address], code);
    }
    run(&["call", "--list", "--sign-in", "--url", &with_password], 2);
    for address in [
        "ftp://ana:hunter2@host/",
        "http://ana:hunter2@host:none/",
        "ana:hunter2@host",
    ] {
        run(&["gateway", "--check", "--upstream", address], 2);
    }
    let file = |url: &str| format!("[servers.a]\nurl = \"{url}\"\n");
    let files = sandbox::Files::new(&[("one.toml", file("ftp://ana:hunter2@host/").as_bytes())]);
    run(
        &["gateway", "--check", "--config", &files.path("one.toml")],
        2,
    );
}

/// A server that refuses to list some of what it declares.
#[derive(Clone)]
struct Refusing {
    tools: bool,
}

impl ServerHandler for Refusing {
    fn get_info(&self) -> ServerConfig {
        Shelf.get_info()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.tools {
            return Ok(ListToolsResult::with_all_items(vec![tool("say")]));
        }
        Err(ErrorData::internal_error("no tools today", None))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::internal_error("out of\u{1b}[31m order", None))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::invalid_params("not for you", None))
    }
}

#[test]
fn a_list_that_is_refused_hides_none_of_the_others() {
    let serving = |tools| {
        let service = StreamableHttpService::new(
            move || Ok(Refusing { tools }),
            LocalSessionManager::default().into(),
            StreamableHttpServerConfig::default(),
        );
        serve_router(axum::Router::new().nest_service("/mcp", service))
    };
    let served = serving(true);
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let run = call(&["--list", "--url", &served.url, "--protocol", revision]);
        assert_eq!(run.code, Some(0), "{revision}: {}", run.stderr);
        assert!(run.stdout.contains("  say  Says it"), "{}", run.stdout);
        let refused = |line: &&str| line.contains("warning: not listed: ");
        let lines: Vec<_> = run.stderr.lines().filter(refused).collect();
        assert_eq!(lines.len(), 2, "{}", run.stderr);
        assert!(lines[0].contains("prompts/list failed: "), "{}", lines[0]);
        assert!(
            lines[0].contains("out of") && !lines[0].contains('\u{1b}'),
            "{}",
            lines[0]
        );
        assert!(lines[1].contains("resources/list failed: "), "{}", lines[1]);
    }
    let run = call(&["--list", "--json", "--url", &served.url]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let last = run.stdout.lines().rev().nth(1).expect("an event");
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(
        (&last["event"], &last["method"]),
        (&json!("refused"), &json!("resources/list"))
    );

    // Where nothing is left to show, that is an error.
    let run = call(&["--list", "--url", &serving(false).url]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("no tools today"), "{}", run.stderr);
}

#[test]
fn a_name_that_stands_twice_is_refused_before_anything_is_sent() {
    let served = serve();
    let answers = br#"[{"action":"accept","content":{"a":1,"a":2}}]"#;
    let files = sandbox::Files::new(&[("twice.json", answers)]);
    for wrong in [
        &["say", r#"{"text":"a","text":"b"}"#][..],
        &["say", r#"{"text":"a","\u0074ext":"b"}"#],
        &["say", "text=a", "text=b"],
        &["say", r#"text={"a":1,"a":2}"#],
        &["--prompt", "plan", "city=Bern", "city=Basel"],
        &["say", "text=a", "--answers", &files.path("twice.json")],
    ] {
        let run = call(&[wrong, &["--url", &served.url]].concat());
        assert_eq!(run.code, Some(2), "{wrong:?}: {}", run.stderr);
        assert!(run.stderr.contains("twice"), "{wrong:?}: {}", run.stderr);
    }
    assert!(served.keys.lock().expect("a lock").is_empty());
}
