//! The background work of a session: changes of the record, timers, and events from others.

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::{RecordEvent, clock};
use mcp_elicit_relay::{AskId, CallId, Event};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::record_effects::{PendingChange, ToWrite};
use super::{Session, SessionJob};

/// The number of jobs that a driver takes at once.
const AT_ONCE: usize = 64;
/// The longest sleep of a driver.
const SLEEP: Duration = Duration::from_secs(60 * 60);

/// The driver of a session. Run it on a separate thread or task.
pub(crate) struct Driver {
    pub(super) session: Arc<Session>,
    pub(super) jobs: mpsc::UnboundedReceiver<SessionJob>,
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
                    // People wait for answers to be delivered here, even under load.
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
        self.session.tell(Event::ServerClosing);
        self.session.server.close();
        // The results of the last answers are reported as the connection closes.
        while let Ok(job) = self.jobs.try_recv() {
            if let SessionJob::Change(change) = job {
                change.make(&self.session).await;
            }
        }
        let session = &self.session;
        if let Some(traces) = &session.traces {
            traces.session_ended();
        }
        session.note(session.record.release_session(&session.tell).await);
    }

    /// Handles an event of the record. A held answer is delivered or written by itself.
    fn hear(&self, event: &RecordEvent) {
        let held = match event {
            RecordEvent::Answered { question, held } => held.clone().map(|record| ToWrite {
                question: Some(AskId(question.0)),
                record,
            }),
            RecordEvent::Ended { .. }
            | RecordEvent::TakenOver { .. }
            | RecordEvent::FollowedCallEnded { .. }
            | RecordEvent::TaskCancelled { .. }
            | RecordEvent::CallTaken { .. } => None,
        };
        self.session.tell(from_record(event));
        self.session.write_behind(held);
    }

    /// Returns the time of the relay's next timer, and publishes it for code that sets a timer.
    fn next_wake(&self) -> Timestamp {
        let relay = self.session.relay();
        let latest = clock::now().after(SLEEP);
        let wake = relay.deadline().map_or(latest, |due| due.min(latest));
        // Under the relay's lock, so that a timer set later is compared with this.
        let sleeps_until = &self.session.sleeps_until;
        sleeps_until.store(wake.as_millis(), Ordering::Release);
        wake
    }

    /// Does the queued jobs in order. Consecutive changes of the record about different questions are made together, so
    /// that the store can write them in one step.
    async fn work(&self, jobs: &mut Vec<SessionJob>) -> ControlFlow<()> {
        let mut together: Vec<PendingChange> = Vec::new();
        let mut goes_on = ControlFlow::Continue(());
        for job in jobs.drain(..) {
            match job {
                SessionJob::Change(change) => {
                    if together.iter().any(|other| other.meets(&change)) {
                        self.make(&mut together).await;
                    }
                    together.push(change);
                }
                SessionJob::Flush => self.session.client.flush(),
                // A delivery whose answer led to the end may be confirmed after it.
                SessionJob::End => goes_on = ControlFlow::Break(()),
            }
        }
        self.make(&mut together).await;
        goes_on
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

/// Returns the relay's event for an event of the record.
fn from_record(event: &RecordEvent) -> Event {
    match *event {
        RecordEvent::Answered { question, .. } => Event::Answered {
            question: AskId(question.0),
        },
        RecordEvent::Ended { question, ending } => Event::Ended {
            question: AskId(question.0),
            ending,
        },
        RecordEvent::TakenOver { question } => Event::TakenOver {
            question: AskId(question.0),
        },
        RecordEvent::FollowedCallEnded { call } => Event::FollowedCallEnded {
            call: CallId(call.0),
        },
        RecordEvent::TaskCancelled { task } => Event::TaskCancelled {
            task: CallId(task.0),
        },
        RecordEvent::CallTaken { call } => Event::CallTaken {
            call: CallId(call.0),
        },
    }
}

fn until(moment: Timestamp) -> Duration {
    moment.since(clock::now()).max(Duration::from_millis(1))
}
