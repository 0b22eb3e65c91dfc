//! Checks every state of every page with axe-core in light, dark and narrow.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use mcp_elicit_forms::view::{CallView, Origin, QuestionView};
use mcp_elicit_testkit::chromium::Chromium;
use mcp_elicit_testkit::chromium::accessible::{AxeReport, SETUPS};
use serde_json::json;

use crate::fixtures::{Asking, asks, every_kind, form, in_seconds, link, nothing, short};

/// A page in one of the set-ups.
struct Look {
    page: Chromium,
    looks: AxeReport,
    way: &'static str,
}

impl Look {
    /// Checks the page in its present state.
    async fn at(&mut self, state: &str) {
        let state = format!("{state}-{}", self.way);
        self.looks.at(&self.page, &state).await;
    }
}

fn yes_or_no() -> serde_json::Value {
    json!({"type": "object", "properties": {"confirm": {"type": "boolean", "title": "Yes, deploy to production"}}, "required": ["confirm"]})
}

fn arabic() -> QuestionView {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string", "title": "اسم الإصدار", "description": "يظهر في سجل التغييرات.", "minLength": 3},
        "environment": {"type": "string", "title": "البيئة", "oneOf": [
            {"const": "a", "title": "التطوير"}, {"const": "b", "title": "الإنتاج"}, {"const": "c", "title": "Staging (تجربة)"}, {"const": "d", "title": "أخرى"}]}
    }, "required": ["name"]});
    QuestionView::form(
        Origin::new("خادم النشر")
            .claiming("Deploy", "2.0")
            .connected("over stdio: npx deploy"),
        "إلى أي بيئة يجب أن أنشر **الإصدار 4812**؟\n\n- الأولى\n- الثانية (second)",
        form(&schema),
    )
    .for_call(CallView::tool("deploy").with(json!({"build": 4812, "اسم": "قيمة"})))
}

fn long() -> QuestionView {
    let word = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
        .repeat(3);
    let schema = json!({"type": "object", "properties": {
        "long": {"type": "string", "title": word, "description": "A long explanation. ".repeat(80), "pattern": "^[a-z]+(?:-[a-z]+)*$"},
        "pick": {"type": "string", "enum": [word, "short"]},
        "many": {"type": "array", "title": "Many", "minItems": 2, "maxItems": 5,
            "items": {"type": "string", "enum": (0..1000).map(|n| format!("option {n}")).collect::<Vec<_>>()}}
    }});
    let message = format!(
        "# A plan\n\n{}\n\n> said before\n\n1. first\n2. second\n\n```\nmake release --target={word}\n```\n\n{word}",
        "It goes on and on, with *stress* and `code`. ".repeat(60)
    );
    let arguments =
        json!({"a": word, "b": {"nested": [1, 2, 3]}, "c": 1, "d": null, "e": true, "f": "g"});
    QuestionView::form(
        Origin::new(word.clone()).connected(word.clone()),
        message,
        form(&schema),
    )
    .for_call(CallView::tool(word).with(arguments))
}

/// Returns all facts about the caller, with arguments that no other reader accepts.
fn known() -> QuestionView {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let sent = format!(
        r#"{{"script":"{}","force":true,"force":false,"big":1e999,"deep":{deep}}}"#,
        "echo harmless; ".repeat(60)
    );
    let schema = json!({"type": "object", "properties": {"amount": {"type": "number", "title": "Amount"}, "day": {"type": "string", "title": "Day", "format": "date"}}});
    QuestionView::form(
        Origin::unnamed("/home/ana/projects/tools/target/debug/runner --fast")
            .claiming("Runner", "2.0")
            .connected("through the gateway"),
        "Run it?",
        form(&schema),
    )
    .on_behalf_of("ana@example.org")
    .through("Claude Code", Some("2.1"))
    .for_call(CallView::tool("run").with_json(sent))
}

#[tokio::test]
async fn every_state_is_accessible() {
    for (way, setup) in SETUPS {
        let Some(looks) = AxeReport::new() else {
            return;
        };
        let Some(page) = Chromium::start(setup).await else {
            return;
        };
        let mut look = Look { page, looks, way };
        every_state(&mut look).await;
        look.looks.all_well();
        look.page.close().await;
    }
}

