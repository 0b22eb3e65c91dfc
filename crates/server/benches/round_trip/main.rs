//! The cost of a question with this crate, compared with rmcp alone and with the servers of other SDKs, in one run:
//!
//! `cargo bench -p mcp-elicit-server --bench round_trip`; with `-- --quick` in a tenth of the time, for a first
//! impression; with `-- --gateway PROGRAM` the cost with that gateway in between instead; with `--relay
//! mcp-elicit-speed` also the cost of a byte relay.
//!
//! Every server is a process of its own, on stdio and over HTTP, with the same client (rmcp's). This crate and rmcp
//! alone take turns, so that other load on the machine affects both. rmcp alone does what an author does without this
//! crate, and checks nothing: `create_elicitation` on the pushed era, a state machine by hand on rounds.
//!
//! - `servers`: a server with this crate, and one with rmcp alone
//! - `client`: the client, and the transports to a server
//! - `gateway`: the same with a program in between
//! - `measure`: the measurements

#![expect(
    clippy::print_stdout,
    reason = "the tables are what a benchmark is for"
)]

mod client;
mod gateway;
mod measure;
mod servers;

use client::{Connection, Era, Transport, connect};
use mcp_elicit_testkit::peers::{self, PeerProgram};
use measure::Effort;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut runtime = match arguments[..] {
        // As the guide of each tells its authors.
        ["serve", "ours", "stdio"] => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build().expect("there are threads");
    match arguments[..] {
        ["serve", which, ref how @ ..] => runtime.block_on(servers::serve(which, how)),
        ref options if options.contains(&"--bench") => {
            let effort = if options.contains(&"--quick") {
                Effort::QUICK
            } else {
                Effort::FULL
            };
            let value = |name: &str| {
                let mut rest = options.iter().skip_while(|option| **option != name);
                rest.nth(1).copied()
            };
            match value("--gateway") {
                Some(gateway) => {
                    let relay = value("--relay");
                    runtime.block_on(gateway::print_table(gateway, relay, effort));
                }
                None => runtime.block_on(print_tables(effort)),
            }
        }
        _ => println!("measures only under `cargo bench`"),
    }
}

/// Returns the command of this program as the server `which`.
fn server(which: &str) -> PeerProgram {
    let program = std::env::current_exe().expect("a running program has a path");
    let program = program.to_str().expect("its path is text");
    PeerProgram::new(program).with(["serve", which])
}

/// Connects to the server with this crate and to the one with rmcp alone.
async fn pair(era: Era, transport: Transport) -> [Connection; 2] {
    [
        connect(&server("ours"), era, transport).await,
        connect(&server("bare"), era, transport).await,
    ]
}

async fn print_tables(effort: Effort) {
    let mut beside = Vec::new();
    println!("Round trip: call, question, answer, result.\n");
    println!(
        "| era, transport, what | mcp-elicit | rmcp alone | ratio |\n| --- | --- | --- | --- |"
    );
    for era in Era::ALL {
        for transport in Transport::ALL {
            let pair = pair(era, transport).await;
            let times = measure::one_at_a_time(&pair, 1, effort).await;
            let (ours, bare) = (times[0], times[1]);
            println!(
                "| {era}, {transport}, one at a time, us | {ours:.0} | {bare:.0} | {:.2} |",
                ours / bare
            );
            let rates = measure::many_at_once(&pair, effort).await;
            let (our_rate, bare_rate) = (rates[0], rates[1]);
            println!(
                "| {era}, {transport}, 64 at once, calls/s | {our_rate:.0} | {bare_rate:.0} | {:.2} |",
                our_rate / bare_rate
            );
            beside.push((era, transport, "mcp-elicit", ours, our_rate));
            beside.push((era, transport, "rmcp alone", bare, bare_rate));
        }
    }
    print_growth(effort).await;
    print_memory(effort).await;
    print_others(effort, beside).await;
}

async fn print_growth(effort: Effort) {
    println!("\nSeveral sequential questions in one call, on stdio, in microseconds.\n");
    println!("| era, questions | mcp-elicit | rmcp alone | ratio |\n| --- | --- | --- | --- |");
    for era in Era::ALL {
        let pair = pair(era, Transport::Stdio).await;
        for questions in [1, 2, 3, 5, 10] {
            let times = measure::one_at_a_time(&pair, questions, effort).await;
            let (ours, bare) = (times[0], times[1]);
            println!(
                "| {era}, {questions} | {ours:.0} | {bare:.0} | {:.2} |",
                ours / bare
            );
        }
    }
}

async fn print_memory(effort: Effort) {
    println!(
        "\nThe server's memory per open question, with {} open, in bytes, on stdio.\n",
        effort.pending
    );
    println!("| era | mcp-elicit | rmcp alone | ratio |\n| --- | --- | --- | --- |");
    let ours = measure::pending(&server("ours"), effort).await;
    let bare = measure::pending(&server("bare"), effort).await;
    println!(
        "| pushed, waiting | {ours:.0} | {bare:.0} | {:.2} |",
        ours / bare
    );
    let ours = measure::left_open(&server("ours"), effort).await;
    let bare = measure::left_open(&server("bare"), effort).await;
    println!("| rounds, asked and not answered | {ours:.0} | {bare:.0} | - |");
}

/// Returns the servers of other SDKs, from `tests/peers`: they check answers as this crate does. A language that is not
/// installed is omitted, and reported on stderr.
fn others() -> Vec<(&'static str, PeerProgram, &'static [Era])> {
    const PUSHED: &[Era] = &[Era::Pushed];
    let found: [(&str, Option<PeerProgram>, &[Era]); 4] = [
        (
            "TypeScript SDK 1",
            peers::node_script("ts1-server.mjs"),
            PUSHED,
        ),
        (
            "TypeScript SDK 2",
            peers::node_script("ts2-server.mjs"),
            &Era::ALL,
        ),
        (
            "Python mcp 2",
            peers::python_script("mcp_server.py"),
            &Era::ALL,
        ),
        (
            "FastMCP 4",
            peers::python_script("fastmcp_server.py"),
            &Era::ALL,
        ),
    ];
    let installed = found.into_iter();
    let installed = installed.filter_map(|(name, program, eras)| Some((name, program?, eras)));
    installed.collect()
}

async fn print_others(effort: Effort, mut rows: Vec<(Era, Transport, &'static str, f64, f64)>) {
    for era in Era::ALL {
        let connection = connect(&server("piped"), era, Transport::Stdio).await;
        let (median, rate) = measure::alone(&connection, effort).await;
        let name = "rmcp alone, with its stdio_pipes";
        rows.push((era, Transport::Stdio, name, median, rate));
    }
    for (name, program, eras) in others() {
        for era in eras {
            for transport in Transport::ALL {
                let connection = connect(&program, *era, transport).await;
                let (median, rate) = measure::alone(&connection, effort).await;
                rows.push((*era, transport, name, median, rate));
            }
        }
    }
    println!("\nCompared with other SDKs, with the same client.\n");
    println!(
        "| era, transport, server | one at a time, us | 64 at once, calls/s |\n| --- | --- | --- |"
    );
    rows.sort_by_key(|row| (row.0, row.1));
    for (era, transport, name, median, rate) in rows {
        println!("| {era}, {transport}, {name} | {median:.0} | {rate:.0} |");
    }
}
