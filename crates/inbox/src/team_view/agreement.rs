//! Sentences about the confirmations of several people: those that no longer count, with the reasons, and whether
//! enough people are left.

use mcp_elicit_policy::Addressee;
use mcp_elicit_policy::quorum::Membership;
use mcp_elicit_record::store::Row;
use mcp_elicit_record::team::Team;
use mcp_elicit_record::timeline::TimelineKind;

use super::listed;

/// Returns the number of people whose confirmation counts now.
pub(super) fn counted(team: &Team, people: &dyn Membership) -> usize {
    let quorum = team.quorum();
    let void = quorum.void_votes(people);
    let votes = quorum.votes().iter();
    votes
        .filter(|voter| !void.contains(&voter.as_str()))
        .count()
}

/// Returns the sentences for the reader of an open question. `may_replace` is `true` if the reader may replace the
/// answers that wait for confirmation; `name` returns a person's name for readers.
pub(super) fn lines(
    row: &Row,
    team: &Team,
    people: &dyn Membership,
    me: Option<&str>,
    may_replace: bool,
    name: &dyn Fn(&str) -> String,
) -> Vec<String> {
    if !row.lifecycle.is_open() {
        return Vec::new();
    }
    let quorum = team.quorum();
    let words = |to: &Addressee| match to {
        Addressee::Caller => "the caller".to_owned(),
        Addressee::Person(person) => name(person),
        Addressee::Group(group) => format!("the group {group}"),
    };
    let need = usize::from(quorum.need().get());
    let void = quorum.void_votes(people);
    let (noun, done, must) = if team.is_approval {
        ("approval", "approved", "approve")
    } else {
        ("agreement", "agreed", "agree")
    };
    let (enter_others, entered_others) = if team.is_approval {
        ("approve other arguments", "approved other arguments")
    } else {
        ("enter other answers", "entered other answers")
    };
    let mut lines: Vec<String> = void
        .iter()
        .map(|person| name(person))
        .map(|name| format!("{name}'s {noun} no longer counts: {name} is not asked any more."))
        .collect();
    let agreed = quorum.votes().iter().map(String::as_str);
    let agreed: Vec<&str> = agreed.filter(|voter| !void.contains(voter)).collect();
    if me.is_some_and(|me| agreed.contains(&me)) {
        let more = match quorum.missing_parts(people).in_words(&words) {
            Some(missing) => missing,
            None => format!("{} more", need.saturating_sub(agreed.len())),
        };
        lines.push(format!("You have {done}. {more} must {must}."));
    } else {
        if let Some(by) = me.and_then(|me| overridden_by(row, me)) {
            let by = name(&by);
            lines.push(format!(
                "{by} {entered_others}: your {noun} no longer counts."
            ));
        }
        if may_replace && !agreed.is_empty() {
            let names: Vec<String> = agreed.iter().map(|person| name(person)).collect();
            let dropped = match names.as_slice() {
                [only] => format!("{only}'s {noun} no longer counts"),
                several => format!("the {noun}s of {} no longer count", listed(several, "and")),
            };
            lines.push(format!("If you {enter_others}, {dropped}."));
        }
    }
    if let Some(left) = quorum.people_left(people).filter(|left| *left < need) {
        let left = match left {
            0 => "Nobody can".to_owned(),
            1 => "Only 1 person can".to_owned(),
            left => format!("Only {left} people can"),
        };
        lines.push(format!(
            "{left} answer now, and {need} must {must}: the question waits until more people are asked, or until its time runs out."
        ));
    }
    lines
}

