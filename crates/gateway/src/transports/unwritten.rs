//! The bytes that wait for servers which do not read, over all servers of the process: a server may ask without end and
//! read no answer.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that may wait for all servers.
const ALL: usize = 512 * 1024 * 1024;
/// The part of what is left that one server may have.
const SHARE: usize = 4;
/// The bytes that may always wait for a server.
const ALWAYS: usize = 8 * 1024 * 1024;

/// The account of all servers of the process.
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// The bytes that wait for one server, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Unwritten {
    bytes: AtomicUsize,
    total: &'static AtomicUsize,
}

impl Default for Unwritten {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::default(),
            total: &TOTAL,
        }
    }
}

impl Unwritten {
    /// Records the bytes that wait now. Returns `false` if they are too many: a quarter of what others leave, and at
    /// least 8 MiB.
    pub(crate) fn set(&self, bytes: usize) -> bool {
        let before = self.bytes.swap(bytes, Ordering::AcqRel);
        if before == bytes {
            return true;
        }
        let total = self.total.fetch_add(bytes, Ordering::AcqRel) + bytes;
        self.total.fetch_sub(before, Ordering::AcqRel);
        let others = total.saturating_sub(bytes).saturating_sub(before);
        bytes < before || bytes <= ALWAYS.max(ALL.saturating_sub(others) / SHARE)
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.total
            .fetch_sub(*self.bytes.get_mut(), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_has_a_bound_for_each_server_and_for_all() {
        const MIB: usize = 1024 * 1024;
        let total: &'static AtomicUsize = Box::leak(Box::default());
        let one = || Unwritten {
            bytes: AtomicUsize::default(),
            total,
        };
        let alone = one();
        assert!(alone.set(128 * MIB) && !alone.set(129 * MIB) && alone.set(0));
        let servers: Vec<_> = (0..100).map(|_| one()).collect();
        for server in &servers {
            let mut bytes = 0;
            while server.set(bytes + MIB) {
                bytes += MIB;
            }
            assert!(bytes >= 8 * MIB, "{bytes}");
            server.set(bytes);
        }
        let all = total.load(Ordering::Acquire);
        assert!(all <= ALL + servers.len() * ALWAYS, "{all}");
        drop((alone, servers));
        assert_eq!(total.load(Ordering::Acquire), 0);
    }
}
