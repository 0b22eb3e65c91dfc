//! The bytes of messages that a server has begun and not ended, over all of its streams and processes: it may leave one on
//! each.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::byte_account::{ByteShare, SharedByteAccount};

/// The number of longest messages that may be unfinished at once, in bytes together.
const LONGEST_AT_ONCE: usize = 8;
/// The length that a message may always have, in bytes.
const ALWAYS: usize = 64 * 1024;

/// The accounts of the servers, by the names or addresses of the configuration. No server has a share in that of another.
static ACCOUNTS: LazyLock<Mutex<HashMap<String, &'static SharedByteAccount>>> =
    LazyLock::new(Mutex::default);

/// Returns the account of a server. It stays as long as the process, since servers are few.
fn account_of(server: &str, max: usize) -> &'static SharedByteAccount {
    let mut accounts = ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(account) = accounts.get(server) {
        return account;
    }
    let account = new_account(max);
    accounts.insert(server.to_owned(), account);
    account
}

fn new_account(max: usize) -> &'static SharedByteAccount {
    let limit = max.saturating_mul(LONGEST_AT_ONCE);
    Box::leak(Box::new(SharedByteAccount::new(
        limit,
        LONGEST_AT_ONCE,
        ALWAYS,
    )))
}

/// The bytes of one unfinished message, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct UnfinishedMessage {
    bytes: ByteShare,
    /// The largest message, in bytes.
    max: usize,
}

/// A message that is too long, in words.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageTooLong {
    /// Longer than any may be.
    #[error("a message of more than {0} bytes")]
    Message(usize),
    /// Longer than it may be while others are unfinished.
    #[error(
        "an unfinished message of {bytes} bytes, while the server's unfinished messages have {all} bytes together"
    )]
    Together {
        /// Its bytes.
        bytes: usize,
        /// The bytes of all.
        all: usize,
    },
}

impl UnfinishedMessage {
    /// Begins the count of one stream of a server, whose messages have at most `max` bytes.
    pub(crate) fn of(server: &str, max: usize) -> Self {
        Self {
            bytes: ByteShare::new(account_of(server, max)),
            max,
        }
    }

    /// Records that the unfinished message has this many bytes now. The more bytes all have, the fewer it may have: an
    /// eighth of the rest. So a server that leaves many unfinished does not keep others from sending, and a short message
    /// is always read.
    ///
    /// # Errors
    /// If it may not have so many.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), MessageTooLong> {
        if bytes == self.bytes.bytes() {
            return Ok(());
        }
        let fits = self.bytes.set(bytes);
        if bytes > self.max {
            return Err(MessageTooLong::Message(self.max));
        }
        if !fits {
            let all = self.bytes.total();
            return Err(MessageTooLong::Together { bytes, all });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn account() -> &'static SharedByteAccount {
        new_account(64 * MIB)
    }

    fn one(all: &'static SharedByteAccount, max: usize) -> UnfinishedMessage {
        let bytes = ByteShare::new(all);
        UnfinishedMessage { bytes, max }
    }

    #[test]
    fn a_server_has_no_share_in_the_account_of_another() {
        let mut hostile: Vec<_> = (0..9)
            .map(|_| UnfinishedMessage::of("hostile", 64 * MIB))
            .collect();
        for stream in &mut hostile {
            let _refused = stream.set(64 * MIB);
        }
        assert!(UnfinishedMessage::of("hostile", 64 * MIB).set(MIB).is_err());
        UnfinishedMessage::of("honest", 64 * MIB)
            .set(64 * MIB)
            .unwrap();
    }

    #[test]
    fn a_message_alone_may_be_the_largest() {
        let all = account();
        let mut alone = one(all, 64 * MIB);
        alone.set(10).unwrap();
        alone.set(10).unwrap();
        alone.set(64 * MIB).unwrap();
        assert!(matches!(
            alone.set(64 * MIB + 1),
            Err(MessageTooLong::Message(max)) if max == 64 * MIB
        ));
        alone.set(0).unwrap();
        drop(alone);
        assert_eq!(all.total(), 0);
    }

    #[test]
    fn many_unfinished_messages_have_a_bound_together_and_leave_room_for_others() {
        let all = account();
        let mut streams: Vec<_> = (0..2_000).map(|_| one(all, 64 * MIB)).collect();
        for stream in &mut streams {
            // Each takes as much as it can.
            let mut bytes = 0;
            while stream.set(bytes + MIB / 4).is_ok() {
                bytes += MIB / 4;
            }
            let _less = stream.set(bytes);
        }
        let held = all.total();
        assert!(held <= 8 * 64 * MIB, "{held}");
        one(all, 64 * MIB).set(ALWAYS).unwrap();
        streams.truncate(1_000);
        streams.drain(..8);
        one(all, 64 * MIB).set(20 * MIB).unwrap();
    }
}
