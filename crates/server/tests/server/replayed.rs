//! `testing::ScriptedUser::run`: a handler under test runs as on every revision, and differences are reported.

use std::sync::atomic::{AtomicU32, Ordering};

use mcp_elicit_server::testing::{
    Difference, RunError, ScriptedAnswer, ScriptedUser, ScriptedUserError,
};
use mcp_elicit_server::{AskOutcome, Elicit, ElicitError};
use serde_json::json;

fn choice(letter: &str) -> ScriptedAnswer {
    ScriptedAnswer::accept(json!({ "choice": letter }))
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

fn difference_of<R: std::fmt::Debug>(ended: Result<R, RunError>) -> Difference {
    match ended {
        Err(RunError::Difference(difference)) => difference,
        other => panic!("{other:?}"),
    }
}

async fn ask(elicit: &Elicit, message: &str) -> Result<String, ElicitError> {
    elicit.choose(message, ["a", "b"]).await
}

#[tokio::test]
async fn a_handler_that_is_right_comes_to_one_result_and_works_once() {
    let works = Works::default();
    let person = ScriptedUser::answering([choice("a"), choice("x"), choice("b")]);
    let handler = async |elicit: Elicit| {
        let one = ask(&elicit, "One?").await?;
        let work = elicit.step("work", async || works.work()).await?;
        let two = ask(&elicit, "Two?").await?;
        let again = elicit.step("work", async || works.work()).await?;
        Ok::<_, ElicitError>(format!("{one}{work}{two}{again}"))
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
        ScriptedAnswer::accept(json!({ "confirm": true })),
        ScriptedAnswer::accept(json!({ "confirm": false })),
        ScriptedAnswer::Decline,
        ScriptedAnswer::Cancel,
        ScriptedAnswer::Silence,
    ] {
        let person = ScriptedUser::answering([answer.clone()]);
        let result = person
            .run(|elicit| async move { elicit.confirm("Really?").await })
            .await;
        assert!(result.is_ok(), "{answer:?}: {result:?}");
        let person = ScriptedUser::answering([answer.clone()]);
        let result = person
            .run(|elicit| async move {
                Ok::<_, ElicitError>(match elicit.confirm("Really?").outcome().await? {
                    AskOutcome::Accept(()) => 1,
                    AskOutcome::Decline => 2,
                    AskOutcome::Cancel => 3,
                })
            })
            .await;
        assert!(result.is_ok(), "{answer:?}: {result:?}");
    }
    let unavailable = ScriptedUser::unavailable();
    let result = unavailable.run(|elicit| async move { elicit.confirm("Really?").await });
    assert!(matches!(result.await, Ok(Err(ElicitError::CannotAsk(_)))));
}

#[tokio::test]
async fn a_script_that_does_not_fit_fails_the_test() {
    let handler = async |elicit: Elicit| {
        ask(&elicit, "One?").await?;
        elicit.confirm("Really?").await
    };
    let fault = async |answers: &[ScriptedAnswer]| {
        let ended = ScriptedUser::answering(answers.to_vec()).run(handler).await;
        match ended {
            Err(RunError::Script(fault)) => fault,
            other => panic!("{other:?}"),
        }
    };
    let short = |question, message: &str| ScriptedUserError::TooShort {
        question,
        message: message.to_owned(),
    };
    assert_eq!(fault(&[]).await, short(1, "One?"));
    assert_eq!(fault(&[choice("a")]).await, short(2, "Really?"));
    let misfit = fault(&[choice("a"), ScriptedAnswer::pick("a")]).await;
    assert!(
        misfit
            .to_string()
            .starts_with("answer 2 does not fit: confirm: "),
        "{misfit}"
    );
    let misfit = fault(&[choice("x")]).await;
    assert!(
        matches!(misfit, ScriptedUserError::Misfit { answer: 1, .. }),
        "{misfit}"
    );
    // A decline ends the call, so what follows in the script is never given.
    for left in [
        &[ScriptedAnswer::Decline, ScriptedAnswer::yes()][..],
        &[choice("a"), ScriptedAnswer::yes(), ScriptedAnswer::yes()],
    ] {
        assert_eq!(fault(left).await, ScriptedUserError::Unused { left: 1 });
    }
    // Wrong answers on purpose are a result of the handler.
    let wrong = ScriptedUser::answering([choice("x"), choice("y"), choice("z")]);
    let ended = wrong.run(handler).await;
    assert!(
        matches!(ended, Ok(Err(ElicitError::Wrong { .. }))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn the_reason_of_a_failed_check_is_in_the_message_of_the_error() {
    let handler = async |elicit: Elicit| {
        elicit
            .choose("One?", ["a", "b"])
            .attempts(2)
            .check(|_| Err(("choice", "the single room takes one guest")))
            .await
    };
    let user = ScriptedUser::answering([choice("a"), choice("b")]);
    let wrong = user.run(handler).await.unwrap().unwrap_err();
    let error = rmcp::ErrorData::from(wrong);
    assert!(
        error
            .message
            .ends_with(": choice: the single room takes one guest"),
        "{error:?}"
    );
}

#[tokio::test]
async fn answers_have_short_names() {
    let handler = async |elicit: Elicit| {
        let one = ask(&elicit, "One?").await?;
        let many = elicit.choose_many("Many?", ["a", "b", "c"]).await?;
        elicit.confirm("Really?").await?;
        Ok::<_, ElicitError>(format!("{one}{many:?}"))
    };
    let answers = || [ScriptedAnswer::pick("b"), ScriptedAnswer::picks(["a", "c"])];
    let person = ScriptedUser::answering(answers().into_iter().chain([ScriptedAnswer::yes()]));
    let result = person.run(handler).await.unwrap();
    assert_eq!(result.unwrap(), r#"b["a", "c"]"#);
    let person = ScriptedUser::answering(answers().into_iter().chain([ScriptedAnswer::no()]));
    let result = person.run(handler).await.unwrap();
    assert!(matches!(result, Err(ElicitError::Refused(_))), "{result:?}");
}

#[tokio::test]
async fn questions_at_the_same_time_are_the_same() {
    let person = ScriptedUser::answering([choice("a"), choice("b")]);
    let both = |elicit: Elicit| async move {
        tokio::try_join!(ask(&elicit, "One?"), ask(&elicit, "Two?"))
    };
    let result = person.run(both).await.unwrap().unwrap();
    assert_eq!(result, ("a".to_owned(), "b".to_owned()));
    let person = ScriptedUser::answering([ScriptedAnswer::Decline, choice("b")]);
    let refused = person.run(both).await.unwrap();
    assert!(matches!(refused, Err(ElicitError::Refused(_))));
}

#[tokio::test]
async fn an_effect_outside_of_a_step_is_seen() {
    let works = Works::default();
    let person = ScriptedUser::answering([choice("a")]);
    let handler = async |elicit: Elicit| {
        let work = works.work();
        ask(&elicit, "One?").await?;
        Ok::<_, ElicitError>(work)
    };
    let difference = difference_of(person.run(handler).await);
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
    let person = ScriptedUser::answering([choice("a")]);
    let difference = difference_of(person.run(handler).await);
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
        Ok::<_, ElicitError>(())
    };
    let person = ScriptedUser::answering([choice("a")]);
    let difference = difference_of(person.run(handler).await);
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
        Ok::<_, ElicitError>(())
    };
    let person = ScriptedUser::answering([choice("a"), choice("b")]);
    let difference = difference_of(person.run(handler).await);
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
    let person = ScriptedUser::answering([choice("a")]);
    let result = inside(person.elicit()).await;
    assert!(
        matches!(&result, Err(ElicitError::Author(why)) if why.contains("inside the step")),
        "{result:?}"
    );
    let person = ScriptedUser::answering([]);
    let result = person.run(inside).await.unwrap();
    assert!(matches!(result, Err(ElicitError::Author(_))), "{result:?}");
    assert!(person.asked().is_empty());
}
