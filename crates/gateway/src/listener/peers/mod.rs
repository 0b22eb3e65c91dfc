//! Requests of sessions at other gateways of the record, which are forwarded there once.
//!
//! | module | contents |
//! | --- | --- |
//! | [`forwarded`] | a forwarded request: its headers, and the check where it arrives |
//! | [`keys`] | the key of this process, and TLS between two gateways that know each other's keys |
//! | [`forward`] | requests to other gateways |
//! | [`accept`], [`handshakes`] | connections of other gateways, and those whose other end is not known yet |
//! | [`counts`] | the numbers of forwarded requests |

mod accept;
pub(crate) mod counts;
pub(crate) mod forward;
pub(crate) mod forwarded;
mod handshakes;
pub(crate) mod keys;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_elicit_record::peers::{PeerOffer, PeerProof};
use mcp_elicit_record::{IdentityKey, RunningGateways};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use counts::ForwardCounts;
use forward::{CONNECTING, FORWARDED};
use keys::PeerKey;

use crate::config::PeerSettings;
use crate::runtime::StartError;

/// The largest head of a forwarded request, in bytes: that of a client's request, and its caller.
const HEAD: usize = 256 * 1024;
/// The interval at which the gateway at the other end of a connection is looked for: its machine may be gone.
const LOOK: Duration = Duration::from_secs(5);

/// This gateway among those that take each other's requests.
pub(crate) struct Peers {
    gateways: Arc<dyn RunningGateways>,
    key: PeerKey,
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
    /// Creates this gateway, whose row has this key and the address of this listener.
    pub(crate) fn new(
        gateways: Arc<dyn RunningGateways>,
        key: PeerKey,
        listener: TcpListener,
    ) -> Self {
        Self {
            gateways,
            key,
            listener: Mutex::new(Some(listener)),
            forwarding: Arc::new(Semaphore::new(FORWARDED)),
            connecting: Semaphore::new(CONNECTING),
            counts: ForwardCounts::default(),
        }
    }

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

/// A listener for other gateways, before this one has joined them.
pub(crate) struct Joining {
    key: PeerKey,
    listener: TcpListener,
    address: String,
}

impl Joining {
    /// Listens as configured, with a new key.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) async fn bind(settings: &PeerSettings) -> Result<Self, StartError> {
        let at = settings.listen;
        let failed = |source| StartError::Listen { at, source };
        let listener = TcpListener::bind(at).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        Ok(Self {
            key: PeerKey::new().map_err(failed)?,
            listener,
            address: match &settings.address {
                Some(address) => address.clone(),
                None => bound.to_string(),
            },
        })
    }

    /// Returns the parts for the row of this gateway.
    pub(crate) fn offer(&self, identity: &IdentityKey) -> PeerOffer {
        PeerOffer {
            address: self.address.clone(),
            key: self.key.public().to_vec(),
            proof: PeerProof::from_identity(identity),
        }
    }

    /// Returns this gateway among the others, whose row has the offer.
    pub(crate) fn among(self, gateways: Arc<dyn RunningGateways>) -> Peers {
        Peers::new(gateways, self.key, self.listener)
    }
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests;
