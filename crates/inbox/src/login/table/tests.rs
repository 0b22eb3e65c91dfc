//! Logins, their sessions, and the people to whom subjects are bound.

use mcp_elicit_policy::Rules;

use super::logins::MOST_OF_ONE;
use super::*;
use crate::sample::stored;
use crate::state_folder::tables;
use std::sync::Arc;

const FILE: &str = r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "bob@example.com"
subject = "b-1"
[groups]
staff = { claim = "employees" }
[roles]
admin = ["person:ada"]
"#;
const BOUNDS: Lifetimes = Lifetimes {
    idle: Duration::from_secs(100),
    max: Duration::from_secs(1_000),
};

fn admission(rules: &Rules) -> LoginAdmission<'_> {
    LoginAdmission {
        people: rules.people(),
        allow: &[],
        lifetimes: BOUNDS,
    }
}

fn logins(folder: &tempfile::TempDir) -> Logins {
    Logins::of(Arc::new(tables(&folder.path().join("record.sqlite"))))
}

fn identity(subject: &str, mail: Option<&str>, claims: &[&str]) -> LoginIdentity {
    LoginIdentity {
        issuer: "https://id.example".to_owned(),
        subject: subject.to_owned(),
        name: "Somebody".to_owned(),
        mail: mail.map(str::to_owned),
        claims: claims.iter().map(|claim| (*claim).to_owned()).collect(),
        sid: Some(format!("sid-{subject}")),
        auth_at: None,
    }
}

fn log_in(
    logins: &Logins,
    identity: &LoginIdentity,
    now: u64,
) -> Result<(String, SignedIn), LoginRefused> {
    let rules = Rules::parse(FILE).unwrap();
    let made = logins.log_in(identity, admission(&rules), None, "Fire\u{1b}fox", at(now));
    match made {
        Ok(made) => Ok((made.cookie, made.signed_in)),
        Err(LoginError::Refused(refused)) => Err(refused),
        Err(LoginError::File(error)) => panic!("{error}"),
    }
}

fn find(logins: &Logins, cookie: &str, now: u64) -> Option<SignedIn> {
    let rules = Rules::parse(FILE).unwrap();
    logins.find(cookie, admission(&rules), at(now)).unwrap()
}

#[test]
fn a_mailbox_that_changes_hands_is_another_person() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let first = log_in(&logins, &identity("s-1", Some("ADA@example.com"), &[]), 0);
    assert_eq!(first.unwrap().1.person, "ada");
    // The same subject is ada without a mail, too.
    assert_eq!(
        log_in(&logins, &identity("s-1", None, &[]), 0)
            .unwrap()
            .1
            .person,
        "ada"
    );
    let newcomer = identity("s-2", Some("ada@example.com"), &["employees"]);
    let (cookie, signed_in) = log_in(&logins, &newcomer, 0).unwrap();
    assert_eq!(signed_in.person, "https://id.example s-2");
    assert!(find(&logins, &cookie, 1).is_some());
    let stranger = identity("s-2", Some("ada@example.com"), &[]);
    assert_eq!(
        log_in(&logins, &stranger, 0).unwrap_err(),
        LoginRefused::BoundToAnother
    );
    // An administrator releases the name.
    assert!(logins.unbind("ada").unwrap() && !logins.unbind("ada").unwrap());
    assert_eq!(log_in(&logins, &newcomer, 0).unwrap().1.person, "ada");
    // The earlier session was another person's.
    assert!(find(&logins, &cookie, 1).is_none());
}

#[test]
fn a_subject_that_reads_like_two_people_does_not_log_in() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    for (subject, is_refused) in [("x, person:bob", true), ("cn=Doe, ou=x", false)] {
        let made = log_in(&logins, &identity(subject, None, &["employees"]), 0);
        let refused = made.err();
        assert_eq!(
            refused == Some(LoginRefused::Unusable),
            is_refused,
            "{subject}"
        );
    }
}

#[test]
fn people_of_the_file_are_known_by_subject_before_mail() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let bob = identity("b-1", Some("ada@example.com"), &[]);
    assert_eq!(log_in(&logins, &bob, 0).unwrap().1.person, "bob");
    let not_bob = identity("b-2", Some("bob@example.com"), &[]);
    assert_eq!(
        log_in(&logins, &not_bob, 0).unwrap_err(),
        LoginRefused::NotAllowed
    );
    for unusable in [
        identity("", None, &[]),
        identity("a\nb", None, &[]),
        identity(&"x".repeat(256), None, &[]),
    ] {
        assert_eq!(
            log_in(&logins, &unusable, 0).unwrap_err(),
            LoginRefused::Unusable
        );
    }
}