async fn every_state(look: &mut Look) {
    let mut asking = Asking::start().await;
    asking.offers = true;
    let host = crate::http::host(&asking.browser.login_link().unwrap());
    look.page.open(&format!("http://{host}/")).await;
    look.at("login").await;
    look.page.open(&asking.browser.login_link().unwrap()).await;
    look.at("queue-empty").await;
    look.page.open(&format!("http://{host}/q/nothing")).await;
    look.at("not-found").await;

    let who = asking.ask(known()).await;
    look.page.open(&who.link).await;
    look.at("known").await;
    look.page
        .run("document.querySelector('details.call').open = true")
        .await;
    look.page.shows("1e999").await;
    look.at("arguments").await;
    look.page.fill("#f0", "1.000").await;
    look.page
        .run("delete document.body.dataset.fresh; document.querySelector('[data-act=review]').click()")
        .await;
    look.page.at("dl.review .typed").await;
    look.at("review-typed").await;

    let every = asking.ask(asks("Where should I deploy **build 4812**?\n\nIt runs `make release`; see [the plan](https://plan.example).", &every_kind()).until(in_seconds(600))).await;
    look.page.open(&every.link).await;
    look.at("empty").await;
    look.page.click("[data-act=review]").await;
    look.page.at("#problems").await;
    look.at("error").await;
    look.page.fill("#f0", "Autumn release").await;
    look.page.fill("#f6", "3").await;
    look.page.click("[name=f8][value='0']").await;
    look.page.click("[name=f9][value='1']").await;
    look.page.fill("#f10-field .find", "17").await;
    look.page.click("[name=f10][value='16']").await;
    look.page.click("[name=f11][value='0']").await;
    look.page
        .until("return document.querySelectorAll('.errors li').length === 0")
        .await;
    look.at("filled").await;
    look.page.press("\u{e00c}").await;
    look.page.run("document.activeElement.blur(); window.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))").await;
    look.page.at("dialog[open]").await;
    look.at("sure").await;
    // By script from here on: screenshots move the element that the driver would click.
    look.page
        .run(
            "delete document.body.dataset.fresh; document.querySelector('[data-leave=no]').click()",
        )
        .await;
    look.page
        .run("location.assign(location.pathname + '?leave=decline')")
        .await;
    look.page.at("#leaving").await;
    look.at("leaving").await;
    look.page
        .run("delete document.body.dataset.fresh; document.querySelector('[data-act=review]').click()")
        .await;
    look.page.at("dl.review").await;
    look.at("review").await;

    let secret = json!({"type": "object", "properties": {"password": {"type": "string", "title": "Password", "description": "Your API token"}}, "required": ["password"]});
    let pairs = [
        (
            "confirm",
            asks("Delete the preview of branch `old-login`?", &nothing()),
        ),
        (
            "yes-no",
            asks(
                "Deploy build 4812 to production?\n\nIt takes about four minutes.",
                &yes_or_no(),
            ),
        ),
        ("secret", asks("Enter your password", &secret)),
        ("rtl", arabic()),
        ("long", long()),
        (
            "visit",
            link(
                "https://accounts.calendar.example:8443/oauth/authorize?client_id=7f3a&scope=calendar.read",
            ),
        ),
        (
            "visit-warned",
            link("http://xn--pypal-4ve.com@192.168.0.1:81/login"),
        ),
    ];
    let mut waiting = vec![every];
    for (state, question) in pairs {
        let asked = asking.ask(question).await;
        look.page.open(&asked.link).await;
        look.at(state).await;
        look.page
            .run("delete document.body.dataset.fresh; for (const part of document.querySelectorAll('.always, .neither, details.call')) part.open = true; document.querySelector('#whole')?.click()")
            .await;
        look.at(&format!("{state}-for-good")).await;
        waiting.push(asked);
    }
    look.page.open(&asking.browser.login_link().unwrap()).await;
    look.at("queue").await;

    for (state, act) in [
        ("declined", "decline"),
        ("cancelled", "cancel"),
        ("answered", "accept"),
    ] {
        let asked = asking.ask(asks("Sure?", &nothing())).await;
        look.page.open(&asked.link).await;
        look.page.click(&format!("[data-act={act}]")).await;
        look.page.at(".notice").await;
        look.at(state).await;
    }
    let mut asked = asking.ask(asks("Sure?", &short())).await;
    look.page.open(&asked.link).await;
    asked.withdraw("the call was cancelled");
    look.page.shows("Withdrawn").await;
    look.at("withdrawn").await;
    let asked = asking
        .ask(asks("Sure?", &short()).until(in_seconds(1)))
        .await;
    let link = asked.link.clone();
    assert!(asked.outcome().await.is_err());
    look.page.open(&link).await;
    look.at("expired").await;
    look.page.open(&asking.browser.login_link().unwrap()).await;
    look.at("queue-recent").await;
    assert!(waiting.iter().all(crate::fixtures::Asked::is_waiting));
}
