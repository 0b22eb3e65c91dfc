//! Bytes of memory that several have together, such as servers or callers: the more the others have, the fewer one may
//! have. So none of them keeps the others from theirs, and all have a bound.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of all.
#[derive(Debug)]
pub(crate) struct SharedByteAccount {
    total: AtomicUsize,
    /// The bytes that all may have.
    limit: usize,
    /// One may have what the others leave of the limit, divided by this.
    share: usize,
    /// The bytes that one may always have.
    always: usize,
}

impl SharedByteAccount {
    pub(crate) const fn new(limit: usize, share: usize, always: usize) -> Self {
        Self {
            total: AtomicUsize::new(0),
            limit,
            share,
            always,
        }
    }

    /// Returns the bytes that all have.
    pub(crate) fn total(&self) -> usize {
        self.total.load(Ordering::Acquire)
    }
}

/// The bytes of one, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct ByteShare {
    bytes: AtomicUsize,
    account: &'static SharedByteAccount,
}

impl ByteShare {
    pub(crate) const fn new(account: &'static SharedByteAccount) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            account,
        }
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.account.total.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.account.total.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Records the bytes that it has now. Returns `false` if they are more than before, and more than it may have.
    pub(crate) fn set(&self, bytes: usize) -> bool {
        let before = self.bytes.swap(bytes, Ordering::AcqRel);
        if before == bytes {
            return true;
        }
        self.account.total.fetch_add(bytes, Ordering::AcqRel);
        self.account.total.fetch_sub(before, Ordering::AcqRel);
        bytes < before || !self.is_exceeded()
    }

    /// Returns `true` if it has more than it may have.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.bytes() > self.most()
    }

    /// Returns the bytes that it may have now.
    pub(crate) fn most(&self) -> usize {
        let others = self.account.total().saturating_sub(self.bytes());
        let rest = self.account.limit.saturating_sub(others);
        self.account.always.max(rest / self.account.share)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Returns the bytes of all.
    pub(crate) fn total(&self) -> usize {
        self.account.total()
    }
}

impl Drop for ByteShare {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.account.total.fetch_sub(bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_has_a_bound_for_each_server_and_for_all() {
        const MIB: usize = 1024 * 1024;
        const ALL: usize = 512 * MIB;
        const ALWAYS: usize = 8 * MIB;
        let account: &'static SharedByteAccount =
            Box::leak(Box::new(SharedByteAccount::new(ALL, 4, ALWAYS)));
        let alone = ByteShare::new(account);
        assert!(alone.set(128 * MIB) && !alone.set(129 * MIB) && alone.set(0));
        let servers: Vec<_> = (0..100).map(|_| ByteShare::new(account)).collect();
        for server in &servers {
            let mut bytes = 0;
            while server.set(bytes + MIB) {
                bytes += MIB;
            }
            assert!(bytes >= 8 * MIB, "{bytes}");
            server.set(bytes);
        }
        let all = account.total();
        assert!(all <= ALL + servers.len() * ALWAYS, "{all}");
        drop((alone, servers));
        assert_eq!(account.total(), 0);
    }
}
