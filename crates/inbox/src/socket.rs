//! The API for commands of the same user: a Unix socket in the state folder, to which no other user has access. A port
//! on this machine could belong to anyone; a file in a folder of mode 0700 cannot.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::serve::Listener;
use tokio::net::{UnixListener, UnixStream};

/// The longest socket path that every system accepts.
const LONGEST: usize = 100;

/// A socket path that the system accepts, while this exists.
#[derive(Debug)]
pub(super) struct SocketPath {
    path: PathBuf,
    // Keeps the folder in the path open.
    _folder: Option<std::fs::File>,
}

impl SocketPath {
    /// Returns the path itself, or a short one through the open folder if it is too long.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().as_bytes().len() <= LONGEST {
            return Ok(Self {
                path: path.to_owned(),
                _folder: None,
            });
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if !cfg!(target_os = "linux") {
            let why = "the state folder's path is too long for a socket; name a shorter one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let folder = std::fs::File::open(folder)?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
        Ok(Self {
            path: PathBuf::from(format!("/proc/self/fd/{number}")).join(name),
            _folder: Some(folder),
        })
    }

    pub(super) fn as_path(&self) -> &Path {
        &self.path
    }
}

/// Connects to the socket, which shows that its gateway still serves it.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(SocketPath::of(path)?.as_path()).await
}

/// Serves `app` at this socket while the process runs, replacing a stale one. Only the holder of the folder's inbox
/// lock may call this.
pub(super) fn serve(path: &Path, app: Router) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(SocketPath::of(path)?.as_path())?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(OwnUser(listener), app).await {
            tracing::error!(%error, "the inbox's socket failed");
        }
    });
    Ok(())
}

/// Connections of programs that run as the same user; others, which the folder excludes already, are dropped.
struct OwnUser(UnixListener);

impl Listener for OwnUser {
    type Io = UnixStream;
    type Addr = ();

    async fn accept(&mut self) -> (UnixStream, ()) {
        loop {
            let (stream, _) = Listener::accept(&mut self.0).await;
            let ours = rustix::process::geteuid().as_raw();
            // Root can read every folder anyway.
            if stream
                .peer_cred()
                .is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0)
            {
                return (stream, ());
            }
            tracing::warn!("another user's program was turned away from the inbox's socket");
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;

    use super::*;

    #[tokio::test]
    async fn a_socket_that_was_left_behind_is_taken_over_and_a_long_path_works() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a".repeat(120));
        for folder in [folder.path(), &deep] {
            std::fs::create_dir_all(folder).unwrap();
            let path = folder.join("inbox.sock");
            drop(UnixListener::bind(SocketPath::of(&path).unwrap().as_path()).unwrap());
            assert!(connect(&path).await.is_err(), "nobody listens any more");
            let app = Router::new().route("/", get(|| async { "here" }));
            serve(&path, app).unwrap();
            assert!(connect(&path).await.is_ok());
        }
    }
}
