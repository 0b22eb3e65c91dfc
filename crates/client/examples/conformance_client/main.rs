//! The client that the official conformance suite drives. It connects to the given URL (through OAuth if the server
//! requires it), lists the tools, calls each of them, and accepts every question with the form's defaults.
//!
//! `npx @modelcontextprotocol/conformance client --command "target/release/examples/conformance_client" --scenario
//! NAME`

mod client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Box::pin(client::play()).await
}
