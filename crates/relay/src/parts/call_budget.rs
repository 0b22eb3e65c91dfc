//! The limits on one client's open requests: their number, and the bytes that they hold.
//!
//! Every waiting request holds a [`Permit`], which is returned when it is dropped, so that no end of a call can forget
//! it. A request is refused once a limit is reached. Later growth of an open request (its result while no client waits,
//! answers of its rounds) counts too, but only a retry with answers is refused for it, at twice the limit, because the
//! others may be waiting for it. The bytes also count in the accounts that this session shares with others
//! ([`ByteAccounts`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::held_bytes::{ByteAccounts, ByteLimit};
use crate::frame_edit::ErrorResponse;

/// The limits, and their current use.
pub(crate) struct CallBudget {
    most_requests: usize,
    most_bytes: usize,
    bytes: SharedBytes,
    accounts: ByteAccounts,
}

/// The permission of one request to be open, and the bytes that it holds.
pub(crate) struct Permit {
    bytes: usize,
    all: SharedBytes,
    accounts: ByteAccounts,
}

/// The bytes held by all requests. The budget and each permit share it, so the number of owners is that of the permits
/// plus one.
///
/// Only the relay changes it, one event at a time, so a separate read and write suffice and cost less.
#[derive(Clone, Default)]
struct SharedBytes(Arc<AtomicUsize>);

impl SharedBytes {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the bytes of one request, which were `before`.
    fn change(&self, before: usize, after: usize) {
        if before != after {
            let others = self.get().saturating_sub(before);
            self.0
                .store(others.saturating_add(after), Ordering::Relaxed);
        }
    }

    /// Returns the number of permits in use.
    fn permits(&self) -> usize {
        Arc::strong_count(&self.0) - 1
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
            bytes: SharedBytes::default(),
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
        Ok(Permit {
            bytes: 0,
            all: self.bytes.clone(),
            accounts: self.accounts.clone(),
        })
    }

    /// Checks that a permit is free.
    pub(crate) fn check(&self) -> Result<(), BudgetError> {
        if self.bytes.permits() >= self.most_requests {
            return Err(BudgetError::Requests(self.most_requests));
        }
        if self.bytes.get() >= self.most_bytes {
            return Err(BudgetError::Bytes(self.most_bytes));
        }
        self.check_accounts()
    }

    /// Checks that a request with a permit may grow.
    pub(crate) fn check_gain(&self) -> Result<(), BudgetError> {
        let most = self.most_bytes.saturating_mul(2);
        if self.bytes.get() >= most {
            return Err(BudgetError::Bytes(most));
        }
        self.check_accounts()
    }

    fn check_accounts(&self) -> Result<(), BudgetError> {
        self.accounts
            .exceeded()
            .map_or(Ok(()), |limit| Err(BudgetError::Shared(limit)))
    }

    /// Returns the number of permits in use, and the bytes that their requests hold.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> (usize, usize) {
        (self.bytes.permits(), self.bytes.get())
    }
}

impl Permit {
    /// Sets the bytes that it holds.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        self.all.change(self.bytes, bytes);
        self.accounts.change(self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.set_bytes(0);
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
