//! A plain TCP balancer: each connection goes to the next address that accepts it, whatever is sent on it.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The addresses behind the balancer; `None` for one that does not run.
pub(crate) type Addresses = Arc<Mutex<Vec<Option<String>>>>;

/// Starts a balancer before these addresses. Returns its own.
pub(crate) fn start(behind: Addresses) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let next = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (behind, next) = (behind.clone(), next.clone());
            thread::spawn(move || pass(&client, &behind, &next));
        }
    });
    at
}

fn pass(client: &TcpStream, behind: &Addresses, next: &AtomicUsize) -> io::Result<()> {
    let known = behind.lock().unwrap().clone();
    let first = next.fetch_add(1, Ordering::Relaxed);
    let mut turn = (0..known.len()).map(|offset| &known[(first + offset) % known.len()]);
    let server = turn.find_map(|at| TcpStream::connect(at.as_deref()?).ok());
    let Some(server) = server else {
        return client.shutdown(Shutdown::Both);
    };
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let up = thread::spawn(move || copy(&from_client, &to_server));
    copy(&server, client);
    let _ended = up.join();
    Ok(())
}

/// Copies until either side ends; then both connections end in this direction.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ended = io::copy(&mut from, &mut to);
    let _closed = (from.shutdown(Shutdown::Read), to.shutdown(Shutdown::Write));
}
