//! The sessions that serve one caller together: one, or several with a child each if only the connection identifies the
//! call in which a server asks.
//!
//! A server that pushes its questions over stdio does not name the call. So each of its children has one call at a time
//! in which it may ask; another child is started when a call has waited for a while and there are few enough, and idle
//! ones are ended. No child ever serves two callers.

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire;
use mcp_elicit_core::wire::frame::Shape;
use mcp_elicit_core::wire::{CallKind, Cancelled, Id, method};
use mcp_elicit_record::clock;
use mcp_elicit_relay::{AccessNumber, Event, StreamId};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::session::turn_waker::TurnWaker;
use http::HeaderMap;

use crate::callers::EndedTokens;
use crate::frame::FrameBytes;
use crate::runtime::StartError;
use crate::session::Session;
use crate::transports::child_limit::{ChildAccount, ChildSlot};

/// The most children of one caller.
pub(crate) const CHILDREN: usize = 8;
/// The time that a call waits for its turn before another child is started.
const GROW_AFTER: Duration = Duration::from_millis(250);
/// The time after which an idle child is ended.
const IDLE: Duration = Duration::from_secs(60);
/// The time after which a driver that was told to end counts as blocked.
const HELD_UP: Duration = Duration::from_millis(500);
/// The time in which a server has ended, if necessary by a kill.
const ENDING: Duration = Duration::from_secs(5);
/// The interval at which ending threads are checked.
const STEP: Duration = Duration::from_millis(10);
/// The bits of a session's own range of call numbers.
const NUMBERS: u32 = 40;

/// A started session, with its driver's thread if it has one.
pub(crate) struct StartedSession {
    /// The session.
    pub session: Arc<Session>,
    /// The task that drives it.
    pub driver: Option<JoinHandle<()>>,
}

/// The data for another session of the same caller.
#[derive(Debug, Default)]
pub(crate) struct SameCallerSession {
    /// The number after which its calls are numbered.
    pub first_call: u64,
    /// `true` if the server is known to speak the pushed era.
    pub is_pushed: bool,
    /// The slot of its child, if it is reserved already.
    pub slot: Option<ChildSlot>,
}

/// Starts a session.
pub(crate) type StartSession =
    Box<dyn Fn(SameCallerSession) -> Result<StartedSession, StartError> + Send + Sync>;

/// The sessions of one caller.
pub(crate) struct Pool {
    start: StartSession,
    most: usize,
    /// The caller's children at all servers, if these count.
    children: Option<ChildAccount>,
    members: Mutex<Vec<PoolMember>>,
    started: AtomicU64,
    /// The time at which the last child was started, in milliseconds since 1970: the next one has to wait for its
    /// effect.
    grown_at: AtomicU64,
    wake: Arc<TurnWaker>,
}

struct PoolMember {
    session: Arc<Session>,
    driver: Option<JoinHandle<()>>,
    used: Timestamp,
}

impl Pool {
    /// Creates a pool of one session, started on demand.
    pub(crate) fn of_one(start: StartSession) -> Arc<Self> {
        Self::of(start, 1, None)
    }

    /// Creates a pool of at most `most` sessions; the first is started on demand. Must be called in a tokio runtime.
    pub(crate) fn growing(start: StartSession, most: usize, children: ChildAccount) -> Arc<Self> {
        let pool = Self::of(start, most.max(1), Some(children));
        if pool.most > 1 {
            let (weak, wake) = (Arc::downgrade(&pool), pool.wake.clone());
            tokio::spawn(tend(weak, wake));
        }
        pool
    }

    fn of(start: StartSession, most: usize, children: Option<ChildAccount>) -> Arc<Self> {
        Arc::new(Self {
            start,
            most,
            children,
            members: Mutex::default(),
            started: AtomicU64::new(0),
            grown_at: AtomicU64::new(0),
            wake: Arc::default(),
        })
    }

