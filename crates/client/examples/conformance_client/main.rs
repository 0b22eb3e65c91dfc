//! The client that the official conformance suite drives: connects to the URL it is given (through OAuth where the
//! server wants it), lists the tools, calls each of them, and accepts what is asked with the form's defaults.
//!
//! `npx @modelcontextprotocol/conformance client --command "target/release/examples/conformance_client" --scenario
//! NAME`

mod client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Box::pin(client::play()).await
}
