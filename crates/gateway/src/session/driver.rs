//! The background work of a session: its record is kept, its timers run, what others tell it is passed on.

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::{RecordEvent, clock};
use mcp_elicit_relay::{AskId, CallId, Event};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::record_effects::{PendingChange, ToWrite};
use super::{Job, Session};

/// The number of jobs that a driver takes up at once.
const AT_ONCE: usize = 64;
/// The time that a driver sleeps at most.
const SLEEP: Duration = Duration::from_secs(60 * 60);

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
        let mut told = Vec::new();
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                count = self.jobs.recv_many(&mut jobs, AT_ONCE) => {
                    if count == 0 || self.work(&mut jobs).await.is_break() {
                        break;
                    }
                    // People wait for answers that are to be delivered here, however much there is to do.
                    while let Ok(event) = self.told.try_recv() {
                        self.hear(&event);
                    }
                }
                _ = self.told.recv_many(&mut told, AT_ONCE) => {
                    for event in told.drain(..) {
                        self.hear(&event);
                    }
                }
                () = self.session.timer.notified() => {}
                () = tokio::time::sleep(until(wake)) => self.tick(),
            }
        }
        self.session.server.close();
        // What became of the last answers is told as the connection closes.
        while let Ok(job) = self.jobs.try_recv() {
            if let Job::Change(change) = job {
                change.make(&self.session).await;
            }
        }
        let session = &self.session;
        session.note(session.record.release_session(&session.tell).await);
    }

    /// The record tells something. An answer that is held is delivered or written by itself.
    fn hear(&self, event: &RecordEvent) {
        let held = match event {
            RecordEvent::Answered { question, held } => held.clone().map(|record| ToWrite {
                question: Some(AskId(question.0)),
                record,
            }),
            RecordEvent::Ended { .. }
            | RecordEvent::FollowedCallEnded { .. }
            | RecordEvent::CallTaken { .. } => None,
        };
        self.session.tell(from_record(event));
        self.session.write_behind(held);
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
        let mut together: Vec<PendingChange> = Vec::new();
        for job in jobs.drain(..) {
            match job {
                Job::Change(change) => {
                    if together.iter().any(|other| other.meets(&change)) {
                        self.make(&mut together).await;
                    }
                    together.push(change);
                }
                Job::Flush => self.session.client.flush(),
                Job::End => {
                    self.make(&mut together).await;
                    return ControlFlow::Break(());
                }
            }
        }
        self.make(&mut together).await;
        ControlFlow::Continue(())
    }

    async fn make(&self, changes: &mut Vec<PendingChange>) {
        let all = changes.drain(..).map(|change| async {
            change.make(&self.session).await;
            self.session.changes_left.fetch_sub(1, Ordering::AcqRel);
        });
        futures::future::join_all(all).await;
    }

    fn tick(&self) {
        let mut relay = self.session.relay();
        relay.tick(clock::now());
        self.session.carry_on(relay, None);
    }
}

/// Returns the relay's event for what the record tells.
fn from_record(event: &RecordEvent) -> Event {
    match *event {
        RecordEvent::Answered { question, .. } => Event::Answered {
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