/// Returns the person who replaced the answers that this person had confirmed.
fn overridden_by(row: &Row, me: &str) -> Option<String> {
    let mut by_other = None;
    for event in row.timeline() {
        let by = event.by.as_ref().and_then(|by| by.people().first());
        let by = by.map(String::as_str).unwrap_or_default();
        match event.kind {
            TimelineKind::Filled | TimelineKind::Edited | TimelineKind::Confirmed if by == me => {
                by_other = Some(None);
            }
            // Before that, this person had not confirmed anything.
            TimelineKind::Edited if by_other.is_some() => by_other = Some(Some(by.to_owned())),
            _ => {}
        }
    }
    by_other.flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::num::NonZeroU8;
    use std::sync::Arc;
    use std::time::Duration;

    use mcp_elicit_core::form::Form;
    use mcp_elicit_policy::quorum::ActingPerson;
    use mcp_elicit_policy::rules::{AskedPeople, Plan};
    use mcp_elicit_record::store::Memory;
    use mcp_elicit_record::team::{Acted, TeamAct, TeamCaller};
    use mcp_elicit_record::{LockFile, OwnKeys, Record, clock};
    use serde_json::{Value, json};

    use super::*;
    use crate::sample;

    /// The current members of group `ops`.
    struct Ops(BTreeSet<&'static str>);

    impl Ops {
        fn of<const N: usize>(names: [&'static str; N]) -> Self {
            Self(BTreeSet::from(names))
        }
    }

    impl Membership for Ops {
        fn is_member(&self, _: &str, person: &str) -> bool {
            self.0.contains(person)
        }

        fn is_caller(&self, _: &str) -> bool {
            false
        }

        fn members(&self, _: &str) -> Option<Vec<String>> {
            Some(self.0.iter().map(|name| (*name).to_owned()).collect())
        }
    }

    /// A question that two of the group must confirm.
    struct Question {
        record: Arc<Record>,
        id: String,
        people: Ops,
    }

    impl Question {
        async fn ask(is_approval: bool) -> Self {
            let store = Arc::new(Memory::default());
            let lock = LockFile::unshared().unwrap();
            let keys = OwnKeys::random().unwrap();
            let record = Arc::new(Record::new(store, keys, lock, clock::now));
            let plan = Plan {
                ask: AskedPeople {
                    to: vec![Addressee::Group("ops".to_owned())],
                    each: Vec::new(),
                    need: NonZeroU8::new(2).unwrap(),
                    not_caller: false,
                    is_any: false,
                },
                ..Plan::caller()
            };
            let asked = ["ada", "bob"].map(str::to_owned).to_vec();
            let usual = Duration::from_secs(60 * 60);
            let team = Team::new("two", "r", TeamCaller::default(), &plan, asked, usual);
            let team = if is_approval {
                team.for_approval()
            } else {
                team
            };
            let plan = Some(team.to_plan().unwrap());
            let id = sample::raised_for(&record, plan).await.unwrap();
            let people = Ops::of(["ada", "bob"]);
            Self { record, id, people }
        }

        async fn row(&self) -> Row {
            self.record.find(&self.id).await.unwrap().unwrap()
        }

        async fn act(&self, person: &str, act: TeamAct<'_>) {
            let login_age = None;
            let by = ActingPerson { person, login_age };
            let acted = self.record.act(&self.id, act, by, &self.people);
            let acted = acted.await.unwrap();
            assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
        }

        async fn fill(&self, person: &str, content: Value) {
            let row = self.row().await;
            let params: Value = serde_json::from_str(row.params.as_ref().unwrap()).unwrap();
            let form = Form::from_value(&params["requestedSchema"]).unwrap();
            let answers = form.check(content).unwrap();
            let version = row.team.as_ref().unwrap().quorum().version();
            let answers = Some(&answers);
            self.act(person, TeamAct::Fill { answers, version }).await;
        }

        async fn lines(&self, me: &str) -> Vec<String> {
            let row = self.row().await;
            let team = row.team.as_ref().unwrap();
            let may_replace = !team.quorum().votes().is_empty();
            let name = |name: &str| name.to_owned();
            lines(&row, team, &self.people, Some(me), may_replace, &name)
        }
    }

    #[tokio::test]
    async fn who_agreed_is_told_so_and_that_other_answers_drop_the_agreement() {
        let question = Question::ask(false).await;
        assert!(question.lines("ada").await.is_empty());
        question.fill("ada", json!({"name": "Moon"})).await;
        assert_eq!(
            question.lines("ada").await,
            ["You have agreed. 1 more must agree."]
        );
        assert_eq!(
            question.lines("bob").await,
            ["If you enter other answers, ada's agreement no longer counts."]
        );
        question.fill("bob", json!({"name": "Mars"})).await;
        assert_eq!(
            question.lines("ada").await,
            [
                "bob entered other answers: your agreement no longer counts.",
                "If you enter other answers, bob's agreement no longer counts."
            ]
        );
        let row = question.row().await;
        let earlier = row.timeline();
        let earlier = earlier.iter().map(|event| event.kind);
        assert!(earlier.eq([
            TimelineKind::Asked,
            TimelineKind::Filled,
            TimelineKind::Edited
        ]));
        question.fill("ada", json!({"name": "Mars"})).await;
        assert!(question.lines("ada").await.is_empty(), "it has ended");
    }

    #[tokio::test]
    async fn the_words_of_approvals_are_of_approvals() {
        let question = Question::ask(true).await;
        question.fill("ada", json!({"name": "Moon"})).await;
        assert_eq!(
            question.lines("bob").await,
            ["If you approve other arguments, ada's approval no longer counts."]
        );
        question.fill("bob", json!({"name": "Mars"})).await;
        assert_eq!(
            question.lines("ada").await[0],
            "bob approved other arguments: your approval no longer counts."
        );
    }

    #[tokio::test]
    async fn an_approval_of_somebody_who_is_not_asked_any_more_is_named() {
        let mut question = Question::ask(true).await;
        question.fill("ada", json!({"name": "Moon"})).await;
        question.people = Ops::of(["bob"]);
        let void = "ada's approval no longer counts: ada is not asked any more.";
        let waits = "Only 1 person can answer now, and 2 must approve: the question waits until more people are asked, or until its time runs out.";
        assert_eq!(question.lines("bob").await, [void, waits]);
        let row = question.row().await;
        assert_eq!(counted(row.team.as_ref().unwrap(), &question.people), 0);
        let digest = question.record.entered(&row).unwrap().unwrap().digest;
        question.act("bob", TeamAct::Confirm { digest }).await;
        let agreed = "You have approved. 1 more must approve.";
        assert_eq!(question.lines("bob").await, [void, agreed, waits]);
        let row = question.row().await;
        assert_eq!(counted(row.team.as_ref().unwrap(), &question.people), 1);
        // The file is changed again.
        question.people = Ops::of(["bob", "cy"]);
        assert_eq!(question.lines("bob").await, [void, agreed]);
    }
}
