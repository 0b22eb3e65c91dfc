//! Signing in from the sign-in page, without a terminal: a login link is opened in the browser of the machine that serves
//! the pages. Who asked for it gets no secret, only whoever sits at that machine.

use std::any::Any;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The lifetime of a link that is opened, which is used within moments or not at all.
pub(super) const OPENED_LIFE: Duration = Duration::from_secs(2 * 60);
/// The minimum interval between two openings, so that no program covers the desktop with pages.
const APART: Duration = Duration::from_secs(10);

/// The time that a browser has to read what was opened.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// A page that was opened, such as a file that must stay until the browser has read it; removed on drop.
pub type OpenedPage = Box<dyn Any + Send>;

/// The opener of login links on this machine.
pub(super) struct DesktopSignIn {
    open: fn(&str) -> io::Result<OpenedPage>,
    last: Mutex<Option<SystemTime>>,
}

impl DesktopSignIn {
    pub(super) fn new(open: fn(&str) -> io::Result<OpenedPage>) -> Self {
        Self {
            open,
            last: Mutex::new(None),
        }
    }

    /// Returns `true` if a link may be opened now, which counts as one that was.
    pub(super) fn may_open(&self, now: SystemTime) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back does not take the button away.
        let is_due = last.is_none_or(|last| match now.duration_since(last) {
            Ok(since) => since >= APART,
            Err(_) => true,
        });
        if is_due {
            *last = Some(now);
        }
        is_due
    }

    /// Opens the link in this machine's browser, which may take a second.
    pub(super) async fn open(&self, link: String) -> io::Result<()> {
        let open = self.open;
        let opened = tokio::task::spawn_blocking(move || open(&link)).await;
        let page = opened.unwrap_or_else(|error| Err(io::Error::other(error)))?;
        tokio::spawn(async move {
            tokio::time::sleep(READ_WITHIN).await;
            drop(page);
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_opened_ten_seconds_apart() {
        let sign_in = DesktopSignIn::new(|_| Ok(Box::new(())));
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(sign_in.may_open(at(100)));
        assert!(!sign_in.may_open(at(100)) && !sign_in.may_open(at(109)));
        assert!(sign_in.may_open(at(110)));
        assert!(sign_in.may_open(at(50)), "the clock was set back");
        assert!(!sign_in.may_open(at(51)));
    }
}
