//! Requests of sessions at other gateways of the record, which are forwarded there once.
//!
//! | module | contents |
//! | --- | --- |
//! | [`forwarded`] | a forwarded request: its headers, and the check where it arrives |
//! | [`keys`] | the key of this process, and TLS between two gateways that know each other's keys |
//! | [`forward`] | requests to other gateways |
//! | [`opening`] | what both ends send before TLS, so that strangers are known |
//! | [`accept`], [`handshakes`] | connections of other gateways, and those whose other end is not known yet |
//! | [`counts`] | the numbers of forwarded requests |

mod accept;
pub(crate) mod counts;
pub(crate) mod forward;
pub(crate) mod forwarded;
mod handshakes;
pub(crate) mod keys;
mod opening;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_elicit_record::peers::{PeerOffer, PeerProof};
use mcp_elicit_record::{IdentityKey, RunningGateways};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;

use counts::ForwardCounts;
use forward::{CONNECTING, FORWARDED};
use keys::PeerKey;
use opening::OpeningKey;

use crate::config::PeerSettings;
use crate::runtime::StartError;

/// The largest head of a forwarded request, in bytes: that of a client's request, and its caller.
const HEAD: usize = 256 * 1024;
/// The most connections that wait to be accepted.
const BACKLOG: u32 = 4_096;
/// The interval at which the gateway at the other end of a connection is looked for: its machine may be gone.
const LOOK: Duration = Duration::from_secs(5);

/// This gateway among those that take each other's requests.
pub(crate) struct Peers {
    gateways: Arc<dyn RunningGateways>,
    key: PeerKey,
    opening: OpeningKey,
    /// Taken by the server of its connections.
    listener: Mutex<Option<TcpListener>>,
    forwarding: Arc<Semaphore>,
    /// The free turns to connect.
    connecting: Semaphore,
    counts: ForwardCounts,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

impl Peers {
    /// Returns the name of this gateway, which the ids of its sessions contain.
    pub(crate) fn name(&self) -> &str {
        self.gateways.name()
    }

    /// Returns the numbers of forwarded requests.
    pub(crate) fn counts(&self) -> &ForwardCounts {
        &self.counts
    }

    /// Returns the number of requests that are being forwarded.
    pub(crate) fn forwarding(&self) -> usize {
        FORWARDED - self.forwarding.available_permits()
    }

    /// Takes the listener; `None` if it was taken.
    fn take_listener(&self) -> Option<TcpListener> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        listener.take()
    }

    /// Completes when the gateway of this name has ended.
    async fn ended(&self, name: &str) {
        loop {
            tokio::time::sleep(LOOK).await;
            if !self.gateways.is_running(name) {
                return;
            }
        }
    }
}

/// Listens at this address. Many connections of strangers may wait to be accepted, beside those of gateways.
fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = match at {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

/// A listener for other gateways, before this one has joined them.
pub(crate) struct Joining {
    key: PeerKey,
    opening: OpeningKey,
    proof: PeerProof,
    listener: TcpListener,
    address: String,
}

impl Joining {
    /// Listens as configured, with a new key, among the gateways with this key of identities.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn bind(
        settings: &PeerSettings,
        identity: &IdentityKey,
    ) -> Result<Self, StartError> {
        let at = settings.listen;
        let failed = |source| StartError::Listen { at, source };
        let listener = listen(at).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Ok(Self {
            key: PeerKey::new().map_err(failed)?,
            opening: OpeningKey::from_identity(identity),
            proof: PeerProof::from_identity(identity),
            listener,
            address: match &settings.address {
                Some(address) => address.clone(),
                None => bound.to_string(),
            },
        })
    }

    /// Returns the parts for the row of this gateway.
    pub(crate) fn offer(&self) -> PeerOffer {
        PeerOffer {
            address: self.address.clone(),
            key: self.key.public().to_vec(),
            proof: self.proof.clone(),
        }
    }

    /// Returns this gateway among the others, whose row has the offer.
    pub(crate) fn among(self, gateways: Arc<dyn RunningGateways>) -> Peers {
        Peers {
            gateways,
            key: self.key,
            opening: self.opening,
            listener: Mutex::new(Some(self.listener)),
            forwarding: Arc::new(Semaphore::new(FORWARDED)),
            connecting: Semaphore::new(CONNECTING),
            counts: ForwardCounts::default(),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests;
