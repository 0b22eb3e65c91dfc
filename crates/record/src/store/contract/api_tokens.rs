//! The contract of every store of tokens and blocked callers.

use mcp_elicit_core::lifecycle::Timestamp;

use super::super::api_tokens::{
    Added, ApiToken, ApiTokenStore, BlockedCaller, MOST, Scope, TokenOwner,
};
use super::{super::StateTables, Memory};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn token(id: &str, name: &str, owner: Option<TokenOwner>) -> ApiToken {
    ApiToken {
        id: id.to_owned(),
        name: name.to_owned(),
        hash: format!("hash of {id}"),
        scopes: vec![Scope::Call, Scope::Answer],
        owner,
        made_at: 1,
        expires_at: None,
        revoked_at: None,
        used_at: None,
    }
}

fn caller(issuer: &str, subject: &str) -> BlockedCaller {
    BlockedCaller {
        issuer: issuer.to_owned(),
        subject: subject.to_owned(),
        blocked_at: 7,
    }
}

fn ids(store: &dyn ApiTokenStore) -> Vec<String> {
    let tokens = store.tokens().unwrap();
    tokens.into_iter().map(|token| token.id).collect()
}

pub(super) fn keeps_tokens(store: &dyn ApiTokenStore) {
    assert!(ids(store).is_empty());
    let of_ada = Some(TokenOwner::Person("ada".to_owned()));
    let mut all = [
        token("b", "ci", None),
        token("a", "ci", of_ada),
        token("c", "bot", Some(TokenOwner::Nobody)),
    ];
    all[2].expires_at = Some(60);
    for token in &all {
        assert_eq!(store.add(token).unwrap(), Added::Yes);
    }
    assert_eq!(store.add(&all[0]).unwrap(), Added::Already);
    assert_eq!(store.tokens().unwrap(), all, "in the order of their making");
    assert_eq!(store.find("a").unwrap().as_ref(), Some(&all[1]));
    assert_eq!(store.find("d").unwrap(), None);
    let named = |name| store.count_named(name).unwrap();
    assert_eq!((named("ci"), named("bot"), named("c")), (2, 1, 0));
    assert_eq!(store.of_person("ada").unwrap(), ["a"]);
    assert!(store.of_person("nobody").unwrap().is_empty());

    store.note_use("a", at(50)).unwrap();
    store.note_use("a", at(40)).unwrap();
    store.note_use("d", at(40)).unwrap();
    assert_eq!(store.find("a").unwrap().unwrap().used_at, Some(50));
    assert!(store.revoke("b", at(30)).unwrap());
    assert!(!store.revoke("b", at(31)).unwrap() && !store.revoke("d", at(31)).unwrap());
    assert_eq!(store.find("b").unwrap().unwrap().revoked_at, Some(30));
    assert_eq!(store.prune(at(59)).unwrap(), 1);
    assert_eq!(ids(store), ["a", "c"]);
    assert_eq!(store.prune(at(60)).unwrap(), 1);
    store.remove("a").unwrap();
    store.remove("a").unwrap();
    assert!(ids(store).is_empty());
}

pub(super) fn blocks_callers(store: &dyn ApiTokenStore) {
    let is_blocked = |issuer, subject| store.is_blocked(issuer, subject).unwrap();
    assert!(!is_blocked("https://id", "eve"));
    for subject in ["eve", "ada"] {
        let caller = caller("https://id", subject);
        assert_eq!(store.block(&caller).unwrap(), Added::Yes);
        assert_eq!(store.block(&caller).unwrap(), Added::Already);
    }
    assert!(is_blocked("https://id", "eve") && is_blocked("https://id", "ada"));
    assert!(!is_blocked("https://id", "ev") && !is_blocked("https://i", "eve"));
    let blocked = store.blocked().unwrap();
    let expected = [caller("https://id", "eve"), caller("https://id", "ada")];
    assert_eq!(blocked, expected, "in the order of their blocking");
    assert!(store.unblock("https://id", "eve").unwrap());
    assert!(!store.unblock("https://id", "eve").unwrap());
    assert!(!is_blocked("https://id", "eve") && is_blocked("https://id", "ada"));
}

fn is_bounded(store: &dyn ApiTokenStore) {
    for number in 0..MOST {
        let added = store.add(&token(&number.to_string(), "t", None)).unwrap();
        assert_eq!(added, Added::Yes);
    }
    assert_eq!(store.add(&token("more", "t", None)).unwrap(), Added::Full);
    assert_eq!(store.tokens().unwrap().len(), MOST);
}

#[test]
fn every_store_keeps_tokens_and_blocks_callers() {
    let folder = tempfile::tempdir().unwrap();
    let tables = StateTables::at(&folder.path().join("record.sqlite"));
    for store in [&Memory::default() as &dyn ApiTokenStore, &tables] {
        keeps_tokens(store);
        blocks_callers(store);
    }
}

#[test]
fn the_tokens_are_bounded() {
    is_bounded(&Memory::default());
}
