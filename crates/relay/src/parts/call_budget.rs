//! The limits on one client's open requests: their number, and the bytes that they hold.
//!
//! Every waiting request holds a [`Permit`], which is returned when it is dropped, so that no end of a call can forget
//! it. A request is refused once a limit is reached. Later growth of an open request (its result while no client waits,
//! answers of its rounds) counts too, but only a retry with answers is refused for it, at twice the limit, because the
//! others may be waiting for it. A round of the server is kept only if there is room for it. The bytes also count in the
//! accounts that this session shares with others ([`ByteAccounts`]), except those of results that no client waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::held_bytes::{ByteAccounts, ByteLimit};
use crate::frame_edit::ErrorResponse;

/// The bytes of a round that are always kept. The number of rounds that wait is limited as questions are.
const SHORT_ROUND: usize = 16 * 1024;

/// The limits, and their current use.
pub(crate) struct CallBudget {
    most_requests: usize,
    most_bytes: usize,
    used: Arc<Used>,
    accounts: ByteAccounts,
}

/// The permission of one request to be open, and the bytes that it holds.
pub(crate) struct Permit {
    bytes: usize,
    /// The bytes of its response, which no client waits for.
    response: usize,
    used: Arc<Used>,
    accounts: ByteAccounts,
}

/// The bytes of a round that a client has, until this is dropped. No request is open meanwhile.
pub(crate) struct RoundBytes {
    bytes: usize,
    used: Arc<Used>,
    accounts: ByteAccounts,
}

/// The open requests and the bytes held.
///
/// Only the relay changes it, one event at a time, so a separate read and write suffice and cost less.
#[derive(Default)]
struct Used {
    requests: AtomicUsize,
    /// The bytes that open requests hold.
    bytes: AtomicUsize,
    /// The bytes of rounds that the client has.
    rounds: AtomicUsize,
}

impl Used {
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Sets the bytes of one request, which were `before`.
    fn change(&self, before: usize, after: usize) {
        if before != after {
            let others = self.bytes().saturating_sub(before);
            let sum = others.saturating_add(after);
            self.bytes.store(sum, Ordering::Relaxed);
        }
    }

    fn set_requests(&self, requests: usize) {
        self.requests.store(requests, Ordering::Relaxed);
    }

    fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    fn set_rounds(&self, rounds: usize) {
        self.rounds.store(rounds, Ordering::Relaxed);
    }
}

/// A reached limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetError {
    /// The number of open requests.
    Requests(usize),
    /// The bytes held by open requests.
    Bytes(usize),
    /// The bytes held by open requests of several sessions.
    Shared(ByteLimit),
}

impl CallBudget {
    /// Creates a budget with limits on the number of open requests and on the bytes that they hold.
    pub(crate) fn new(most_requests: usize, most_bytes: usize) -> Self {
        Self {
            most_requests,
            most_bytes,
            used: Arc::default(),
            accounts: ByteAccounts::default(),
        }
    }

    /// Counts the bytes in these accounts, too.
    pub(crate) fn with_accounts(self, accounts: ByteAccounts) -> Self {
        Self { accounts, ..self }
    }

    /// Takes a permit, which holds no bytes yet.
    pub(crate) fn permit(&self) -> Result<Permit, BudgetError> {
        self.check()?;
        self.used.set_requests(self.used.requests() + 1);
        Ok(Permit {
            bytes: 0,
            response: 0,
            used: self.used.clone(),
            accounts: self.accounts.clone(),
        })
    }

    /// Counts the bytes of a round that the client gets.
    pub(crate) fn round(&self, bytes: usize) -> RoundBytes {
        self.used
            .set_rounds(self.used.rounds().saturating_add(bytes));
        self.accounts.change(0, bytes);
        RoundBytes {
            bytes,
            used: self.used.clone(),
            accounts: self.accounts.clone(),
        }
    }

    /// Checks that so many bytes of a round of the server may be kept until it is answered. A short one always may.
    pub(crate) fn check_round(&self, bytes: usize) -> Result<(), BudgetError> {
        if bytes <= SHORT_ROUND {
            return Ok(());
        }
        let held = self.used.bytes().saturating_add(self.used.rounds());
        if held.saturating_add(bytes) > self.most_bytes {
            return Err(BudgetError::Bytes(self.most_bytes));
        }
        let fits = self.accounts.has_room_for_round(bytes);
        fits.map_err(BudgetError::Shared)
    }

