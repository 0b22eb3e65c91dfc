//! One request with its questions: connecting, answering, reporting events, ending. Shared by `call` and the demos.
//!
//! - [`consent`]: the person's permissions for servers, kept in a file
//! - [`events`]: the events of a call, for a program or a person
//! - [`failures`]: errors of a connection, a call or a question, with their exit codes
//! - [`handler`]: the server's notifications
//! - [`help`]: advice on an error that the server reported
//! - [`listing`]: the contents of a server
//! - [`progress`]: a sign of life while waiting for the server
//! - [`private_link`]: opening a link that signs a browser in
//! - [`request`]: the request to the server
//! - [`responder_setup`]: the responder that the options choose
//! - [`stop`]: Ctrl-C and other signals

pub(crate) mod consent;
pub(crate) mod events;
pub(crate) mod failures;
pub(crate) mod handler;
mod help;
pub(crate) mod listing;
pub(crate) mod private_link;
mod progress;
pub(crate) mod request;
pub(crate) mod responder_setup;
pub(crate) mod stop;

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_client::connection::{ConnectError, Target};
use mcp_elicit_client::{
    CallError, CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient,
};
use mcp_elicit_core::wire::Revision;
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::AuthClient;
use tokio_util::sync::CancellationToken;

use crate::args::answers::AnswerArgs;
use crate::args::server::{Access, Protocol};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::sign_in::SignIn;
use crate::sign_in::step_up::missing_scopes;
use consent::{ConsentWriter, PolicyFile};
use events::Events;
use handler::Handler;
use request::{Got, ServerRequest};

/// The default time that a server may be silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// One request to a server.
pub(crate) struct Call {
    pub(crate) target: Target,
    /// The credentials and the environment for the server.
    pub(crate) access: Access,
    /// The way to sign in, if the person wants to.
    pub(crate) sign_in: Option<SignIn>,
    /// The name by which the person knows the server.
    pub(crate) server: String,
    pub(crate) protocol: Protocol,
    pub(crate) request: ServerRequest,
    pub(crate) answers: AnswerArgs,
    /// The file of the person's permissions for servers.
    pub(crate) consent: Option<PolicyFile>,
}

/// Makes the request, shows its result, and returns the exit code.
pub(crate) async fn run(call: Call) -> Result<Exit, Failure> {
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

async fn conversation(call: &Call) -> Result<Exit, Failure> {
    let answering = responder_setup::from_args(&call.answers).await?;
    let stop = stop::listen()?;
    let policy = call.consent.as_ref().map(|policy| policy.path.clone());
    let events = Events::new(call.answers.json, stop.clone())
        .explaining(call.answers.named.clone())
        .under(policy);
    let events = Arc::new(events);
    let mut settings = ClientSettings::default()
        .observer(Arc::clone(&events))
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
    let mut connection = Box::pin(connect(call, eliciting.clone(), &stop)).await?;
    events.connected(&connection, &call.target)?;
    let call_options = CallOptions::default()
        .silence(call.answers.timeout.unwrap_or(SILENCE))
        .stop(stop.clone());
    let mut got = Box::pin(call.request.get(&connection, call_options.clone())).await;
    if let Some((sign_in, scopes)) = wants_more(call, &got) {
        // The request was rejected before it was processed, so it is made again.
        connection.close().await;
        connection = Box::pin(step_up(call, sign_in, scopes, eliciting, &stop)).await?;
        got = Box::pin(call.request.get(&connection, call_options.clone())).await;
    }
    let (refusal, ended) = (events.refusal(), events.ended());
    // A call that the person ended needs no advice.
    let help = match &ended {
        None if refusal.is_none() && !failures::is_of_gateway(&got) => {
            Box::pin(help::find(
                &call.request,
                &got,
                &connection,
                &call_options,
                declared,
            ))
            .await
        }
        _ => help::Help::default(),
    };
    let said = failures::ServerOutput::from_connection(&connection);
    connection.close().await;
    answering.warn_of_unused();
    let ended = match (got, ended) {
        (Ok(got), ended) => {
            let exit = if got.is_handed_back() {
                Exit::HandedBack
            } else {
                let is_declined = got.not_called() == Some("declined");
                exit_of(got.is_error(), refusal.is_some() || is_declined)
            };
            let shown = events.got(&got).map(|()| exit);
            if !call.answers.json {
                help.say();
            }
            ended.map_or(shown, Err)
        }
        // The failure of a question explains why the call failed after it.
        (Err(_), Some(ended)) => Err(ended),
        (Err(error), None) => Err(help.add_to(failures::calling(error, &said, refusal))),
    };
    answering.shutdown().await;
    ended
}

async fn connect(
    call: &Call,
    eliciting: ElicitingClient<Handler>,
    stop: &CancellationToken,
) -> Result<Connection<Handler>, Failure> {
    let options = options_of(call);
    let Some(sign_in) = &call.sign_in else {
        return open(call, eliciting, &options, None, stop)
            .await?
            .map_err(|error| failures::connecting(error, &call.target));
    };
    if let Some(known) = sign_in.known().await? {
        match open(call, eliciting.clone(), &options, Some(known), stop).await? {
            // The server no longer accepts these tokens.
            Err(ConnectError::Unauthorized { .. }) => sign_in.forget().await?,
            opened => return opened.map_err(|error| failures::connecting(error, &call.target)),
        }
    }
    let signed_in = sign_in.in_browser(stop, &[]).await?;
    open(call, eliciting, &options, Some(signed_in), stop)
        .await?
        .map_err(|error| failures::connecting(error, &call.target))
}

fn options_of(call: &Call) -> ConnectOptions {
    let usual = ConnectOptions::default();
    let within = call.answers.timeout.unwrap_or(usual.within);
    usual
        .revision(revision(call.protocol))
        .within(within)
        .token(call.access.token.clone())
        .headers(call.access.headers.clone())
        .environment(call.access.environment.clone())
}

/// Returns the scopes that the server requires for this request, if the person can sign in for them.
fn wants_more<'c>(
    call: &'c Call,
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
    call: &Call,
    sign_in: &SignIn,
    scopes: Vec<String>,
    eliciting: ElicitingClient<Handler>,
    stop: &CancellationToken,
) -> Result<Connection<Handler>, Failure> {
    output::say(format_args!(
        "the server requires more for this than was granted: {}",
        scopes.join(" ")
    ));
    let mut all = sign_in.granted().await?;
    for scope in scopes {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    let signed_in = sign_in.in_browser(stop, &all).await?;
    open(call, eliciting, &options_of(call), Some(signed_in), stop)
        .await?
        .map_err(|error| failures::connecting(error, &call.target))
}

/// Connects, with an authorization if there is one.
async fn open(
    call: &Call,
    eliciting: ElicitingClient<Handler>,
    options: &ConnectOptions,
    authorization: Option<AuthorizationManager>,
    stop: &CancellationToken,
) -> Result<Result<Connection<Handler>, ConnectError>, Failure> {
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
        opened = opening => Ok(opened),
        () = stop.cancelled() => Err(failures::stopped()),
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

pub(crate) fn revision(protocol: Protocol) -> Option<Revision> {
    match protocol {
        Protocol::Auto => None,
        Protocol::V2025_06_18 => Some(Revision::V2025_06_18),
        Protocol::V2025_11_25 => Some(Revision::V2025_11_25),
        Protocol::V2026_07_28 => Some(Revision::V2026_07_28),
    }
}
