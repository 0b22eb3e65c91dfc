//! A host in twenty lines: it calls a tool of a server, and the person at this terminal answers the server's questions.
//!
//! `cargo run -p mcp-elicit-client --example host -- TOOL SERVER [ARGUMENT...]`

use std::error::Error;

use mcp_elicit_client::responder::Terminal;
use mcp_elicit_client::{
    CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient, Target,
};

#[expect(clippy::print_stdout, reason = "an example talks to its reader")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(tool), Some(program)) = (words.next(), words.next()) else {
        return Err("say which tool of which server to call: TOOL SERVER [ARGUMENT...]".into());
    };
    let target = Target::Command {
        program,
        arguments: words.collect(),
    };
    let settings = ClientSettings::default().responder(Terminal::detect()?);
    let connection = Connection::open(
        &target,
        ElicitingClient::new((), "my server", settings),
        &ConnectOptions::default(),
    )
    .await?;
    let called = connection
        .call_tool(
            tool.to_string_lossy(),
            serde_json::Map::new(),
            &CallOptions::default(),
        )
        .await;
    connection.close().await;
    println!("{}", serde_json::to_string_pretty(&called?)?);
    Ok(())
}
