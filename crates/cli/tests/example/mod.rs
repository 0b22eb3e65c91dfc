//! The server crate's example `conformance`, as a program that listens.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use mcp_elicit_testkit::peers::{PeerProgram, RunningPeer, free_port, wait_for_port};

/// Returns the example, which is built if necessary.
pub(crate) fn conformance_server() -> PeerProgram {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path = path.join("examples").join("conformance_server");
    if !path.is_file() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "-p", "mcp-elicit-server"])
            .args(["--example", "conformance_server"])
            .status()
            .unwrap();
        assert!(built.success(), "the example server cannot be built");
    }
    PeerProgram::new(path.to_str().unwrap())
}

/// Starts the program with `--listen`, and returns it with its URL.
pub(crate) fn listening(program: &PeerProgram) -> (RunningPeer, String) {
    let port = free_port();
    let at = SocketAddr::from(([127, 0, 0, 1], port)).to_string();
    let running = program.clone().with(["--listen", &at]).start();
    wait_for_port(port);
    assert!(TcpStream::connect(&at).is_ok());
    (running, format!("http://{at}/mcp"))
}
