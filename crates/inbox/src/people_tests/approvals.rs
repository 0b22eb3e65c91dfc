//! The pages of calls that wait for approval, and their texts for people who act on one together.

use mcp_elicit_policy::rules::Plan;
use serde_json::{Value, json};

use super::*;

/// Returns a call with these arguments that waits for the approval of two people, who may change the arguments of this
/// form.
async fn approval(plan: &Plan, arguments: &Value, form: &Value) -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let record = record();
    let caller = TeamCaller {
        person: Some("cy".to_owned()),
        ..TeamCaller::default()
    };
    let hour = Duration::from_secs(60 * 60);
    let asked = ["ada", "bob"].map(str::to_owned).to_vec();
    let team = Team::new("deploys", "r", caller, plan, asked, hour).for_approval();
    let plan = Some(team.to_plan().unwrap());
    let id = sample::raised_with_form(&record, plan, &arguments.to_string(), form).await;
    inbox_over(listener, record, id.unwrap(), FILE, proxy(), hour)
}

/// Returns a call that waits for the approval of two people, who may change three of its arguments.
pub(super) async fn editable() -> Rig {
    let form = json!({"type": "object", "required": ["to", "count"], "properties": {
        "to": {"type": "string", "minLength": 1, "default": "moon"},
        "count": {"type": "integer", "default": 3},
        "/keep": {"type": "boolean", "title": "Keep it", "default": false}}});
    let arguments = json!({"to": "moon", "count": 3, "keep": false, "note": "two\nlines"});
    approval(&plan(2), &arguments, &form).await
}

/// Sends the form with these fields through the review.
async fn approve(person: &Person<'_>, fields: &str) -> Reply {
    let reviewed = person.press("review", fields).await;
    assert_eq!(
        reviewed.header("location"),
        Some(person.question("/review").as_str())
    );
    let review = person.get(&person.question("/review")).await;
    let (_, rest) = review.body.split_once("name=\"seen\" value=\"").unwrap();
    let seen = rest.split('"').next().unwrap();
    let form = format!(
        "csrf={}&version={}&seen={seen}",
        review.csrf(),
        version(&review)
    );
    let sent = person.post(&person.question("/accept"), &form).await;
    assert_eq!(sent.status, 303);
    review
}

