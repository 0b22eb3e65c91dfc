//! `gateway`: runs between any client and any server, and lets a person answer.

use std::error::Error;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use mcp_elicit_client::sign_in::SignInError;
use mcp_elicit_gateway::config::{Config, ConfiguredServer, ServerTarget};
use mcp_elicit_gateway::{
    Runtime, StartError, StopSignal, kill_servers, serve_http, serve_program, serve_url,
};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::key_files::{FULL, KeyFileError};
use mcp_elicit_record::state_file;

use super::{in_runtime, state_record};
use crate::args::gateway::{GatewayArgs, GatewayFile, telling_unset};
use crate::call_session::{private_link, stop};
use crate::failure::{Exit, Failure};
use crate::log;
use crate::output;
use crate::server_eras::{self, CheckReport};
use crate::sign_in::{self, LocalPerson, token_folder};

/// Runs the command to its end.
pub(crate) fn run(args: GatewayArgs) -> Result<Exit, Failure> {
    let json = args.json;
    let ended = check_or_serve(args);
    if let Err(failure) = &ended
        && json
    {
        output::print_json(&CheckReport::of(failure))?;
    }
    ended
}

fn check_or_serve(args: GatewayArgs) -> Result<Exit, Failure> {
    log::start(args.log, args.check)?;
    let (check, json) = (args.check, args.json);
    let gateway_file = args.file();
    let file = gateway_file.as_ref().map(|file| file.path.clone());
    let asked = args.sign_in.sign_in;
    let mut config = args.config()?;
    config.open_login = Some(private_link::open_page);
    let from = ConfiguredIn::of(file.as_deref());
    config
        .check()
        .map_err(|fault| unusable(fault, &from, check))?;
    if check {
        in_runtime(check_parts(&config, &from, json))?;
        output::say(format_args!(
            "configuration is valid (servers: {})",
            config.servers.len()
        ));
        if let Some(audit) = config.retention.audit
            && audit < config.retention.ended
        {
            output::say(
                "warning: `keep-audit` is shorter than `keep-ended`: the events of questions are deleted before the questions; make it at least as long",
            );
        }
        if config.inbox.is_none() {
            output::say(no_inbox(&config, &from));
        }
        if !has_sign_ins(&config) {
            return Ok(Exit::Done);
        }
        let may_sign_in = asked || LocalPerson::here(false, None).is_asked();
        return in_runtime(sign_in_where_needed(&config, may_sign_in)).map(|()| Exit::Done);
    }
    // A client that starts the gateway waits for its first message; a person at a terminal can sign in first.
    if has_sign_ins(&config) && LocalPerson::here(false, None).is_asked() {
        in_runtime(sign_in_where_needed(&config, true))?;
    }
    let served = in_runtime(serve(config, gateway_file));
    kill_servers();
    private_link::remove_opened();
    served.map(|()| Exit::Done)
}

/// Tries the record and each server.
async fn check_parts(config: &Config, from: &ConfiguredIn, json: bool) -> Result<(), Failure> {
    let record = config.check_record().await;
    let folder = record.as_ref().ok().and_then(Option::as_ref);
    let servers = check_servers(config, folder, json).await;
    let Err(fault) = record else {
        return servers;
    };
    let failure = unusable(fault, from, true);
    Err(match servers {
        Ok(()) => failure,
        Err(servers) => failure.telling("and a server:", vec![servers.message().to_owned()]),
    })
}

/// Tries each server; one that runs when a signal stops the process is killed.
async fn check_servers(
    config: &Config,
    folder: Option<&StateFolder>,
    json: bool,
) -> Result<(), Failure> {
    let stop = stop::listen()?;
    let checked = Box::pin(server_eras::check(&config.servers, folder, json));
    tokio::select! {
        checked = checked => checked,
        () = stop.cancelled() => {
            kill_servers();
            Err(Failure::interrupted("stopped; no server is left running"))
        }
    }
}

/// Returns what a configuration without an inbox means, and how to get one.
fn no_inbox(config: &Config, from: &ConfiguredIn) -> String {
    let is_answered = |server: &ConfiguredServer| server.answering.is_some();
    let means = if config.servers.iter().all(is_answered) {
        "only its client and the responder are asked"
    } else {
        "a client that cannot ask gets an error"
    };
    let setting = match from {
        ConfiguredIn::CommandLine => "`--inbox 127.0.0.1:7878`",
        ConfiguredIn::File(_) => "`inbox = \"127.0.0.1:7878\"`",
    };
    format!("no inbox: {means}; {setting} lets people answer")
}

