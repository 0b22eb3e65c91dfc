//! The opening of a connection between two gateways, before TLS.
//!
//! The end that listens sends 16 random bytes, and the other answers with their HMAC under a key that gateways of one record
//! derive from the key of identities. So a stranger is known, and its connection closed, before a handshake of TLS begins,
//! and an answer that somebody has seen on the way opens no other connection. Who the other gateway is, only TLS proves.

use std::io;

use mcp_elicit_core::digest::DigestKey;
use mcp_elicit_record::IdentityKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The purpose of the derived key.
const PURPOSE: &str = "openings of connections between gateways";

/// The random bytes of one opening.
type Challenge = [u8; 16];

/// The key of answers.
pub(super) struct OpeningKey(DigestKey);

impl OpeningKey {
    /// Derives the key.
    pub(super) fn from_identity(identity: &IdentityKey) -> Self {
        Self(DigestKey::new(&identity.derive(PURPOSE)))
    }

    /// Returns the answer to a challenge of the gateway with this public key.
    fn answer(&self, of: &[u8], challenge: &Challenge) -> [u8; 32] {
        self.0.of_parts([of, challenge.as_slice()])
    }

    /// Answers the challenge of the gateway with this public key.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(super) async fn open(&self, stream: &mut TcpStream, of: &[u8]) -> io::Result<()> {
        let mut challenge = Challenge::default();
        stream.read_exact(&mut challenge).await?;
        stream.write_all(&self.answer(of, &challenge)).await
    }

    /// Sends a challenge, and returns `true` if the answer is right; `own` is the public key of this gateway.
    ///
    /// # Errors
    /// If the connection breaks, or there are no random bytes.
    #[expect(
        clippy::disallowed_methods,
        reason = "this shell draws the challenge of a connection"
    )]
    pub(super) async fn is_opened(&self, stream: &mut TcpStream, own: &[u8]) -> io::Result<bool> {
        let mut challenge = Challenge::default();
        getrandom::fill(&mut challenge).map_err(|error| io::Error::other(error.to_string()))?;
        stream.write_all(&challenge).await?;
        let mut answer = [0; 32];
        stream.read_exact(&mut answer).await?;
        // Whoever learns the time of a comparison gets no second answer to this challenge.
        Ok(answer == self.answer(own, &challenge))
    }
}