#[track_caller]
fn has_all(page: &Reply, words: &[&str]) {
    for words in words {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
}

#[track_caller]
fn has_none(page: &Reply, words: &[&str]) {
    for words in words {
        assert!(!page.body.contains(words), "{words}: {}", page.body);
    }
}

#[tokio::test]
async fn nobody_approves_a_call_without_its_arguments_in_sight() {
    let form = json!({"type": "object", "properties": {
        "to": {"type": "string", "default": "mo\u{200e}on"}, "text": {"type": "string", "default": "one\ntwo"}}});
    let arguments =
        json!({"to": "mo\u{200e}on", "text": "one\ntwo", "long": "x".repeat(300), "a": 1, "b": 2});
    let rig = approval(&plan(1), &arguments, &form).await;
    let ada = Person::enter(&rig, "ada").await;
    let page = ada.get(&ada.question("")).await;
    has_all(&page, &["<details class=\"call\" open>"]);
    // Characters that a control does not show are marked beside it.
    has_all(&page, &["with hidden characters marked: mo‹U+200E›on"]);
    assert_eq!(page.body.matches("hidden characters").count(), 1);
    // A server's own question shows them where there is room.
    let rig = super::rig(1).await;
    let long = json!({"to": "x".repeat(300)}).to_string();
    let ada = Person::enter(&rig, "ada").await;
    let team = rig.record.find(&rig.id).await.unwrap().unwrap().team;
    let plan = team.unwrap().to_plan().unwrap();
    let id = sample::raised_with(&rig.record, Some(plan), &long).await;
    let page = ada.get(&format!("/q/{}", id.unwrap())).await;
    has_all(&page, &["<details class=\"call\">"]);
}

#[tokio::test]
async fn the_words_of_an_approval_are_its_own() {
    let rig = editable().await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    let page = ada.get(&ada.question("")).await;
    // Truth values are written as in the call.
    has_all(&page, &["Keep it", ">false<", ">true<", ">Go back<"]);
    has_none(&page, &[">No<", "/keep", "Keep answering"]);
    let review = approve(&ada, "&f0=moon&f1=3&f2=0").await;
    has_all(&review, &["changed from <del dir=\"auto\">false</del>"]);
    let page = ada.get(&ada.question("")).await;
    // A person is not offered to claim what they have approved.
    has_none(&page, &["Claim: I am on it"]);
    let page = bob.get(&bob.question("")).await;
    has_all(
        &page,
        &[
            "ada approved with Keep it changed",
            "If you approve other arguments, ada&#39;s approval no longer counts.",
            "The fields start from the call as it was made.",
            "Claim: I am on it",
        ],
    );
    let (_, rest) = page.body.split_once("name=\"digest\" value=\"").unwrap();
    let digest = rest.split('"').next().unwrap();
    let form = format!("csrf={}&digest={digest}", page.csrf());
    bob.post(&bob.question("/confirm"), &form).await;
    let page = bob.get(&bob.question("")).await;
    has_all(&page, &["<h1 id=\"head\">Approved</h1>"]);
}

#[tokio::test]
async fn a_claim_says_how_long_it_lasts_and_what_it_keeps_others_from() {
    for (rig, act) in [
        (rig(2).await, "enter answers"),
        (editable().await, "approve"),
    ] {
        let (ada, bob) = (
            Person::enter(&rig, "ada").await,
            Person::enter(&rig, "bob").await,
        );
        assert_eq!(ada.press("claim", "").await.status, 303);
        let page = bob.get(&bob.question("")).await;
        let words = format!("Others cannot {act} for another 15 minutes.");
        has_all(&page, &[&words]);
    }
}

#[tokio::test]
async fn nobody_is_offered_to_hand_on_what_must_be_refused() {
    let none = json!({"type": "object", "properties": {}});
    let plan = Plan {
        ask: AskedPeople {
            to: ["ada", "bob"]
                .map(|name| Addressee::Person(name.to_owned()))
                .to_vec(),
            ..plan(2).ask
        },
        delegate_to: Vec::new(),
        ..plan(2)
    };
    let rig = approval(&plan, &json!({}), &none).await;
    let ada = Person::enter(&rig, "ada").await;
    let page = ada.get(&ada.question("")).await;
    has_none(&page, &["Hand the question on"]);
    // A person who is not asked yet replaces the one who delegates; another who is asked already does not.
    let rig = super::rig(2).await;
    let ada = Person::enter(&rig, "ada").await;
    let page = ada.get(&ada.question("")).await;
    has_all(&page, &["value=\"person:dan\""]);
    has_none(&page, &["value=\"person:bob\"", "value=\"person:cy\""]);
    let refused = ada
        .press("delegate", "&to=person:bob&note=Please+look+here")
        .await;
    assert_eq!(refused.status, 409);
    has_all(&refused, &["Please look here"]);
}

#[tokio::test]
async fn nobody_is_chosen_to_hand_a_question_on_to() {
    let rig = rig(2).await;
    let ada = Person::enter(&rig, "ada").await;
    let page = ada.get(&ada.question("")).await;
    let (_, list) = page
        .body
        .split_once("<select class=\"in\" id=\"to\"")
        .unwrap();
    let (list, _) = list.split_once("</select>").unwrap();
    let (head, entries) = list.split_once('>').unwrap();
    assert!(head.contains(" required"), "{list}");
    assert!(entries.starts_with("<option value=\"\">"), "{list}");
    assert!(!list.contains("selected"), "{list}");
    // Nor does the form hand it on to anybody, if a browser sends it like this.
    let refused = ada.press("delegate", "&to=&note=").await;
    assert_ne!(refused.status, 303);
    has_all(&ada.get(&ada.question("")).await, &["id=\"to\""]);
    let row = rig.record.find(&rig.id).await.unwrap().unwrap();
    assert_eq!(row.team.unwrap().quorum().delegated_by("ada"), None);
}

/// A person alone may dismiss the question, and reads what that does. Of several who are asked, nobody dismisses it for
/// all.
#[tokio::test]
async fn cancelling_is_offered_to_a_person_alone_and_says_what_it_does() {
    let none = json!({"type": "object", "properties": {}});
    let alone = Plan {
        ask: AskedPeople {
            to: vec![Addressee::Person("ada".to_owned())],
            ..plan(1).ask
        },
        ..plan(1)
    };
    for (plan, offers) in [(alone, true), (plan(1), false)] {
        let rig = approval(&plan, &json!({}), &none).await;
        let ada = Person::enter(&rig, "ada").await;
        let page = ada.get(&ada.question("")).await;
        let both = [
            "data-act=\"cancel\"",
            "<strong>Cancel</strong> does the same",
        ];
        if offers {
            has_all(&page, &both);
        } else {
            has_none(&page, &["data-act=\"cancel\"", "Cancel</strong>"]);
            has_all(&page, &["<strong>Decline</strong> ends the call"]);
        }
        let cancelled = ada.press("cancel", "").await.status == 303;
        assert_eq!(cancelled, offers);
        assert_eq!(phase(&rig).await.is_open(), !offers);
    }
}

#[tokio::test]
async fn who_handed_a_question_on_reads_it_and_is_offered_no_act() {
    let rig = rig(1).await;
    let ada = Person::enter(&rig, "ada").await;
    let handed = ada.press("delegate", "&to=person:dan&note=Yours").await;
    assert_eq!(handed.status, 303);
    let page = ada.get(&ada.question("")).await;
    has_all(
        &page,
        &[
            "The rule deploys asks the group ops (",
            "It was handed on to dan.",
            "You handed this on; you can read it, but not answer.",
        ],
    );
    has_none(
        &page,
        &["<strong>Decline</strong>", "You may read this question"],
    );
}

#[tokio::test]
async fn the_course_says_whether_arguments_were_changed_or_put_back() {
    let rig = editable().await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    approve(&ada, "&f0=base&f1=3&f2=1").await;
    approve(&bob, "&f0=moon&f1=3&f2=1").await;
    let course = history(&ada.get(&ada.question("")).await);
    let approved = course.iter().filter(|line| line.contains("approved"));
    assert_eq!(
        approved.collect::<Vec<_>>(),
        [
            "ada approved with to changed",
            "Bob Ross approved with the arguments of the call, unchanged"
        ]
    );
}

#[tokio::test]
async fn calls_of_one_tool_are_told_apart_by_their_arguments_where_they_may_be_seen() {
    let rig = editable().await;
    let has = async |person: &Person<'_>, path: &str, words: &str| {
        person.get(path).await.body.contains(words)
    };
    let excerpt = "to: moon, count: 3, keep: false, note: two lines</bdi>";
    let row = format!("data-row=\"{}\"", rig.id);
    for name in ["ada", "cy"] {
        let person = Person::enter(&rig, name).await;
        assert!(has(&person, "/", excerpt).await, "{name}");
        assert!(has(&person, "/?find=moon+lines", &row).await, "{name}");
        assert!(!has(&person, "/?find=mars", &row).await, "{name}");
    }
    // People who may only know that it exists learn nothing of its arguments, even by searching.
    for name in ["eve", "aud"] {
        let person = Person::enter(&rig, name).await;
        assert!(has(&person, "/", &row).await, "{name}");
        assert!(!has(&person, "/", "moon").await, "{name}");
        assert!(!has(&person, "/?find=moon", &row).await, "{name}");
    }
}

