use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use indexmap::IndexMap;
use mcp_elicit_core::answer::{Draft, Outcome};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::desk::{
    Brief, Desk, DeskFault, Docket, Ended, Ending, Found, QuestionId, Settled, Wanted,
};
use super::site::{Secret, Site, random_text};
use super::{clock, router, serve};
use crate::view::{NotAnswered, Question};

/// Told the link of a question as it is asked, or the name of a server.
type Told = Arc<dyn Fn(&str) + Send + Sync>;

/// How many ended questions are remembered.
const REMEMBERED: usize = 200;

/// Asks one person in their browser: a desk in memory and a server on this machine.
///
/// Clones share both. The server stops when the last one is dropped; questions that still wait are then withdrawn.
#[derive(Clone)]
pub struct Browser {
    desk: Arc<Questions>,
    site: Site,
    /// Dropped with the last clone, which stops the server.
    _running: Arc<oneshot::Sender<()>>,
    announce: Option<Told>,
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl Browser {
    /// Starts at a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be opened, or the system gives no randomness.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts at a given loopback address.
    ///
    /// # Errors
    /// When `at` is not a loopback address or cannot be opened, or the system gives no randomness.
    pub async fn start_at(at: SocketAddr) -> io::Result<Self> {
        if !at.ip().is_loopback() {
            let why = "questions are answered on this machine only: give a loopback address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let listener = TcpListener::bind(at).await?;
        let secret = Secret::random()?;
        let site = Site::loopback(listener.local_addr()?, secret);
        let desk = Arc::new(Questions::default());
        let app = router(Arc::clone(&desk), site.clone());
        let (running, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(listener, app, async {
            // Ends when the sender is dropped, which is the point; nothing is ever sent.
            let _ = stopped.await;
        }));
        Ok(Self {
            desk,
            site,
            _running: Arc::new(running),
            announce: None,
        })
    }

    /// Calls `tell` with the link to each question as it is asked: to print it, or to open it. The link holds the
    /// login secret, so it is for the person only and belongs in no log.
    #[must_use]
    pub fn announcing(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.announce = Some(Arc::new(tell));
        self
    }

    /// Offers the person to say no to a server once and for all, and calls `heed` with the server's name (as its
    /// question's [`Origin`](crate::view::Origin) shows it) when they do. Keeping that word is the caller's part.
    #[must_use]
    pub fn heeding_no(self, heed: impl Fn(&str) + Send + Sync + 'static) -> Self {
        // Said once; whoever says it twice is heard the first time.
        let _ = self.desk.heed_no.set(Arc::new(heed));
        self
    }

    /// The link that signs the person in and shows all questions. It holds the login secret.
    pub fn login_link(&self) -> String {
        self.site.login_link()
    }

    /// Asks, and waits for the person.
    ///
    /// The question waits until it is answered, its own deadline passes, `withdrawn` is done, or the returned future
    /// is dropped; each but the first takes it off the page and says why.
    ///
    /// # Errors
    /// [`NotAnswered::Expired`] at the deadline, [`NotAnswered::Withdrawn`] when `withdrawn` came first, and
    /// [`NotAnswered::Broken`] when the system gives no randomness for the question's name.
    pub async fn ask(
        &self,
        question: Question,
        withdrawn: impl Future<Output = String>,
    ) -> Result<Outcome, NotAnswered> {
        let id = QuestionId::new(random_text()?)
            .ok_or_else(|| io::Error::other("a random name is always a name"))?;
        let deadline = question.deadline();
        let mut answer = self.desk.put(id.clone(), question);
        let on_page = OnPage {
            desk: &self.desk,
            id: &id,
        };
        if let Some(announce) = &self.announce {
            announce(&self.site.question_link(&id));
        }
        let over = async {
            match deadline {
                Some(deadline) => until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(outcome) = &mut answer => Ok(outcome),
            why = withdrawn => {
                on_page.end(Ending::Withdrawn(why.clone()), &mut answer).ok_or(NotAnswered::Withdrawn { why })
            }
            () = over => on_page.end(Ending::TimedOut, &mut answer).ok_or(NotAnswered::Expired),
        }
    }
}

/// Sleeps until the system's clock shows `deadline`, however the clock is set meanwhile.
async fn until(deadline: SystemTime) {
    while let Ok(left) = deadline.duration_since(clock::now()) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(std::time::Duration::from_secs(30))).await;
    }
}

/// Takes a question off the page when whoever asked it goes away.
struct OnPage<'a> {
    desk: &'a Questions,
    id: &'a QuestionId,
}

impl OnPage<'_> {
    /// Ends the question without an action. An outcome that was there first is given back instead.
    fn end(&self, how: Ending, answer: &mut oneshot::Receiver<Outcome>) -> Option<Outcome> {
        self.desk.end(self.id, how);
        answer.try_recv().ok()
    }
}