/// Returns `true` if a server wants a sign-in.
fn has_sign_ins(config: &Config) -> bool {
    let wants =
        |target: &ServerTarget| matches!(target, ServerTarget::Url(at) if at.sign_in.is_some());
    config.servers.iter().any(|server| wants(&server.target))
}

/// Signs in at each server that wants a sign-in and has none, or reports it.
async fn sign_in_where_needed(config: &Config, may_sign_in: bool) -> Result<(), Failure> {
    let stop = stop::listen()?;
    for server in &config.servers {
        let ServerTarget::Url(at) = &server.target else {
            continue;
        };
        let Some(wanted) = &at.sign_in else {
            continue;
        };
        let state = config.state.clone().or_else(StateFolder::usual);
        token_folder(state.as_deref())?;
        let state = StateFolder::at(&state.unwrap_or_default());
        let sign_in = wanted
            .open(&state)
            .map_err(|error| Failure::usage("cannot use the state folder").because(error))?;
        let failed = |error| sign_in::failed(error, sign_in.url());
        let name = &server.settings.server;
        let known = match sign_in.token().await {
            // The person who signs in sees which authorization server it is.
            Err(SignInError::TokensOfOtherIssuer { .. }) if may_sign_in => None,
            known => known.map_err(failed)?,
        };
        let is_required = async || sign_in.is_required().await.map_err(failed);
        let state_of_it = if known.is_some() {
            "signed in"
        } else if !is_required().await? {
            "requires no sign-in"
        } else if may_sign_in {
            let person = LocalPerson::here(false, None);
            // What was granted before is requested again, beside the scopes of the command line.
            let granted = sign_in.granted().await.map_err(failed)?;
            person.sign_in(sign_in, &granted, &stop).await?;
            "the tokens are kept; running gateways use them at once"
        } else {
            "requires a sign-in: run this command in a terminal, with `--sign-in`"
        };
        output::say(format_args!("{name}: {state_of_it}"));
    }
    Ok(())
}

/// Reports the address at which people answer. `options` name the record to a command. A link that signs a browser in is for the person at a terminal; a log,
/// which others may read, gets only the address.
fn tell_inbox(runtime: &Runtime, options: &str, people_log_in: bool) {
    let Some(address) = runtime.inbox() else {
        return;
    };
    if people_log_in {
        output::say(format_args!(
            "inbox: {address} (people log in there as `[login]` says)"
        ));
        return;
    }
    let link = if io::stderr().is_terminal() {
        runtime.login_link()
    } else {
        Ok(None)
    };
    match link {
        Ok(Some(link)) => {
            output::say(format_args!("inbox: {link}"));
            output::say(
                "       the link signs one browser in, once; `mcp-elicit inbox open` makes another",
            );
        }
        Ok(None) => {
            output::say(format_args!(
                "inbox: {address} (sign in with `mcp-elicit inbox open{options}`)"
            ));
        }
        Err(error) => {
            output::say(format_args!("inbox: {address}"));
            tracing::error!(%error, "no login link can be made");
        }
    }
}

/// The source of a gateway's configuration.
enum ConfiguredIn {
    CommandLine,
    /// The file, by its path.
    File(PathBuf),
}

impl ConfiguredIn {
    fn of(file: Option<&Path>) -> Self {
        file.map_or(Self::CommandLine, |file| Self::File(file.to_owned()))
    }

    /// Returns the names of the settings for addresses.
    fn addresses(&self) -> String {
        match self {
            Self::CommandLine => "with `--inbox`, `--listen` or `--peer-listen`".to_owned(),
            Self::File(file) => format!(
                "as `inbox`, `listen` or `peer-listen` in {}",
                file.display()
            ),
        }
    }
}

/// Returns the failure for a configuration that cannot be used, at the start or with `--check`.
fn unusable(fault: StartError, from: &ConfiguredIn, check: bool) -> Failure {
    let is_secret = matches!(fault, StartError::Channels(_));
    let failure = cannot_start(fault, from);
    let ConfiguredIn::File(file) = from else {
        return failure;
    };
    let failure = if check {
        failure.saying(format!("{} cannot be used", file.display()))
    } else {
        failure
    };
    match state_file::read_named_text(file) {
        Ok(text) if is_secret => telling_unset(failure, &text),
        Ok(_) | Err(_) => failure,
    }
}

