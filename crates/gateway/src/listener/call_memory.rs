//! The memory that calls hold: the bytes of each caller's messages that arrive and of its open requests, in all sessions,
//! and those of all callers.
//!
//! | counted | from | until |
//! | --- | --- | --- |
//! | a message that arrives | its first byte above [`FREE`] | its session has it |
//! | the stored parts of an open request | its session has it | it has ended |
//!
//! The first bytes of a message are free, because answers and cancellations end requests, and must arrive when a limit is
//! reached. Requests of that size are refused by their session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use mcp_elicit_relay::{ByteAccount, ByteAccounts, ByteLimit};
use serde_json::json;

use super::requests_at_work::TooMany;
use crate::callers::ProvenCaller;
use crate::config::ByteLimits;

/// The bytes of each arriving message that are not counted.
pub(crate) const FREE: usize = 64 * 1024;

/// The accounts of all callers.
#[derive(Debug)]
pub(crate) struct CallMemory {
    /// The most bytes of each caller.
    of_caller: AtomicUsize,
    all: Arc<ByteAccount>,
    /// By the bindings of callers. An account exists while a session or a message of its caller does.
    by_caller: Mutex<HashMap<String, Weak<ByteAccount>>>,
}

impl CallMemory {
    /// Creates the accounts, with the limit of each caller and that of all.
    pub(crate) fn new(limits: &ByteLimits) -> Arc<Self> {
        let all = ByteLimit {
            name: "all-call-bytes",
            most: limits.all_calls,
        };
        Arc::new(Self {
            of_caller: AtomicUsize::new(limits.caller_calls),
            all: ByteAccount::new(all),
            by_caller: Mutex::default(),
        })
    }

    /// Replaces the limits. What is held stays, and new messages and requests have room below them only.
    pub(crate) fn set_limits(&self, limits: &ByteLimits) {
        self.all.set_most(limits.all_calls);
        let by_caller = self
            .by_caller
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Under the lock: an account that is made meanwhile would have the old limit.
        self.of_caller.store(limits.caller_calls, Ordering::Release);
        for account in by_caller.values().filter_map(Weak::upgrade) {
            account.set_most(limits.caller_calls);
        }
    }

    /// Returns the accounts of a caller's messages and sessions. Unauthenticated callers have no account of their own:
    /// without `[auth]` all of them may be one.
    pub(crate) fn of(&self, caller: &ProvenCaller) -> ByteAccounts {
        if !caller.is_authenticated() {
            return ByteAccounts::new([self.all.clone()]);
        }
        let own = self.account_of(caller.binding());
        ByteAccounts::new([own, self.all.clone()])
    }

    fn account_of(&self, binding: &str) -> Arc<ByteAccount> {
        let mut by_caller = self
            .by_caller
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = by_caller.get(binding).and_then(Weak::upgrade) {
            return account;
        }
        by_caller.retain(|_, account| account.strong_count() > 0);
        let account = ByteAccount::new(ByteLimit {
            name: "caller-call-bytes",
            most: self.of_caller.load(Ordering::Acquire),
        });
        by_caller.insert(binding.to_owned(), Arc::downgrade(&account));
        account
    }

    /// Returns the bytes that all callers hold.
    pub(crate) fn held(&self) -> usize {
        self.all.held()
    }
}

/// The bytes of an arriving message in its caller's accounts, until it is handed over or dropped.
#[derive(Debug)]
pub(crate) struct ArrivingMessage {
    accounts: ByteAccounts,
    size: usize,
    counted: AtomicUsize,
}

impl ArrivingMessage {
    /// Begins to count a message.
    pub(crate) fn new(accounts: ByteAccounts) -> Self {
        Self {
            accounts,
            size: 0,
            counted: AtomicUsize::new(0),
        }
    }

