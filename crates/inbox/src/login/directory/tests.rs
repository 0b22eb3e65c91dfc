//! One person under two names: before and after a login with a mail address, and before and after the file is reloaded.

use std::num::NonZeroU8;
use std::sync::{Mutex, PoisonError};

use mcp_elicit_policy::quorum::{Act, Denied, Quorum, QuorumState, QuorumStep};
use mcp_elicit_policy::rules::{AskedPeople, Plan};
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::team::Team;
use mcp_elicit_record::{LockFile, OwnKeys, Record, clock};

use super::*;
use crate::login::table::{Lifetimes, LoginAdmission};
use crate::sample;
use crate::state_folder::tables;

const HOUR: Duration = Duration::from_secs(60 * 60);
const FILE: &str = r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "bob@example.com"
[groups]
ops = ["ada", "bob"]
leads = { claim = "leads" }
[roles]
admin = ["person:bob"]
"#;

/// A question for the groups `ops` and `leads`, of whose members two must agree.
struct Rig {
    rules: Arc<Mutex<Arc<Rules>>>,
    logins: Arc<Logins>,
    directory: Directory,
    row: Row,
    _folder: tempfile::TempDir,
}

impl Rig {
    async fn new(file: &str, not_caller: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let logins = Arc::new(Logins::of(Arc::new(tables(
            &folder.path().join("record.sqlite"),
        ))));
        let rules = Arc::new(Mutex::new(Arc::new(Rules::parse(file).unwrap())));
        let now = {
            let rules = Arc::clone(&rules);
            move || Arc::clone(&rules.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let directory = Directory::new(
            Arc::new(now),
            logins.clone(),
            "proxy".to_owned(),
            HOUR,
            clock::now,
        );
        let group = |name: &str| Addressee::Group(name.to_owned());
        let plan = Plan {
            ask: AskedPeople {
                to: vec![group("ops"), group("leads")],
                need: NonZeroU8::new(2).unwrap(),
                not_caller,
                each: Vec::new(),
                is_any: true,
            },
            ..Plan::caller()
        };
        // Ada's key made the call.
        let caller = TeamCaller {
            person: Some("ada".to_owned()),
            mail_digest: mail_digest("ada@example.com"),
            ..TeamCaller::default()
        };
        let team = Team::new("two", "r", caller, &plan, Vec::new(), HOUR);
        let lease = LockFile::unshared().unwrap();
        let store = Arc::new(Memory::default());
        let record = Record::new(store, OwnKeys::random().unwrap(), lease, clock::now);
        let record = Arc::new(record);
        let asked = sample::raised_for(&record, Some(team.to_plan().unwrap()));
        let row = record.find(&asked.await.unwrap()).await.unwrap().unwrap();
        Self {
            rules,
            logins,
            directory,
            row,
            _folder: folder,
        }
    }

    fn reload(&self, file: &str) {
        let next = Arc::new(Rules::parse(file).unwrap());
        *self.rules.lock().unwrap() = next;
    }

    /// Logs in a member of `leads`. Returns the name.
    fn log_in(&self, subject: &str, mail: Option<&str>) -> String {
        let identity = crate::login::table::LoginIdentity {
            issuer: "proxy".to_owned(),
            subject: subject.to_owned(),
            name: String::new(),
            mail: mail.map(str::to_owned),
            claims: vec!["leads".to_owned()],
            sid: None,
            auth_at: None,
        };
        let rules = Arc::clone(&self.rules.lock().unwrap());
        let admission = LoginAdmission {
            people: rules.people(),
            allow: &[],
            lifetimes: Lifetimes {
                idle: HOUR,
                max: HOUR,
            },
        };
        let made = self
            .logins
            .log_in(&identity, admission, None, "a test", clock::now());
        made.unwrap().signed_in.person
    }

    fn quorum(&self) -> Quorum {
        self.row.team.as_ref().unwrap().quorum().clone()
    }

    fn act(&self, quorum: &Quorum, person: &str, act: Act) -> Result<QuorumStep, Denied> {
        let by = ActingPerson {
            person,
            login_age: None,
        };
        let now = self.directory.now();
        quorum.act(by, act, clock::now(), &now.of(&self.row))
    }

    fn filled_by(&self, person: &str) -> Quorum {
        let fill = Act::Fill {
            digest: [1; 32],
            version: 0,
        };
        self.act(&self.quorum(), person, fill).unwrap().0
    }
}

const CONFIRM: Act = Act::Confirm { digest: [1; 32] };

#[tokio::test]
async fn a_person_whom_two_names_stand_for_agrees_once() {
    // Without a verified mail address at first, and then with the one in the file.
    let rig = Rig::new(FILE, false).await;
    let unnamed = rig.log_in("a1", None);
    assert_eq!(unnamed, "proxy a1");
    let filled = rig.filled_by(&unnamed);
    let named = rig.log_in("a1", Some("ada@example.com"));
    assert_eq!(named, "ada");
    let refused = rig.act(&filled, &named, CONFIRM).unwrap_err();
    assert_eq!(refused, Denied::AlreadyVotedAs);
    // The reloaded file has another name for her.
    let other = FILE
        .replace("ada]", "ada-l]")
        .replace("\"ada\"", "\"ada-l\"");
    let filled = rig.filled_by(&named);
    rig.reload(&other);
    let renamed = rig.log_in("a1", Some("ada@example.com"));
    assert_eq!(renamed, "ada-l");
    let refused = rig.act(&filled, &renamed, CONFIRM).unwrap_err();
    assert_eq!(refused, Denied::AlreadyVotedAs);
    let bob = rig.log_in("b1", Some("bob@example.com"));
    let (ended, _) = rig.act(&filled, &bob, CONFIRM).unwrap();
    assert!(matches!(ended.state(), QuorumState::Ended(_)));
}

#[tokio::test]
async fn who_may_have_agreed_in_a_chat_is_told_apart_by_the_mail_address_or_not_at_all() {
    let rig = Rig::new(FILE, false).await;
    // Ada has never logged in: a chat service knows her by the mail address of the file.
    let filled = rig.filled_by("ada");
    let nobody_knows = rig.log_in("x1", None);
    let refused = rig.act(&filled, &nobody_knows, CONFIRM).unwrap_err();
    assert_eq!(refused, Denied::VoterUnknown);
    let other_mail = rig.log_in("y1", Some("yan@example.com"));
    assert!(rig.act(&filled, &other_mail, CONFIRM).is_ok());
    // The other way round.
    let filled = rig.filled_by(&nobody_knows);
    assert_eq!(
        rig.act(&filled, "ada", CONFIRM).unwrap_err(),
        Denied::VoterUnknown
    );
    assert!(rig.act(&filled, &other_mail, CONFIRM).is_ok());
    assert!(rig.act(&rig.filled_by("ada"), "bob", CONFIRM).is_ok());
}

#[tokio::test]
async fn the_owner_of_a_key_is_the_caller_under_another_name_too() {
    let rig = Rig::new(FILE, true).await;
    let fill = || Act::Fill {
        digest: [1; 32],
        version: 0,
    };
    let refused = rig.act(&rig.quorum(), "ada", fill()).unwrap_err();
    assert_eq!(refused, Denied::IsCaller);
    rig.reload(
        &FILE
            .replace("ada]", "ada-l]")
            .replace("\"ada\"", "\"ada-l\""),
    );
    let renamed = rig.log_in("a1", Some("ada@example.com"));
    assert_eq!(renamed, "ada-l");
    let unnamed = rig.log_in("x1", None);
    for person in [renamed, unnamed] {
        let refused = rig.act(&rig.quorum(), &person, fill()).unwrap_err();
        assert_eq!(refused, Denied::CallerUnknown, "{person}");
    }
    let bob = rig.log_in("b1", Some("bob@example.com"));
    assert!(rig.act(&rig.quorum(), &bob, fill()).is_ok());
}
