//! A person at a browser: its keys, its set-up, and the way to a question.

use mcp_elicit_testkit::chromium::{Chromium, Setup};

use crate::fixtures::{Asked, Asking};

pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";
pub(crate) const END: &str = "\u{e010}";
pub(crate) const UP: &str = "\u{e013}";
pub(crate) const DOWN: &str = "\u{e015}";
pub(crate) const CONTROL: &str = "\u{e009}";
pub(crate) const RELEASE: &str = "\u{e000}";

pub(crate) const SCRIPTED: Setup = Setup {
    without_script: false,
    dark: false,
    narrow: false,
};
pub(crate) const PLAIN: Setup = Setup {
    without_script: true,
    ..SCRIPTED
};

/// Reviews and sends, by mouse.
pub(crate) async fn send(page: &Chromium) {
    page.click("[data-act=review]").await;
    page.at("dl.review").await;
    page.click("[data-act=accept]").await;
}

/// Opens a browser at a question; `None` if there is no browser.
pub(crate) async fn at_question(
    setup: Setup,
    question: mcp_elicit_forms::view::QuestionView,
) -> Option<(Chromium, Asking, Asked)> {
    let chromium = Chromium::start(setup).await?;
    let mut asking = Asking::start().await;
    let asked = asking.ask(question).await;
    chromium.open(&asked.link).await;
    assert!(
        chromium.path().await.ends_with(asked.path()),
        "the key has left the address"
    );
    Some((chromium, asking, asked))
}
