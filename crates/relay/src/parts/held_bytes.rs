//! The bytes that open requests hold in all sessions of one caller, and in all sessions of all callers.
//!
//! A [`ByteAccount`] belongs to several sessions, which may run in different threads. It counts the stored requests of
//! the sessions, and the messages that are being received for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::frame_edit::ErrorResponse;

/// The name of a limit, as the refusal and the operator's setting spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimit {
    /// The name of the setting.
    pub name: &'static str,
    /// The most bytes.
    pub most: usize,
}

/// The bytes that several sessions hold together, and their limit.
#[derive(Debug)]
pub struct ByteAccount {
    /// The name of its limit.
    name: &'static str,
    /// The most bytes.
    most: AtomicUsize,
    held: AtomicUsize,
    /// Those of `held` whose message is at its session, which has not counted yet what it keeps.
    handed_over: AtomicUsize,
}

/// The accounts in which one session counts its bytes.
#[derive(Clone, Debug, Default)]
pub struct ByteAccounts(Vec<Arc<ByteAccount>>);

impl ByteLimit {
    /// Returns the reason of a refusal, with the next step for the client and for the operator.
    pub fn reason(self) -> String {
        let Self { name, most } = self;
        format!(
            "the open requests would hold more than {most} bytes (`{name}`); this one was not made: make it again when others have ended, or let the operator raise `{name}`"
        )
    }

    /// Returns the data of a refusal, for programs.
    pub fn data(self) -> Value {
        json!({"limit": self.name, "most": self.most})
    }

    /// Returns the refusal of a request.
    pub(crate) fn refusal(self) -> ErrorResponse {
        ErrorResponse::new(-32000, self.reason()).with_data(self.data())
    }
}

impl ByteAccount {
    /// Creates an empty account.
    pub fn new(limit: ByteLimit) -> Arc<Self> {
        Arc::new(Self {
            name: limit.name,
            most: AtomicUsize::new(limit.most),
            held: AtomicUsize::new(0),
            handed_over: AtomicUsize::new(0),
        })
    }

    /// Replaces the most bytes. What is held stays, also if it is more.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Release);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Acquire)
    }

    fn limit(&self) -> ByteLimit {
        ByteLimit {
            name: self.name,
            most: self.most(),
        }
    }

    /// Returns the number of bytes held.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Adds bytes if the limit permits it.
    fn try_add(&self, bytes: usize) -> Result<(), ByteLimit> {
        let most = self.most();
        let added = self
            .held
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
                held.checked_add(bytes).filter(|sum| *sum <= most)
            });
        added.map(drop).map_err(|_| self.limit())
    }

    /// Adds bytes whatever the limit. Those that were handed over are there already.
    fn add(&self, bytes: usize) {
        let there = self.take_handed_over(bytes);
        self.held.fetch_add(bytes - there, Ordering::AcqRel);
    }

    /// Takes up to this number of the bytes that were handed over. Returns how many.
    fn take_handed_over(&self, most: usize) -> usize {
        let less = |there: usize| Some(there.saturating_sub(most));
        let before = self
            .handed_over
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        before.map_or(0, |there| there.min(most))
    }

    fn subtract(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::AcqRel);
    }
}

impl ByteAccounts {
    /// Creates the accounts of a session.
    pub fn new(accounts: impl IntoIterator<Item = Arc<ByteAccount>>) -> Self {
        Self(accounts.into_iter().collect())
    }

    /// Adds bytes to every account, or to none.
    ///
    /// # Errors
    /// If one of the limits does not permit it.
    pub fn try_add(&self, bytes: usize) -> Result<(), ByteLimit> {
        for (number, account) in self.0.iter().enumerate() {
            if let Err(limit) = account.try_add(bytes) {
                for added in &self.0[..number] {
                    added.subtract(bytes);
                }
                return Err(limit);
            }
        }
        Ok(())
    }

