//! Links of the audit by their entries: each store selects what [`AuditFilter::fits`] says.

use super::*;
use crate::audit::{AuditFilter, latest_events, latest_questions};
use crate::store::AuditEntry;

fn entry(at: u64, event: &str, id: &str, more: serde_json::Value) -> String {
    let mut entry = serde_json::json!({"at": at, "event": event, "id": id, "server": "demo", "principal": "key-e4d9a8b7c6d5"});
    if let (Some(members), serde_json::Value::Object(more)) = (entry.as_object_mut(), more) {
        members.extend(more);
    }
    entry.to_string()
}

async fn write(store: &dyn RecordStore, entries: Vec<String>) {
    let notes = entries.into_iter().map(Write::Note).collect();
    store.write(Arc::new(notes)).await.unwrap();
}

fn numbers(links: &[AuditEntry]) -> Vec<u64> {
    links.iter().map(|link| link.number).collect()
}

pub(super) async fn selects(store: &dyn RecordStore) {
    let by = |by: &str| serde_json::json!({"by": by});
    write(
        store,
        vec![
            entry(10, "asked", "aa1", serde_json::json!({"target": "deploy"})),
            entry(
                20,
                "notified",
                "aa1",
                serde_json::json!({"to": "person:ada"}),
            ),
            entry(30, "filled", "aa1", by("person:ada")),
            entry(40, "answered", "aa1", by("person:ada, person:bob")),
            entry(50, "declined", "ab2", by("person:adam")),
            entry(
                60,
                "login",
                "",
                serde_json::json!({"person": "ada", "server": "other", "principal": "local"}),
            ),
            "not JSON".to_owned(),
            entry(70, "answered", "ac3", by("on the command line")),
        ],
    )
    .await;
    let text = |text: &str| Some(text.to_owned());
    let all = AuditFilter::default;
    for (filter, expected) in [
        (all(), vec![8, 7, 6, 5, 4, 3, 2, 1]),
        (
            AuditFilter {
                person: text("ada"),
                ..all()
            },
            vec![6, 4, 3],
        ),
        (
            AuditFilter {
                person: text("bob"),
                ..all()
            },
            vec![4],
        ),
        (
            AuditFilter {
                person: text("on the command line"),
                ..all()
            },
            vec![8],
        ),
        (
            AuditFilter {
                person: text("a%"),
                ..all()
            },
            vec![],
        ),
        (
            AuditFilter {
                question: text("aa"),
                ..all()
            },
            vec![4, 3, 2, 1],
        ),
        (
            AuditFilter {
                questions: vec!["ab2".to_owned(), "ac3".to_owned()],
                ..all()
            },
            vec![8, 5],
        ),
        (
            AuditFilter {
                events: vec!["answered".to_owned(), "declined".to_owned()],
                ..all()
            },
            vec![8, 5, 4],
        ),
        (
            AuditFilter {
                callers: vec!["key-e4d9".to_owned()],
                ..all()
            },
            vec![8, 5, 4, 3, 2, 1],
        ),
        (
            AuditFilter {
                callers: vec!["local".to_owned(), "key-ffff".to_owned()],
                ..all()
            },
            vec![6],
        ),
        (
            AuditFilter {
                server: text("other"),
                ..all()
            },
            vec![6],
        ),
        (
            AuditFilter {
                since: Some(Timestamp::from_millis(30)),
                until: Some(Timestamp::from_millis(60)),
                ..all()
            },
            vec![5, 4, 3],
        ),
        (
            AuditFilter {
                server: text("' OR 1=1 --"),
                ..all()
            },
            vec![],
        ),
    ] {
        let found = store
            .audit_matching(filter.clone(), 1..9, 100)
            .await
            .unwrap();
        assert_eq!(numbers(&found), expected, "{filter:?}");
        let few = store.audit_matching(filter, 2..5, 1).await.unwrap();
        let expected = expected.into_iter().find(|number| (2..5).contains(number));
        assert_eq!(numbers(&few), Vec::from_iter(expected));
    }
}

