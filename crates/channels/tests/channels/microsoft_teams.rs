//! Cards, rendered by the `adaptivecards` package in a browser.

use jiff::tz::TimeZone;
use mcp_elicit_channels::microsoft_teams;
use mcp_elicit_channels::{EndSummary, QuestionEvent, Recipient};
use mcp_elicit_policy::rules::Reveal;
use mcp_elicit_testkit::chromium::{Chromium, Setup};
use mcp_elicit_testkit::peers;
use serde_json::Value;

use crate::{notice, summary};

fn card(event: QuestionEvent, summary: mcp_elicit_channels::ChannelSummary) -> Value {
    let group = Recipient::Group("ops".to_owned());
    let notice = notice("n-1", group, event, Reveal::Arguments, summary);
    let message = microsoft_teams::message(&notice, &TimeZone::UTC);
    message["attachments"][0]["content"].clone()
}

#[tokio::test]
async fn cards_are_rendered_with_one_link_and_no_markup_of_the_servers() {
    let (Some(renderer), Some(page)) = (
        peers::adaptive_cards(),
        Chromium::start(Setup::default()).await,
    ) else {
        return;
    };
    let mut hostile = summary("{}");
    hostile.message = "[Approve](https://evil.example) **now**\n<b>x</b>".to_owned();
    let mut ended = summary("{}");
    ended.ending = Some(EndSummary {
        event: QuestionEvent::Declined,
        by: Some("ops-2".to_owned()),
        at: ended.asked_at,
        why: Vec::new(),
    });
    let cards = [
        card(QuestionEvent::Asked, hostile),
        card(QuestionEvent::Declined, ended),
    ];
    let cards = Value::from(cards.to_vec()).to_string();
    let html = format!(
        "<!doctype html><meta charset=utf-8><title>cards</title><body style='font-family:sans-serif;max-width:32em'><script>{renderer}</script><script>
        window.failures = [];
        for (const json of {cards}) {{
            const card = new AdaptiveCards.AdaptiveCard();
            const context = new AdaptiveCards.SerializationContext();
            card.parse(json, context);
            for (let i = 0; i < context.eventCount; i++) window.failures.push(context.getEventAt(i).message);
            const checked = card.validateProperties();
            for (const failure of checked.validationEvents) window.failures.push(failure.message);
            document.body.appendChild(card.render());
        }}
        </script>",
        renderer = renderer.replace("</script", "<\\/script"),
        cards = cards.replace("</", "<\\/"),
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cards.html");
    std::fs::write(&path, html).unwrap();
    page.open(&format!("file://{}", path.display())).await;
    page.shows("Declined by ops-2").await;
    assert_eq!(
        page.run("return window.failures").await,
        Value::Array(Vec::new())
    );
    // The server's text is shown literally.
    page.shows("[Approve](https://evil.example) **now**").await;
    page.shows("environment: production").await;
    assert_eq!(page.count("a[href*=evil], strong, b").await, 0);
    let buttons = page
        .run("return document.querySelectorAll('button, [role=button]').length")
        .await;
    assert_eq!(buttons, 2);
    if let Ok(pictures) = std::env::var("PICTURES") {
        page.picture(&std::path::Path::new(&pictures).join("teams.png"))
            .await;
    }
    page.close().await;
}
