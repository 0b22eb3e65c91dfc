//! The audit's chain has a key, without which a changed chain cannot be made valid again.

use super::*;
use crate::store::{ChainKey, Sqlite, chained};

fn key() -> ChainKey {
    ChainKey::from_identity(&IdentityKey::random().unwrap())
}

#[tokio::test]
async fn a_chain_that_was_made_whole_without_its_key_is_broken() {
    let key = key();
    let store = Arc::new(Memory::keyed(key.clone()));
    let record = record(store.clone());
    let (id, _told) = ask(&record, &asked("Who?")).await;
    record
        .submit(&id, &Outcome::Decline, "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    let note = record.audit_event(audit::Event::CredentialAllowed, Some(&id), Some("page"));
    note.await.unwrap();
    let links = audit::read(&*store).await.unwrap();
    let whole = audit::ChainCheck::Whole { links: 3, since: 1 };
    assert_eq!(audit::verify(&links, Some(&key)), whole);
    assert!(links[2].entry.contains("insisted") && links[2].entry.contains(&id));
    let broken = |number| audit::ChainCheck::BrokenAt { number };
    assert_eq!(
        audit::verify(&links, Some(&self::key())),
        broken(1),
        "another key"
    );
    assert_eq!(audit::verify(&links, None), broken(1), "no key");
    // Edited, with every later hash computed again, as far as possible without the key.
    let mut forged = links.clone();
    forged[1].entry = forged[1].entry.replace("declined", "answered");
    assert_eq!(audit::verify(&forged, Some(&key)), broken(2));
    for from in 0..3_usize {
        let mut before = from
            .checked_sub(1)
            .map_or(String::new(), |at| links[at].hash.clone());
        for link in &mut forged[from..] {
            link.hash = chained(None, &before, &link.entry);
            before.clone_from(&link.hash);
        }
        assert!(matches!(
            audit::verify(&forged, Some(&key)),
            audit::ChainCheck::BrokenAt { .. }
        ));
    }
}

#[tokio::test]
async fn a_chain_of_an_older_version_goes_on_with_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let note = |store: Sqlite| async move {
        let entry = audit::Details::by("page")
            .entry(audit::Event::Login, clock())
            .into_text();
        store
            .write(Arc::new(vec![Write::Note(entry)]))
            .await
            .unwrap();
        store
    };
    note(Sqlite::at(&path)).await;
    let key = key();
    let store = note(Sqlite::at(&path).keyed(key.clone())).await;
    let links = audit::read(&store).await.unwrap();
    let whole = audit::ChainCheck::Whole { links: 3, since: 1 };
    assert_eq!(audit::verify(&links, Some(&key)), whole);
    assert!(links[1].entry.contains("chain-keyed"));
    let again = Sqlite::at(&path).keyed(key.clone());
    assert_eq!(audit::read(&again).await.unwrap(), links, "once");
}
