use mcp_elicit_core::view::sanitize;
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_inbox::login::table::{Lifetimes, LoginAdmission, LoginIdentity};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::grants::ApprovalGrant;
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::{IdentityKey, LockFile, OwnKeys, Record};

use super::*;
use crate::current_rules::{RulesChange, digest_of_rules};

const FILE: &str = r#"
    [people.ada]
    mail = "ada@example.com"
    local-user = "ada"
    [people.bob]
    mail = "bob@example.com"
    [groups]
    ops = ["ada", "bob"]
    [[rules]]
    name = "never"
    tool = "drop_*"
    refuse = "not here"
    [[rules]]
    name = "reads"
    when = "annotations.readOnly"
    allow = true
    [[rules]]
    name = "careful"
    tool = "delete_*"
    approve = true
    ask = { group = "ops", not-caller = true }
    edit = ["/path"]
    good-for = "10m"
    on-timeout = "hand-back"
    [[rules]]
    name = "no-secrets"
    refuse-credentials = true
    [[rules]]
    name = "production"
    when = 'arguments.environment == "production"'
    ask = { group = "ops", need = 2 }
    deadline = "30m"
    [[rules]]
    name = "own"
    when = 'caller.person == "ada"'
    ask = "caller"
    deadline = "5m"
"#;

fn binding() -> (Binding, tokio::sync::mpsc::UnboundedReceiver<RulesChange>) {
    let key = IdentityKey::random().unwrap();
    let (teams, changes) = CurrentRules::without_logins(Arc::new(Rules::parse(FILE).unwrap()), key);
    // A program's own key, so that `not-caller` excludes no person.
    let caller = SessionCaller::new(ProvenCaller::of_program("0"));
    (
        Binding::new(
            teams,
            server("k"),
            caller,
            Duration::from_secs(24 * 60 * 60),
        ),
        changes,
    )
}

fn server(key: &str) -> ServerOfCalls {
    ServerOfCalls {
        name: "s".to_owned(),
        key: key.to_owned(),
        earlier: EarlierRules::default(),
    }
}

fn call(tool: &str, arguments: Option<&str>) -> CallSummary {
    CallSummary {
        kind: CallKind::Tool,
        target: tool.to_owned(),
        arguments: arguments.map(str::to_owned),
        digest: format!("{tool} {arguments:?}"),
        proof: ProofNumber::default(),
    }
}