    /// Checks that a permit is free.
    pub(crate) fn check(&self) -> Result<(), BudgetError> {
        if self.used.requests() >= self.most_requests {
            return Err(BudgetError::Requests(self.most_requests));
        }
        if self.used.bytes() >= self.most_bytes {
            return Err(BudgetError::Bytes(self.most_bytes));
        }
        self.check_accounts()
    }

    /// Checks that a request with a permit may grow.
    pub(crate) fn check_gain(&self) -> Result<(), BudgetError> {
        let most = self.most_bytes.saturating_mul(2);
        if self.used.bytes() >= most {
            return Err(BudgetError::Bytes(most));
        }
        self.check_accounts()
    }

    fn check_accounts(&self) -> Result<(), BudgetError> {
        self.accounts
            .exceeded()
            .map_or(Ok(()), |limit| Err(BudgetError::Shared(limit)))
    }

    /// Returns the bytes of the rounds that the client has.
    #[cfg(test)]
    pub(crate) fn round_bytes(&self) -> usize {
        self.used.rounds()
    }

    /// Returns the number of permits in use, and the bytes that their requests hold.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> (usize, usize) {
        (self.used.requests(), self.used.bytes())
    }
}

impl Permit {
    /// Sets the bytes that it holds.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        self.set_bytes_and_response(bytes, 0);
    }

    /// Sets the bytes that it holds, and those of its response, which no client waits for. The response counts in this
    /// session only: the shell has an account of its own for all that it stores, so that no response takes the room of
    /// others' requests.
    pub(crate) fn set_bytes_and_response(&mut self, bytes: usize, response: usize) {
        self.used
            .change(self.bytes + self.response, bytes + response);
        self.accounts.change(self.bytes, bytes);
        (self.bytes, self.response) = (bytes, response);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.set_bytes(0);
        let requests = self.used.requests().saturating_sub(1);
        self.used.set_requests(requests);
    }
}

impl Drop for RoundBytes {
    fn drop(&mut self) {
        let rounds = self.used.rounds().saturating_sub(self.bytes);
        self.used.set_rounds(rounds);
        self.accounts.change(self.bytes, 0);
    }
}

impl BudgetError {
    /// Returns the refusal of a request for which there is no permit.
    pub(crate) fn refusal(self) -> ErrorResponse {
        let next = "this one was not made: make it again when one of them has ended";
        let (limit, most, why) = match self {
            Self::Requests(most) => {
                let why = format!("{most} requests of this session are open, which is the most");
                ("open-calls", most, why)
            }
            Self::Bytes(most) => {
                let why = format!(
                    "the open requests of this session hold {most} bytes, which is the most"
                );
                ("call-bytes", most, why)
            }
            Self::Shared(limit) => return limit.refusal(),
        };
        let data = json!({"limit": limit, "most": most});
        ErrorResponse::new(-32000, format!("{why}; {next}")).with_data(data)
    }

    /// Returns the error of a call whose server asks with a round of this size, for which there is no room.
    pub(crate) fn refusal_of_round(self, bytes: usize) -> ErrorResponse {
        let (limit, most) = match self {
            Self::Requests(most) => ("open-calls", most),
            Self::Bytes(most) => ("call-bytes", most),
            Self::Shared(ByteLimit { name, most }) => (name, most),
        };
        let why = format!(
            "the server was called and asks, but its question cannot be kept until it is answered: it has {bytes} bytes, and open calls and questions may have {most} bytes together (`{limit}`); make the call again when others have ended"
        );
        let data = json!({"limit": limit, "most": most, "bytes": bytes});
        ErrorResponse::new(-32000, why).with_data(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_free_again_when_it_is_dropped() {
        let budget = CallBudget::new(2, 100);
        let mut first = budget.permit().ok().unwrap();
        let second = budget.permit().ok().unwrap();
        assert_eq!(budget.permit().err(), Some(BudgetError::Requests(2)));
        first.set_bytes(99);
        drop(second);
        assert_eq!(budget.taken(), (1, 99));
        assert_eq!(budget.check(), Ok(()));
        first.set_bytes(250);
        assert_eq!(budget.check(), Err(BudgetError::Bytes(100)));
        assert_eq!(budget.check_gain(), Err(BudgetError::Bytes(200)));
        first.set_bytes(150);
        assert_eq!(budget.check(), Err(BudgetError::Bytes(100)));
        assert_eq!(budget.check_gain(), Ok(()));
        first.set_bytes(40);
        assert_eq!(budget.taken(), (1, 40));
        drop(first);
        assert_eq!(budget.taken(), (0, 0));
    }
}
