//! `inbox open`: signs a browser in to the inbox that the gateway of this state folder serves.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, SystemTime};

use mcp_elicit_forms::web::SessionStore as _;
use mcp_elicit_inbox::sessions::SharedSessions;
use mcp_elicit_inbox::state_folder::{LogInBy, PeopleInbox, StateFolder};

use crate::call_session::private_link::PrivateLink;
use crate::failure::{Exit, Failure};
use crate::output;

/// The validity of a link that is shown in a terminal.
const SHOWN_LIFE: Duration = Duration::from_secs(60 * 60);
/// The validity of a link that is opened in a browser.
const OPENED_LIFE: Duration = Duration::from_secs(2 * 60);
/// The time to wait for the browser, and the interval of checks.
const WITHIN: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the failure for an inbox in which people log in by themselves, without links.
pub(super) fn people_log_in(inbox: &PeopleInbox, question: Option<&str>) -> Failure {
    let address = inbox.address.trim_end_matches('/');
    let page = question.map_or_else(|| format!("{address}/"), |id| format!("{address}/q/{id}"));
    let failure = Failure::usage("people log in to this inbox, so no link signs a browser in");
    match &inbox.by {
        LogInBy::Proxy => failure.hint(format!(
            "open {page} through the proxy in front of the inbox, which authenticates people."
        )),
        LogInBy::Provider => failure.hint(format!("open {page} and log in.")),
    }
}

/// Signs a browser in and shows the queue, or this question.
pub(super) async fn open(folder: &StateFolder, question: Option<&str>) -> Result<Exit, Failure> {
    let base = folder
        .served_inbox()
        .await
        .ok_or_else(|| super::no_gateway(folder))?;
    let links = InboxLinks {
        sessions: folder.sessions(),
        base,
        next: question.map_or_else(String::new, |id| format!("&next=/q/{id}")),
    };
    let at_terminal = io::stderr().is_terminal();
    let (key, link) = links.make(OPENED_LIFE)?;
    let opened = PrivateLink::open(&link);
    let page = match (opened, at_terminal) {
        (Ok(page), _) => page,
        (Err(_), true) => {
            links.drop_key(&key)?;
            let (_, link) = links.make(SHOWN_LIFE)?;
            output::say(
                "no browser could be started here; open this link; it signs one browser in, once:",
            );
            output::say(format_args!("  {link}"));
            return Ok(Exit::Done);
        }
        (Err(error), false) => {
            links.drop_key(&key)?;
            return Err(Failure::usage("no browser could be started here")
                .because(error)
                .hint("run it in a terminal, where it shows a link to open."));
        }
    };
    let mut keys = vec![key];
    if at_terminal {
        let (key, link) = links.make(SHOWN_LIFE)?;
        output::say(
            "opening the inbox in your browser; if nothing appears, open this link; it signs one browser in, once:",
        );
        output::say(format_args!("  {link}"));
        keys.push(key);
    }
    let came = links.wait_for_use(&keys).await?;
    drop(page);
    if came {
        // The other key is no longer needed.
        for key in &keys {
            links.drop_key(key)?;
        }
        output::say("signed in");
        return Ok(Exit::Done);
    }
    if at_terminal {
        output::say("no browser has come yet; the link above still works");
        return Ok(Exit::Done);
    }
    links.drop_key(&keys[0])?;
    Err(
        Failure::usage("the browser that was started has not opened the inbox")
            .hint("run it in a terminal, where it shows a link to open."),
    )
}

/// Creates links for one inbox.
struct InboxLinks {
    sessions: SharedSessions,
    base: String,
    next: String,
}

impl InboxLinks {
    /// Creates a key, and the link with it.
    fn make(&self, life: Duration) -> Result<(String, String), Failure> {
        let mut key = String::new();
        self.change(|table| {
            key = table.add_login(now(), life)?;
            Ok(())
        })?;
        let link = format!("{}/login?key={key}{}", self.base, self.next);
        Ok((key, link))
    }

    fn drop_key(&self, key: &str) -> Result<(), Failure> {
        self.change(|table| {
            table.drop_login(key);
            Ok(())
        })
    }

    fn change(
        &self,
        mut change: impl FnMut(&mut mcp_elicit_forms::web::SessionTable) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let changed = self.sessions.change(&mut change);
        changed.map_err(|error| super::unwritable(&error))
    }

    /// Waits for a browser to use one of the keys, and returns `true` if one did in time.
    async fn wait_for_use(&self, keys: &[String]) -> Result<bool, Failure> {
        let looks = WITHIN.as_millis() / POLL_INTERVAL.as_millis();
        for _ in 0..looks {
            let table = self.sessions.read();
            let table = table.map_err(|error| super::unwritable(&error))?;
            if keys.iter().any(|key| !table.is_unused(key, now())) {
                return Ok(true);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(false)
    }
}

#[expect(clippy::disallowed_methods, reason = "keys end at a time of day")]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}
