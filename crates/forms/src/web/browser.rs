use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use mcp_elicit_core::answer::Outcome;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use super::memory::Questions;
use super::question_store::{EndKind, QuestionId};
use super::sessions::random_text;
use super::site::Site;
use super::{ConnectionBounds, clock, router, serve};
use crate::view::{FrontendError, QuestionView, Submission};

/// The time without requests after which pages have received everything.
const QUIET: Duration = Duration::from_millis(500);

/// The longest wait for open pages.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// A callback for the link of each question.
type Announce = Arc<dyn Fn(&str) + Send + Sync>;

/// A frontend that asks one person in their browser, with a question store in memory and a server on this machine.
///
/// Clones share both. The server stops when the last one is dropped; waiting questions are then withdrawn.
#[derive(Clone)]
pub struct BrowserFrontend {
    store: Arc<Questions>,
    site: Site,
    /// Dropped with the last clone, which stops the server.
    _running: Arc<oneshot::Sender<()>>,
    announce: Option<Announce>,
    /// The number of served requests.
    served: watch::Sender<u64>,
}

impl fmt::Debug for BrowserFrontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserFrontend")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl BrowserFrontend {
    /// Starts the server on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If no port can be opened, or the system has no randomness.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts the server on a given loopback address.
    ///
    /// # Errors
    /// If `at` is not a loopback address or cannot be opened, or the system has no randomness.
    pub async fn start_at(at: SocketAddr) -> io::Result<Self> {
        if !at.ip().is_loopback() {
            let why = "questions are answered on this machine only: give a loopback address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let listener = TcpListener::bind(at).await?;
        let site = Site::loopback(listener.local_addr()?)?;
        let store = Arc::new(Questions::default());
        let served = watch::Sender::new(0);
        let app = router(Arc::clone(&store), site.clone())
            .layer(from_fn_with_state(served.clone(), count));
        let (running, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(listener, app, ConnectionBounds::default(), async {
            // Ends when the sender is dropped; nothing is ever sent.
            let _ = stopped.await;
        }));
        Ok(Self {
            store,
            site,
            _running: Arc::new(running),
            announce: None,
            served,
        })
    }

    /// Calls `tell` with the link to each question as it is asked: to print it, or to open it. The link signs one
    /// browser in, so it is for the person only and belongs in no log.
    #[must_use]
    pub fn announcing(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.announce = Some(Arc::new(tell));
        self
    }

    /// Creates a link that signs the person in, once, and shows all questions.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn login_link(&self) -> io::Result<String> {
        self.site.login_link()
    }

    /// Asks a question, and waits for the person.
    ///
    /// The question waits until it is answered, its deadline passes, `withdrawn` completes, or the returned future is
    /// dropped; each but the first takes it off the page and shows the reason.
    ///
    /// # Errors
    /// [`FrontendError::Expired`] at the deadline, [`FrontendError::Withdrawn`] if `withdrawn` came first, and
    /// [`FrontendError::Broken`] if the system has no randomness for the question's name.
    pub async fn ask(
        &self,
        question: QuestionView,
        withdrawn: impl Future<Output = String>,
    ) -> Result<Outcome, FrontendError> {
        self.put(question, withdrawn, false)
            .await
            .map(|reply| reply.outcome)
    }

    /// Like [`ask`](Self::ask), and also offers to decline every later question of this server, which the caller must
    /// enforce. Returns the whole submission.
    ///
    /// # Errors
    /// The same as [`ask`](Self::ask).
    pub async fn ask_for_reply(
        &self,
        question: QuestionView,
        withdrawn: impl Future<Output = String>,
    ) -> Result<Submission, FrontendError> {
        self.put(question, withdrawn, true).await
    }

    /// Waits until open pages have shown how their questions ended, for a program that is about to exit. Returns at
    /// once if no page was ever opened, and after five seconds at the latest.
    pub async fn shutdown(&self) {
        let mut served = self.served.subscribe();
        if *served.borrow_and_update() == 0 {
            return;
        }
        let quiet =
            async { while let Ok(Ok(())) = tokio::time::timeout(QUIET, served.changed()).await {} };
        // A page that keeps sending requests is not waited for any longer.
        let _ = tokio::time::timeout(SHUTDOWN_GRACE, quiet).await;
    }

    async fn put(
        &self,
        question: QuestionView,
        withdrawn: impl Future<Output = String>,
        offers_from_now_on: bool,
    ) -> Result<Submission, FrontendError> {
        let id = QuestionId::new(random_text()?)
            .ok_or_else(|| io::Error::other("a random name is always a name"))?;
        let link = match &self.announce {
            Some(_) => Some(self.site.question_link(&id)?),
            None => None,
        };
        let deadline = question.deadline();
        let mut answer = self.store.put(id.clone(), question, offers_from_now_on);
        let on_page = OnPage {
            store: &self.store,
            id: &id,
        };
        if let (Some(announce), Some(link)) = (&self.announce, &link) {
            announce(link);
        }
        let over = async {
            match deadline {
                Some(deadline) => until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(reply) = &mut answer => Ok(reply),
            why = withdrawn => {
                on_page.end(EndKind::Withdrawn(why.clone()), &mut answer).ok_or(FrontendError::Withdrawn { why })
            }
            () = over => on_page.end(EndKind::TimedOut, &mut answer).ok_or(FrontendError::Expired),
        }
    }
}

/// Counts each answered request.
async fn count(State(served): State<watch::Sender<u64>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    served.send_modify(|count| *count += 1);
    response
}

/// Sleeps until the system's clock shows `deadline`, even if the clock is set meanwhile.
async fn until(deadline: SystemTime) {
    while let Ok(left) = deadline.duration_since(clock::now()) {
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(30))).await;
    }
}

/// A guard that withdraws a question when its caller stops waiting for it.
struct OnPage<'a> {
    store: &'a Questions,
    id: &'a QuestionId,
}

impl OnPage<'_> {
    /// Ends the question without an action. Returns the submission instead if it came first.
    fn end(&self, how: EndKind, answer: &mut oneshot::Receiver<Submission>) -> Option<Submission> {
        self.store.end(self.id, how);
        answer.try_recv().ok()
    }
}

impl Drop for OnPage<'_> {
    fn drop(&mut self) {
        self.store.end(
            self.id,
            EndKind::Withdrawn("the call that asked has ended".to_owned()),
        );
    }
}