async fn serve(mut config: Config, file: Option<GatewayFile>) -> Result<(), Failure> {
    let path = file.as_ref().map(|file| file.path.clone());
    let from = ConfiguredIn::of(path.as_deref());
    let runtime = Runtime::open(&mut config)
        .await
        .map_err(|fault| cannot_start(fault, &from))?;
    // Nothing may announce an inbox whose gateway does not start.
    let listener = match config.listen {
        Some(at) => {
            let bound = tokio::net::TcpListener::bind(at).await;
            Some(bound.map_err(|source| cannot_start(StartError::Listen { at, source }, &from))?)
        }
        None => None,
    };
    let options = match &path {
        // The folder alone does not say how to reach the database.
        Some(file) if config.database.is_some() => format!(" --config {}", file.display()),
        Some(_) | None => state_record::option(config.state.as_deref()),
    };
    if let Some(file) = file {
        let path = file.path.clone();
        runtime.reload_on_signal(path, Box::new(move |text| file.read_again(text)));
    }
    for server in config.servers.iter().filter(|server| server.share_child) {
        output::say(format_args!(
            "{}: one child for all calls of a client (share-child); calls in which it may ask run one after the other",
            server.settings.server
        ));
    }
    let people_log_in = config.login.is_some();
    tell_inbox(&runtime, &options, people_log_in);
    let watched = runtime.clone();
    tokio::spawn(async move {
        while watched.moved_inbox().await {
            tell_inbox(&watched, &options, people_log_in);
        }
    });
    let watched = runtime.clone();
    tokio::select! {
        served = serve_clients(runtime, config, listener, &from) => served,
        fault = watched.broken_record() => Err(cannot_start(fault.into(), &from)),
    }
}

async fn serve_clients(
    runtime: Runtime,
    config: Config,
    listener: Option<tokio::net::TcpListener>,
    from: &ConfiguredIn,
) -> Result<(), Failure> {
    let Some(server) = config.servers.first().cloned() else {
        return Err(Failure::usage("no server named"));
    };
    let Some(listener) = listener else {
        return serve_stdio(runtime, config.max_frame, server, from).await;
    };
    let bound = listener
        .local_addr()
        .map_err(|error| Failure::connection("the gateway broke").because(error))?;
    // Made before it is said to serve: from then on a signal hands back the held calls.
    let serving = serve_http(runtime, &config, listener);
    if let [_only] = config.servers.as_slice() {
        output::say(format_args!("serving: http://{bound}/mcp"));
    } else {
        for server in &config.servers {
            let name = &server.settings.server;
            output::say(format_args!("serving: http://{bound}/mcp/{name}"));
        }
    }
    serving.await.map_err(|fault| cannot_start(fault, from))
}

/// Serves the client on stdin and stdout.
async fn serve_stdio(
    runtime: Runtime,
    max_frame: usize,
    server: ConfiguredServer,
    from: &ConfiguredIn,
) -> Result<(), Failure> {
    // Made before Ctrl-C is spoken of.
    let stop = StopSignal::catch(&runtime);
    if io::stdin().is_terminal() {
        say_what_is_waited_for();
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                output::say("stopped");
            }
        });
    }
    let serving = tokio::task::spawn_blocking(move || match &server.target {
        ServerTarget::Program(program) => {
            serve_program(&runtime, &server, program, max_frame, stop)
        }
        ServerTarget::Url(at) => serve_url(&runtime, &server, at, max_frame, stop),
    });
    serving
        .await
        .map_err(|error| Failure::connection("the gateway broke").because(error))?
        .map_err(|fault| cannot_start(fault, from))
}

/// Explains a gateway that is started in a terminal and seems to do nothing: it waits for a client, which normally
/// starts it.
fn say_what_is_waited_for() {
    output::say(
        "waiting for an MCP client on stdin; this command belongs in a client's configuration",
    );
    output::say(format_args!(
        "{} to try it, prefix it with `mcp-elicit call --list --`; to serve clients over HTTP, add `--listen 127.0.0.1:8080`; \
         to end it, press Ctrl-C",
        output::styled(output::HINT, "next:")
    ));
}

/// Returns the failure of a command on the record's database.
pub(super) fn database_failed(fault: StartError) -> Failure {
    of_database(fault).saying("the record's database cannot be used")
}

/// Returns the failure of a start because of the record's database.
fn of_database(fault: StartError) -> Failure {
    let failure = if let StartError::Record(source) = &fault {
        let otherwise = || {
            "check that the server runs, takes writes, and that the address of `--record` is right."
                .to_owned()
        };
        Failure::connection("cannot start the gateway")
            .hint(source.remedy().unwrap_or_else(otherwise))
    } else {
        Failure::usage("cannot start the gateway")
            .hint("write `--record postgres://USER@HOST:PORT/DATABASE` (docs/operate.md).")
    };
    failure.because(fault)
}