pub(super) async fn groups(store: &dyn RecordStore) {
    let asked = |number: u64| {
        let id = format!("q{number}");
        let target = serde_json::json!({"target": "deploy", "rule": "ops", "approval": true});
        entry(number, "asked", &id, target)
    };
    let mut entries: Vec<String> = (0..5).map(asked).collect();
    entries.push(entry(
        100,
        "answered",
        "q1",
        serde_json::json!({"by": "person:ada"}),
    ));
    entries.push(entry(110, "delivered", "q1", serde_json::json!({})));
    entries.push(entry(
        120,
        "declined",
        "q3",
        serde_json::json!({"by": "person:bob", "reason": "no"}),
    ));
    let end = entries.len() as u64;
    write(store, entries).await;
    // Page by page, each question is there once.
    let all = AuditFilter::default();
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let page = latest_questions(store, &all, before, 2).await.unwrap();
        assert!(page.questions.len() <= 2);
        seen.extend(page.questions);
        match page.older {
            Some(older) => before = Some(older),
            None => break,
        }
    }
    let ids: Vec<&str> = seen.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["q3", "q1", "q4", "q2", "q0"]);
    let first = &seen[0];
    assert_eq!(first.outcome.as_deref(), Some("declined"));
    assert_eq!(
        (first.by.as_str(), first.reason.as_str()),
        ("person:bob", "no")
    );
    let second = &seen[1];
    assert_eq!(second.delivery.as_deref(), Some("delivered"));
    assert_eq!((second.events, second.is_approval), (3, true));
    assert_eq!(
        (second.target.as_str(), second.rule.as_str()),
        ("deploy", "ops")
    );
    assert!(seen[2].outcome.is_none(), "it is open");
    // A selection finds questions by any of their events, and shows their outcome.
    let filter = AuditFilter {
        events: vec!["asked".to_owned()],
        until: Some(Timestamp::from_millis(4)),
        ..AuditFilter::default()
    };
    let page = latest_questions(store, &filter, None, 10).await.unwrap();
    let found: Vec<_> = page
        .questions
        .iter()
        .map(|one| (one.id.as_str(), one.outcome.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            ("q3", Some("declined")),
            ("q2", None),
            ("q1", Some("answered")),
            ("q0", None)
        ]
    );
    // Events page by page.
    let events = latest_events(store, &AuditFilter::default(), None, 3)
        .await
        .unwrap();
    assert_eq!(numbers(&events.links), [end, end - 1, end - 2]);
    assert_eq!(events.older, Some(end - 2));
}

pub(super) async fn purges(store: &dyn RecordStore) {
    let entries = |range: std::ops::Range<u64>| {
        let entry = |at| entry(at, "asked", &format!("p{at}"), serde_json::json!({}));
        range.map(entry).collect::<Vec<_>>()
    };
    write(store, entries(1..7)).await;
    let links = store.audit(1, 100).await.unwrap();
    let purge = |number: u64, hash: &str| Write::PurgeAudit {
        number,
        hash: hash.to_owned(),
        entry: format!("purged {number}"),
    };
    let hash = |number: usize| links[number - 1].hash.clone();
    let made = |wanted: Vec<Write>| store.write(Arc::new(wanted));
    // Another hash, a link that is not there, and the last one.
    let wrong = [(2, hash(3)), (9, hash(3)), (6, hash(6))];
    for (number, hash) in wrong {
        assert_eq!(made(vec![purge(number, &hash)]).await.unwrap(), [false]);
    }
    assert_eq!(store.audit(1, 100).await.unwrap(), links);
    // Beside other writes, and only once.
    let several = vec![
        Write::Note("before".to_owned()),
        purge(3, &hash(3)),
        Write::Note("after".to_owned()),
        purge(3, &hash(3)),
    ];
    assert_eq!(made(several).await.unwrap(), [true, true, true, false]);
    let left = store.audit(1, 100).await.unwrap();
    assert_eq!(numbers(&left), [4, 5, 6, 7, 8, 9]);
    assert_eq!(left[..3], links[3..]);
    let texts: Vec<&str> = left[3..].iter().map(|link| &*link.entry).collect();
    assert_eq!(texts, ["before", "purged 3", "after"]);
    assert_eq!(store.audit_end().await.unwrap(), 9);
    assert_eq!(store.contents().await.unwrap().links, 6);
    // All but the last one.
    assert_eq!(made(vec![purge(8, &left[4].hash)]).await.unwrap(), [true]);
    write(store, entries(20..21)).await;
    let left = store.audit(1, 100).await.unwrap();
    assert_eq!(numbers(&left), [9, 10, 11]);
    // Pages end at the first link that is left.
    let filter = AuditFilter::default();
    let page = latest_events(store, &filter, None, 3).await.unwrap();
    assert_eq!((numbers(&page.links), page.older), (vec![11, 10, 9], None));
    let page = latest_events(store, &filter, None, 9).await.unwrap();
    assert_eq!((page.links.len(), page.older), (3, None));
    let page = latest_questions(store, &filter, None, 9).await.unwrap();
    assert_eq!((page.questions.len(), page.older), (1, None));
}

#[tokio::test]
async fn every_store_deletes_the_oldest_events() {
    let folder = tempfile::tempdir().unwrap();
    purges(&Memory::default()).await;
    let path = folder.path().join("a");
    purges(&Sqlite::open(&path).await.unwrap()).await;
    let writer = Writer::new(Arc::new(Memory::default()));
    purges(&writer).await;
    let again = Sqlite::open(&path).await.unwrap();
    assert_eq!(numbers(&again.audit(1, 9).await.unwrap()), [9, 10, 11]);
}

#[tokio::test]
async fn every_store_selects_events_and_groups_them_by_question() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let path = folder.path().join(name);
        async move { Sqlite::open(&path).await.unwrap() }
    };
    selects(&Memory::default()).await;
    selects(&open("a").await).await;
    groups(&Memory::default()).await;
    groups(&open("b").await).await;
}
