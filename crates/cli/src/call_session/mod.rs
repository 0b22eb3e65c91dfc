//! One request with its questions: connecting, answering, reporting events, ending. Shared by `call` and the demos.
//!
//! - [`consent`]: the person's permissions for servers, kept in a file
//! - [`events`]: the events of a call, for a program or a person
//! - [`failures`]: errors of a connection, a call or a question, with their exit codes
//! - [`handler`]: the server's notifications
//! - [`help`]: advice on an error that the server reported
//! - [`listing`]: the contents of a server
//! - [`opener`]: the one gate through which links and pages are opened
//! - [`pages`]: one list of a server, page by page
//! - [`progress`]: a sign of life while waiting for the server
//! - [`played`]: a client that is played as it was seen to behave
//! - [`private_link`]: opening a link that signs a browser in
//! - [`request`]: the request to the server
//! - [`responder_setup`]: the responder that the options choose
//! - [`seen_to_ask`]: the eras in which the server asked, for the record
//! - [`stop`]: Ctrl-C and other signals

pub(crate) mod consent;
pub(crate) mod events;
pub(crate) mod failures;
pub(crate) mod handler;
mod help;
pub(crate) mod listing;
pub(crate) mod opener;
mod pages;
pub(crate) mod played;
pub(crate) mod private_link;
mod progress;
pub(crate) mod request;
pub(crate) mod responder_setup;
pub(crate) mod seen_to_ask;
pub(crate) mod stop;

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_client::connection::{ConnectError, Target};
use mcp_elicit_client::sign_in::SignIn;
use mcp_elicit_client::sign_in::step_up::missing_scopes;
use mcp_elicit_client::{
    CallError, CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient,
};
use mcp_elicit_core::wire::{Era, Revision};
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::AuthClient;
use tokio_util::sync::CancellationToken;

use crate::args::answers::AnswerArgs;
use crate::args::server::{Protocol, ServerAccess};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::sign_in::{self, LocalPerson};
use consent::{ConsentWriter, PolicyFile};
use events::{CallRefusal, Events};
use handler::Handler;
use request::{Got, ServerRequest};
use responder_setup::ResponderSetup;
use seen_to_ask::{RecordedIn, SeenToAsk};

/// The default time that a server may be silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// One request to a server.
pub(crate) struct ServerCall {
    pub(crate) target: Target,
    /// The credentials and the environment for the server.
    pub(crate) access: ServerAccess,
    /// The way to sign in, if the person wants to.
    pub(crate) sign_in: Option<SignIn>,
    /// The name by which the person knows the server.
    pub(crate) server: String,
    pub(crate) protocol: Protocol,
    pub(crate) request: ServerRequest,
    pub(crate) answers: AnswerArgs,
    /// The file of the person's permissions for servers.
    pub(crate) consent: Option<PolicyFile>,
    /// The record that is told in which eras the server asked.
    pub(crate) recorded_in: Option<RecordedIn>,
}

/// Makes the request, shows its result, and returns the exit code.
pub(crate) async fn run(call: ServerCall) -> Result<Exit, Failure> {
    let json = call.answers.json;
    match Box::pin(conversation(&call)).await {
        Ok(exit) => Ok(exit),
        Err(failure) => {
            if json {
                events::print_failure(&failure)?;
            }
            Err(failure)
        }
    }
}