#[test]
fn sessions_end_by_idling_by_age_and_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let (cookie, signed_in) =
        log_in(&logins, &identity("s-1", Some("ada@example.com"), &[]), 0).unwrap();
    assert!(find(&logins, &cookie, 99).is_some() && find(&logins, "guess", 99).is_none());
    assert!(find(&logins, &signed_in.session, 99).is_none() && find(&logins, "", 99).is_none());
    for used in (100..1_000).step_by(90) {
        assert!(find(&logins, &cookie, used).is_some(), "{used}");
    }
    assert!(find(&logins, &cookie, 1_000).is_none(), "the longest life");
    let (cookie, _) = log_in(
        &logins,
        &identity("s-1", Some("ada@example.com"), &[]),
        2_000,
    )
    .unwrap();
    assert!(find(&logins, &cookie, 2_100).is_none(), "idle");
    let (cookie, signed_in) = log_in(&logins, &identity("s-1", None, &[]), 3_000).unwrap();
    let ended = logins
        .end(|session| session.id() == signed_in.session)
        .unwrap();
    assert_eq!(ended.sessions.len(), 1);
    assert!(find(&logins, &cookie, 3_001).is_none());
    let stored = stored(folder.path());
    assert!(!stored.contains(&cookie));
}

#[test]
fn a_new_login_replaces_the_session_of_the_browser() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let rules = Rules::parse(FILE).unwrap();
    let ada = identity("s-1", Some("ada@example.com"), &[]);
    let (before, _) = log_in(&logins, &ada, 0).unwrap();
    let after = logins.log_in(&ada, admission(&rules), Some(&before), "b", at(1));
    let after = after.unwrap().cookie;
    assert_ne!(before, after);
    assert!(find(&logins, &before, 2).is_none() && find(&logins, &after, 2).is_some());
    // A planted cookie creates no session of that name.
    let planted = "0".repeat(64);
    let made = logins.log_in(&ada, admission(&rules), Some(&planted), "b", at(2));
    assert_ne!(made.unwrap().cookie, planted);
    assert!(find(&logins, &planted, 3).is_none());
}

#[test]
fn a_logout_token_ends_its_sessions_once() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let (one, _) = log_in(&logins, &identity("s-1", Some("ada@example.com"), &[]), 0).unwrap();
    let (two, _) = log_in(&logins, &identity("b-1", None, &[]), 0).unwrap();
    let end = |issuer: &str, sub: Option<&str>, sid: Option<&str>, id: &str, now: u64| {
        let ended = logins.end_by_token(issuer, sub, sid, id, at(now)).unwrap();
        ended.map(|ended| ended.sessions.len())
    };
    assert_eq!(
        end("https://evil.example", Some("s-1"), None, "t0", 1),
        Some(0)
    );
    assert_eq!(
        end("https://id.example", None, Some("sid-b-2"), "t1", 1),
        Some(0)
    );
    assert!(find(&logins, &one, 2).is_some());
    assert_eq!(
        end("https://id.example", Some("s-1"), None, "t2", 2),
        Some(1)
    );
    assert!(find(&logins, &one, 3).is_none() && find(&logins, &two, 3).is_some());
    let (again, _) = log_in(&logins, &identity("s-1", None, &[]), 3).unwrap();
    assert_eq!(
        end("https://id.example", Some("s-1"), None, "t2", 4),
        None,
        "replayed"
    );
    assert!(find(&logins, &again, 5).is_some());
    let both = |sub| end("https://id.example", Some(sub), Some("sid-b-1"), sub, 5);
    assert_eq!((both("s-1"), both("b-1")), (Some(0), Some(1)));
    assert!(find(&logins, &two, 6).is_none() && find(&logins, &again, 6).is_some());
}