#[tokio::test]
async fn an_approval_is_good_for_the_same_call_of_the_same_caller_and_rule_and_for_no_longer() {
    let (binding, mut changes) = binding();
    let at = Timestamp::from_millis;
    let call_a = call("delete_a", None);
    let Admission::Approve(approval) = binding.admit(at(1_000), &call_a, None) else {
        panic!("the rule asks for approval");
    };
    binding.approved(
        at(1_000),
        &call_a,
        &approval,
        &ApprovedCall {
            answers: r#"{"/path":"x"}"#,
            edited: &["/path".to_owned()],
            question: Some("q"),
            digest: "d",
        },
    );
    let is_granted = |binding: &Binding, call: &CallSummary, millis: u64| match binding.admit(
        at(millis),
        call,
        None,
    ) {
        Admission::Granted(approval, answers) => {
            assert_eq!(answers, r#"{"/path":"x"}"#);
            binding.grant_used(at(millis), call, &approval);
            true
        }
        Admission::Approve(_) => false,
        other => panic!("{other:?}"),
    };
    assert!(!is_granted(&binding, &call_a, 1_000), "not written yet");
    let mut told_first = Vec::new();
    while let Ok(change) = changes.try_recv() {
        if let Some(grant) = change.grant() {
            binding.teams.grant_written(grant, true);
        }
        told_first.push(change);
    }
    assert!(is_granted(&binding, &call_a, 500_000));
    for other in [call("delete_b", None), call("delete_a", Some("{}"))] {
        assert!(!is_granted(&binding, &other, 2_000));
    }
    assert!(!is_granted(&binding, &call_a, 601_000), "it has ended");
    assert!(
        !is_granted(&binding, &call_a, 999),
        "the clock was set back"
    );

    // The written data make another gateway know it: the same one after a restart.
    let store = Arc::new(Memory::default());
    let record = |millis: fn() -> Timestamp| {
        let keys = OwnKeys::random().unwrap();
        let keys = OwnKeys {
            identity: binding.teams.key().clone(),
            ..keys
        };
        let lock = LockFile::unshared().unwrap();
        (keys.clone(), Record::new(store.clone(), keys, lock, millis))
    };
    let (keys, before) = record(|| Timestamp::from_millis(2_000));
    let mut told = Vec::new();
    while let Ok(change) = changes.try_recv() {
        told_first.push(change);
    }
    for change in told_first {
        told.push(match &change {
            RulesChange::Event(RulesEvent::Approved { until, .. }, 0) => {
                assert_eq!(*until, Some(at(601_000)));
                "approved"
            }
            RulesChange::Event(RulesEvent::GrantUsed { question, .. }, 0) => {
                assert_eq!(question.as_deref(), Some("q"));
                "used"
            }
            RulesChange::Grant(_) => "grant",
            other => panic!("{other:?}"),
        });
        change.write(&before).await.unwrap();
    }
    assert_eq!(told, ["approved", "grant", "used"]);
    let restarted = |server_key: &str, person: &str| {
        let rules = Arc::new(Rules::parse(FILE).unwrap());
        let (teams, changes) = CurrentRules::without_logins(rules, binding.teams.key().clone());
        let id = if person.is_empty() { "0" } else { person };
        let caller = SessionCaller::new(ProvenCaller::of_program(id));
        let usual = Duration::from_secs(24 * 60 * 60);
        (
            Binding::new(teams, server(server_key), caller, usual),
            changes,
        )
    };
    let lock = LockFile::unshared().unwrap();
    let (later_store, later_keys) = (store.clone(), keys.clone());
    let after = Record::new(store.clone(), keys, lock, || Timestamp::from_millis(9_000));
    for (server_key, person, expected) in [("k", "", true), ("other", "", false), ("k", "1", false)]
    {
        let (again, _changes) = restarted(server_key, person);
        assert!(!is_granted(&again, &call_a, 9_000), "not known yet");
        again.teams.recall_grants(&after).await.unwrap();
        assert_eq!(
            is_granted(&again, &call_a, 9_000),
            expected,
            "{server_key} {person}"
        );
        assert!(
            !is_granted(&again, &call_a, 601_000),
            "a restart makes none longer"
        );
    }
    // Sealed with another key, it is ignored.
    let (_, stranger) = record(|| Timestamp::from_millis(9_000));
    assert_eq!(stranger.grants().await.unwrap(), []);

    // One that a person has ended in the record is ended in every gateway.
    let lock = LockFile::unshared().unwrap();
    let clock = || Timestamp::from_millis(20_000);
    let later = Record::new(later_store, later_keys, lock, clock);
    let (ended, _changes) = restarted("k", "");
    ended.teams.recall_grants(&later).await.unwrap();
    assert!(is_granted(&ended, &call_a, 20_000));
    let stored = later.grants().await.unwrap();
    later.end_grants(&stored, "person:ada").await.unwrap();
    assert_eq!(later.grants().await.unwrap(), []);
    ended.teams.recall_grants(&later).await.unwrap();
    assert!(!is_granted(&ended, &call_a, 20_000));
    // What people approved before that begins no other; what they approve afterwards does.
    assert!(!later.keep_grant(&stored[0]).await.unwrap());
    assert_eq!(later.grants().await.unwrap(), []);
    let afterwards = ApprovalGrant {
        at: Timestamp::from_millis(20_000),
        ..stored[0].clone()
    };
    assert!(later.keep_grant(&afterwards).await.unwrap());
    assert_eq!(later.grants().await.unwrap(), [afterwards]);
    let keys = stored.iter().map(|grant| grant.key.clone()).collect();
    later.drop_grants(keys).await.unwrap();
    for grant in &stored {
        assert!(later.keep_grant(grant).await.unwrap());
    }

    // One that was ended and given anew at another gateway is the new one here, too.
    ended.teams.recall_grants(&later).await.unwrap();
    let renewed = ApprovalGrant {
        answers: r#"{"/amount":"10"}"#.to_owned(),
        ..stored[0].clone()
    };
    later.keep_grant(&renewed).await.unwrap();
    ended.teams.recall_grants(&later).await.unwrap();
    let here = ended
        .teams
        .granted(&renewed.key, Timestamp::from_millis(20_000));
    assert!(here == Some(renewed), "{here:?}");
    later.keep_grant(&stored[0]).await.unwrap();

    // A changed rule voids it, here and in the record.
    let (again, mut written) = restarted("k", "");
    again.teams.recall_grants(&after).await.unwrap();
    let longer = FILE.replace("good-for = \"10m\"", "good-for = \"20m\"");
    again
        .teams
        .replace(Arc::new(Rules::parse(&longer).unwrap()));
    assert!(!is_granted(&again, &call_a, 9_000), "another rule");
    again.teams.replace(Arc::new(Rules::parse(FILE).unwrap()));
    assert!(
        !is_granted(&again, &call_a, 9_000),
        "what is void stays void"
    );
    let mut told = Vec::new();
    while let Ok(change) = written.try_recv() {
        told.push(format!("{change:?}"));
        change.write(&after).await.unwrap();
    }
    assert!(
        told[0].contains("GrantVoid { rule: \"careful\", grants: 1 }"),
        "{told:?}"
    );
    assert_eq!(after.grants().await.unwrap(), []);
}

#[test]
fn a_rule_keeps_the_digest_that_open_questions_and_approvals_have() {
    let rules = Rules::parse(FILE).unwrap();
    for (name, digest) in [
        ("careful", "a4af55b38829fd5f5ab40219440d33c6"),
        ("production", "ed79f5e907b0f5cb9c15ab3731bbe3e8"),
    ] {
        assert!(is_asked_by(rules.rule(name).unwrap(), digest), "{name}");
    }
    assert_eq!(digest_of_rules(&rules), "baea93bd5917d96169ab4dfaa84bcb98");
}

#[test]
fn an_approval_ends_where_anything_of_its_rule_changes_and_nowhere_else() {
    let decides = |text: &str, name: &str| {
        let rules = Rules::parse(text).unwrap();
        approval_digest(rules.rule(name).unwrap())
    };
    let digest = decides(FILE, "careful");
    let is_same = |from: &str, to: &str| {
        assert!(FILE.contains(from), "{from}");
        decides(&FILE.replace(from, to), "careful") == digest
    };
    let head = "name = \"careful\"\n    tool = \"delete_*\"";
    for changed in [
        "name = \"careful\"\n tool = \"delete_?\"",
        "name = \"careful\"\n tool = [\"delete_*\", \"put_*\"]",
        "name = \"careful\"\n tool = \"delete_*\"\n server = \"s\"",
        "name = \"careful\"\n tool = \"delete_*\"\n when = 'arguments.force == true'",
        "name = \"careful\"\n tool = \"delete_*\"\n on-error = \"refuse\"",
    ] {
        assert!(!is_same(head, changed), "{changed}");
    }
    // Another position in the file, other people, and other rules before it.
    let other =
        "[[rules]]\n when = 'arguments.x == \"y\"'\n refuse = \"z\"\n[[rules]]\n name = \"never\"";
    assert!(is_same("[[rules]]\n    name = \"never\"", other));
    assert!(is_same("\"ada\", \"bob\"", "\"bob\", \"ada\""));
}

#[test]
fn a_question_stays_that_of_its_rule_until_something_is_changed_that_decides() {
    let digest = |file: &str, name: &str| {
        let rules = Rules::parse(file).unwrap();
        let rule = rules.rule(name).unwrap();
        match rule.decision() {
            policy::Decision::Approve(_) => approval_digest(rule),
            policy::Decision::Ask(plan) => ask_digest(name, plan),
            other => panic!("{other:?}"),
        }
    };
    let with = |name: &str, line: &str| {
        let name = format!("name = \"{name}\"\n");
        FILE.replace(&name, &format!("{name}{line}\n"))
    };
    for name in ["careful", "production"] {
        let before = digest(FILE, name);
        for line in [
            "reveal = \"arguments\"",
            "remind = [\"1m\"]",
            "claim = \"1m\"",
            "delegate-to = [\"person:ada\"]",
        ] {
            let file = with(name, line);
            assert_eq!(digest(&file, name), before, "{name} {line}");
            let rules = Rules::parse(&file).unwrap();
            assert!(is_asked_by(rules.rule(name).unwrap(), &before));
        }
        let file = with(name, "reauth = \"5m\"");
        assert_ne!(digest(&file, name), before);
        let rules = Rules::parse(&file).unwrap();
        assert!(!is_asked_by(rules.rule(name).unwrap(), &before));
    }
}

#[test]
fn who_has_the_mailbox_of_a_person_bound_to_another_subject_is_not_that_person_as_a_caller() {
    const LOGS_IN: &str = "https://id.example";
    let rules = Arc::new(Rules::parse(FILE).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let state = StateFolder::open(&folder.path().join("state")).unwrap();
    let logins = Arc::new(state.logins());
    let key = IdentityKey::random().unwrap();
    let (teams, _changes) = CurrentRules::new(rules.clone(), key, logins.clone());
    let calling = |issuer: &str, subject: &str, mail: &str| {
        let caller = ProvenCaller::of_subject(issuer, subject, Some(LOGS_IN));
        let caller = caller.with_token(mail, Vec::new());
        let by = identified(&teams, rules.people(), &caller);
        let caller = SessionCaller::new(caller);
        let usual = Duration::from_secs(24 * 60 * 60);
        let binding = Binding::new(teams.clone(), server("k"), caller, usual);
        let call = call("put_a", Some(r#"{"environment":"production"}"#));
        let request = empty_form();
        let now = Timestamp::from_millis(1_000);
        let team = match binding.plan(now, Some((&call, None)), asking(&request)) {
            Planned::People(people) => people.team.text,
            other => panic!("{other:?}"),
        };
        let team: serde_json::Value = serde_json::from_str(&team).unwrap();
        let digest = team["caller"]["mail_digest"].as_str().unwrap_or_default();
        let groups = by.groups.join(" ");
        (
            by.caller.person,
            groups,
            digest == mail_digest("ada@example.com"),
        )
    };
    let is_ada = ("ada".to_owned(), "ops".to_owned(), true);
    let is_nobody_with_adas_mail = (String::new(), String::new(), true);
    // No login is known, so the mailbox identifies the person.
    assert_eq!(calling(LOGS_IN, "s-1", "ada@example.com"), is_ada);
    let identity = LoginIdentity {
        issuer: LOGS_IN.to_owned(),
        subject: "s-1".to_owned(),
        name: "Ada".to_owned(),
        mail: Some("ada@example.com".to_owned()),
        claims: Vec::new(),
        sid: None,
        auth_at: None,
    };
    let hour = Duration::from_secs(60 * 60);
    let admission = LoginAdmission {
        people: rules.people(),
        allow: &[],
        lifetimes: Lifetimes {
            idle: hour,
            max: hour,
        },
    };
    let now = Timestamp::from_millis(1_000);
    let login = logins.log_in(&identity, admission, None, "a test", now);
    login.unwrap();
    assert_eq!(calling(LOGS_IN, "s-1", "ada@example.com"), is_ada);
    assert_eq!(calling(LOGS_IN, "s-1", ""), is_ada, "by the subject");
    assert_eq!(calling(LOGS_IN, "s-1", "new@example.com"), is_ada);
    // The mailbox belongs to someone else now.
    let other = calling(LOGS_IN, "s-2", "Ada@example.com");
    assert_eq!(other, is_nobody_with_adas_mail, "`not-caller` excludes Ada");
    let other = calling(LOGS_IN, "s-2", "");
    assert_eq!(other, (String::new(), String::new(), false));
    let bob = calling(LOGS_IN, "s-3", "bob@example.com");
    assert_eq!(bob.0, "bob", "he has not logged in yet");

    // If the logins cannot be read, the caller is unknown, and a rule with `not-caller` refuses.
    std::fs::write(state.path().join("inbox.logins"), "{").unwrap();
    let caller = ProvenCaller::of_subject(LOGS_IN, "s-1", Some(LOGS_IN));
    let by = identified(&teams, rules.people(), &caller);
    assert!(by.caller.person.is_empty() && by.unmatched.is_some());
    let binding = Binding::new(teams, server("k"), SessionCaller::new(caller), hour);
    let admitted = binding.admit(now, &call("delete_a", None), None);
    assert!(matches!(admitted, Admission::Refuse(_)), "{admitted:?}");
}

fn empty_form() -> ElicitRequest {
    ElicitRequest::form(
        "Who?",
        &serde_json::json!({"type": "object", "properties": {}}),
    )
}

fn asking(request: &ElicitRequest) -> QuestionParts<'_> {
    QuestionParts {
        request,
        form: None,
        has_credentials: false,
    }
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_no_page_shows_in_full() {
    let (binding, mut changes) = binding();
    let now = Timestamp::from_millis(1_000);
    let arguments = |characters: usize| {
        let around = r#"{"environment":"production","x":""}"#.len();
        let long = "ü".repeat(characters - around);
        format!(r#"{{"environment":"production","x":"{long}"}}"#)
    };
    let request = empty_form();
    let question = asking(&request);
    let whole = arguments(sanitize::ARGUMENTS);
    let longer = arguments(sanitize::ARGUMENTS + 1);
    let name = "delete_".repeat(1_000);
    for (target, arguments, is_shown) in [
        ("delete_a", &*whole, true),
        ("delete_a", &*longer, false),
        (&*name, "{}", false),
    ] {
        match binding.admit(now, &call(target, Some(arguments)), None) {
            Admission::Approve(_) => assert!(is_shown),
            Admission::Refuse(refusal) => {
                assert!(
                    !is_shown && refusal.to_string().contains("more than"),
                    "{refusal}"
                );
                let told = format!("{:?}", changes.try_recv().unwrap());
                assert!(
                    told.contains("Refused") && told.contains("careful"),
                    "{told}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    for (arguments, is_shown) in [(&whole, true), (&longer, false)] {
        let call = call("put_a", Some(arguments));
        let planned = binding.plan(now, Some((&call, None)), question);
        assert_eq!(matches!(planned, Planned::People(_)), is_shown);
        assert_eq!(matches!(planned, Planned::Refuse(_)), !is_shown);
    }
}

const EARLIER: &str = r#"
    [people.eve]
    mail = "eve@example.com"
    [[rules]]
    name = "old-links"
    refuse-modes = ["url"]
    [[rules]]
    name = "old-never"
    tool = "*_z"
    refuse = "not there"
    [[rules]]
    name = "old-careful"
    tool = "push_*"
    approve = true
    ask = { person = "eve" }
    [[rules]]
    name = "old-question"
    tool = "put_*"
    ask = { person = "eve" }
"#;

#[test]
fn what_the_current_or_the_earlier_rules_of_a_server_refuse_or_put_to_people_stays_so() {
    let (binding, _events) = binding();
    let now = Timestamp::from_millis(1_000);
    let word = |admission: Admission| match admission {
        Admission::Free => "free".to_owned(),
        Admission::Refuse(refusal) => format!("refused by {}", refusal.rule),
        Admission::Approve(approval) => format!("approved by {}", approval.people.rule),
        Admission::Granted(..) => "granted".to_owned(),
    };
    let production = Some(r#"{"environment":"production"}"#);
    let staging = Some(r#"{"environment":"staging"}"#);
    let link = ElicitRequest::Url {
        message: "Who?".to_owned(),
        url: "https://example.com/".to_owned(),
        elicitation_id: None,
    };
    let form = empty_form();
    let planned = |request: &ElicitRequest, call: &CallSummary| {
        let call = Some((call, None));
        let one = binding.plan(now, call, asking(request));
        let many = binding.at(now).plan(&[call, call], asking(request));
        let word = |planned: &Planned| match planned {
            Planned::Caller { .. } => "caller".to_owned(),
            Planned::People(people) => people.rule.clone(),
            Planned::Refuse(refusal) => format!("refused by {}", refusal.rule),
        };
        assert_eq!(word(&one), word(&many[0]));
        word(&one)
    };
    let calls = [
        ("drop_a", "refused by never", "refused by never"),
        ("drop_z", "refused by never", "refused by never"),
        ("list_z", "free", "refused by old-never"),
        ("push_a", "free", "approved by old-careful"),
        ("push_z", "free", "refused by old-never"),
        ("delete_a", "approved by careful", "approved by careful"),
        ("delete_z", "approved by careful", "refused by old-never"),
        ("list_a", "free", "free"),
    ];
    for (tool, alone, _) in calls {
        assert_eq!(word(binding.admit(now, &call(tool, None), None)), alone);
    }
    let questions = [
        (&form, "put_a", production, "production", "production"),
        (&form, "put_a", staging, "caller", "old-question"),
        (&form, "get_a", staging, "caller", "caller"),
        (&link, "get_a", staging, "caller", "refused by old-links"),
        (
            &link,
            "put_a",
            production,
            "production",
            "refused by old-links",
        ),
    ];
    for (request, tool, arguments, alone, _) in questions {
        assert_eq!(planned(request, &call(tool, arguments)), alone, "{tool}");
    }

    let rules = Arc::new(Rules::parse(EARLIER).unwrap());
    binding.server.earlier.set(rules);
    for (tool, _, both) in calls {
        let call = call(tool, None);
        assert_eq!(word(binding.admit(now, &call, None)), both, "{tool}");
        let refuses = binding.refuses(now, &call, None);
        let refuses = refuses.map(|refusal| format!("refused by {}", refusal.rule));
        assert_eq!(
            refuses.as_deref(),
            Some(both).filter(|both| both.starts_with("refused"))
        );
    }
    for (request, tool, arguments, _, both) in questions {
        assert_eq!(planned(request, &call(tool, arguments)), both, "{tool}");
    }
}

#[test]
fn without_a_known_call_rules_about_calls_restrict() {
    let (binding, _events) = binding();
    let request = empty_form();
    let question = asking(&request);
    let planned = binding.plan(Timestamp::from_millis(1_000), None, question);
    let Planned::People(people) = planned else {
        panic!("the condition cannot be judged: {planned:?}");
    };
    assert_eq!(
        (people.rule.as_str(), people.hands_back),
        ("production", false)
    );
    assert_eq!(people.open_for, Duration::from_secs(30 * 60));
}

#[tokio::test]
async fn a_refusal_of_a_question_is_in_the_audit_once_it_is_told_and_not_while_it_is_judged() {
    let (binding, mut changes) = binding();
    let now = Timestamp::from_millis(1_000);
    let request = empty_form();
    let question = QuestionParts {
        has_credentials: true,
        ..asking(&request)
    };
    let call = call("put_a", None);
    for call in [Some((&call, None)), None] {
        for _ in 0..10 {
            let planned = binding.plan(now, call, question);
            assert!(matches!(planned, Planned::Refuse(_)), "{planned:?}");
        }
    }
    assert!(changes.try_recv().is_err(), "nobody has told of it");
    let reason = "no";
    binding.not_asked(Some(&call), &refusal("no-secrets", reason));
    let told = format!("{:?}", changes.try_recv().unwrap());
    assert!(told.contains("Refused") && told.contains("put_a"), "{told}");
    assert!(changes.try_recv().is_err());
}

#[test]
fn questions_in_calls_are_decided_alike_unless_a_rule_reads_their_arguments_or_people_see_them() {
    let by_caller = "[[rules]]\n when = 'caller.person == \"ada\"'\n ask = \"caller\"";
    let people =
        "[people.ada]\n mail = \"ada@example.com\"\n[[rules]]\n ask = { person = \"ada\" }";
    let long = format!(r#"{{"x":"{}"}}"#, "ü".repeat(sanitize::ARGUMENTS));
    let few = r#"{"environment":"production"}"#;
    for (file, few_differs, long_differs) in [
        (by_caller, false, false),
        (people, false, true),
        (FILE, true, true),
    ] {
        let rules = Arc::new(Rules::parse(file).unwrap());
        let key = IdentityKey::random().unwrap();
        let (teams, _changes) = CurrentRules::without_logins(rules, key);
        let caller = SessionCaller::new(ProvenCaller::of_program("0"));
        let binding = Binding::new(teams, server("k"), caller, Duration::from_secs(60));
        let decisions = binding.at(Timestamp::from_millis(1_000));
        let none = call("put_a", None);
        let same = |other: &CallSummary| decisions.group_of(&none) == decisions.group_of(other);
        assert_eq!(same(&call("put_a", Some(few))), !few_differs, "{file}");
        assert_eq!(same(&call("put_a", Some(&long))), !long_differs, "{file}");
        assert!(!same(&call("put_b", None)), "the name always counts");
    }
}

#[test]
fn a_host_is_the_same_for_rules_with_the_dot_of_the_root() {
    for url in [
        "https://evil.test/",
        "https://evil.test./",
        "https://EVIL.test./a.",
    ] {
        let facts = question_facts(QuestionParts {
            request: &ElicitRequest::Url {
                message: "Open it".to_owned(),
                url: url.to_owned(),
                elicitation_id: None,
            },
            form: None,
            has_credentials: false,
        });
        assert_eq!(facts.host, "evil.test", "{url}");
    }
}

#[test]
fn each_call_is_judged_by_the_proof_that_made_it_and_an_unknown_one_by_the_strictest() {
    const LOGS_IN: &str = "https://id.example";
    let file = r#"
        [people.ada]
        mail = "ada@example.com"
        [groups]
        admins = { claim = "admins" }
        [[rules]]
        name = "trusted"
        when = '"admins" in groups'
        allow = true
        [[rules]]
        name = "never"
        tool = "delete_*"
        refuse = "only admins"
        [[rules]]
        name = "asks"
        ask = { person = "ada" }
        when = '!("admins" in groups)'
    "#;
    let key = IdentityKey::random().unwrap();
    let rules = Arc::new(Rules::parse(file).unwrap());
    let (teams, _changes) = CurrentRules::without_logins(rules, key);
    let subject = |claims: &[&str]| {
        let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
        ProvenCaller::of_subject(LOGS_IN, "s-1", Some(LOGS_IN)).with_token("", claims)
    };
    let caller = SessionCaller::new(subject(&["admins"]));
    let binding = Binding::new(teams, server("k"), caller.clone(), Duration::from_secs(60));
    let now = Timestamp::from_millis(1_000);
    let of = |proof: ProofNumber| CallSummary {
        proof,
        ..call("delete_a", None)
    };
    let request = ElicitRequest::form(
        "Who?",
        &serde_json::json!({"type": "object", "properties": {}}),
    );
    let question = QuestionParts {
        request: &request,
        form: None,
        has_credentials: false,
    };
    let is_callers =
        |binding: &Binding| matches!(binding.plan(now, None, question), Planned::Caller { .. });
    let first = caller.number_of(&subject(&["admins"])).unwrap();
    assert!(matches!(
        binding.admit(now, &of(first), None),
        Admission::Free
    ));
    assert!(is_callers(&binding));
    let second = caller.number_of(&subject(&[])).unwrap();
    assert_ne!(first, second);
    assert!(matches!(
        binding.admit(now, &of(second), None),
        Admission::Refuse(_)
    ));
    assert!(matches!(
        binding.admit(now, &of(first), None),
        Admission::Free
    ));
    assert!(binding.refuses(now, &of(first), None).is_none());
    assert!(binding.refuses(now, &of(second), None).is_some());
    assert!(
        !is_callers(&binding),
        "the call may be that of the second token"
    );
    let decisions = binding.at(now);
    assert_ne!(
        decisions.group_of(&of(first)),
        decisions.group_of(&of(second))
    );
    // Another caller has no number here, and neither has one proof too many.
    let other = ProvenCaller::of_subject(LOGS_IN, "s-2", Some(LOGS_IN));
    assert_eq!(caller.number_of(&other), None);
    let many = (0..100).map(|number| caller.number_of(&subject(&[&format!("g{number}")])));
    assert_eq!(many.flatten().count(), 62);
    assert_eq!(caller.number_of(&subject(&[])), Some(second));
}
