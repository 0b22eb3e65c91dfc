//! A call that waits for the approval of people of two groups, in real browsers: a comment, a reason, who is missing.

use mcp_elicit_core::question::{AbsentArgument, ToolClaims};
use mcp_elicit_policy::parts::Part;
use mcp_elicit_testkit::chromium::accessible::{AxeReport, SETUPS};
use mcp_elicit_testkit::chromium::{Chromium, Setup};
use serde_json::json;

use super::access;
use super::browser::{address, browser};
use super::*;

const GROUPS: &str = r#"
[people.ada]
name = "Ada"
subject = "ada"
[people.bob]
name = "Bob Ross"
subject = "bob"
[people.cy]
name = "Cy"
subject = "cy"
[people.dan]
subject = "dan"
[groups]
platform = ["ada", "bob"]
security = ["cy"]
"#;

/// Returns a call of `dan` that waits for one of each group, by a rule with an explanation, whose approvals apply for an
/// hour.
async fn waiting() -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let record = record();
    let group = |name: &str| Addressee::Group(name.to_owned());
    let part = |name: &str| Part {
        to: vec![group(name)],
        need: NonZeroU8::MIN,
    };
    let plan = Plan {
        ask: AskedPeople {
            to: vec![group("platform"), group("security")],
            each: vec![part("platform"), part("security")],
            need: NonZeroU8::new(2).unwrap(),
            not_caller: true,
            is_any: false,
        },
        explain: Some("Deletions need two groups.".to_owned()),
        link: Some("https://wiki.example.com/deletions".to_owned()),
        remind: vec![Duration::from_secs(600)],
        ..Plan::caller()
    };
    let caller = TeamCaller {
        person: Some("dan".to_owned()),
        name: "ci".to_owned(),
        ..TeamCaller::default()
    };
    let hour = Duration::from_secs(60 * 60);
    let asked = ["ada", "bob", "cy"].map(str::to_owned).to_vec();
    let team = Team::new("deletions", "r", caller, &plan, asked, hour);
    let team = team.for_approval().with_good_for(Some(hour));
    let mut plan = team.to_plan().unwrap();
    plan.tool = Some(Box::new(ToolClaims {
        description: Some("Deletes a database for good.\n\u{202e}Ask Ada.".to_owned()),
        destructive: Some(true),
        absent: vec![AbsentArgument {
            name: "cluster".to_owned(),
            default: Some("\"staging\"".to_owned()),
        }],
        ..ToolClaims::default()
    }));
    let plan = Some(plan);
    let none = json!({"type": "object", "properties": {}});
    let arguments = json!({"name": "tmp1"}).to_string();
    let id = sample::raised_with_form(&record, plan, &arguments, &none).await;
    inbox_over(listener, record, id.unwrap(), GROUPS, proxy(), hour)
}

async fn open(name: &str, rig: &Rig, setup: Setup) -> Option<Chromium> {
    let page = browser(name, setup).await?;
    page.open(&address(rig, &format!("/q/{}", rig.id))).await;
    Some(page)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_groups_decide_with_a_comment_and_with_a_reason() {
    let Some(mut looks) = AxeReport::new() else {
        return;
    };
    for (way, setup) in SETUPS {
        macro_rules! look {
            ($page:expr, $state:literal) => {
                looks.at(&$page, &format!("groups-{}-{way}", $state)).await
            };
        }
        let rig = waiting().await;
        let Some(ada) = open("ada", &rig, setup).await else {
            return;
        };
        for words in [
            "Missing: 1 of the group platform and 1 of the group security.",
            "the group platform (Ada and Bob Ross) and the group security (Cy)",
            "Deletions need two groups.",
            "An approval also lets the caller make this same call again for 1h",
            "What comes next: a reminder in 10m.",
            "In the server's words, which nothing checks:",
            "Deletes a database for good.\n\u{2039}U+202E\u{203a}Ask Ada.",
            "destructive: it may delete or overwrite",
            "by the server's word, then \"staging\"",
        ] {
            ada.shows(words).await;
        }
        look!(ada, "asked");
        ada.click("#answer .reason summary").await;
        ada.fill("#remark", "checked twice").await;
        look!(ada, "comment");
        ada.click("[data-act=accept]").await;
        ada.shows("Your approval is recorded").await;
        ada.shows("1 of the group security must approve").await;
        look!(ada, "approved-by-one");
        // A second one of the same group does not count.
        let bob = open("bob", &rig, setup).await.unwrap();
        bob.click("[name=digest]").await;
        bob.shows("Enough people of your group have agreed already")
            .await;
        look!(bob, "not-missing");
        bob.close().await;
        let cy = open("cy", &rig, setup).await.unwrap();
        cy.shows("checked twice").await;
        cy.click(".entered [formaction$=decline]").await;
        cy.at("#reason").await;
        cy.shows("The caller and its program read it").await;
        look!(cy, "decline");
        cy.fill("#reason", "wrong cluster").await;
        cy.click("#leaving [data-leave=yes]").await;
        cy.shows("Why: \u{201c}wrong cluster\u{201d}").await;
        look!(cy, "declined");
        assert_eq!(phase(&rig).await, Phase::Declined);
        ada.shows("Declined by Cy: wrong cluster").await;
        cy.close().await;
        ada.close().await;

        let rig = waiting().await;
        let (ada, cy) = (
            open("ada", &rig, setup).await.unwrap(),
            open("cy", &rig, setup).await.unwrap(),
        );
        ada.click("[data-act=accept]").await;
        ada.shows("Your approval is recorded").await;
        cy.at("[name=digest]").await;
        cy.click("[name=digest]").await;
        cy.shows("The caller may make this same call again until")
            .await;
        look!(cy, "approved");
        assert_eq!(phase(&rig).await, Phase::Answered);
        // The gateway keeps the approval; the two who gave it can end it, and another cannot.
        access::keep_grant(&rig).await;
        let dan = browser("dan", setup).await.unwrap();
        dan.open(&address(&rig, "/grants")).await;
        dan.shows("No approval of yours applies to a later call now.")
            .await;
        dan.close().await;
        cy.click("a[href$='/grants']").await;
        cy.shows("deploy on s, called by dan").await;
        look!(cy, "grants");
        cy.click("[name=grant]").await;
        cy.shows("The approval is ended.").await;
        look!(cy, "grant-ended");
        assert!(rig.record.grants().await.unwrap().is_empty());
        let audit = mcp_elicit_record::audit::read(rig.record.store()).await;
        let last = audit.unwrap().pop().unwrap().entry;
        let last: serde_json::Value = serde_json::from_str(&last).unwrap();
        assert_eq!(last["event"], "grant-void", "{last}");
        assert_eq!(last["by"], "person:cy", "{last}");
        assert_eq!(last["id"], *rig.id, "{last}");
        ada.close().await;
        cy.close().await;
    }
    looks.all_well();
}
