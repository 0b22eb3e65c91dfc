//! Calls that wait for approval: changed arguments in the course, and what tells one call in a list from another.

use serde_json::json;

use super::*;

/// A call that waits for two people's approval, who may change two of its arguments.
pub(super) async fn editable() -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let record = record();
    let caller = TeamCaller {
        person: Some("cy".to_owned()),
        ..TeamCaller::default()
    };
    let hour = Duration::from_hours(1);
    let asked = ["ada", "bob"].map(str::to_owned).to_vec();
    let team = Team::new("deploys", "r", caller, &plan(2), asked, hour).for_approval();
    let form = json!({"type": "object", "required": ["to", "count"], "properties": {
        "to": {"type": "string", "minLength": 1, "default": "moon"},
        "count": {"type": "integer", "default": 3}}});
    let arguments = json!({"to": "moon", "count": 3, "note": "two\nlines"}).to_string();
    let plan = Some(team.to_plan().unwrap());
    let id = sample::raised_with_form(&record, plan, &arguments, &form).await;
    inbox_over(listener, record, id.unwrap(), FILE, proxy(), hour)
}

#[tokio::test]
async fn the_course_says_whether_arguments_were_changed_or_put_back() {
    let rig = editable().await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    assert_eq!(ada.send("&f0=base&f1=3").await.status, 303);
    assert_eq!(bob.send("&f0=moon&f1=3").await.status, 303);
    let course = history(&ada.get(&ada.question("")).await);
    let approved = course.iter().filter(|line| line.contains("approved"));
    assert_eq!(
        approved.collect::<Vec<_>>(),
        [
            "ada approved with another to",
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
    let excerpt = "to: moon, count: 3, note: two lines</bdi>";
    let row = format!("data-row=\"{}\"", rig.id);
    for name in ["ada", "cy"] {
        let person = Person::enter(&rig, name).await;
        assert!(has(&person, "/", excerpt).await, "{name}");
        assert!(has(&person, "/?find=moon+lines", &row).await, "{name}");
        assert!(!has(&person, "/?find=mars", &row).await, "{name}");
    }
    // Those who may know that it exists learn nothing of its arguments, by a search neither.
    for name in ["eve", "aud"] {
        let person = Person::enter(&rig, name).await;
        assert!(has(&person, "/", &row).await, "{name}");
        assert!(!has(&person, "/", "moon").await, "{name}");
        assert!(!has(&person, "/?find=moon", &row).await, "{name}");
    }
}
