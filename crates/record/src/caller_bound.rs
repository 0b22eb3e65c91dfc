//! The limits on the open questions of one authenticated caller, over all sessions, so that no other caller's are
//! crowded out. Besides the limit on all of them there is one on those of one server, so that a server cannot prevent
//! questions of others, or approvals.
//!
//! Questions are counted here as they are asked. The store counts when the number here reaches the limit, and when no
//! number is known here. Of several gateways with one store, each sees the others' questions when it counts again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::known::KnownRow;
use crate::principal::Principal;
use crate::store::{OpenCount, RecordStore as _, Row};
use crate::{Record, RecordError};

/// The most open questions of one caller.
pub const MAX_OPEN_OF_CALLER: usize = 1_000;

/// The most open questions of one server to one caller. Approvals, which the gateway asks for, are not counted.
pub const MAX_OPEN_OF_SERVER: usize = 500;

/// The most callers whose number is known; all are forgotten when there are more.
const MOST_CALLERS: usize = 10_000;

/// The numbers of open questions, by caller. They are never too low, except for the questions of other gateways.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(Mutex<HashMap<String, CallerNumbers>>);

#[derive(Debug, Default)]
struct CallerNumbers {
    all: CountedNumber,
    /// The questions of servers, by server.
    of_servers: HashMap<String, CountedNumber>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CountedNumber {
    at_most: usize,
    /// The number of questions ever added: those added during a count may not be in it.
    added: usize,
}

impl CountedNumber {
    fn add(&mut self) {
        self.at_most += 1;
        self.added += 1;
    }

    /// Sets the number counted at some time since `begun_at`.
    fn counted(&mut self, open: usize, begun_at: usize) {
        self.at_most = open + self.added.saturating_sub(begun_at);
    }
}

/// The caller and the server of a question.
#[derive(Clone, Copy)]
struct Asking<'a> {
    caller: &'a str,
    /// `None` if the gateway asks.
    server: Option<&'a str>,
}

impl<'a> Asking<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            caller: &row.body.principal,
            server: row.asking_server(),
        }
    }
}

impl OpenQuestions {
    fn all(&self) -> MutexGuard<'_, HashMap<String, CallerNumbers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one if there is certainly room. Returns the reached limit otherwise.
    fn add(&self, asking: Asking<'_>) -> Result<(), Bound> {
        let mut all = self.all();
        let known = all.get_mut(asking.caller).ok_or(Bound::OfCaller)?;
        if known.all.at_most >= MAX_OPEN_OF_CALLER {
            return Err(Bound::OfCaller);
        }
        if let Some(server) = asking.server {
            let number = known.of_servers.get_mut(server);
            let number = number.filter(|number| number.at_most < MAX_OPEN_OF_SERVER);
            number.ok_or(Bound::OfServer)?.add();
        }
        known.all.add();
        Ok(())
    }

    /// Returns the numbers to pass to [`Self::counted`]: of the caller, and of the server.
    fn begin_count(&self, asking: Asking<'_>) -> [usize; 2] {
        let all = self.all();
        let known = all.get(asking.caller);
        let server = asking.server.zip(known);
        let server = server.and_then(|(server, known)| known.of_servers.get(server));
        [known.map(|known| &known.all), server]
            .map(|number| number.map_or(0, |number| number.added))
    }

    /// Sets the numbers counted at some time since `begun_at`.
    fn counted(&self, asking: Asking<'_>, open: OpenCount, begun_at: [usize; 2]) {
        let mut all = self.all();
        if all.len() >= MOST_CALLERS && !all.contains_key(asking.caller) {
            all.clear();
        }
        let known = all.entry(asking.caller.to_owned()).or_default();
        known.all.counted(open.of_caller, begun_at[0]);
        if let Some(server) = asking.server {
            let number = known.of_servers.entry(server.to_owned()).or_default();
            number.counted(open.of_server, begun_at[1]);
        }
    }
}

/// A limit that is reached, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    OfCaller,
    OfServer,
}

impl Record {
    /// Adds a question if there is certainly room, or if its caller has no limit.
    pub(crate) fn admit_at_once(&self, row: &Row) -> bool {
        let asking = Asking::of(row);
        !is_bounded(asking.caller) || self.open_questions.add(asking).is_ok()
    }

    /// Adds a question like [`Self::admit_at_once`], asking the store if necessary.
    pub(crate) async fn admit(&self, row: &Row) -> Result<(), RecordError> {
        if self.admit_at_once(row) {
            return Ok(());
        }
        let asking = Asking::of(row);
        let begun_at = self.open_questions.begin_count(asking);
        // Before the store counts: a question that is written meanwhile may count twice, and never not at all.
        let unwritten = self.unwritten_of(asking);
        let server = asking.server.map(str::to_owned);
        let written = self.store.waiting_of(asking.caller.to_owned(), server);
        let written = written.await?;
        let open = OpenCount {
            of_caller: unwritten.of_caller + written.of_caller,
            of_server: unwritten.of_server + written.of_server,
        };
        self.open_questions.counted(asking, open, begun_at);
        match self.open_questions.add(asking) {
            Ok(()) => Ok(()),
            Err(Bound::OfCaller) => Err(RecordError::TooManyOpen {
                limit: MAX_OPEN_OF_CALLER,
                of_server: false,
            }),
            Err(Bound::OfServer) => Err(RecordError::TooManyOpen {
                limit: MAX_OPEN_OF_SERVER,
                of_server: true,
            }),
        }
    }

    /// Returns the numbers of open questions that the store does not have yet.
    fn unwritten_of(&self, asking: Asking<'_>) -> OpenCount {
        let is_one = |known: &&KnownRow| {
            known.written.is_none() && known.row.exclusive && known.row.lifecycle.is_open()
        };
        let live = self.live();
        let known = live.values().filter_map(|live| live.known.as_deref());
        let rows = known.filter(is_one).map(|known| &known.row);
        OpenCount::of(rows, asking.caller, asking.server)
    }
}

impl OpenCount {
    /// Counts the caller's questions among these open rows, and of those the ones of a server.
    pub(crate) fn of<'a>(
        rows: impl Iterator<Item = &'a Row>,
        caller: &str,
        server: Option<&str>,
    ) -> Self {
        let mut count = Self::default();
        for asking in rows.map(Asking::of) {
            if asking.caller == caller {
                count.of_caller += 1;
                count.of_server += usize::from(server.is_some() && asking.server == server);
            }
        }
        count
    }
}

fn is_bounded(caller: &str) -> bool {
    Principal::parse(caller).is_some_and(|caller| caller.is_verified())
}