    /// Counts more bytes of the message.
    ///
    /// # Errors
    /// If a limit does not permit them.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), ByteLimit> {
        self.size = self.size.saturating_add(bytes);
        let above = self.size.saturating_sub(FREE);
        let more = above - *self.counted.get_mut();
        self.accounts.try_add(more)?;
        *self.counted.get_mut() = above;
        Ok(())
    }

    /// Ends the count of a message that is not handed over.
    pub(crate) fn end(&self) {
        let counted = self.counted.swap(0, Ordering::AcqRel);
        self.accounts.subtract(counted);
    }

    /// Begins to hand the message to its session, which counts what it keeps until this is dropped.
    pub(crate) fn hand_over(&self) -> Handover<'_> {
        let bytes = self.counted.swap(0, Ordering::AcqRel);
        self.accounts.hand_over(bytes);
        Handover {
            accounts: &self.accounts,
            bytes,
        }
    }
}

impl Drop for ArrivingMessage {
    fn drop(&mut self) {
        self.end();
    }
}

/// A message that its session is taking.
#[derive(Debug)]
pub(crate) struct Handover<'a> {
    accounts: &'a ByteAccounts,
    bytes: usize,
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        self.accounts.end_handover(self.bytes);
    }
}

/// Returns the response to a message that a limit does not permit. Its id is not known.
pub(crate) fn refusal(limit: ByteLimit) -> Response {
    let error = json!({"code": -32000, "message": limit.reason(), "data": limit.data()});
    let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
    let response = (StatusCode::TOO_MANY_REQUESTS, axum::Json(body)).into_response();
    TooMany::retry_later(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ByteLimits = ByteLimits {
        caller_calls: 200_000,
        all_calls: 300_000,
        ..ByteLimits::DEFAULT
    };

    fn caller(subject: &str) -> ProvenCaller {
        ProvenCaller::of_subject("https://id.example", subject, None)
    }

    #[test]
    fn a_message_counts_for_its_caller_and_for_all_until_it_is_handed_over() {
        let memory = CallMemory::new(&LIMITS);
        let mut small = ArrivingMessage::new(memory.of(&caller("a")));
        small.add(FREE).unwrap();
        assert_eq!(memory.held(), 0);
        let mut large = ArrivingMessage::new(memory.of(&caller("a")));
        large.add(100_000).unwrap();
        large.add(100_000).unwrap();
        assert_eq!(memory.held(), 200_000 - FREE);
        let mut over = ArrivingMessage::new(memory.of(&caller("a")));
        over.add(FREE).unwrap();
        assert_eq!(over.add(FREE + 1).unwrap_err().name, "caller-call-bytes");
        let mut other = ArrivingMessage::new(memory.of(&caller("b")));
        other.add(200_000).unwrap();
        let mut unproven = ArrivingMessage::new(memory.of(&ProvenCaller::local()));
        assert_eq!(unproven.add(200_000).unwrap_err().name, "all-call-bytes");
        drop(large.hand_over());
        drop(other);
        assert_eq!(memory.held(), 0);
        over.add(1).unwrap();
        drop((large, over));
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn replaced_limits_apply_to_what_comes_and_take_nothing_back() {
        let memory = CallMemory::new(&LIMITS);
        let mut held = ArrivingMessage::new(memory.of(&caller("a")));
        held.add(FREE + 150_000).unwrap();
        memory.set_limits(&ByteLimits {
            caller_calls: 100_000,
            all_calls: 400_000,
            ..LIMITS
        });
        assert_eq!(memory.held(), 150_000);
        // Of a caller that has an account, and of one that gets its own now.
        let mut more = ArrivingMessage::new(memory.of(&caller("a")));
        let over = more.add(FREE + 1).unwrap_err();
        assert_eq!((over.name, over.most), ("caller-call-bytes", 100_000));
        let mut other = ArrivingMessage::new(memory.of(&caller("b")));
        assert_eq!(other.add(FREE + 100_001).unwrap_err().most, 100_000);
        let mut unproven = ArrivingMessage::new(memory.of(&ProvenCaller::local()));
        unproven.add(250_000).unwrap();
        drop(held);
        more.add(1).unwrap();
    }

    #[test]
    fn accounts_of_callers_that_are_gone_are_forgotten() {
        let memory = CallMemory::new(&LIMITS);
        for number in 0..100 {
            drop(memory.of(&caller(&number.to_string())));
        }
        let known = memory.by_caller.lock().unwrap().len();
        assert_eq!(known, 1);
    }
}
