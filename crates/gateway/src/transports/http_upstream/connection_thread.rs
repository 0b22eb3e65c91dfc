//! The thread that reads and writes the connections to one server.
//!
//! A server may send as fast as it is read, such as informational responses without end, which are parsed before any limit
//! of the gateway sees them. On a thread of its own it takes time from its own calls, and from no other server's.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::context::TokioContext;

/// The thread of one server's connections, which all its sessions share. It starts with the first of them.
#[derive(Clone, Debug, Default)]
pub struct ConnectionThread(Arc<Mutex<Option<Arc<Connections>>>>);

/// The running thread of a server's connections. It ends with the last value that refers to it.
#[derive(Debug)]
pub(super) struct Connections {
    handle: Handle,
    /// `Some` until it is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it is not allowed in a task.
            runtime.shutdown_background();
        }
    }
}

impl ConnectionThread {
    /// Starts the thread if it does not run yet.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(super) fn start(&self) -> std::io::Result<Arc<Connections>> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = &*started {
            return Ok(connections.clone());
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(4)
            .thread_name("upstream")
            .enable_all()
            .build()?;
        let connections = Arc::new(Connections {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        });
        *started = Some(connections.clone());
        Ok(connections)
    }
}

impl Connections {
    /// Makes the connections that this work needs on the thread. The work itself runs where it is awaited.
    pub(super) async fn connecting<T>(&self, work: impl Future<Output = T>) -> T {
        TokioContext::new(work, self.handle.clone()).await
    }
}
