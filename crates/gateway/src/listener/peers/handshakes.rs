//! Connections whose other end is not known yet. They are bounded, in all and of each address; at a limit, a new one
//! replaces the one that has waited longest, so that strangers who send nothing keep no gateway out. Those that
//! [opened](super::opening) are counted apart: a gateway does so at once, and from then on only others that did replace it.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The most at once.
const ALL: usize = 1_024;
/// The most of one address: more than its gateways begin at once ([`CONNECTING`](super::forward::CONNECTING)).
const OF_ADDRESS: usize = 256;
/// The time limit for one to be opened.
pub(super) const OPEN: Duration = Duration::from_secs(1);
/// The time limit for the rest of one that was opened. The other gateway waits as long.
pub(super) const FINISH: Duration = Duration::from_secs(5);

/// All handshakes.
#[derive(Debug, Default)]
pub(super) struct Handshakes(Mutex<WaitingHandshakes>);

#[derive(Debug, Default)]
struct WaitingHandshakes {
    /// The last assigned number.
    last: u64,
    /// Those that have not answered the challenge.
    silent: Class,
    /// Those that have answered it rightly.
    opened: Class,
}

/// Handshakes that replace one another.
#[derive(Debug, Default)]
struct Class {
    /// By number, so that the first has waited longest.
    by_number: BTreeMap<u64, WaitingConnection>,
    by_address: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct WaitingConnection {
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
    fn waiting(&self) -> MutexGuard<'_, WaitingHandshakes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a handshake with this address. At a limit it replaces another.
    pub(super) fn begin(self: &Arc<Self>, from: IpAddr) -> Handshake {
        let mut waiting = self.waiting();
        waiting.last += 1;
        let number = waiting.last;
        let end = Arc::new(Notify::new());
        let waits = WaitingConnection {
            from,
            end: end.clone(),
        };
        waiting.silent.add(number, waits);
        drop(waiting);
        Handshake {
            all: self.clone(),
            number,
            end,
        }
    }
}

impl WaitingHandshakes {
    fn has_opened(&mut self, number: u64) {
        if let Some(waits) = self.silent.remove(number) {
            self.opened.add(number, waits);
        }
    }

    fn remove(&mut self, number: u64) {
        if self.silent.remove(number).is_none() {
            self.opened.remove(number);
        }
    }
}

impl Class {
    /// Adds a handshake. At a limit it replaces another.
    fn add(&mut self, number: u64, waits: WaitingConnection) {
        if self.of(waits.from) >= OF_ADDRESS {
            self.end_oldest(waits.from);
        } else if self.by_number.len() >= ALL
            && let Some(most) = self.busiest()
        {
            self.end_oldest(most);
        }
        *self.by_address.entry(waits.from).or_default() += 1;
        self.by_number.insert(number, waits);
    }

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

    fn remove(&mut self, number: u64) -> Option<WaitingConnection> {
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
    /// Notes that the other end has answered the challenge rightly.
    pub(super) fn has_opened(&self) {
        self.all.waiting().has_opened(self.number);
    }

    /// Waits for work of this handshake; `None` if it takes too long, or another replaces it.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Option<T>>,
    ) -> Option<T> {
        tokio::select! {
            done = tokio::time::timeout(limit, work) => done.ok()?,
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
        let waiting = handshake.all.waiting();
        let mut both = [&waiting.silent, &waiting.opened].into_iter();
        both.all(|class| !class.by_number.contains_key(&handshake.number))
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_is_replaced_or_late_ends() {
        let all = Arc::new(Handshakes::default());
        let first = all.begin(address(1));
        let first = tokio::spawn(async move {
            first
                .within(OPEN, std::future::pending::<Option<()>>())
                .await
        });
        let more: Vec<_> = (0..OF_ADDRESS).map(|_| all.begin(address(1))).collect();
        let other = all.begin(address(2));
        assert_eq!(first.await.unwrap(), None);
        assert!(!more.iter().any(has_ended));
        assert_eq!(all.waiting().silent.of(address(1)), OF_ADDRESS);
        drop(more);
        assert_eq!(other.within(OPEN, async { Some(7) }).await, Some(7));
        drop(other);
        assert!(all.waiting().silent.by_number.is_empty());
        assert!(all.waiting().silent.by_address.is_empty());
        let before = tokio::time::Instant::now();
        let late = all.begin(address(1));
        assert_eq!(
            late.within(FINISH, std::future::pending::<Option<()>>())
                .await,
            None
        );
        assert_eq!(before.elapsed(), FINISH);
    }

    #[test]
    fn one_that_has_opened_is_replaced_only_by_others_that_have() {
        let all = Arc::new(Handshakes::default());
        let opened = all.begin(address(1));
        opened.has_opened();
        let silent: Vec<_> = (0..2 * OF_ADDRESS).map(|_| all.begin(address(1))).collect();
        assert!(!has_ended(&opened) && has_ended(&silent[0]));
        let new = all.begin(address(1));
        silent.iter().for_each(Handshake::has_opened);
        assert!(!has_ended(&opened) && !has_ended(&new));
        new.has_opened();
        assert!(has_ended(&opened) && !has_ended(&new));
        drop((opened, silent, new));
        assert!(all.waiting().opened.by_address.is_empty());
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
        assert_eq!(all.waiting().silent.by_number.len(), ALL);
    }
}
