//! Measures the cost of a gateway: this project's, a byte relay, no gateway at all, and other gateways that can be
//! installed, in one run.
//!
//! This program decides what is measured and how. It makes no judgement, but prints the aims of `docs/benchmarks.md`
//! beside the results. Its endpoints are raw (threads, no SDK), so that they add little to the measured cost of the
//! gateway.
//!
//! ```text
//! crates/speed/peers.sh                                  # once: installs the other gateways into target/speed
//! cargo run --release -p mcp-elicit-speed                # builds our gateway as it is installed, measures, prints tables
//! cargo run --release -p mcp-elicit-speed -- --pending 10000
//! cargo run --release -p mcp-elicit-speed -- --pending 10000 --record postgres://… --gateways 3
//! cargo run --release -p mcp-elicit-speed -- --team --open 10000 --rate 100 --seconds 60
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`works`] | the programs that are compared, and how each is started |
//! | [`run`] | one work: started, called, measured and stopped |
//! | [`mod@line`], [`web`] | the client over stdio and over HTTP |
//! | [`server`], [`relay`] | the server behind every work, and the byte relay as the lower limit |
//! | [`say`] | the messages of both ends |
//! | [`pending`] | many questions at once: memory, lists, answers |
//! | [`team`] | people with pages of their own, pending questions, and new ones every second |
//! | [`lossless`] | values that must pass unchanged |
//! | [`memory`] | resident memory of the processes between the ends |
//! | [`table`] | tables and aims |

mod line;
mod lossless;
mod memory;
mod pending;
mod relay;
mod run;
mod say;
mod server;
mod table;
mod team;
mod web;
mod works;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use run::{CallSize, RunFigures};

/// The options of the command line.
struct Options {
    /// This project's binary; built if not given.
    gateway: Option<PathBuf>,
    /// Measures only works whose wiring and name contain this.
    only: String,
    /// Measures only loads whose name contains this.
    load: String,
    /// The number of times that everything is measured; the median is shown.
    times: usize,
    /// Measures this number of pending questions instead.
    pending: Option<pending::PendingLoad>,
    /// Measures the load of a team instead.
    team: Option<team::TeamLoad>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let parts: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match parts.as_slice() {
        ["server", "stdio"] => server::stdio(),
        ["server", "http", port] => server::http(port),
        ["relay", "stdio", program, arguments @ ..] => relay::stdio(program, arguments),
        ["relay", "http", port, upstream] => relay::http(port, upstream),
        _ => match options(&words) {
            Ok(options) => measure(&options),
            Err(why) => Err(io::Error::other(format!(
                "{why}\nusage: mcp-elicit-speed [--gateway PATH] [--only TEXT] [--load TEXT] [--times N] | --pending N [--record ADDRESS [--gateways N]] | --team [--open N] [--rate N] [--seconds N]"
            ))),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ignored = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn options(words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        gateway: None,
        only: String::new(),
        load: String::new(),
        times: 3,
        pending: None,
        team: None,
    };
    let mut rest = words.iter();
    while let Some(option) = rest.next() {
        if option == "--team" {
            options.team = Some(team::TeamLoad::default());
            continue;
        }
        let value = rest
            .next()
            .ok_or_else(|| format!("`{option}` wants a value"))?;
        match option.as_str() {
            "--gateway" => options.gateway = Some(PathBuf::from(value)),
            "--only" => options.only.clone_from(value),
            "--load" => options.load.clone_from(value),
            "--times" => options.times = value.parse().map_err(|_| "`--times` wants a number")?,
            "--pending" => {
                options.pending = Some(pending::PendingLoad {
                    count: value.parse().map_err(|_| "`--pending` wants a number")?,
                    record: None,
                    gateways: 1,
                });
            }
            "--record" | "--gateways" => {
                let load = options.pending.as_mut();
                let load = load.ok_or_else(|| format!("`{option}` comes after `--pending`"))?;
                if option == "--record" {
                    load.record = Some(value.clone());
                } else {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    load.gateways = number.ok_or("`--gateways` wants a number")?;
                }
            }
            _ => {
                let load = options.team.as_mut();
                let load = load.ok_or_else(|| format!("there is no option `{option}`"))?;
                let number = || format!("`{option}` wants a number");
                match option.as_str() {
                    "--open" => load.open = value.parse().map_err(|_| number())?,
                    "--rate" => load.rate = value.parse().map_err(|_| number())?,
                    "--seconds" => load.seconds = value.parse().map_err(|_| number())?,
                    _ => return Err(format!("`--team` has no option `{option}`")),
                }
            }
        }
    }
    Ok(options)
}

fn measure(options: &Options) -> io::Result<()> {
    let has_database = options
        .pending
        .as_ref()
        .is_some_and(|load| load.record.is_some());
    let is_full = options.team.is_some() || has_database;
    let gateway = match &options.gateway {
        Some(path) => path.clone(),
        None => built(is_full)?,
    };
    if let Some(load) = options.team {
        return write!(io::stdout(), "{}", team::measure(&gateway, load)?);
    }
    if let Some(load) = &options.pending {
        if load.gateways > 1 && load.record.is_none() {
            return Err(io::Error::other("several gateways need `--record`"));
        }
        return write!(io::stdout(), "{}", pending::measure(&gateway, load)?);
    }
    let works = works::all(&gateway, &options.only)?;
    let loads: Vec<CallSize> = CallSize::ALL
        .into_iter()
        .filter(|load| load.to_string().contains(&options.load))
        .collect();
    let mut figures: Vec<Vec<RunFigures>> = works.iter().map(|_| Vec::new()).collect();
    for time in 1..=options.times {
        for (work, figures) in works.iter().zip(&mut figures) {
            tell(&format!("{time}/{} {work}", options.times));
            let found = run::measure(work, &loads);
            for load in &loads {
                if let Some(Err(why)) = found.loads.get(load) {
                    tell(&format!("    {load}: {why}"));
                }
            }
            figures.push(found);
        }
    }
    let rows: Vec<table::TableRow> = works
        .iter()
        .zip(&figures)
        .map(|(work, figures)| table::TableRow::of(work, figures))
        .collect();
    write!(io::stdout(), "{}", table::written(&rows))
}

/// Builds this project's gateway as it is released, for teams and databases with all features, and returns its path.
fn built(is_full: bool) -> io::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--profile", "dist", "--locked", "-p", "mcp-elicit"])
        .args(
            is_full
                .then_some(["--features", "full"])
                .into_iter()
                .flatten(),
        )
        .status()?;
    if !built.success() {
        return Err(io::Error::other("our gateway could not be built"));
    }
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(2).unwrap_or(&own);
    Ok(target.join("dist").join("mcp-elicit"))
}

/// Prints a line of progress.
fn tell(line: &str) {
    let _ignored = writeln!(io::stderr(), "{line}");
}
