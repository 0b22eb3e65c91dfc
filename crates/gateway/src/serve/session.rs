//! One relay with its two sides and its record: carries out what the relay wants done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::{Notify, mpsc};

use super::challenge::Challenge;
use super::clock;
use crate::answerer::Answerer;
use crate::record::Book;
use crate::relay::{CallKey, Door, Down, Effect, Event, Moment, Place, Relay, Settings, Up};

/// Where frames for the client go. Never waits: what cannot go at once is queued.
pub trait ClientSide: Send + Sync {
    /// Queues a frame on a stream; `last` when it answers the request that opened the stream.
    fn send(&self, door: Door, frame: &[u8], last: bool);
    /// Queues the last frame of a stream whose request the server wants credentials for.
    fn challenge(&self, door: Door, frame: &[u8], _challenge: &Challenge) {
        self.send(door, frame, true);
    }
    /// Gets on with what is queued.
    fn flush(&self);
    /// Whether that may wait for the client to read.
    fn may_wait(&self) -> bool {
        false
    }
}

/// Where frames for the server go. Never waits: what cannot go at once is queued.
pub trait ServerSide: Send + Sync {
    /// Queues a frame; `call` when it starts that call, made on this stream of the client.
    fn send(&self, frame: &[u8], call: Option<CallKey>, door: Option<Door>);
    /// Gets on with what is queued, or has the session's driver do it.
    fn flush(&self);
    /// Whether that may wait for the server to read.
    fn may_wait(&self) -> bool {
        false
    }
    /// Writes what is queued; the driver may wait.
    fn write_out(&self) {}
    /// What the client's request on this stream said in its HTTP headers.
    fn carry(&self, _door: Door, _headers: HeaderMap) {}
    /// Nobody wants the answer to this call any more.
    fn abandon(&self, call: CallKey);
    /// Starts the server anew; tells [`Event::Restarted`] or [`Event::ServerGone`] when done.
    fn restart(&self);
    /// Ends the connection with the server.
    fn close(&self);
}

/// One client session with one server.
pub struct Session {
    relay: Mutex<Relay>,
    client: Arc<dyn ClientSide>,
    server: Arc<dyn ServerSide>,
    book: Arc<Book>,
    who: Who,
    jobs: mpsc::UnboundedSender<Job>,
    tell: mpsc::UnboundedSender<Event>,
    timer: Notify,
}

/// Whom the relay itself had something to say.
#[derive(Clone, Copy, Default)]
struct Told {
    client: bool,
    server: bool,
}

/// The address of a question's page, by its id; `None` where there is no inbox.
pub type LinkOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Whose session it is, with which server, and where its questions can be answered.
#[derive(Clone)]
pub struct Who {
    /// The server by the operator's name.
    pub server: String,
    /// Whose calls these are.
    pub principal: String,
    /// The address of a question's page, by its id.
    pub link: LinkOf,
    /// Who is asked at once what comes to the operator's desk.
    pub answerer: Option<Arc<Answerer>>,
}

enum Job {
    Effect(Effect),
    Flush,
    End,
}

/// What drives a session: its record, its timers, what others tell it. Run it on a thread or a task of its own.
pub struct Driver {
    session: Arc<Session>,
    jobs: mpsc::UnboundedReceiver<Job>,
    told: mpsc::UnboundedReceiver<Event>,
}

impl Session {
    /// A session; it lives as long as its driver runs.
    pub fn new(
        settings: Settings,
        who: Who,
        client: Arc<dyn ClientSide>,
        server: Arc<dyn ServerSide>,
        book: Arc<Book>,
    ) -> (Arc<Self>, Driver) {
        let (jobs, job_list) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::unbounded_channel();
        let relay = Mutex::new(Relay::new(settings));
        let session = Arc::new(Self {
            relay,
            client,
            server,
            book,
            who,
            jobs,
            tell,
            timer: Notify::new(),
        });
        (
            session.clone(),
            Driver {
                session,
                jobs: job_list,
                told,
            },
        )
    }

    fn relay(&self) -> MutexGuard<'_, Relay> {
        self.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame came from the client.
    pub fn from_client(&self, door: Door, frame: &[u8]) {
        let mut relay = self.relay();
        if let Up::Forward(call) = relay.client_frame(clock::now(), door, frame) {
            self.server.send(frame, call, Some(door));
        }
        let told = self.carry_out(relay, Some(door), None);
        self.server.flush();
        // Whoever reads a peer must not wait for the other to read: both might wait for each other then.
        if told.client && self.client.may_wait() {
            self.flush_later();
        } else if told.client {
            self.client.flush();
        }
    }

    /// A frame came from the server, on the stream of this call where streams are apart.
    pub fn from_server(&self, call: Option<CallKey>, frame: &[u8]) {
        self.from_server_challenged(call, frame, None);
    }

    /// A frame came from the server, with what the server wants first when it wants credentials.
    pub fn from_server_challenged(
        &self,
        call: Option<CallKey>,
        frame: &[u8],
        challenge: Option<&Challenge>,
    ) {
        let mut relay = self.relay();
        if let Down::Forward { door, last } = relay.server_frame(clock::now(), call, frame) {
            self.to_client(door, frame, last, challenge);
        }
        let told = self.carry_out(relay, None, challenge);
        self.client.flush();
        if told.server && self.server.may_wait() {
            self.flush_later();
        } else if told.server {
            self.server.flush();
        }
    }

    fn to_client(&self, door: Door, frame: &[u8], last: bool, challenge: Option<&Challenge>) {
        match challenge.filter(|_| last) {
            Some(challenge) => self.client.challenge(door, frame, challenge),
            None => self.client.send(door, frame, last),
        }
    }