#[tokio::test]
async fn approve_and_decline_stand_together_and_a_decline_for_all_asks_once_more() {
    let nothing = json!({"type": "object", "properties": {}});
    let rig = approval(&plan(2), &json!({"name": "x"}), &nothing).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    assert_eq!(ada.press("accept", "").await.status, 303);
    // One sentence is enough.
    let page = ada.get(&ada.question("")).await;
    has_all(&page, &["You have approved. 1 more must approve."]);
    has_none(&page, &["2 people must approve"]);
    let page = bob.get(&bob.question("")).await;
    let (_, entered) = page.body.split_once("class=\"entered\"").unwrap();
    let (entered, after) = entered.split_once("</form>").unwrap();
    assert!(entered.contains("Approve exactly this") && entered.contains("/decline\">Decline<"));
    let form = after.find("id=\"answer\"").unwrap();
    let (form, _) = after[form..].split_once('>').unwrap();
    assert!(form.ends_with(" hidden"), "{form}");
    // The first press asks for confirmation, with the effect on the others.
    let asks = bob.press("decline", "").await;
    let here = bob.question("?leave=decline");
    assert_eq!(asks.header("location"), Some(&*here));
    assert!(phase(&rig).await.is_open());
    let page = bob.get(&here).await;
    has_all(&page, &["The call ends for everyone", "name=\"drop\""]);
    let (without_dialogs, _) = page.body.split_once("<dialog").unwrap();
    assert!(
        !without_dialogs.contains("What you filled in is dropped"),
        "{without_dialogs}"
    );
    // Enter presses a form's first button, which agrees to nothing here.
    let (_, form) = without_dialogs.split_once("id=\"answer\"").unwrap();
    let (_, button) = form.split_once("<button").unwrap();
    let (button, _) = button.split_once('>').unwrap();
    assert!(button.ends_with(" disabled"), "{button}");
    assert_eq!(bob.press("decline", "&drop=yes").await.status, 303);
    assert_eq!(phase(&rig).await, Phase::Declined);
}