async fn conversation(call: &ServerCall) -> Result<Exit, Failure> {
    let answering = responder_setup::from_args(&call.answers).await?;
    let stop = stop::listen()?;
    let policy = call.consent.as_ref().map(|policy| policy.path.clone());
    let events = Events::new(call.answers.json, stop.clone())
        .explaining(call.answers.named.clone())
        .under(policy);
    let events = Arc::new(events);
    let seen_to_ask = SeenToAsk::default();
    let mut settings = ClientSettings::default()
        .observer(Arc::clone(&events))
        .observer(seen_to_ask.clone())
        .observer(ConsentWriter::new(
            call.consent.clone(),
            call.server.clone(),
        ));
    if !answering.modes().is_none() {
        settings = settings.responder(Arc::clone(&answering.responder));
    }
    let mut declared = answering.modes();
    if let Some(file) = &call.consent {
        let policy = file.read()?;
        declared = declared.and(policy.rule(&call.server).modes());
        settings = settings.consent(policy);
    }
    if let Some(time) = call.answers.timeout {
        settings = settings.answer_within(time);
    }
    let unnamed = call.server == call.target.describe();
    let connected = if unnamed {
        format!("over {}", call.target.transport())
    } else {
        format!(
            "over {}: {}",
            call.target.transport(),
            call.target.describe()
        )
    };
    let handler = Handler::new(call.answers.json);
    let mut eliciting = ElicitingClient::new(handler, call.server.clone(), settings)
        .connected(connected)
        .following_tasks();
    if unnamed {
        eliciting = eliciting.unnamed();
    }
    let options = options_of(call);
    let mut connection = Box::pin(connect(call, eliciting.clone(), &options, &stop)).await?;
    events.connected(&connection, &call.target)?;
    events.findings(&connection)?;
    let call_options = CallOptions::default()
        .silence(call.answers.timeout.unwrap_or(SILENCE))
        .stop(stop.clone());
    let mut got = Box::pin(call.request.get(&connection, call_options.clone())).await;
    if let Some((sign_in, scopes)) = wants_more(call, &got) {
        // The request was rejected before it was processed, so it is made again.
        connection.close().await;
        connection = Box::pin(step_up(call, sign_in, scopes, eliciting.clone(), &stop)).await?;
        got = Box::pin(call.request.get(&connection, call_options.clone())).await;
    }
    let mut seen = seen_to_ask.take(&connection.protocol());
    if call.protocol == Protocol::Auto && help::asks_only_in_rounds(&got) {
        seen.needs_rounds = true;
        // The tool ended by asking, so it is called again where it can ask.
        connection.close().await;
        let options = options.revision(Revision::V2026_07_28);
        connection = Box::pin(connect(call, eliciting, &options, &stop)).await?;
        events.connected(&connection, &call.target)?;
        got = Box::pin(call.request.get(&connection, call_options.clone())).await;
    }
    if let Some(record) = &call.recorded_in {
        let all = seen.with(seen_to_ask.take(&connection.protocol()));
        record.note(all).await;
    }
    let (refusal, ended) = (events.refusal(), events.ended());
    // A call that the person ended needs no advice.
    let help = match &ended {
        None if refusal.is_none() && !failures::is_of_gateway(&got) => {
            let situation = help::Situation {
                declared,
                has_answered: events.has_answered(),
            };
            Box::pin(help::find(
                &call.request,
                &got,
                &connection,
                &call_options,
                situation,
            ))
            .await
        }
        _ => help::Help::default(),
    };
    let said = failures::ServerOutput::from_connection(&connection);
    events.findings(&connection)?;
    connection.close().await;
    said.ended().await;
    answering.warn_of_unused();
    let ending = CallReport {
        events: &events,
        answering: &answering,
        said,
        help,
        refusal,
    };
    let ended = ending.show(got, ended, call.answers.json);
    answering.shutdown().await;
    ended
}

/// The end of a conversation: everything that is shown besides the result.
struct CallReport<'c> {
    events: &'c Events,
    answering: &'c ResponderSetup,
    said: failures::ServerOutput,
    help: help::Help,
    /// The refusal in the last answer.
    refusal: Option<CallRefusal>,
}

impl CallReport<'_> {
    /// Shows the result and returns the exit code; `ended` is the failure of a question.
    fn show(
        self,
        got: Result<Got, CallError>,
        ended: Option<Failure>,
        json: bool,
    ) -> Result<Exit, Failure> {
        match (got, ended) {
            (Ok(got), ended) => {
                self.said.warn(self.events)?;
                let shown = self.result(&got);
                if !json {
                    self.help.say();
                }
                ended.map_or(shown, Err)
            }
            // The failure of a question explains why the call failed after it.
            (Err(_), Some(ended)) => {
                self.said.warn(self.events)?;
                Err(ended)
            }
            (Err(error), None) => {
                let failure = failures::calling(&error, &self.said, self.refusal);
                // A failure of the connection quotes the output itself.
                if failure.exit() != Exit::Connection {
                    self.said.warn(self.events)?;
                }
                Err(self.help.add_to(failure))
            }
        }
    }

    /// Shows a result. The person is told of an answer that did not reach the server.
    fn result(&self, got: &Got) -> Result<Exit, Failure> {
        let exit = if got.is_handed_back() {
            Exit::HandedBack
        } else {
            let is_declined = got.not_called() == Some("declined");
            exit_of(got.is_error(), self.refusal.is_some() || is_declined)
        };
        self.events.got(got)?;
        if let Some(why) = got.unfinished() {
            return Err(failures::unfinished(&why));
        }
        match self.answering.unused() {
            Some(unused) if exit == Exit::Done => Err(unused),
            Some(unused) => {
                self.events.warn(unused.message(), None)?;
                Ok(exit)
            }
            None => Ok(exit),
        }
    }
}