    /// What the client's request on this stream says in its HTTP headers, for the request that goes on to the server.
    pub fn carry(&self, door: Door, headers: HeaderMap) {
        self.server.carry(door, headers);
    }

    /// Something happened.
    pub fn tell(&self, event: Event) {
        let mut relay = self.relay();
        relay.handle(clock::now(), event);
        self.carry_out(relay, None, None);
        self.flush();
    }

    /// Hands back what is held, before the gateway stops.
    pub fn drain(&self) {
        self.tell(Event::Drain);
    }

    /// How many calls and questions are open.
    pub fn open(&self) -> (usize, usize) {
        self.relay().open()
    }

    /// Lets a side that may wait for its peer get on with its queue on the driver's time.
    pub fn flush_later(&self) {
        let _the_driver_has_ended = self.jobs.send(Job::Flush);
    }

    /// Ends the session: the server's connection is closed, questions stay for the same call made again.
    pub fn end(&self) {
        let _the_driver_has_ended = self.jobs.send(Job::End);
    }

    fn flush(&self) {
        self.server.flush();
        self.client.flush();
    }

    /// Carries out effects in the relay's order. Frames are queued under its lock, to be written outside it.
    fn carry_out(
        &self,
        mut relay: MutexGuard<'_, Relay>,
        door: Option<Door>,
        challenge: Option<&Challenge>,
    ) -> Told {
        let deadline = relay.deadline();
        let mut told = Told::default();
        while let Some(effect) = relay.effect() {
            match effect {
                Effect::ToClient { door, frame, last } => {
                    told.client = true;
                    self.to_client(door, frame.as_bytes(), last, challenge);
                }
                Effect::ToServer { frame, call } => {
                    told.server = true;
                    self.server.send(frame.as_bytes(), call, door);
                }
                Effect::Abandon { call } => self.server.abandon(call),
                Effect::Restart => self.server.restart(),
                Effect::Record { .. }
                | Effect::Settle { .. }
                | Effect::Take { .. }
                | Effect::End { .. }
                | Effect::Confirm { .. } => {
                    let _the_driver_has_ended = self.jobs.send(Job::Effect(effect));
                }
            }
        }
        drop(relay);
        if deadline.is_some() {
            self.timer.notify_one();
        }
        told
    }

    async fn keep_record(&self, effect: Effect) {
        match effect {
            Effect::Record { question, asked } => {
                let raised = self
                    .book
                    .raise(
                        &self.who.server,
                        &self.who.principal,
                        &asked,
                        question,
                        &self.tell,
                    )
                    .await;
                self.tell(match raised {
                    Ok(raised) => {
                        let link = (self.who.link)(&raised.id);
                        let to_ask = asked.place == Place::Desk && !raised.answered;
                        if let Some(answerer) = self.who.answerer.as_ref().filter(|_| to_ask) {
                            answerer.ask(raised.id.clone(), question, self.tell.clone());
                        }
                        Event::Recorded { question, record: raised.id, link, answered: raised.answered }
                    }
                    Err(fault) => {
                        tracing::error!(server = %self.who.server, %fault, "a question could not be recorded");
                        Event::NotRecorded { question }
                    }
                });
            }
            Effect::Settle {
                question,
                record,
                outcome,
            } => {
                let settled = self.book.settle(&record, &outcome, "client").await;
                if let Err(fault) = settled {
                    tracing::error!(server = %self.who.server, %fault, "an answer could not be recorded");
                    self.tell(Event::NotRecorded { question });
                }
            }
            Effect::Take { questions, records } => {
                let taken = self.book.take(&records).await;
                self.tell(match taken {
                    Ok(Some(replies)) => Event::Taken { replies: questions.into_iter().zip(replies).collect() },
                    Ok(None) => Event::NotTaken { questions },
                    Err(fault) => {
                        tracing::error!(server = %self.who.server, %fault, "an answer could not be taken out of the record");
                        Event::NotTaken { questions }
                    }
                });
            }
            Effect::End { record, ending } => self.note(self.book.end(&record, ending).await),
            Effect::Confirm { records } => self.note(self.book.confirm(&records).await),
            Effect::ToClient { .. }
            | Effect::ToServer { .. }
            | Effect::Abandon { .. }
            | Effect::Restart => {}
        }
    }

    fn note(&self, done: Result<(), crate::record::BookFault>) {
        if let Err(fault) = done {
            tracing::error!(server = %self.who.server, %fault, "the record could not be kept");
        }
    }
}

impl Driver {
    /// Drives the session until it ends.
    pub async fn run(mut self) {
        loop {
            let deadline = self.session.relay().deadline();
            let wait = deadline.map_or(Duration::from_hours(1), until);
            tokio::select! {
                biased;
                job = self.jobs.recv() => match job {
                    Some(Job::Effect(effect)) => self.session.keep_record(effect).await,
                    Some(Job::Flush) => {
                        self.session.server.write_out();
                        self.session.client.flush();
                    }
                    Some(Job::End) | None => break,
                },
                Some(event) = self.told.recv() => self.session.tell(event),
                () = self.session.timer.notified() => {}
                () = tokio::time::sleep(wait) => self.tick(),
            }
        }
        self.session.server.close();
        self.session.book.let_go(&self.session.tell);
    }

    fn tick(&self) {
        let mut relay = self.session.relay();
        relay.tick(clock::now());
        self.session.carry_out(relay, None, None);
        self.session.flush();
    }
}

fn until(moment: Moment) -> Duration {
    moment.since(clock::now()).max(Duration::from_millis(1))
}
