//! Questions of a server's task, which several sessions of one caller may read.

use mcp_elicit_core::question::TaskEntry;
use tokio::sync::mpsc;

use super::*;

fn of_task(key: &str) -> NewQuestion {
    NewQuestion {
        call: None,
        until: Timestamp::from_millis(900_000),
        task: Some(TaskEntry {
            task: "t-1".to_owned(),
            key: key.to_owned(),
        }),
        ..asked("Where?")
    }
}

async fn create(
    record: &Arc<Record>,
    asked: &NewQuestion,
    session: u64,
) -> Result<RecordedQuestion, RecordError> {
    let (tell, _told) = mpsc::unbounded_channel();
    let before = Durability::BeforeSeen;
    let created = record.create(&local(), asked, SessionKey(session), &tell, before);
    created.await
}

fn is_elsewhere(created: &Result<RecordedQuestion, RecordError>) -> bool {
    matches!(created, Err(RecordError::AskedElsewhere))
}

#[tokio::test]
async fn the_question_of_a_task_is_put_to_people_once_in_all_sessions_and_its_answer_is_delivered_once()
 {
    let record = record(Arc::new(Memory::default()));
    let ids = [create(&record, &of_task("k"), 1).await.unwrap().id];
    assert!(is_elsewhere(&create(&record, &of_task("k"), 2).await));
    // Whatever is known of its calls there.
    let mut with_call = of_task("k");
    with_call.call = asked("Where?").call;
    with_call.others = vec!["read".to_owned()];
    assert!(is_elsewhere(&create(&record, &with_call, 2).await));
    // Another key, and another caller, have others.
    create(&record, &of_task("k2"), 2).await.unwrap();
    let (tell, _told) = mpsc::unbounded_channel();
    let before = Durability::BeforeSeen;
    let other = record.create(
        &of("s", "other"),
        &of_task("k"),
        SessionKey(3),
        &tell,
        before,
    );
    other.await.unwrap();
    // Once the session has gone, the next one waits for the same question, and has its answer.
    record.release(&ids[0]).await.unwrap();
    let again = create(&record, &of_task("k"), 2).await.unwrap();
    assert_eq!(again.id, ids[0]);
    record
        .submit(&ids[0], &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    record.deliver(&ids).await.unwrap().unwrap();
    record.confirm(&ids).await.unwrap();
    // The server has it, and asks again.
    create(&record, &of_task("k"), 4).await.unwrap();
}
