//! The background work of a session: its record is kept, its timers run, what others tell it is passed on.

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::{RecordEvent, clock};
use mcp_elicit_relay::{AskId, CallId, Effect, Event};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Job, Session};

/// The number of jobs that a driver takes up at once.
const AT_ONCE: usize = 64;
/// The time that a driver sleeps at most.
const SLEEP: Duration = Duration::from_hours(1);

/// The driver of a session: its record, its timers, what others tell it. Run it on a thread or a task of its own.
pub(crate) struct Driver {
    pub(super) session: Arc<Session>,
    pub(super) jobs: mpsc::UnboundedReceiver<Job>,
    pub(super) told: mpsc::UnboundedReceiver<RecordEvent>,
}

impl Driver {
    /// Drives the session until it ends.
    pub(crate) async fn run(mut self) {
        let mut jobs = Vec::new();
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                count = self.jobs.recv_many(&mut jobs, AT_ONCE) => {
                    if count == 0 || self.work(&mut jobs).await.is_break() {
                        break;
                    }
                }
                Some(event) = self.told.recv() => self.session.tell(from_record(event)),
                () = self.session.timer.notified() => {}
                () = tokio::time::sleep(until(wake)) => self.tick(),
            }
        }
        self.session.server.close();
        // What became of the last answers is told as the connection closes.
        while let Ok(job) = self.jobs.try_recv() {
            if let Job::Effect(effect) = job {
                self.session.execute(effect).await;
            }
        }
        let session = &self.session;
        session.note(session.record.release_session(&session.tell).await);
    }

    /// When the relay's next timer is due; told to whoever sets a timer.
    fn next_wake(&self) -> Timestamp {
        let relay = self.session.relay();
        let latest = clock::now().after(SLEEP);
        let wake = relay.deadline().map_or(latest, |due| due.min(latest));
        // Under the relay's lock: a timer set later is compared with this.
        let sleeps_until = &self.session.sleeps_until;
        sleeps_until.store(wake.as_millis(), Ordering::Release);
        wake
    }

    /// Does what there is to do, in its order. Changes of the record that follow each other and concern different
    /// questions are made together, so that the store can write them in one step.
    async fn work(&self, jobs: &mut Vec<Job>) -> ControlFlow<()> {
        let mut together: Vec<Effect> = Vec::new();
        for job in jobs.drain(..) {
            match job {
                Job::Effect(effect) => {
                    if together.iter().any(|other| meet(other, &effect))
                        || together.iter().any(is_of_a_call) && is_of_a_call(&effect)
                    {
                        self.keep_records(&mut together).await;
                    }
                    together.push(effect);
                }
                Job::Write(question, record) => {
                    self.keep_records(&mut together).await;
                    self.session.write_submitted(question, &record).await;
                }
                Job::Flush => {
                    self.session.server.write_out();
                    self.session.client.flush();
                }
                Job::End => {
                    self.keep_records(&mut together).await;
                    return ControlFlow::Break(());
                }
            }
        }
        self.keep_records(&mut together).await;
        ControlFlow::Continue(())
    }

    async fn keep_records(&self, effects: &mut Vec<Effect>) {
        let all = effects.drain(..).map(|effect| self.session.execute(effect));
        futures::future::join_all(all).await;
    }

    fn tick(&self) {
        let mut relay = self.session.relay();
        relay.tick(clock::now());
        self.session.carry_on(relay, None);
    }
}

/// Returns whether it says something of a call that nobody waits for: such are told in their order.
fn is_of_a_call(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::FindCall { .. } | Effect::KeepResult { .. } | Effect::DropCall { .. }
    )
}

/// Returns whether both concern the same record. A question that is being written has none yet.
fn meet(one: &Effect, other: &Effect) -> bool {
    records(one)
        .iter()
        .any(|record| records(other).contains(record))
}

fn records(effect: &Effect) -> &[String] {
    match effect {
        Effect::Submit { record, .. } | Effect::End { record, .. } | Effect::Leave { record } => {
            std::slice::from_ref(record)
        }
        Effect::BeginDelivery { records, .. }
        | Effect::Delivered { records }
        | Effect::DeliveryRefused { records, .. }
        | Effect::InDoubt { records, .. } => records,
        Effect::Record { .. }
        | Effect::ToClient { .. }
        | Effect::ToServer { .. }
        | Effect::FindCall { .. }
        | Effect::KeepCall { .. }
        | Effect::KeepResult { .. }
        | Effect::DropCall { .. }
        | Effect::FollowCall { .. }
        | Effect::Abandon { .. }
        | Effect::Restart => &[],
    }
}

/// Returns the relay's event for what the record tells.
fn from_record(event: RecordEvent) -> Event {
    match event {
        RecordEvent::Answered { question } => Event::Answered {
            question: AskId(question.0),
        },
        RecordEvent::Ended { question, ending } => Event::Ended {
            question: AskId(question.0),
            ending,
        },
        RecordEvent::FollowedCallEnded { call } => Event::FollowedCallEnded {
            call: CallId(call.0),
        },
        RecordEvent::CallTaken { call } => Event::CallTaken {
            call: CallId(call.0),
        },
    }
}

fn until(moment: Timestamp) -> Duration {
    moment.since(clock::now()).max(Duration::from_millis(1))
}
