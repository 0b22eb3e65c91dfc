//! Values that are sealed anew: every kind of them, beside a gateway that goes on, after which only the newest key is
//! needed.

use std::collections::BTreeSet;

use mcp_elicit_core::question::FoundCall;

use super::*;
use crate::Resealed;
use crate::encryption::SealedWith;
use crate::grants::ApprovalGrant;

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// A record in a file, with keys in a file.
struct Folder(tempfile::TempDir);

impl Folder {
    fn seal(&self) -> std::path::PathBuf {
        self.0.path().join("seal.key")
    }

    fn store(&self) -> Sqlite {
        let keys = self.keys();
        Sqlite::at(&self.0.path().join("record.sqlite")).with_keys(&keys)
    }

    fn keys(&self) -> OwnKeys {
        OwnKeys {
            encryption: Encryption::from_file(&self.seal()).unwrap(),
            identity: IdentityKey::from_file(&self.0.path().join("identity.key")).unwrap(),
        }
    }

    fn open(&self) -> Arc<Record> {
        let lock = LockFile::unshared().unwrap();
        Arc::new(Record::new(
            Arc::new(self.store()),
            self.keys(),
            lock,
            clock,
        ))
    }

    /// Changes the key, and keeps every earlier one.
    async fn rotate(&self) {
        let all = SealedWith {
            any: true,
            ..SealedWith::default()
        };
        Encryption::rotate(&self.seal(), &all).unwrap();
        // As the command does: the check of the record is sealed anew.
        self.store().ready().await.unwrap();
    }

    async fn needed(&self) -> SealedWith {
        self.store().sealed_with().await.unwrap()
    }
}

fn grant() -> ApprovalGrant {
    ApprovalGrant {
        key: "k".to_owned(),
        question: None,
        rule: "deploys".to_owned(),
        rule_digest: "1".to_owned(),
        answers: r#"{"to":"moon"}"#.to_owned(),
        at: Timestamp::from_millis(1_000),
        until: Timestamp::from_millis(5_000),
    }
}

/// A call whose question may belong to two calls.
fn ambiguous() -> NewQuestion {
    let mut asked = asked("Which?");
    let mut other = asked.call.clone().unwrap();
    other.target = "destroy".to_owned();
    asked.others = vec![other.target.clone()];
    asked.candidates = vec![other];
    asked
}

