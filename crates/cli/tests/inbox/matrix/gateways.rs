//! The gateways of a wiring: one with a record in a file, or two with one in a database.

use std::sync::{Arc, Mutex};

use mcp_elicit_testkit::postgres::PostgresServer;
use tempfile::TempDir;

use super::client::Client;
use super::server::Server;
use super::{Over, Wiring};
use crate::gateway::{Gateway, NO_LIMITS};
use crate::replicas::{Deployment, Replica, balancer};

/// The seconds that a call is held, as without the option.
const HOLD: u32 = 50;

/// The place of the record.
#[derive(Clone, Copy)]
pub(super) enum RecordPlace {
    /// In a file of the only gateway.
    File,
    /// In a database of two gateways. Clients over HTTP reach them through a balancer that knows no session, a client on
    /// stdio has the first; people answer at the second.
    Database(&'static PostgresServer),
}

/// The gateways, which run until this is dropped.
pub(super) struct Gateways {
    /// The gateway of a client on stdio, or the only one.
    own: Option<Gateway>,
    /// Host and port for clients over HTTP.
    pub(super) at: Option<String>,
    /// Host and port of the inbox in which people answer, and its token.
    pub(super) inbox: String,
    pub(super) token: String,
    _others: Vec<Replica>,
    _deployment: Option<Deployment>,
    _state: Option<TempDir>,
}

impl Gateways {
    /// Starts the gateways before this server, with more options.
    pub(super) fn start(
        record: RecordPlace,
        wiring: Wiring,
        server: &Server,
        options: &[&str],
    ) -> Self {
        match record {
            RecordPlace::File => Self::with_file(wiring, server, options),
            RecordPlace::Database(database) => {
                Self::with_database(database, wiring, server, options)
            }
        }
    }

    fn with_file(wiring: Wiring, server: &Server, options: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut more = [&NO_LIMITS[..], options].concat();
        if wiring.client_over == Over::Http {
            more.extend(["--listen", "127.0.0.1:0"]);
        }
        let target = server.target();
        let target: Vec<&str> = target.iter().map(String::as_str).collect();
        let gateway = Gateway::start(state.path(), &more, &target);
        Self {
            at: gateway.serving.clone(),
            inbox: gateway.inbox.clone(),
            token: gateway.token.clone(),
            own: Some(gateway),
            _others: Vec::new(),
            _deployment: None,
            _state: Some(state),
        }
    }

    fn with_database(
        database: &PostgresServer,
        wiring: Wiring,
        server: &Server,
        options: &[&str],
    ) -> Self {
        let deployment = Deployment::new(&database.database().address, "", HOLD)
            .before(&server.target())
            .with(options)
            .forwarding();
        let mut others = Vec::new();
        let mut own = None;
        if wiring.client_over == Over::Http {
            others.push(deployment.start(0).expect("it starts"));
        } else {
            own = Some(deployment.on_stdio(0));
        }
        others.push(deployment.start(1).expect("it starts"));
        let at = (wiring.client_over == Over::Http).then(|| {
            let behind = others.iter().map(|other| Some(other.serving.clone()));
            balancer::start(Arc::new(Mutex::new(behind.collect())))
        });
        let second = &others[others.len() - 1];
        Self {
            at,
            inbox: second.inbox.clone(),
            token: second.token.clone(),
            own,
            _others: others,
            _deployment: Some(deployment),
            _state: None,
        }
    }

    /// Returns a client of this wiring.
    pub(super) fn client(&mut self, wiring: Wiring) -> Client<'_> {
        match (&self.at, &mut self.own) {
            (None, Some(own)) => Client::on_stdio(own, wiring.client, wiring.capability),
            (Some(at), _) => Client::over_http(at, "client0", wiring.client, wiring.capability),
            (None, None) => unreachable!("a client on stdio has a gateway of its own"),
        }
    }
}
