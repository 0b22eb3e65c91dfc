//! Connections to a socket in a folder, `?host=/FOLDER` in an address.
//!
//! The driver knows no TLS there, so it has no place for a stream in between. The socket is opened here and handed to it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, Error, SimpleQueryMessage};

use super::answered::{AnsweredStream, AnsweredWithin};
use super::proven::{ProvenOnly, ProvenStream, Unproven};

/// The mode bit of a folder like `/tmp`, in which users rename and remove only their own entries.
const STICKY: u32 = 0o1000;
/// Write permission for everyone.
const BY_ALL: u32 = 0o002;

/// The port whose socket is used if the address has none.
const PORT: u16 = 5432;

type ConnectedClient = (
    Client,
    Connection<FolderSocket, AnsweredStream<ProvenStream<FolderSocket>>>,
);

/// A socket, or why there is none: only the driver can make its errors, so it is given the reason in the socket's place.
pub(super) enum FolderSocket {
    Open(UnixStream),
    Failed(Option<io::Error>),
}

/// Returns `true` if the address has a folder.
pub(super) fn has_folder(config: &Config) -> bool {
    let mut hosts = config.get_hosts().iter();
    hosts.any(|host| matches!(host, Host::Unix(_)))
}

/// Connects at the first folder that has a server of the wanted kind.
///
/// # Errors
/// If none has one; the reason is that of the last.
pub(super) async fn connect(
    config: &Config,
    proven: AnsweredWithin<ProvenOnly>,
) -> Result<ConnectedClient, Error> {
    let ports = config.get_ports();
    let mut tried = None;
    for (index, host) in config.get_hosts().iter().enumerate() {
        let Host::Unix(folder) = host else { continue };
        let port = ports.get(index).or(ports.first()).copied();
        let connected = connect_in(folder, port.unwrap_or(PORT), config, proven).await;
        if connected.is_ok() {
            return connected;
        }
        tried = Some(connected);
    }
    match tried {
        Some(failed) => failed,
        None => failed(io::ErrorKind::NotFound.into(), config, proven).await,
    }
}

async fn connect_in(
    folder: &Path,
    port: u16,
    config: &Config,
    proven: AnsweredWithin<ProvenOnly>,
) -> Result<ConnectedClient, Error> {
    let path = folder.join(format!(".s.PGSQL.{port}"));
    let opening = async {
        if !proven.connect.has_password {
            refuse_others(&path)?;
        }
        UnixStream::connect(&path).await
    };
    let opened = match config.get_connect_timeout() {
        Some(most) => tokio::time::timeout(*most, opening)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        None => opening.await,
    };
    let socket = match opened {
        Ok(socket) => FolderSocket::Open(socket),
        Err(error) => FolderSocket::Failed(Some(error)),
    };
    let (client, mut connection) = config.connect_raw(socket, proven).await?;
    let wanted = config.get_target_session_attrs();
    if wanted != TargetSessionAttrs::Any {
        let asked = client.simple_query("SHOW transaction_read_only");
        let rows = tokio::select! {
            rows = asked => rows?,
            ended = &mut connection => {
                ended?;
                Vec::new()
            }
        };
        let is_read_only = rows.iter().any(|row| match row {
            SimpleQueryMessage::Row(row) => row.get(0) == Some("on"),
            _ => false,
        });
        if is_read_only != (wanted == TargetSessionAttrs::ReadOnly) {
            let why = "the server is not of the kind that `target_session_attrs` asks for";
            return failed(io::Error::other(why), config, proven).await;
        }
    }
    Ok((client, connection))
}

/// Rejects a socket that another user may have put there: it, or a folder above it, is in a folder like `/tmp`, to which
/// every user may write, and belongs to neither this user nor root. Without a password, its server proves nothing.
fn refuse_others(socket: &Path) -> io::Result<()> {
    // What is not there cannot be connected to.
    let Ok(real) = socket.canonicalize() else {
        return Ok(());
    };
    let ours = rustix::process::geteuid().as_raw();
    let mut below = real.as_path();
    while let Some(folder) = below.parent() {
        let mode = fs::metadata(folder)?.mode();
        let owner = fs::symlink_metadata(below)?.uid();
        let is_replaceable = mode & STICKY == 0 || (owner != ours && owner != 0);
        if mode & BY_ALL != 0 && is_replaceable {
            return Err(Unproven::of_folder());
        }
        below = folder;
    }
    Ok(())
}

/// Returns the driver's error for this one.
async fn failed(
    error: io::Error,
    config: &Config,
    proven: AnsweredWithin<ProvenOnly>,
) -> Result<ConnectedClient, Error> {
    let socket = FolderSocket::Failed(Some(error));
    config.connect_raw(socket, proven).await
}

impl FolderSocket {
    /// Returns the socket.
    ///
    /// # Errors
    /// The reason, if there is none.
    fn open(self: Pin<&mut Self>) -> io::Result<Pin<&mut UnixStream>> {
        match self.get_mut() {
            Self::Open(socket) => Ok(Pin::new(socket)),
            Self::Failed(why) => Err(why
                .take()
                .unwrap_or_else(|| io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for FolderSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.open()?.poll_read(context, into)
    }
}

impl AsyncWrite for FolderSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.open()?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open()?.poll_shutdown(context)
    }
}
