//! `testing::Person::run`: a handler under test runs as on every revision, and what it does differently is told.

use std::sync::atomic::{AtomicU32, Ordering};

use mcp_elicit_server::testing::{Answer, Difference, Person};
use mcp_elicit_server::{Elicit, Outcome, Unanswered};
use serde_json::json;

fn choice(letter: &str) -> Answer {
    Answer::accept(json!({ "choice": letter }))
}

/// Counts the work that is done.
#[derive(Default)]
struct Works(AtomicU32);

impl Works {
    fn work(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn done(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

async fn ask(elicit: &Elicit, message: &str) -> Result<String, Unanswered> {
    elicit.choose(message, ["a", "b"]).await
}

#[tokio::test]
async fn a_handler_that_is_right_comes_to_one_result_and_works_once() {
    let works = Works::default();
    let person = Person::who([choice("a"), choice("x"), choice("b")]);
    let handler = async |elicit: Elicit| {
        let one = ask(&elicit, "One?").await?;
        let work = elicit.step("work", async || works.work()).await?;
        let two = ask(&elicit, "Two?").await?;
        let again = elicit.step("work", async || works.work()).await?;
        Ok::<_, Unanswered>(format!("{one}{work}{two}{again}"))
    };
    let result = person.run(handler).await.unwrap();
    assert_eq!(result.unwrap(), "a1b2");
    assert_eq!(works.done(), 2, "each of the two steps once");
    let asked = person.asked();
    assert_eq!(asked.len(), 3, "the second after a wrong answer again");
    assert!(asked[2].message.starts_with("Two?\n\n"));
}

#[tokio::test]
async fn whatever_a_person_does_is_the_same() {
    for answer in [
        Answer::accept(json!({ "confirm": true })),
        Answer::accept(json!({ "confirm": false })),
        Answer::Decline,
        Answer::Cancel,
        Answer::Silence,
    ] {
        let person = Person::who([answer.clone()]);
        let result = person
            .run(|elicit| async move { elicit.confirm("Really?").await })
            .await;
        assert!(result.is_ok(), "{answer:?}: {result:?}");
        let person = Person::who([answer.clone()]);
        let result = person
            .run(|elicit| async move {
                Ok::<_, Unanswered>(match elicit.confirm("Really?").outcome().await? {
                    Outcome::Accept(()) => 1,
                    Outcome::Decline => 2,
                    Outcome::Cancel => 3,
                })
            })
            .await;
        assert!(result.is_ok(), "{answer:?}: {result:?}");
    }
    let nobody = Person::nobody();
    let result = nobody.run(|elicit| async move { elicit.confirm("Really?").await });
    assert!(matches!(result.await, Ok(Err(Unanswered::CannotAsk(_)))));
    let person = Person::who([]);
    let result = person.run(|elicit| async move { elicit.confirm("Really?").await });
    assert!(matches!(result.await, Ok(Err(Unanswered::Author(_)))));
}

#[tokio::test]
async fn answers_have_short_names() {
    let handler = async |elicit: Elicit| {
        let one = ask(&elicit, "One?").await?;
        let many = elicit.choose_many("Many?", ["a", "b", "c"]).await?;
        elicit.confirm("Really?").await?;
        Ok::<_, Unanswered>(format!("{one}{many:?}"))
    };
    let answers = || [Answer::pick("b"), Answer::picks(["a", "c"])];
    let person = Person::who(answers().into_iter().chain([Answer::yes()]));
    let result = person.run(handler).await.unwrap();
    assert_eq!(result.unwrap(), r#"b["a", "c"]"#);
    let person = Person::who(answers().into_iter().chain([Answer::no()]));
    let result = person.run(handler).await.unwrap();
    assert!(matches!(result, Err(Unanswered::Refused(_))), "{result:?}");
}

#[tokio::test]
async fn questions_at_the_same_time_are_the_same() {
    let person = Person::who([choice("a"), choice("b")]);
    let both = |elicit: Elicit| async move {
        tokio::try_join!(ask(&elicit, "One?"), ask(&elicit, "Two?"))
    };
    let result = person.run(both).await.unwrap().unwrap();
    assert_eq!(result, ("a".to_owned(), "b".to_owned()));
    let person = Person::who([Answer::Decline, choice("b")]);
    let refused = person.run(both).await.unwrap();
    assert!(matches!(refused, Err(Unanswered::Refused(_))));
}

#[tokio::test]
async fn an_effect_outside_of_a_step_is_seen() {
    let works = Works::default();
    let person = Person::who([choice("a")]);
    let handler = async |elicit: Elicit| {
        let work = works.work();
        ask(&elicit, "One?").await?;
        Ok::<_, Unanswered>(work)
    };
    let difference = person.run(handler).await.unwrap_err();
    assert!(
        matches!(&difference, Difference::Result { once, again } if once != again),
        "{difference}"
    );
    assert!(difference.to_string().contains("step"), "{difference}");
    assert!(works.done() > 1, "and a test that counts sees it as well");
}

#[tokio::test]
async fn a_question_that_changes_is_seen() {
    let works = Works::default();
    let handler = async |elicit: Elicit| ask(&elicit, &format!("Visitor {}?", works.work())).await;
    let difference = Person::who([choice("a")]).run(handler).await.unwrap_err();
    let Difference::Question { was, now } = &difference else {
        panic!("{difference}")
    };
    assert_eq!(
        (was.as_str(), now.as_str()),
        ("Visitor 1?", "Visitor 2?"),
        "{difference}"
    );
}

#[tokio::test]
async fn a_question_that_comes_or_goes_is_seen() {
    let works = Works::default();
    let handler = async |elicit: Elicit| {
        ask(&elicit, "One?").await?;
        if works.work() > 1 {
            ask(&elicit, "Two?").await?;
        }
        Ok::<_, Unanswered>(())
    };
    let difference = Person::who([choice("a")]).run(handler).await.unwrap_err();
    assert_eq!(
        difference,
        Difference::Added {
            question: "Two?".into()
        }
    );
    let works = Works::default();
    let handler = async |elicit: Elicit| {
        ask(&elicit, "One?").await?;
        if works.work() == 1 {
            ask(&elicit, "Two?").await?;
        }
        Ok::<_, Unanswered>(())
    };
    let person = Person::who([choice("a"), choice("b")]);
    let difference = person.run(handler).await.unwrap_err();
    assert_eq!(
        difference,
        Difference::Missing {
            question: "Two?".into()
        }
    );
}

#[tokio::test]
async fn a_question_inside_a_step_is_an_error_here_too() {
    let inside = |elicit: Elicit| async move {
        let answer = elicit.step("start", || async { ask(&elicit, "One?").await.ok() });
        answer.await
    };
    let person = Person::who([choice("a")]);
    let result = inside(person.elicit()).await;
    assert!(
        matches!(&result, Err(Unanswered::Author(why)) if why.contains("inside the step")),
        "{result:?}"
    );
    let person = Person::who([choice("a")]);
    let result = person.run(inside).await.unwrap();
    assert!(matches!(result, Err(Unanswered::Author(_))), "{result:?}");
    assert!(person.asked().is_empty());
}