#[test]
fn claims_grow_stale_and_a_person_who_may_not_log_in_any_more_is_out() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let (cookie, signed_in) = log_in(&logins, &identity("c-1", None, &["employees"]), 0).unwrap();
    let table = logins.table().unwrap();
    let stale = Duration::from_secs(50);
    assert_eq!(
        table.claims(&signed_in.person, stale, at(49)),
        ["employees"]
    );
    assert!(table.claims(&signed_in.person, stale, at(50)).is_empty());
    logins
        .refresh(&signed_in.person, &identity("c-1", None, &[]), at(10))
        .unwrap();
    assert!(find(&logins, &cookie, 11).is_none(), "left the group");
}

#[test]
fn sessions_of_one_person_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let (first, _) = log_in(&logins, &identity("s-1", Some("ada@example.com"), &[]), 0).unwrap();
    for second in 1..30 {
        log_in(&logins, &identity("s-1", None, &[]), second).unwrap();
    }
    assert_eq!(
        logins.table().unwrap().live(BOUNDS, at(30)).len(),
        MOST_OF_ONE
    );
    assert!(find(&logins, &first, 30).is_none());
}

#[test]
fn a_session_that_never_came_back_makes_room_before_one_that_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let ada = identity("s-1", Some("ada@example.com"), &[]);
    let (used, first) = log_in(&logins, &ada, 0).unwrap();
    assert!(find(&logins, &used, 0).is_some());
    // A program that drops its cookies, for longer than the person is idle.
    for second in 1..90 {
        log_in(&logins, &ada, second).unwrap();
    }
    assert!(find(&logins, &used, 90).is_some());
    // Of the sessions used again, the one that was used longest ago.
    let mut cookies = Vec::new();
    for second in 91..91 + u64::try_from(MOST_OF_ONE).unwrap() {
        let (cookie, _) = log_in(&logins, &ada, second).unwrap();
        assert!(find(&logins, &cookie, second).is_some());
        cookies.push(cookie);
    }
    assert!(find(&logins, &used, 115).is_none());
    assert!(
        cookies
            .iter()
            .all(|cookie| find(&logins, cookie, 115).is_some())
    );
    let is_live = |session: &str, now: u64| {
        let rules = Rules::parse(FILE).unwrap();
        logins.is_live(session, admission(&rules), at(now)).unwrap()
    };
    assert!(!is_live(&first.session, 115));
    let last = find(&logins, &cookies[19], 115).unwrap().session;
    // Reading does not count as use.
    assert!(is_live(&last, 114) && is_live(&last, 200) && !is_live(&last, 300));
}

#[test]
fn a_person_is_recognized_without_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let rules = Rules::parse(FILE).unwrap();
    let recognize = |identity: &LoginIdentity| logins.recognize(identity, admission(&rules), at(1));
    let ada = recognize(&identity("s-1", Some("ada@example.com"), &[])).unwrap();
    assert_eq!((ada.person.as_str(), ada.session.as_str()), ("ada", "none"));
    let stranger = recognize(&identity("s-2", None, &[]));
    assert!(matches!(
        stranger,
        Err(LoginError::Refused(LoginRefused::NotAllowed))
    ));
    assert!(
        logins.table().unwrap().sessions().is_empty(),
        "nothing is written"
    );
}

#[test]
fn a_name_with_hidden_characters_is_marked_and_one_of_which_nothing_is_seen_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let logins = logins(&folder);
    let named = |name: &str| LoginIdentity {
        name: name.to_owned(),
        ..identity("s-1", Some("ada@example.com"), &[])
    };
    let (_, signed_in) = log_in(&logins, &named("Bob\u{202e}\u{200b}"), 0).unwrap();
    assert_eq!(signed_in.name, "Bob‹U+202E›‹U+200B›");
    let table = logins.table().unwrap();
    assert_eq!(table.given_name("ada"), Some("Bob‹U+202E›‹U+200B›"));
    log_in(&logins, &named("\u{2800}\u{a0}"), 0).unwrap();
    assert_eq!(logins.table().unwrap().given_name("ada"), None);
    // The subject is the name of a person who is not in the file.
    let unnamed = LoginIdentity {
        name: String::new(),
        ..identity("s\u{2066}2", None, &["employees"])
    };
    let (_, signed_in) = log_in(&logins, &unnamed, 0).unwrap();
    assert_eq!(signed_in.name, "https://id.example s‹U+2066›2");
    assert_eq!(
        signed_in.person, "https://id.example s\u{2066}2",
        "as it is"
    );
}
