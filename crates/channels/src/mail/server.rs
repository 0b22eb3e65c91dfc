//! Connections to a mail server. The replies of one connection have a limit, and nothing that came before TLS counts as
//! a reply within it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Ehlo, Starttls};
use lettre::transport::smtp::extension::{ClientId, Extension, ServerInfo};
use lettre::transport::smtp::response::Response;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader, Chain, ReadBuf, Take,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{MailError, failed, refused};
use crate::channel::{ChannelError, NotSentReason};
use crate::config::{MailConfig, SmtpSecurity};
use crate::http::is_of_tls;

/// The most bytes of all replies of one connection.
const REPLIES_LIMIT: u64 = 16 * 1024;

/// The time limit for a connection to one address of the server.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// The greeting that is read in place of the one that came before TLS.
const GREETING: &[u8] = b"220 TLS\r\n";

/// The mail server of a configuration.
pub(super) struct MailServer {
    host: String,
    port: u16,
    hello: ClientId,
    protection: Protection,
}

enum Protection {
    None,
    Tls(Handshake),
    StartTls(Handshake),
}

/// The settings of TLS.
struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl MailServer {
    pub(super) fn new(config: &MailConfig) -> Result<Self, MailError> {
        let protection = match config.security {
            SmtpSecurity::Plain => Protection::None,
            SmtpSecurity::Tls => Protection::Tls(Handshake::new(config)?),
            SmtpSecurity::StartTls => Protection::StartTls(Handshake::new(config)?),
        };
        Ok(Self {
            host: config.host.clone(),
            port: config.port,
            hello: ClientId::default(),
            protection,
        })
    }

    /// Connects to the server, up to its reply to `EHLO`, within TLS if that is required.
    pub(super) async fn connect(&self) -> Result<AsyncSmtpConnection, ChannelError> {
        let mut tcp = self.reach().await.map_err(|error| unreachable(&error))?;
        let peer = tcp.peer_addr().map_err(|error| unreachable(&error))?;
        let stream: Box<dyn AsyncTokioStream> = match &self.protection {
            Protection::None => Box::new(LimitedStream::new(&[], tcp, peer)),
            Protection::Tls(handshake) => {
                let tls = handshake.run(tcp).await?;
                Box::new(LimitedStream::new(&[], tls, peer))
            }
            Protection::StartTls(handshake) => {
                start_tls(&mut tcp, &self.hello).await?;
                let tls = handshake.run(tcp).await?;
                Box::new(LimitedStream::new(GREETING, tls, peer))
            }
        };
        let connection = AsyncSmtpConnection::connect_with_transport(stream, &self.hello);
        connection.await.map_err(|error| failed(&error))
    }

    /// Connects to the first address of the server that accepts.
    async fn reach(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in tokio::net::lookup_host((self.host.as_str(), self.port)).await? {
            match tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }
}

impl Handshake {
    fn new(config: &MailConfig) -> Result<Self, MailError> {
        let roots = match &config.ca {
            Some(path) => {
                let text = std::fs::read(path).map_err(MailError::Ca)?;
                let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
                roots.map_err(|error| MailError::Ca(io::Error::other(error)))?
            }
            None => Vec::new(),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(roots, provider.clone())?;
        let settings = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self {
            connector: TlsConnector::from(Arc::new(settings)),
            name: ServerName::try_from(config.host.clone())?,
        })
    }

    async fn run(&self, tcp: TcpStream) -> Result<TlsStream<TcpStream>, ChannelError> {
        let stream = self.connector.connect(self.name.clone(), tcp).await;
        stream.map_err(|error| unreachable(&error))
    }
}

/// Has the server begin TLS (RFC 3207, section 4). Anything that it sends after its reply and before TLS is refused.
async fn start_tls(tcp: &mut TcpStream, hello: &ClientId) -> Result<(), ChannelError> {
    let (replies, mut commands) = tcp.split();
    let mut replies = BufReader::new(replies.take(REPLIES_LIMIT));
    reply(&mut replies).await?;
    let mut command = async |text: String| {
        let written = commands.write_all(text.as_bytes()).await;
        written.map_err(|error| unreachable(&error))?;
        reply(&mut replies).await
    };
    let features = command(Ehlo::new(hello.clone()).to_string()).await?;
    let features = ServerInfo::from_response(&features).map_err(|error| failed(&error))?;
    if !features.supports_feature(Extension::StartTls) {
        return Err(ChannelError::retry(NotSentReason::Configuration));
    }
    command(Starttls.to_string()).await?;
    if replies.buffer().is_empty() {
        Ok(())
    } else {
        Err(ChannelError::retry(NotSentReason::Tls))
    }
}

/// Reads a reply, and converts a refusal to an error.
async fn reply(replies: &mut (impl AsyncBufRead + Unpin)) -> Result<Response, ChannelError> {
    let mut text = String::new();
    loop {
        let start = text.len();
        let read = replies.read_line(&mut text).await;
        read.map_err(|error| unreachable(&error))?;
        // A hyphen after the code says that another line follows.
        if text.as_bytes().get(start + 3) != Some(&b'-') {
            break;
        }
    }
    let response: Response = text.parse().map_err(|error| failed(&error))?;
    if response.is_positive() {
        Ok(response)
    } else {
        Err(refused(response.code().into()))
    }
}

/// Converts an error of the network or of TLS.
fn unreachable(error: &io::Error) -> ChannelError {
    ChannelError::retry(if is_of_tls(error) {
        NotSentReason::Tls
    } else if error.kind() == io::ErrorKind::TimedOut {
        NotSentReason::TimedOut
    } else {
        NotSentReason::Unreachable
    })
}

/// A stream whose replies end at [`REPLIES_LIMIT`].
#[derive(Debug)]
struct LimitedStream<S> {
    /// The greeting, if the server sends none in this stream, and what it sends.
    replies: Take<Chain<&'static [u8], S>>,
    peer: SocketAddr,
}

impl<S: AsyncRead + Unpin> LimitedStream<S> {
    fn new(greeting: &'static [u8], stream: S, peer: SocketAddr) -> Self {
        Self {
            replies: greeting.chain(stream).take(REPLIES_LIMIT),
            peer,
        }
    }

    fn stream(&mut self) -> Pin<&mut S> {
        Pin::new(self.replies.get_mut().get_mut().1)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.replies).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}

impl AsyncTokioStream for LimitedStream<TcpStream> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncTokioStream for LimitedStream<TlsStream<TcpStream>> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}