impl Drop for OnPage<'_> {
    fn drop(&mut self) {
        self.desk.end(
            self.id,
            Ending::Withdrawn("the call that asked has ended".to_owned()),
        );
    }
}

/// A question that waits.
struct Waiting {
    question: Arc<Question>,
    asked: SystemTime,
    draft: Option<Draft>,
    answer: oneshot::Sender<Outcome>,
}

/// The questions of one person, in memory.
struct Questions {
    lists: Mutex<Lists>,
    changes: watch::Sender<u64>,
    heed_no: OnceLock<Told>,
}

#[derive(Default)]
struct Lists {
    waiting: IndexMap<QuestionId, Waiting>,
    ended: VecDeque<Brief>,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            lists: Mutex::default(),
            changes: watch::Sender::new(0),
            heed_no: OnceLock::new(),
        }
    }
}

impl Questions {
    /// The lists; a panic elsewhere cannot have left them half changed, as each change is a single step.
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn put(&self, id: QuestionId, question: Question) -> oneshot::Receiver<Outcome> {
        let (answer, outcome) = oneshot::channel();
        let waiting = Waiting {
            question: Arc::new(question),
            asked: clock::now(),
            draft: None,
            answer,
        };
        self.lists().waiting.insert(id, waiting);
        self.changed();
        outcome
    }

    /// Ends a question without an action; one that has ended stays as it is.
    fn end(&self, id: &QuestionId, how: Ending) {
        let gone = self.lists().close(id, how, None).is_some();
        if gone {
            self.changed();
        }
    }
}

impl Lists {
    fn close(
        &mut self,
        id: &QuestionId,
        how: Ending,
        by: Option<&str>,
    ) -> Option<oneshot::Sender<Outcome>> {
        let waiting = self.waiting.shift_remove(id)?;
        let ended = Ended {
            how,
            at: clock::now(),
            by: by.map(str::to_owned),
        };
        let brief = Brief::of(id.clone(), &waiting.question, waiting.asked).ended(ended);
        self.ended.push_front(brief);
        self.ended.truncate(REMEMBERED);
        Some(waiting.answer)
    }

    fn end_of(&self, id: &QuestionId) -> Option<&Brief> {
        self.ended.iter().find(|brief| brief.id == *id)
    }
}

impl Desk for Questions {
    async fn list(&self, wanted: &Wanted) -> Result<Docket, DeskFault> {
        let lists = self.lists();
        let waiting = lists
            .waiting
            .iter()
            .map(|(id, waiting)| Brief::of(id.clone(), &waiting.question, waiting.asked));
        let ended = lists
            .ended
            .iter()
            .filter(|brief| brief.matches(&wanted.text));
        Ok(Docket {
            pending: waiting
                .filter(|brief| brief.matches(&wanted.text))
                .take(wanted.most)
                .collect(),
            pending_total: lists.waiting.len(),
            recent: ended.take(wanted.most).cloned().collect(),
        })
    }

    async fn find(&self, id: &QuestionId) -> Result<Option<Found>, DeskFault> {
        let lists = self.lists();
        let open = lists.waiting.get(id).map(|waiting| Found::Open {
            question: Arc::clone(&waiting.question),
            asked: waiting.asked,
            draft: waiting.draft.clone(),
        });
        Ok(open.or_else(|| lists.end_of(id).cloned().map(Found::Ended)))
    }

    async fn shown(&self, _id: &QuestionId) -> Result<(), DeskFault> {
        Ok(())
    }

    async fn keep(&self, id: &QuestionId, draft: Draft) -> Result<(), DeskFault> {
        if let Some(waiting) = self.lists().waiting.get_mut(id) {
            waiting.draft = Some(draft);
        }
        Ok(())
    }

    async fn settle(
        &self,
        id: &QuestionId,
        outcome: Outcome,
        by: &str,
    ) -> Result<Settled, DeskFault> {
        let settled = {
            let mut lists = self.lists();
            match lists.close(id, Ending::from(&outcome), Some(by)) {
                // Whoever asks ends the question before it stops listening, so this is heard.
                Some(answer) => answer
                    .send(outcome)
                    .map_or(Settled::Gone, |()| Settled::Won),
                None => match lists.end_of(id).and_then(|brief| brief.ended.clone()) {
                    Some(ended) => Settled::Late(ended),
                    None => Settled::Gone,
                },
            }
        };
        self.changed();
        Ok(settled)
    }

    fn takes_standing_no(&self) -> bool {
        self.heed_no.get().is_some()
    }

    async fn decline_from_now_on(&self, id: &QuestionId) -> Result<(), DeskFault> {
        let server = {
            let lists = self.lists();
            let waiting = lists.waiting.get(id);
            waiting.map(|waiting| waiting.question.origin().server())
        };
        if let (Some(heed), Some(server)) = (self.heed_no.get(), server) {
            heed(&server);
        }
        Ok(())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
