//! The reasons why a gateway does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use mcp_elicit_record::KeyFileError;
use mcp_elicit_record::store::RecordStoreError;

/// The reason why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state folder cannot be used.
    #[error("the state folder {} cannot be used", path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user has no home folder.
    #[error("there is no state folder; name one")]
    NoState,
    /// The record cannot be opened.
    #[error(transparent)]
    Record(#[from] Arc<RecordStoreError>),
    /// The record was replaced by an older copy since a gateway of the folder saw it.
    #[error("{why}")]
    Replaced {
        /// The reason.
        why: String,
        /// The state folder.
        state: PathBuf,
        /// The address of the record's database; `None` for a record in the folder.
        database: Option<String>,
    },
    /// The address of the record's database cannot be used.
    #[error("the record's address cannot be used: {why}")]
    Database {
        /// Why.
        why: String,
    },
    /// A key is lost that the record needs.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// An address cannot be served.
    #[error("cannot serve at {at}")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The inbox would be open to the network.
    #[error("the inbox is for this machine: {at} is not a loopback address")]
    NotLoopback {
        /// The address.
        at: SocketAddr,
    },
    /// The server's program cannot be started.
    #[error("cannot start the server {server}")]
    Program {
        /// The server.
        server: String,
        /// Why.
        source: io::Error,
    },
    /// A channel cannot be used, because one of its secrets is missing or wrong.
    #[error(transparent)]
    Channels(Box<dyn std::error::Error + Send + Sync>),
    /// There is no terminal to ask in, or this process may not read its keys.
    #[error("there is no terminal to ask in{}", if *background { ": this process is not in its foreground" } else { "" })]
    NoTerminal {
        /// `true` if there is one, but it currently belongs to another program.
        background: bool,
    },
    /// Only pages may answer, and a server's questions go elsewhere, or there are no pages.
    #[error("only pages may answer here, {why}")]
    PagesOnly {
        /// The setting that conflicts with it.
        why: String,
    },
    /// Anyone on the network could call the servers, because callers are not authenticated.
    #[error(
        "{at} can be reached from the network, and the gateway does not ask its clients who they are"
    )]
    OpenToNetwork {
        /// The address.
        at: SocketAddr,
    },
    /// Callers cannot be checked as configured.
    #[error("callers cannot be checked: {why}")]
    Auth {
        /// Why.
        why: String,
    },
    /// Every client has its own children, and there are too many.
    #[error("too many children run")]
    TooManyChildren,
    /// A server's address cannot be used.
    #[error("the server's address cannot be used: {why}")]
    Address {
        /// Why.
        why: String,
    },
}
