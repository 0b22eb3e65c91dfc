//! The person who signs in: sees the whole address with its warnings, agrees before it is opened, and may stop.

use std::io::IsTerminal as _;
use std::time::Duration;

use mcp_elicit_client::rmcp::transport::AuthorizationManager;
use mcp_elicit_client::sign_in::{PendingSignIn, SignIn};
use mcp_elicit_core::link::{LinkWarning, WarningLevel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::failed;
use crate::call_session::{failures, opener};
use crate::failure::Failure;
use crate::{input, output};

/// Parameters of a sign-in page that contain a URL of our own: the page of the browser's return, and the server.
const OUR_URLS: [&str; 2] = ["redirect_uri", "resource"];

/// The person in front of this process.
pub(crate) struct LocalPerson {
    /// `true` if the person can be asked whether to open a page.
    is_asked: bool,
    within: Option<Duration>,
}

impl LocalPerson {
    /// Creates the person at this terminal, if there is one; `json` if only a program reads this process's output.
    pub(crate) fn here(json: bool, within: Option<Duration>) -> Self {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Self {
            is_asked: is_terminal && !json,
            within,
        }
    }

    /// Returns `true` if the person can be asked.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Signs in: the person opens the page, agrees there and returns.
    pub(crate) async fn sign_in(
        &self,
        sign_in: &SignIn,
        more: &[String],
        stop: &CancellationToken,
    ) -> Result<AuthorizationManager, Failure> {
        let pending = sign_in
            .begin(more)
            .await
            .map_err(|error| failed(error, sign_in.url()))?;
        show(&pending);
        let address = pending.link().as_str().to_owned();
        let (answered, answer) = oneshot::channel();
        if self.is_asked {
            // The answer is awaited in the end too: the thread would take a line that is meant for a later question.
            std::thread::spawn(move || ask_and_open(&address, answered));
        } else {
            drop(answered);
        }
        let time = async {
            match self.within {
                Some(within) => tokio::time::sleep(within).await,
                None => std::future::pending().await,
            }
        };
        let completed = async {
            let completed = pending.completed().await;
            // Without a terminal, the channel is closed.
            let _answer = answer.await;
            completed
        };
        let completed = tokio::select! {
            completed = completed => completed,
            () = stop.cancelled() => return Err(failures::stopped()),
            () = time => return Err(Failure::unanswered("the sign-in was not completed in time")),
        };
        let manager = completed.map_err(|error| failed(error, sign_in.url()))?;
        output::say("signed in");
        Ok(manager)
    }
}

/// Shows the whole address and its warnings.
fn show(pending: &PendingSignIn) {
    let link = pending.link();
    output::say(format_args!("sign in here: {}", link.as_str()));
    output::say(format_args!(
        "  host {}, for the authorization server {}",
        output::harmless(link.host().ascii()),
        output::harmless(pending.issuer())
    ));
    for warning in link.distinct_warnings() {
        let is_ours = matches!(warning, LinkWarning::NestedUrl { parameter, .. } if OUR_URLS.contains(&parameter.as_str()));
        if !is_ours && warning.level() > WarningLevel::Note {
            output::say(format_args!(
                "  {} {}",
                output::styled(output::WARNING, "caution:"),
                output::harmless(&warning.to_string())
            ));
        }
    }
}

/// Asks whether to open the page, and opens it. A person who does not agree can copy the address.
fn ask_and_open(address: &str, answered: oneshot::Sender<()>) {
    let read = input::typed_answer("open it in the browser? [y/n] ");
    let line = read.as_deref().unwrap_or_default();
    let agreed = matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if agreed {
        match opener::open_link(address) {
            Ok(()) => output::say("continue in the browser"),
            Err(error) => output::say(format_args!(
                "the browser cannot be opened ({error}); open the address above yourself"
            )),
        }
    } else {
        output::say("not opened: open the address above yourself, or stop with Ctrl-C");
    }
    let _waiting = answered.send(());
}
