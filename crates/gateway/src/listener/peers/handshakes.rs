//! Connections whose other end is not known yet. They are bounded, in all and of each address; at a limit, a new one
//! replaces the one that has waited longest, so that strangers who send nothing keep no gateway out.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The most at once.
const ALL: usize = 1_024;
/// The most of one address: more than its gateways begin at once ([`CONNECTING`](super::forward::CONNECTING)).
const OF_ADDRESS: usize = 256;
/// The time limit for each. The other gateway waits as long.
const TIME: Duration = Duration::from_secs(1);

/// All handshakes.
#[derive(Debug, Default)]
pub(super) struct Handshakes(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// The last assigned number.
    last: u64,
    /// By number, so that the first has waited longest.
    by_number: BTreeMap<u64, Waits>,
    by_address: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Waits {
    from: IpAddr,
    /// Notified when another replaces it.
    end: Arc<Notify>,
}

/// One handshake, until this is dropped.
#[derive(Debug)]
pub(super) struct Handshake {
    all: Arc<Handshakes>,
    number: u64,
    end: Arc<Notify>,
}

impl Handshakes {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a handshake with this address. At a limit it replaces another.
    pub(super) fn begin(self: &Arc<Self>, from: IpAddr) -> Handshake {
        let mut waiting = self.waiting();
        if waiting.of(from) >= OF_ADDRESS {
            waiting.end_oldest(from);
        } else if waiting.by_number.len() >= ALL
            && let Some(most) = waiting.busiest()
        {
            waiting.end_oldest(most);
        }
        waiting.last += 1;
        let number = waiting.last;
        let end = Arc::new(Notify::new());
        let waits = Waits {
            from,
            end: end.clone(),
        };
        waiting.by_number.insert(number, waits);
        *waiting.by_address.entry(from).or_default() += 1;
        drop(waiting);
        Handshake {
            all: self.clone(),
            number,
            end,
        }
    }
}

impl Waiting {
    fn of(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    /// Returns the address with the most handshakes.
    fn busiest(&self) -> Option<IpAddr> {
        let most = self.by_address.iter().max_by_key(|(_, count)| **count);
        most.map(|(address, _)| *address)
    }

    /// Ends the handshake of this address that has waited longest.
    fn end_oldest(&mut self, of: IpAddr) {
        let oldest = self.by_number.iter().find(|(_, waits)| waits.from == of);
        if let Some((&number, _)) = oldest
            && let Some(waits) = self.remove(number)
        {
            waits.end.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Waits> {
        let waits = self.by_number.remove(&number)?;
        if let Some(count) = self.by_address.get_mut(&waits.from) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&waits.from);
            }
        }
        Some(waits)
    }
}

impl Handshake {
    /// Waits for the work of this handshake; `None` if it takes too long, or another replaces it.
    pub(super) async fn within<T>(self, work: impl Future<Output = Option<T>>) -> Option<T> {
        tokio::select! {
            done = tokio::time::timeout(TIME, work) => done.ok()?,
            () = self.end.notified() => None,
        }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.all.waiting().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Returns `true` if the handshake was replaced.
    fn has_ended(handshake: &Handshake) -> bool {
        !handshake
            .all
            .waiting()
            .by_number
            .contains_key(&handshake.number)
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_is_replaced_or_late_ends() {
        let all = Arc::new(Handshakes::default());
        let first = all.begin(address(1));
        let first = tokio::spawn(first.within(std::future::pending::<Option<()>>()));
        let more: Vec<_> = (0..OF_ADDRESS).map(|_| all.begin(address(1))).collect();
        let other = all.begin(address(2));
        assert_eq!(first.await.unwrap(), None);
        assert!(!more.iter().any(has_ended));
        assert_eq!(all.waiting().of(address(1)), OF_ADDRESS);
        drop(more);
        assert_eq!(other.within(async { Some(7) }).await, Some(7));
        assert!(all.waiting().by_number.is_empty() && all.waiting().by_address.is_empty());
        let before = tokio::time::Instant::now();
        let late = all.begin(address(1));
        assert_eq!(
            late.within(std::future::pending::<Option<()>>()).await,
            None
        );
        assert_eq!(before.elapsed(), TIME);
    }

    #[test]
    fn an_address_with_many_handshakes_makes_room_for_the_others() {
        let all = Arc::new(Handshakes::default());
        let quiet = all.begin(address(1));
        let mut noisy = Vec::new();
        for of in 2..=5 {
            noisy.extend((0..OF_ADDRESS).map(|_| all.begin(address(of))));
        }
        let mut others: Vec<_> = (6..200).map(|of| all.begin(address(of))).collect();
        others.push(quiet);
        assert!(!others.iter().any(has_ended));
        let ended = noisy
            .iter()
            .filter(|handshake| has_ended(handshake))
            .count();
        assert_eq!(ended, 195);
        assert_eq!(all.waiting().by_number.len(), ALL);
    }
}
