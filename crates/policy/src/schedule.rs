//! The schedule of one question: reminders, escalations, and the deadline, after which it cannot be answered.

use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use crate::document::duration_text;
use crate::people::Addressee;

/// A time at which more people are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Escalation {
    /// The time since the question was asked.
    #[serde(serialize_with = "as_text")]
    pub after: Duration,
    /// The person or group that is added.
    pub to: Addressee,
}

/// The times of one question, counted from its creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    deadline: Duration,
    steps: Vec<(Duration, Due)>,
}

/// An action that is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Due {
    /// People who have not acted are reminded.
    Remind,
    /// One more person or group is asked.
    Escalate(Addressee),
    /// The question ends without an answer in time, which is never an answer.
    TimeOut,
}

impl Schedule {
    /// Creates a schedule. Steps at or after the deadline never come.
    pub fn new(deadline: Duration, remind: &[Duration], escalate: &[Escalation]) -> Self {
        let reminders = remind.iter().map(|after| (*after, Due::Remind));
        let escalations = escalate
            .iter()
            .map(|step| (step.after, Due::Escalate(step.to.clone())));
        // An escalation precedes a reminder of the same time, so that added people are not notified twice.
        let mut steps: Vec<_> = escalations
            .chain(reminders)
            .filter(|(after, _)| *after < deadline)
            .collect();
        steps.sort_by_key(|(after, _)| *after);
        Self { deadline, steps }
    }

    /// Returns the time for which the question is open.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the next due action, after `done` of them are done; `None` after the timeout.
    pub fn next(&self, asked_at: Timestamp, done: usize) -> Option<(Timestamp, Due)> {
        let (after, due) = match self.steps.get(done) {
            Some((after, due)) => (*after, due.clone()),
            None if done == self.steps.len() => (self.deadline, Due::TimeOut),
            None => return None,
        };
        Some((asked_at.after(after), due))
    }

    /// Returns every action that is due by `now`, after `done` are done. After a pause of the gateway only the newest
    /// reminder is included, and after the deadline only the timeout.
    pub fn due(&self, asked_at: Timestamp, done: usize, now: Timestamp) -> Vec<Due> {
        let mut due = Vec::new();
        let mut step = done;
        while let Some((at, next)) = self.next(asked_at, step)
            && at <= now
        {
            if next == Due::TimeOut {
                due.clear();
            }
            if next == Due::Remind {
                due.retain(|due| *due != Due::Remind);
            }
            due.push(next);
            step += 1;
        }
        due
    }
}

/// Writes a duration as text.
pub(crate) fn as_text<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&duration_text(*duration))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn leads() -> Addressee {
        Addressee::Group("leads".to_owned())
    }

    fn example() -> Schedule {
        let escalate = [Escalation {
            after: 15 * MINUTE,
            to: leads(),
        }];
        Schedule::new(30 * MINUTE, &[10 * MINUTE, 20 * MINUTE], &escalate)
    }

    #[test]
    fn each_step_comes_once_and_the_time_out_last() {
        let (schedule, start) = (example(), Timestamp::from_millis(5));
        let steps: Vec<_> = (0..).map_while(|done| schedule.next(start, done)).collect();
        let at = |minutes: u32| start.after(minutes * MINUTE);
        let expected = [
            (at(10), Due::Remind),
            (at(15), Due::Escalate(leads())),
            (at(20), Due::Remind),
            (at(30), Due::TimeOut),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn after_a_pause_nothing_is_told_twice() {
        let (schedule, start) = (example(), Timestamp::from_millis(0));
        let at = |minutes: u32| schedule.due(start, 0, start.after(minutes * MINUTE));
        assert_eq!(at(9), []);
        assert_eq!(at(25), [Due::Escalate(leads()), Due::Remind]);
        assert_eq!(at(31), [Due::TimeOut]);
        assert_eq!(schedule.due(start, 4, start.after(60 * MINUTE)), []);
    }

    proptest! {
        /// A virtual clock that jumps at random: every escalation is done once before the deadline, and the question times out
        /// once.
        #[test]
        fn under_any_clock_the_question_ends_once(
            deadline in 2_u64..200,
            remind in proptest::collection::vec(1_u64..250, 0..5),
            escalate in proptest::collection::vec(1_u64..250, 0..4),
            jumps in proptest::collection::vec(1_u64..60, 1..40),
        ) {
            let seconds = Duration::from_secs;
            let remind: Vec<_> = remind.into_iter().map(seconds).collect();
            let escalate: Vec<_> = escalate.into_iter().map(|after| Escalation { after: seconds(after), to: leads() }).collect();
            let schedule = Schedule::new(seconds(deadline), &remind, &escalate);
            let start = Timestamp::from_millis(1_000_000);
            let (mut now, mut done, mut seen) = (0, 0, Vec::new());
            for jump in jumps.into_iter().chain([250]) {
                now += jump;
                let at = start.after(seconds(now));
                let due = schedule.due(start, done, at);
                while schedule.next(start, done).is_some_and(|(due, _)| due <= at) {
                    done += 1;
                }
                if now < deadline {
                    prop_assert!(!due.contains(&Due::TimeOut));
                }
                seen.extend(due);
            }
            prop_assert_eq!(seen.iter().filter(|due| **due == Due::TimeOut).count(), 1);
            prop_assert_eq!(seen.last(), Some(&Due::TimeOut));
            let escalations = seen.iter().filter(|due| matches!(due, Due::Escalate(_))).count();
            prop_assert!(escalations <= escalate.iter().filter(|step| step.after < seconds(deadline)).count());
            prop_assert!(schedule.next(start, done).is_none());
        }
    }
}