    /// Subtracts bytes that were added.
    pub fn subtract(&self, bytes: usize) {
        for account in &self.0 {
            account.subtract(bytes);
        }
    }

    /// Hands a message with these bytes, which were added, to its session: they stay counted until the session counts
    /// what it keeps, or until [`end_handover`](Self::end_handover). So the messages of other sessions that arrive meanwhile
    /// find no room that is not there.
    pub fn hand_over(&self, bytes: usize) {
        for account in &self.0 {
            account.handed_over.fetch_add(bytes, Ordering::AcqRel);
        }
    }

    /// Subtracts those of the bytes that the session did not keep.
    pub fn end_handover(&self, bytes: usize) {
        for account in &self.0 {
            account.subtract(account.take_handed_over(bytes));
        }
    }

    /// Changes the bytes of one request, whatever the limits: an open request may grow. Its caller checks what a server lets
    /// it grow by.
    pub(crate) fn change(&self, before: usize, after: usize) {
        for account in &self.0 {
            if after > before {
                account.add(after - before);
            } else {
                account.subtract(before - after);
            }
        }
    }

    /// Checks that so many bytes of a server's round may be kept beside the others. Servers have three quarters of each
    /// account, so that requests find room.
    pub(crate) fn has_room_for_round(&self, bytes: usize) -> Result<(), ByteLimit> {
        let is_full = |account: &&Arc<ByteAccount>| {
            let most = account.most();
            account.held().saturating_add(bytes) > most - most / 4
        };
        let full = self.0.iter().find(is_full);
        full.map_or(Ok(()), |account| Err(account.limit()))
    }

    /// Returns the limit that is exceeded, if any.
    pub(crate) fn exceeded(&self) -> Option<ByteLimit> {
        let full = self
            .0
            .iter()
            .find(|account| account.held() > account.most());
        full.map(|account| account.limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_one_limit_is_in_no_account() {
        let limit = |name, most| ByteLimit { name, most };
        let all = ByteAccount::new(limit("all", 100));
        let one = ByteAccount::new(limit("one", 60));
        let two = ByteAccount::new(limit("two", 60));
        let of_one = ByteAccounts::new([one.clone(), all.clone()]);
        let of_two = ByteAccounts::new([two.clone(), all.clone()]);
        of_one.try_add(60).unwrap();
        assert_eq!(of_one.try_add(1), Err(limit("one", 60)));
        of_two.try_add(40).unwrap();
        assert_eq!(of_two.try_add(1), Err(limit("all", 100)));
        assert_eq!((one.held(), two.held(), all.held()), (60, 40, 100));
        assert_eq!(of_one.exceeded(), None);
        // An open request may grow, and nothing more is admitted until it has ended.
        of_two.change(40, 50);
        assert_eq!(of_one.exceeded(), Some(limit("all", 100)));
        of_two.change(50, 0);
        of_one.subtract(60);
        assert_eq!((one.held(), two.held(), all.held()), (0, 0, 0));
        assert_eq!(of_one.try_add(usize::MAX), Err(limit("one", 60)));
    }

    #[test]
    fn a_message_that_is_handed_over_stays_counted_and_is_counted_once() {
        let all = ByteAccount::new(ByteLimit {
            name: "all",
            most: 100,
        });
        let accounts = ByteAccounts::new([all.clone()]);
        accounts.try_add(60).unwrap();
        accounts.hand_over(60);
        assert_eq!(all.held(), 60);
        assert!(accounts.try_add(50).is_err());
        // The session keeps 45 of the 60.
        accounts.change(0, 45);
        assert_eq!(all.held(), 60);
        accounts.end_handover(60);
        assert_eq!(all.held(), 45);
        // A session may keep more than arrived, such as the first bytes, which are free.
        accounts.try_add(10).unwrap();
        accounts.hand_over(10);
        accounts.change(0, 30);
        accounts.end_handover(10);
        assert_eq!(all.held(), 75);
    }
}
