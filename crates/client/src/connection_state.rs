//! The state of one connection: the revision, the server's reported name, active calls, and visits whose end the server
//! will announce.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::view;
use mcp_elicit_core::wire::Revision;
use rmcp::model::{Implementation, RequestId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::dispatch::QuestionError;

/// The state of one connection. Cloned handles share it.
#[derive(Clone, Default)]
pub(crate) struct ConnectionState {
    state: Arc<Mutex<ConnectionFacts>>,
    /// The number of the server's messages, to distinguish silence from work.
    signs_of_life: Arc<watch::Sender<u64>>,
    visits: Arc<watch::Sender<UrlQuestions>>,
}

#[derive(Default)]
struct ConnectionFacts {
    /// The revision requested in the handshake; `None` while the era is being detected.
    pinned: Option<Revision>,
    spoken: Option<Revision>,
    claimed: Option<Implementation>,
    ended: CancellationToken,
    calls: BTreeMap<String, Begun>,
    open_questions: usize,
}

/// An active request.
struct Begun {
    call: view::CallView,
    over: CancellationToken,
    interruption: Arc<Interruption>,
}

/// The handle that ends a call whose question was interrupted, with the reason.
#[derive(Default)]
pub(crate) struct Interruption {
    came: CancellationToken,
    why: Mutex<Option<QuestionError>>,
    over_the_limit: AtomicUsize,
}

/// The most questions of one call that are refused for a limit; the next one ends the call. A server that does not heed
/// the errors would otherwise ask for as long as its stream is open.
const MOST_OVER_THE_LIMIT: usize = 30;

impl Interruption {
    /// Records that a question of the call was refused for a limit. Returns `true` if the call has to end for that.
    pub(crate) fn is_over_the_limit_too_often(&self) -> bool {
        self.over_the_limit.fetch_add(1, Ordering::Relaxed) >= MOST_OVER_THE_LIMIT
    }

    pub(crate) fn interrupt(&self, why: QuestionError) {
        self.lock().get_or_insert(why);
        self.came.cancel();
    }

    /// Completes when the call has to end.
    pub(crate) async fn came(&self) {
        self.came.cancelled().await;
    }

    /// Takes the reason, if the call was interrupted.
    pub(crate) fn take(&self) -> Option<QuestionError> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<QuestionError>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The url questions of this connection (2025-11-25), by `elicitationId`.
#[derive(Default)]
struct UrlQuestions {
    known: BTreeSet<String>,
    done: BTreeSet<String>,
}

impl ConnectionState {
    fn lock(&self) -> MutexGuard<'_, ConnectionFacts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn will_speak(&self, revision: Option<Revision>, ended: CancellationToken) {
        let mut state = self.lock();
        state.pinned = revision;
        state.spoken = None;
        state.ended = ended;
    }

    /// Records the negotiated revision. Revisions older than all supported ones have no elicitation; their errors are
    /// spelled as in the first one that has it.
    pub(crate) fn speaks(&self, agreed: &str, server: Option<Implementation>) {
        let mut state = self.lock();
        state.spoken = Some(agreed.parse().unwrap_or(Revision::V2025_06_18));
        state.claimed = server;
    }

    pub(crate) fn pinned(&self) -> Option<Revision> {
        self.lock().pinned
    }

    /// Returns the negotiated revision, or before that the requested one.
    pub(crate) fn revision(&self) -> Revision {
        let state = self.lock();
        state.spoken.or(state.pinned).unwrap_or(Revision::LATEST)
    }

    pub(crate) fn ended(&self) -> CancellationToken {
        self.lock().ended.clone()
    }

    /// Returns the origin that is shown to the person: the name that the client gave the server, or for an `unnamed`
    /// server the one that it reports, followed by the details of the connection.
    pub(crate) fn origin(
        &self,
        name: &str,
        unnamed: bool,
        connected: Option<&str>,
    ) -> view::Origin {
        let mut origin = if unnamed {
            view::Origin::unnamed(name)
        } else {
            view::Origin::new(name)
        };
        if let Some(claimed) = &self.lock().claimed {
            origin = origin.claiming(&claimed.name, &claimed.version);
        }
        match connected {
            Some(how) => origin.connected(how),
            None => origin,
        }
    }

    /// Registers an active call. Its questions are withdrawn when the guard is dropped.
    pub(crate) fn begin(
        &self,
        id: &RequestId,
        call: view::CallView,
        interruption: Arc<Interruption>,
    ) -> ActiveCall {
        let token = CancellationToken::new();
        let begun = Begun {
            call,
            over: token.clone(),
            interruption,
        };
        self.lock().calls.insert(id.to_string(), begun);
        ActiveCall {
            line: self.clone(),
            id: id.to_string(),
            token,
        }
    }

    /// Returns the call of a pushed question: the one on whose stream it came, or the only active one.
    pub(crate) fn call_of(
        &self,
        stream: Option<&RequestId>,
    ) -> Option<(view::CallView, CancellationToken)> {
        let state = self.lock();
        let begun = match stream {
            Some(id) => state.calls.get(&id.to_string()),
            None if state.calls.len() == 1 => state.calls.values().next(),
            None => None,
        };
        begun.map(|begun| (begun.call.clone(), begun.over.clone()))
    }

    /// Returns the handle that ends the call of a pushed question. Several requests may serve one call, such as those
    /// of a task.
    pub(crate) fn interruption(&self, stream: Option<&RequestId>) -> Option<Arc<Interruption>> {
        let state = self.lock();
        let begun = if let Some(id) = stream {
            state.calls.get(&id.to_string())?
        } else {
            let first = state.calls.values().next()?;
            let same = |begun: &Begun| Arc::ptr_eq(&begun.interruption, &first.interruption);
            state.calls.values().all(same).then_some(first)?
        };
        Some(Arc::clone(&begun.interruption))
    }

    /// Records that the server sent something.
    pub(crate) fn saw_activity(&self) {
        self.signs_of_life
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn signs_of_life(&self) -> watch::Receiver<u64> {
        self.signs_of_life.subscribe()
    }

    /// Records that a question is open, so that the person's time does not count as the server's silence.
    pub(crate) fn question_opens(&self) -> OpenQuestion {
        self.lock().open_questions += 1;
        OpenQuestion { line: self.clone() }
    }

    pub(crate) fn has_open_questions(&self) -> bool {
        self.lock().open_questions > 0
    }

    /// Registers an `elicitationId` that was shown to the person.
    pub(crate) fn knows_visit(&self, id: &str) {
        self.visits.send_modify(|visits| {
            visits.known.insert(id.to_owned());
        });
    }

    /// Handles the server's notice that a visit is done. Returns `false` for an id that was never shown to this person,
    /// which is ignored as 2025-11-25 requires.
    pub(crate) fn visit_done(&self, id: &str) -> bool {
        self.visits.send_if_modified(|visits| {
            visits.known.contains(id) && visits.done.insert(id.to_owned())
        })
    }

    /// Completes when the server has said that all these visits are done.
    pub(crate) fn all_done(&self, ids: Vec<String>) -> impl Future<Output = ()> + Send + use<> {
        let mut visits = self.visits.subscribe();
        async move {
            let done = visits
                .wait_for(|visits| ids.iter().all(|id| visits.done.contains(id)))
                .await
                .map(drop);
            if done.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// An active call.
pub(crate) struct ActiveCall {
    line: ConnectionState,
    id: String,
    token: CancellationToken,
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        self.line.lock().calls.remove(&self.id);
        self.token.cancel();
    }
}

/// An open question.
pub(crate) struct OpenQuestion {
    line: ConnectionState,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        state.open_questions = state.open_questions.saturating_sub(1);
        drop(state);
        self.line.saw_activity();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pushed_question_belongs_to_its_stream_or_to_the_only_call() {
        let line = ConnectionState::default();
        let (one, two) = (RequestId::Number(1), RequestId::Number(2));
        let begin = |id, name| line.begin(id, view::CallView::tool(name), Arc::default());
        let first = begin(&one, "first");
        let name =
            |found: Option<(view::CallView, CancellationToken)>| found.map(|(call, _)| call.name());
        assert_eq!(name(line.call_of(None)).as_deref(), Some("first"));
        assert!(line.interruption(None).is_some());
        let second = begin(&two, "second");
        assert!(line.interruption(None).is_none() && line.interruption(Some(&two)).is_some());
        assert_eq!(name(line.call_of(None)), None);
        assert_eq!(name(line.call_of(Some(&two))).as_deref(), Some("second"));
        let over = first.token.clone();
        drop(first);
        assert!(over.is_cancelled() && !second.token.is_cancelled());
        assert_eq!(name(line.call_of(Some(&one))), None);
    }

    #[tokio::test]
    async fn only_known_visits_can_be_done() {
        let line = ConnectionState::default();
        line.knows_visit("mine");
        assert!(!line.visit_done("someone else's"));
        let wait = line.all_done(vec!["mine".to_owned()]);
        assert!(line.visit_done("mine"));
        assert!(!line.visit_done("mine"));
        wait.await;
    }
}