    fn members(&self) -> MutexGuard<'_, Vec<PoolMember>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> Vec<Arc<Session>> {
        self.members()
            .iter()
            .map(|member| member.session.clone())
            .collect()
    }

    /// Returns the default session.
    pub(crate) fn first(&self) -> Result<Arc<Session>, StartError> {
        self.first_in(None)
    }

    /// Returns `true` if there is a default session.
    pub(crate) fn has_sessions(&self) -> bool {
        !self.members().is_empty()
    }

    /// Returns the default session; if it has to be started, its child uses this slot.
    pub(crate) fn first_in(&self, slot: Option<ChildSlot>) -> Result<Arc<Session>, StartError> {
        let mut members = self.members();
        if let Some(first) = members.first() {
            return Ok(first.session.clone());
        }
        let member = self.begin(SameCallerSession {
            slot,
            ..SameCallerSession::default()
        })?;
        let session = member.session.clone();
        members.push(member);
        Ok(session)
    }

    fn begin(&self, beside: SameCallerSession) -> Result<PoolMember, StartError> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let StartedSession { session, driver } = (self.start)(SameCallerSession {
            first_call: number << NUMBERS,
            ..beside
        })?;
        if self.most > 1 {
            session.wake_when_free(self.wake.clone());
        }
        Ok(PoolMember {
            session,
            driver,
            used: clock::now(),
        })
    }

    /// Handles a frame from the client.
    pub(crate) fn handle_client(
        &self,
        stream: StreamId,
        frame: FrameBytes<'_>,
    ) -> Result<(), StartError> {
        self.session_for(&frame)?.handle_client(stream, frame);
        Ok(())
    }

    /// Handles a frame from the client, with its HTTP request's headers.
    pub(crate) fn handle_client_with_headers(
        &self,
        stream: StreamId,
        frame: FrameBytes<'_>,
        headers: HeaderMap,
    ) -> Result<(), StartError> {
        self.session_for(&frame)?
            .handle_client_with_headers(stream, frame, headers);
        Ok(())
    }

    fn session_for(&self, frame: &FrameBytes<'_>) -> Result<Arc<Session>, StartError> {
        let first = self.first()?;
        if self.most == 1 || !first.can_share_calls() {
            return Ok(first);
        }
        let index = frame.index();
        let Some(frame) = wire::Frame::new(frame.bytes(), &index) else {
            return Ok(first);
        };
        let Some(named) = frame.method() else {
            return Ok(first);
        };
        let sessions = self.sessions();
        if frame.shape() == Some(Shape::Notification) {
            let id = cancelled_call(frame, named);
            let knows =
                |session: &Arc<Session>| id.as_ref().is_some_and(|id| session.knows_call(id));
            return Ok(sessions.into_iter().find(knows).unwrap_or(first));
        }
        let Some(kind) = CallKind::of_method(named) else {
            return Ok(first);
        };
        let goes_on = |session: &&Arc<Session>| session.continues_here(kind, frame);
        let chosen = sessions
            .iter()
            .find(goes_on)
            .or_else(|| sessions.iter().find(|session| session.is_free()))
            .or_else(|| {
                let usable = sessions
                    .iter()
                    .filter(|session| !session.has_given_up_call());
                usable.min_by_key(|session| session.load())
            });
        let chosen = chosen.cloned().unwrap_or(first);
        let mut members = self.members();
        let member = members
            .iter_mut()
            .find(|member| Arc::ptr_eq(&member.session, &chosen));
        if let Some(member) = member {
            member.used = clock::now();
        }
        Ok(chosen)
    }

    /// Returns `true` if a message of a client goes on with something that is held here: a retry, a call that was handed
    /// back, a task, or the cancellation of an open call. `is_other` is `true` if no other pool of the caller has the same server:
    /// then every retry of a round that was sealed for it counts.
    pub(crate) fn continues_here(&self, frame: wire::Frame<'_>, is_other: bool) -> bool {
        let Some(named) = frame.method() else {
            return false;
        };
        let sessions = self.sessions();
        let mut sessions = sessions.iter();
        if frame.shape() == Some(Shape::Notification) {
            let id = cancelled_call(frame, named);
            return id.is_some_and(|id| sessions.any(|session| session.knows_call(&id)));
        }
        let goes_on = |kind, session: &Arc<Session>| {
            session.continues_here(kind, frame) || is_other && session.has_sealed_state(kind, frame)
        };
        match CallKind::of_method(named) {
            Some(kind) => sessions.any(|session| goes_on(kind, session)),
            None => sessions.any(|session| session.has_task_of(frame)),
        }
    }

    /// Returns `true` if the servers read their input.
    pub(crate) fn has_room(&self) -> bool {
        self.sessions().iter().all(|session| session.has_room())
    }

    /// Returns `true` if the client may send several messages in one list.
    pub(crate) fn has_batches(&self) -> bool {
        self.sessions().iter().all(|session| session.has_batches())
    }

    /// Reports an event that concerns all sessions.
    pub(crate) fn tell_all(&self, event: impl Fn() -> Event) {
        for session in self.sessions() {
            session.tell(event());
        }
    }

    /// Handles the end of the client's HTTP request on this stream.
    pub(crate) fn request_ended(&self, stream: StreamId) {
        for session in self.sessions() {
            session.request_ended(stream);
        }
    }

    /// Hands back held calls, before the gateway stops.
    pub(crate) fn drain(&self) {
        self.tell_all(|| Event::Drain);
    }

    /// Hands back every held call, to be made again by the same caller.
    pub(crate) fn hand_back(&self) {
        self.tell_all(|| Event::HandBack);
    }

    /// Ends the calls that came with tokens that have ended, or hands them back.
    pub(crate) fn end_tokens(&self, ended: &EndedTokens) {
        if !ended.revoked.is_empty() {
            self.tell_all(|| Event::AccessEnded(ended.revoked.clone()));
        }
        if !ended.expired.is_empty() {
            self.tell_all(|| Event::HandBackOf(ended.expired.clone()));
        }
    }

    /// Returns the access tokens with which open calls came.
    pub(crate) fn accesses(&self) -> BTreeSet<AccessNumber> {
        let sessions = self.sessions().into_iter();
        sessions.flat_map(|session| session.accesses()).collect()
    }

    /// Tells waiting clients that the gateway stops.
    pub(crate) fn stop(&self) {
        self.tell_all(|| Event::Stop);
    }

    /// Returns `true` if there were servers, and all have ended.
    pub(crate) fn is_over(&self) -> bool {
        let sessions = self.sessions();
        !sessions.is_empty() && sessions.iter().all(|session| session.is_over())
    }

    /// Returns the numbers of open calls and questions.
    pub(crate) fn open(&self) -> (usize, usize) {
        let open = self.sessions().into_iter().map(|session| session.open());
        open.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Ends the sessions; their questions stay for the same call made again.
    pub(crate) fn end(&self) {
        for session in self.sessions() {
            session.end();
        }
    }

    /// Returns the number of bytes that wait for the servers.
    pub(crate) fn unwritten(&self) -> usize {
        self.sessions()
            .iter()
            .map(|session| session.unwritten())
            .sum()
    }

    /// Waits until the ended sessions are over, on a thread that may block. The connection of a session whose driver is
    /// blocked by its client is closed here. Bounded: a server that does not end is killed.
    pub(crate) fn join(&self) {
        let driven =
            |member: &mut PoolMember| Some((member.session.clone(), member.driver.take()?));
        let driven: Vec<_> = self.members().iter_mut().filter_map(driven).collect();
        let (sessions, mut waited): (Vec<_>, Vec<_>) = driven.into_iter().unzip();
        wait_for(&waited, HELD_UP);
        let held_up = sessions
            .into_iter()
            .zip(&waited)
            .filter(|(_, driver)| !driver.is_finished());
        let closing: Vec<_> = held_up
            .map(|(session, _)| std::thread::spawn(move || session.close_server()))
            .collect();
        waited.extend(closing);
        wait_for(&waited, ENDING);
    }

    /// Moves waiting calls to free sessions, and ends idle sessions. Returns the time until the next check, and whether
    /// another child is to be started before.
    fn arrange(&self) -> (Duration, bool) {
        let now = clock::now();
        self.end_unneeded(now);
        loop {
            let sessions = self.sessions();
            let waits = |session: &Arc<Session>| Some((session.queued_since()?, session.clone()));
            let oldest = sessions
                .iter()
                .filter_map(waits)
                .min_by_key(|(since, _)| *since);
            self.wake
                .want_free_sessions(oldest.is_some() || sessions.len() > 1);
            let Some((since, full)) = oldest else {
                return (IDLE, false);
            };
            let Some(free) = sessions.iter().find(|session| session.is_free()) else {
                let grown_at = Timestamp::from_millis(self.grown_at.load(Ordering::Relaxed));
                let waited = now.since(since.max(grown_at));
                let grows = sessions.len() < self.most;
                return match GROW_AFTER
                    .checked_sub(waited)
                    .filter(|left| !left.is_zero())
                {
                    Some(left) if grows => (left, false),
                    None if grows => (GROW_AFTER, true),
                    _ => (IDLE, false),
                };
            };
            self.hand_over(&full, free);
        }
    }

    fn hand_over(&self, from: &Session, to: &Session) {
        if let Some((stream, frame)) = from.take_queued() {
            to.take_trace(from, stream, &frame);
            to.handle_client(stream, FrameBytes::Lent(&frame));
        }
        for member in self.members().iter_mut() {
            if std::ptr::eq(Arc::as_ptr(&member.session), to) {
                member.used = clock::now();
            }
        }
    }

    fn end_unneeded(&self, now: Timestamp) {
        let mut members = self.members();
        let mut at = 0;
        while at < members.len() && members.len() > 1 {
            let PoolMember { session, used, .. } = &members[at];
            let idle = session.open() == (0, 0);
            let unneeded = session.has_given_up_call() || (at > 0 && now.since(*used) >= IDLE);
            if session.is_over() || (idle && unneeded) {
                let member = members.remove(at);
                member.session.end();
            } else {
                at += 1;
            }
        }
    }

    /// Starts another child, for the call that has waited longest.
    fn grow(&self) {
        let full = |children: &ChildAccount| !children.has_room();
        if self.children.as_ref().is_some_and(full) {
            return;
        }
        let is_pushed = true;
        match self.begin(SameCallerSession {
            is_pushed,
            ..SameCallerSession::default()
        }) {
            Ok(member) => {
                self.members().push(member);
                self.grown_at
                    .store(clock::now().as_millis(), Ordering::Relaxed);
            }
            Err(fault) => tracing::error!(%fault, "another child could not be started"),
        }
    }
}

/// Returns the call that a notification of this method cancels.
fn cancelled_call(frame: wire::Frame<'_>, named: &str) -> Option<Id> {
    let params = frame.params().filter(|_| named == method::CANCELLED)?;
    Cancelled::parse(params).ok()?.request_id
}

/// Waits until these threads have ended, for at most `at_most`.
fn wait_for(threads: &[JoinHandle<()>], at_most: Duration) {
    let since = clock::now();
    while !threads.iter().all(JoinHandle::is_finished) && clock::now().since(since) < at_most {
        std::thread::sleep(STEP);
    }
}

/// Arranges the calls of a pool while it exists.
async fn tend(pool: Weak<Pool>, wake: Arc<TurnWaker>) {
    let mut next = IDLE;
    loop {
        tokio::select! {
            () = wake.woken() => {}
            () = tokio::time::sleep(next) => {}
        }
        let Some(pool) = pool.upgrade() else { return };
        let (due, grows) = pool.arrange();
        next = due;
        if grows {
            let growing = pool.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || growing.grow()).await {
                tracing::error!(%error, "another child could not be started");
            }
            (next, _) = pool.arrange();
        }
    }
}
