//! A relay of bytes only, which shows the least that any gateway costs.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

/// The size of a buffer, in bytes.
const BUFFER: usize = 64 * 1024;

fn pump(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to
            .write_all(&buffer[..read])
            .and_then(|()| to.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Relays between this process's stdin and stdout, and those of a program.
pub(crate) fn stdio(program: &str, arguments: &[&str]) -> io::Result<()> {
    use std::os::fd::AsFd as _;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let gone = || io::Error::other("the child has no pipes");
    let to = child.stdin.take().ok_or_else(gone)?;
    let from = child.stdout.take().ok_or_else(gone)?;
    thread::spawn(move || pump(io::stdin().lock(), to));
    // Avoids the standard library's line buffer.
    let out = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
    pump(from, out);
    child.wait().map(|_| ())
}

/// Relays between clients of this port and the upstream address.
pub(crate) fn http(port: &str, upstream: &str) -> io::Result<()> {
    for client in TcpListener::bind(format!("127.0.0.1:{port}"))?.incoming() {
        let client = client?;
        let server = TcpStream::connect(upstream)?;
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (from, to) = (from.try_clone()?, to.try_clone()?);
            to.set_nodelay(true)?;
            thread::spawn(move || {
                pump(&from, &to);
                let _closed_already = to.shutdown(Shutdown::Write);
            });
        }
    }
    Ok(())
}
