//! The key of this process, and TLS between two gateways that know each other's keys.
//!
//! Both ends present their raw public keys (RFC 7250), so there is no certificate, no name and no time to check: a key is the
//! one in the other's row, or it is not.

use std::fmt;
use std::io;
use std::sync::Arc;

use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

/// The key of this process, made at each start and stored nowhere.
#[derive(Clone)]
pub(crate) struct PeerKey {
    provider: Arc<CryptoProvider>,
    certified: Arc<CertifiedKey>,
    public: Vec<u8>,
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerKey(..)")
    }
}

impl PeerKey {
    /// Makes a key.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn new() -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let made = made.map_err(|_| io::Error::other("no randomness for a key"))?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.as_ref().to_vec()));
        let key = provider.key_provider.load_private_key(private);
        let key = key.map_err(io::Error::other)?;
        let public = key.public_key().map(|public| public.to_vec());
        let public = public.ok_or_else(|| io::Error::other("the key has no public part"))?;
        let raw = CertificateDer::from(public.clone());
        Ok(Self {
            provider,
            certified: Arc::new(CertifiedKey::new(vec![raw], key)),
            public,
        })
    }

    /// Returns the public key (DER of a `SubjectPublicKeyInfo`).
    pub(crate) fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the settings of connections of other gateways. Each must prove that it has the key which it presents; the
    /// caller checks whose key that is.
    ///
    /// # Errors
    /// If TLS cannot be used.
    pub(crate) fn server(&self) -> Result<ServerConfig, Error> {
        let any = Arc::new(RawKeys {
            only: None,
            provider: self.provider.clone(),
        });
        let mut settings = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(any)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                self.certified.clone(),
            )));
        // A resumed connection would not present its key again.
        settings.session_storage = Arc::new(NoServerSessionStorage {});
        settings.send_tls13_tickets = 0;
        Ok(settings)
    }

    /// Returns the settings of a connection to the gateway with this public key.
    ///
    /// # Errors
    /// If TLS cannot be used.
    pub(crate) fn client(&self, of: &[u8]) -> Result<ClientConfig, Error> {
        let only = Arc::new(RawKeys {
            only: Some(of.to_vec()),
            provider: self.provider.clone(),
        });
        let mut settings = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(only)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                self.certified.clone(),
            )));
        settings.resumption = Resumption::disabled();
        settings.enable_sni = false;
        Ok(settings)
    }
}

/// The check of the other end's raw public key.
struct RawKeys {
    /// The accepted key; `None` for any that the other end has.
    only: Option<Vec<u8>>,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for RawKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawKeys(..)")
    }
}

impl RawKeys {
    fn check(&self, key: &CertificateDer<'_>) -> Result<(), Error> {
        match &self.only {
            Some(only) if only.as_slice() != key.as_ref() => Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn signed(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, known)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

fn no_tls12() -> Error {
    Error::General("only TLS 1.3 is spoken here".to_owned())
}

impl ServerCertVerifier for RawKeys {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for RawKeys {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use rustls::{ClientConnection, ServerConnection};

    use super::*;

    fn client(settings: ClientConfig) -> ClientConnection {
        let name = ServerName::try_from("gateway").unwrap();
        ClientConnection::new(Arc::new(settings), name).unwrap()
    }

    /// Passes bytes until neither end has any. Returns the key that the server has seen.
    fn handshake(
        client: &mut ClientConnection,
        server: &mut ServerConnection,
    ) -> Result<Option<Vec<u8>>, Error> {
        for _ in 0..10 {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets()?;
            let mut bytes = Vec::new();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut bytes.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        let seen = server.peer_certificates().and_then(<[_]>::first);
        Ok(seen.map(|key| key.to_vec()))
    }

    #[test]
    fn two_gateways_connect_that_know_each_others_keys() {
        let (a, b) = (PeerKey::new().unwrap(), PeerKey::new().unwrap());
        assert_ne!(a.public(), b.public());
        let mut server = ServerConnection::new(Arc::new(a.server().unwrap())).unwrap();
        let mut client = client(b.client(a.public()).unwrap());
        let seen = handshake(&mut client, &mut server).unwrap();
        assert_eq!(seen.as_deref(), Some(b.public()));
        assert_eq!(
            server.protocol_version(),
            Some(rustls::ProtocolVersion::TLSv1_3)
        );
    }

    #[test]
    fn no_connection_is_made_to_another_key_or_without_one() {
        let (a, b, c) = (
            PeerKey::new().unwrap(),
            PeerKey::new().unwrap(),
            PeerKey::new().unwrap(),
        );
        let server = || ServerConnection::new(Arc::new(a.server().unwrap())).unwrap();
        let mut to_other = client(b.client(c.public()).unwrap());
        assert!(handshake(&mut to_other, &mut server()).is_err());
        // One that presents the key of another, without having it.
        let stolen = PeerKey {
            certified: Arc::new(CertifiedKey::new(
                vec![CertificateDer::from(c.public().to_vec())],
                b.certified.key.clone(),
            )),
            ..b.clone()
        };
        let mut with_stolen = client(stolen.client(a.public()).unwrap());
        assert!(handshake(&mut with_stolen, &mut server()).is_err());
        // One without a key.
        let any = Arc::new(RawKeys {
            only: None,
            provider: b.provider.clone(),
        });
        let without = ClientConfig::builder_with_provider(b.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(any)
            .with_no_client_auth();
        assert!(handshake(&mut client(without), &mut server()).is_err());
        // An earlier version of TLS.
        let older = ClientConfig::builder_with_provider(b.provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        assert!(handshake(&mut client(older), &mut server()).is_err());
    }
}