#[tokio::test]
async fn every_sealed_value_is_sealed_anew_and_then_no_earlier_key_is_needed() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let running = folder.open();
    let (tell, _told) = mpsc::unbounded_channel();
    let (answered, _told) = create(&running, &asked("Answered?")).await;
    let won = running.submit(&answered, &accept(), "inbox", Durability::WithDelivery);
    assert_eq!(won.await.unwrap(), Verdict::Won);
    let (two, _told) = create(&running, &ambiguous()).await;
    let (voted, _told) = create(&running, &asked_of("1")).await;
    fill(&running, &voted, "ada", "Ada", 0).await;
    let text = "no \"text\":\" here";
    let comment = TeamAct::Comment { text };
    running
        .act(&voted, comment, by("bob"), &ops())
        .await
        .unwrap();
    let (ended, _told) = create(&running, &about_a_call(Some(Duration::from_secs(100)))).await;
    running.end(&ended, Ending::CallEnded).await.unwrap();
    running
        .keep_call(&local(), None, "digest", &tell, SessionKey(2), None)
        .await
        .unwrap();
    running
        .keep_result(&tell, SessionKey(2), RESULT.to_owned())
        .await
        .unwrap();
    running.keep_grant(&grant()).await.unwrap();
    running.flush().await.unwrap();
    folder.rotate().await;

    // By a command, beside the gateway.
    let command = folder.open();
    let mut parts = 0;
    let done = command
        .reseal("command line", |_| parts += 1)
        .await
        .unwrap();
    // Arguments of three, content, an entered answer, a comment, retained arguments, a result and a grant.
    assert_eq!(done.values, 9, "{done:?}");
    assert_eq!((done.left, done.unopened, parts), (0, 0, 3));
    let needed = folder.needed().await;
    let newest = folder.keys().encryption.newest().unwrap();
    assert_eq!(needed.keys, BTreeSet::from([newest]), "{needed:?}");
    assert!(!needed.any);
    let again = command.reseal("command line", |_| ()).await.unwrap();
    assert_eq!(again, Resealed::default(), "there is nothing to do");
    let events = events(&command).await;
    let entries: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "resealed")
        .collect();
    assert_eq!(entries.len(), 1, "{events:?}");
    let why = entries[0]["reason"].as_str().unwrap();
    assert!(why.contains(&newest.to_string()), "{why}");

    let reads = async |record: &Arc<Record>| {
        let row = async |id: &str| record.find(id).await.unwrap().unwrap();
        assert_eq!(record.candidates(&row(&two).await).unwrap().len(), 2);
        let team = row(&voted).await;
        let entered = record.entered(&team).unwrap().unwrap();
        assert_eq!(entered.content.as_deref(), Some(r#"{"name":"Ada"}"#));
        assert_eq!(record.comments(&team).unwrap()[0].text, text);
        let kept = record.retained_call(&row(&ended).await).unwrap().unwrap();
        assert_eq!(kept.arguments, r#"{"volume":"all"}"#);
        assert_eq!(record.grants().await.unwrap(), [grant()]);
    };
    reads(&running).await;
    // What the gateway has in memory is still its own: the answer is delivered.
    let delivered = running.deliver(std::slice::from_ref(&answered)).await;
    let taken = delivered.unwrap().unwrap();
    assert!(taken[0].contains("Ada"), "{taken:?}");
    running.flush().await.unwrap();
    drop(running);
    // It may have written values back. Then one more run is enough, since no gateway runs.
    command.reseal("command line", |_| ()).await.unwrap();
    drop(command);
    let needed = folder.needed().await;
    assert_eq!(needed.keys, BTreeSet::from([newest]), "{needed:?}");
    let retired = Encryption::retire(&folder.seal(), &needed).unwrap();
    assert_eq!(retired.len(), 1);
    let after = folder.open();
    reads(&after).await;
    let done = fill(&after, &voted, "bob", "Ada", 1).await;
    assert!(matches!(done, Acted::Done(..)), "{done:?}");
    after.load_calls().await.unwrap();
    let found = after.find_call(&local(), None, "digest").await;
    assert_eq!(found.unwrap(), FoundCall::Result(RESULT.to_owned()));
}

#[tokio::test]
async fn a_value_whose_key_is_missing_stays_as_it_is_and_is_counted() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let record = folder.open();
    let (lost, _told) = create(&record, &asked("Lost?")).await;
    let first = std::fs::read(folder.seal()).unwrap();
    let id = folder.keys().encryption.newest().unwrap();
    folder.rotate().await;
    let (kept, _told) = create(&record, &asked("Kept?")).await;
    record.flush().await.unwrap();
    drop(record);
    let both = std::fs::read(folder.seal()).unwrap();
    state_file::replace(&folder.seal(), &both[..32]).unwrap();
    let record = folder.open();
    folder.rotate().await;
    let done = record.reseal("command line", |_| ()).await.unwrap();
    assert_eq!((done.values, done.left, done.unopened), (1, 0, 1));
    assert_eq!(done.missing, BTreeSet::from([id]));
    let row = async |id: &str| record.find(id).await.unwrap().unwrap();
    assert!(record.arguments(&row(&kept).await).unwrap().is_some());
    assert!(record.arguments(&row(&lost).await).is_err());
    // With the key it goes on.
    let all = [std::fs::read(folder.seal()).unwrap(), first].concat();
    state_file::replace(&folder.seal(), &all).unwrap();
    let done = record.reseal("command line", |_| ()).await.unwrap();
    assert_eq!((done.values, done.left, done.unopened), (1, 0, 0));
    assert!(record.arguments(&row(&lost).await).unwrap().is_some());
}
