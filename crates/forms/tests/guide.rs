//! The code of `docs/terminal.md` and `docs/web.md`, word for word: it compiles.

#![allow(clippy::print_stderr, reason = "the guides tell the reader an address")]

use std::error::Error;
use std::io;
use std::time::SystemTime;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_forms::terminal::{Frontend, QuestionHandle};
use mcp_elicit_forms::view::{CallView, Origin, PendingView, QuestionView};
use mcp_elicit_forms::web::{
    BrowserFrontend, ConnectionBounds, QuestionStore, Site, router, serve,
};

type Failure = Box<dyn Error + Send + Sync>;

#[expect(
    clippy::unnecessary_wraps,
    reason = "one that opens something may fail"
)]
fn open_in_browser(_address: &str) -> io::Result<()> {
    Ok(())
}

#[expect(dead_code, reason = "it compiles, and there is nobody here to answer")]
async fn terminal(
    message: &str,
    form: Form,
    arguments: serde_json::Value,
    deadline: SystemTime,
    another: QuestionView,
) -> Result<Outcome, Failure> {
    let frontend = std::sync::Arc::new(Frontend::detect()?.opening(open_in_browser));

    let origin = Origin::new("files")
        .claiming("files", "1.2.0")
        .connected("over stdio");
    let question = QuestionView::form(origin, message, form)
        .for_call(CallView::tool("add_note").with(arguments))
        .until(deadline)
        .with_pending(vec![PendingView::from_question(&another)]);

    let handle = QuestionHandle::new(); // handle.withdraw("the call ended") takes it off the screen
    let asking = {
        let (frontend, handle) = (frontend.clone(), handle.clone());
        move || frontend.ask_with(&question, &handle)
    };
    let outcome = tokio::task::spawn_blocking(asking).await??;
    Ok(outcome)
}

#[expect(dead_code, reason = "it compiles, and there is nobody here to answer")]
async fn browser(question: QuestionView) -> Result<Outcome, Failure> {
    let browser = BrowserFrontend::start()
        .await?
        .announcing(|link| eprintln!("answer at {link}"));
    let outcome = browser.ask(question, std::future::pending()).await?;
    Ok(outcome)
}

#[expect(dead_code, reason = "it compiles, and there is nobody here to answer")]
async fn inbox(store: impl QuestionStore + 'static) -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:7878").await?;
    let site = Site::loopback(listener.local_addr()?)?.under("/inbox");
    eprintln!("sign in at {}", site.login_link()?);
    let app = axum::Router::new().merge(router(std::sync::Arc::new(store), site));
    serve(
        listener,
        app,
        ConnectionBounds::default(),
        std::future::pending(),
    )
    .await;
    Ok(())
}

/// Returns code without the effects of rustfmt and indentation, and without comments.
fn bare(code: &str) -> String {
    let lines = code
        .lines()
        .map(|line| line.split(" //").next().unwrap_or(line));
    let bare: String = lines
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .collect();
    bare.replace(",}", "}").replace(",)", ")")
}

#[test]
fn the_guides_show_this_very_code() {
    let here = bare(include_str!("guide.rs"));
    let guides = [
        include_str!("../../../docs/terminal.md"),
        include_str!("../../../docs/web.md"),
    ];
    for guide in guides {
        let blocks = guide.split("```rust\n").skip(1);
        let blocks: Vec<_> = blocks
            .filter_map(|rest| Some(rest.split_once("```")?.0))
            .collect();
        assert!(!blocks.is_empty());
        for block in blocks {
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
}
