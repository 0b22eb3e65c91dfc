//! Work on several threads, with its results in order, and its progress on stderr.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mcp_elicit_check::Cell;

use crate::output::{harmless, say};

/// The number of processors.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` for each item on at most `threads` threads. The results have the order of the items.
pub(crate) fn each<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    let result = work(item);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The progress of the cells.
pub(crate) struct CellProgress {
    all: usize,
    done: AtomicUsize,
    is_terminal: bool,
}

/// The cells between two lines of progress that nobody watches.
const STEP: usize = 25;

impl CellProgress {
    pub(crate) fn new(all: usize) -> Self {
        Self {
            all,
            done: AtomicUsize::new(0),
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Tells that a cell has ended: in one line that is written over on a terminal, otherwise now and then.
    pub(crate) fn step(&self, suite: &str, cell: Cell) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_terminal {
            let line = format!("{done}/{} {suite}: {cell}", self.all);
            let line: String = harmless(&line).chars().take(78).collect();
            anstream::eprint!("\r{line:<78}");
        } else if done.is_multiple_of(STEP) || done == self.all {
            say(format_args!("{done} of {} cells", self.all));
        }
    }

    /// Removes the line.
    pub(crate) fn end(&self) {
        if self.is_terminal && self.all > 0 {
            anstream::eprint!("\r{:<78}\r", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn results_have_the_order_of_their_items() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = each(7, &items, |item| item * 2);
        assert_eq!(
            doubled,
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        assert!(each(3, &[] as &[u32], |item| *item).is_empty());
    }
}