async fn connect(
    call: &ServerCall,
    eliciting: ElicitingClient<Handler>,
    options: &ConnectOptions,
    stop: &CancellationToken,
) -> Result<Connection<Handler>, Failure> {
    let Some(sign_in) = &call.sign_in else {
        let opened = open(call, eliciting, options, None, stop).await;
        return opened.map_err(|error| error.into_failure(call));
    };
    let failed = |error| sign_in::failed(error, sign_in.url());
    if let Some(known) = sign_in.known().await.map_err(failed)? {
        match open(call, eliciting.clone(), options, Some(known), stop).await {
            // The server no longer accepts these tokens.
            Err(NotConnected::Failed(ConnectError::Unauthorized { .. })) => {
                sign_in.forget().await.map_err(failed)?;
            }
            opened => return opened.map_err(|error| error.into_failure(call)),
        }
    }
    let signed_in = person(call).sign_in(sign_in, &[], stop).await?;
    let opened = open(call, eliciting, options, Some(signed_in), stop).await;
    opened.map_err(|error| error.into_failure(call))
}

/// Returns the person who signs in.
fn person(call: &ServerCall) -> LocalPerson {
    LocalPerson::here(call.answers.json, call.answers.timeout)
}

fn options_of(call: &ServerCall) -> ConnectOptions {
    let usual = ConnectOptions::default();
    let within = call.answers.timeout.unwrap_or(usual.within);
    usual
        .revision(call.protocol.revision())
        // All tools of a server that speaks both eras can ask in a session.
        .first_era(Era::Pushed)
        .within(within)
        .token(call.access.token.clone())
        .headers(call.access.headers.clone())
        .environment(call.access.environment.clone())
}

/// Returns the scopes that the server requires for this request, if the person can sign in for them.
fn wants_more<'c>(
    call: &'c ServerCall,
    got: &Result<Got, CallError>,
) -> Option<(&'c SignIn, Vec<String>)> {
    match (got, &call.sign_in) {
        (Err(CallError::Unauthorized { challenge, .. }), Some(sign_in)) => {
            Some((sign_in, missing_scopes(challenge)?))
        }
        _ => None,
    }
}

/// Signs in again for the scopes that the server requires beyond those it granted, and connects with the new tokens.
async fn step_up(
    call: &ServerCall,
    sign_in: &SignIn,
    scopes: Vec<String>,
    eliciting: ElicitingClient<Handler>,
    stop: &CancellationToken,
) -> Result<Connection<Handler>, Failure> {
    output::say(format_args!(
        "the server requires more for this than was granted: {}",
        scopes.join(" ")
    ));
    let granted = sign_in.granted().await;
    let mut all = granted.map_err(|error| sign_in::failed(error, sign_in.url()))?;
    for scope in scopes {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    let signed_in = person(call).sign_in(sign_in, &all, stop).await?;
    let opened = open(call, eliciting, &options_of(call), Some(signed_in), stop).await;
    opened.map_err(|error| error.into_failure(call))
}

/// The reason why there is no connection.
enum NotConnected {
    /// It could not be established.
    Failed(ConnectError),
    /// The person or the system ended the process.
    Stopped,
}

impl NotConnected {
    fn into_failure(self, call: &ServerCall) -> Failure {
        match self {
            Self::Failed(error) => failures::connecting_in(call.protocol, &error, &call.target),
            Self::Stopped => failures::stopped(),
        }
    }
}

/// Connects, with an authorization if there is one.
async fn open(
    call: &ServerCall,
    eliciting: ElicitingClient<Handler>,
    options: &ConnectOptions,
    authorization: Option<AuthorizationManager>,
    stop: &CancellationToken,
) -> Result<Connection<Handler>, NotConnected> {
    let _waiting = progress::show(format!("connecting to {}", call.server), call.answers.json);
    let opening = async {
        match (authorization, &call.target) {
            (Some(manager), Target::Url(url)) => {
                let wrap = |http| AuthClient::new(http, manager);
                Connection::open_wrapped(url, eliciting, options, wrap).await
            }
            (_, target) => Connection::open(target, eliciting, options).await,
        }
    };
    tokio::select! {
        opened = opening => opened.map_err(NotConnected::Failed),
        () = stop.cancelled() => Err(NotConnected::Stopped),
    }
}

/// Returns the exit code for a call with a result.
pub(crate) fn exit_of(is_error: bool, refusal: bool) -> Exit {
    match (is_error, refusal) {
        (false, _) => Exit::Done,
        (true, true) => Exit::Declined,
        (true, false) => Exit::Refused,
    }
}
