//! The error -32042 (2025-11-25): the call can go on only after the person has visited URLs.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::wire::{ElicitRequest, Revision, UrlRequired, pushed};
use rmcp::ClientHandler;
use rmcp::model::ErrorData;
use serde_json::value::to_raw_value;

use super::{CallContext, CallError};
use crate::connection::{Connection, TransportError};
use crate::dispatch::CALL_OVER;

/// The time to wait for the end of a visit before the call is tried again anyway.
const VISIT_WAIT: Duration = Duration::from_secs(10 * 60);

/// Returns `true` if the error is the one that requires visits.
pub(super) fn are_required(error: &ErrorData) -> bool {
    i64::from(error.code.0) == pushed::URL_REQUIRED_CODE
}

/// The visits of one call so far.
pub(super) struct CallVisits {
    limit: usize,
    times: usize,
    done: BTreeSet<String>,
}

impl CallVisits {
    /// Creates the count for a call, in which a server may require at most `limit` visits.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            times: 0,
            done: BTreeSet::new(),
        }
    }

    /// Shows the listed URLs to the person, one by one, and waits until the server or the person says that they are
    /// done. A URL that comes back after that stops the call, and so do too many new ones.
    pub(super) async fn go<H: ClientHandler>(
        &mut self,
        connection: &Connection<H>,
        error: &ErrorData,
        context: &CallContext<'_>,
    ) -> Result<(), CallError> {
        if self.times == self.limit {
            return Err(CallError::TooManyRounds { limit: self.limit });
        }
        self.times += 1;
        let required = to_raw_value(error)
            .ok()
            .and_then(|error| UrlRequired::parse(&error).ok());
        let listed = required
            .map(|required| required.elicitations)
            .unwrap_or_default();
        if listed.is_empty() {
            return Err(CallError::Server(error.clone()));
        }
        let mut ids = Vec::new();
        let mut hosts = Vec::new();
        for request in &listed {
            let ElicitRequest::Url {
                url,
                elicitation_id,
                ..
            } = request
            else {
                return Err(CallError::Server(error.clone()));
            };
            let host = Link::parse(url)
                .map(|link| link.host().unicode().to_owned())
                .unwrap_or_default();
            if self.done.contains(url) {
                return Err(CallError::SameVisitAgain { host });
            }
            agree(connection, request, context).await?;
            self.done.insert(url.clone());
            ids.extend(elicitation_id.clone());
            hosts.push(host);
        }
        wait(connection, ids, &hosts, context).await
    }
}

async fn agree<H: ClientHandler>(
    connection: &Connection<H>,
    request: &ElicitRequest,
    context: &CallContext<'_>,
) -> Result<(), CallError> {
    let params = request
        .to_raw_params(Revision::V2025_11_25)
        .map_err(|_| CallError::UnexpectedResponse)?;
    let ends = vec![(context.over.clone(), CALL_OVER)];
    let asked = connection
        .eliciting()
        .ask(&params, Some(context.call.clone()), ends);
    let answer = tokio::select! {
        answer = asked => answer?,
        () = context.options.stop.cancelled() => return Err(CallError::Stopped),
    };
    match answer.outcome() {
        Outcome::Visit => Ok(()),
        other => Err(CallError::VisitRefused {
            action: other.action().as_str(),
        }),
    }
}

async fn wait<H: ClientHandler>(
    connection: &Connection<H>,
    ids: Vec<String>,
    hosts: &[String],
    context: &CallContext<'_>,
) -> Result<(), CallError> {
    let eliciting = connection.eliciting();
    let _open = eliciting.line().question_opens();
    tokio::select! {
        () = eliciting.line().all_done(ids) => Ok(()),
        said = eliciting.dispatcher().visited(hosts) => said.map_err(CallError::Question),
        // The next attempt shows whether the visit was done; if the same URL comes back, the call ends.
        () = tokio::time::sleep(VISIT_WAIT) => Ok(()),
        () = context.options.stop.cancelled() => Err(CallError::Stopped),
        () = connection.health().ended().cancelled() => {
            Err(CallError::Broken(connection.transport_error().unwrap_or(TransportError::Closed)))
        }
    }
}