/// Returns `true` if there is no room on a disk: the record's, or that of the state folder.
fn is_disk_full(fault: &StartError) -> bool {
    if let StartError::Record(source) | StartError::Keys(KeyFileError::Record(source)) = fault {
        return source.is_disk_full();
    }
    let is_full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
    let mut cause = fault.source();
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(is_full) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn cannot_start(fault: StartError, from: &ConfiguredIn) -> Failure {
    if is_disk_full(&fault) {
        let remedy = match &fault {
            StartError::Record(source) | StartError::Keys(KeyFileError::Record(source)) => {
                source.remedy()
            }
            _ => None,
        };
        let hint = remedy.unwrap_or_else(|| FULL.to_owned());
        return Failure::connection("cannot start the gateway")
            .hint(hint)
            .because(fault);
    }
    let failure = match &fault {
        StartError::State { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            Failure::usage("cannot start the gateway")
                .hint("set again who may answer, with `--presence page` or `--presence any`.")
        }
        StartError::State { .. } | StartError::NoState => {
            Failure::usage("cannot start the gateway")
                .hint("name a writable folder with `--state DIR`.")
        }
        StartError::Keys(fault) => {
            let otherwise = || {
                "make the state folder readable and writable for this user, or name another with `--state DIR`.".to_owned()
            };
            Failure::usage("cannot start the gateway").hint(fault.remedy().unwrap_or_else(otherwise))
        }
        StartError::Replaced { state, database, .. } => Failure::connection("cannot start the gateway")
            .hint(if_restored(state, database.as_deref(), from)),
        StartError::Database { .. } => return of_database(fault),
        StartError::Record(source) if source.is_in_database() => return of_database(fault),
        StartError::Record(fault) => {
            let otherwise = || {
                "move the record out of the state folder, or start with `--record memory`.".to_owned()
            };
            Failure::usage("cannot start the gateway").hint(fault.remedy().unwrap_or_else(otherwise))
        }
        StartError::NoTerminal { .. } => Failure::usage("cannot start the gateway")
            .hint("start it from a terminal, or choose another `--answer-with`."),
        StartError::Listen { at, source } => {
            Failure::usage("cannot start the gateway").hint(why_not_there(*at, source, from))
        }
        StartError::PagesOnly { .. } => Failure::usage("cannot start the gateway").hint(
            "leave out `--answer-with` and `--inbox off`, or let others answer too with `--presence any`.",
        ),
        StartError::OpenToNetwork { .. } => Failure::usage("cannot start the gateway").hint(
            "require an API key with `--auth keys`, listen at 127.0.0.1 behind a proxy that authenticates callers and set `public-url` to its address, or accept the risk with `--insecure`.",
        ),
        StartError::Auth { .. } => Failure::usage("cannot start the gateway")
            .hint("see `[auth]` in its configuration file."),
        StartError::NotLoopback { .. } => Failure::usage("cannot start the gateway")
            .hint("serve the inbox at 127.0.0.1, or let people log in: add `[login]` to the configuration file (docs/teams.md)."),
        StartError::Channels(_) => Failure::usage("cannot start the gateway")
            .hint("set the environment variable, or write the file, that the table names."),
        StartError::Program { .. } => Failure::connection("cannot start the server").hint(
            "install the program, or write its whole path; the server's command begins after `--`, or is `command` in the configuration file.",
        ),
        StartError::Address { .. } | StartError::TooManyChildren => {
            Failure::connection("cannot reach the server")
        }
    };
    failure.because(fault)
}

/// Returns advice if the record was replaced, with the options that name it as the gateway was started.
fn if_restored(state: &Path, database: Option<&str>, from: &ConfiguredIn) -> String {
    let state = state.display();
    let options = match (from, database) {
        (ConfiguredIn::File(file), Some(_)) => {
            format!("--config {} --state {state}", file.display())
        }
        (ConfiguredIn::CommandLine, Some(address)) => format!("--state {state} --record {address}"),
        (_, None) => format!("--state {state}"),
    };
    format!(
        "if it was restored, run `mcp-elicit record restored {options}`{}; else use the record that was there before.",
        match (from, database) {
            (ConfiguredIn::CommandLine, Some(_)) =>
                " with the same option for the password as the gateway has",
            _ => "",
        }
    )
}

/// Returns advice if an address cannot be served.
fn why_not_there(at: SocketAddr, error: &io::Error, from: &ConfiguredIn) -> String {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::AddrInUse => {
            format!(
                "something else listens there: name another address {}.",
                from.addresses()
            )
        }
        ErrorKind::AddrNotAvailable => format!(
            "this machine has no address {}: use 127.0.0.1, or an address of this machine.",
            at.ip()
        ),
        ErrorKind::PermissionDenied => format!(
            "this user may not serve port {}: use one above 1023.",
            at.port()
        ),
        _ => format!("name another address {}.", from.addresses()),
    }
}
