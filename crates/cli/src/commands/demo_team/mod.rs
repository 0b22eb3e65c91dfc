//! `demo --team`: two people, a server that asks and one that does not, a rule that needs both people, and their
//! company's login.
//!
//! Four programs take part, as in a real setup: this one is both the client, which declares no elicitation, and the
//! issuer of the login; it starts a gateway with a configuration file that is shown; the gateway starts both servers.
//! Each person answers on the gateway's pages, in a browser of their own.

mod issuer;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use mcp_elicit_client::connection::Target;
use mcp_elicit_client::{CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient};
use mcp_elicit_forms::web::Site;
use mcp_elicit_record::state_file;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use self::issuer::{DemoIssuer, IssuerClient, IssuerPerson, NoRandomness};
use crate::call_session::events::Events;
use crate::call_session::handler::Handler;
use crate::call_session::{failures, stop};
use crate::failure::{Exit, Failure};
use crate::output::{self, HINT, styled};

/// The people of the demo.
const PEOPLE: [IssuerPerson; 2] = [
    IssuerPerson {
        subject: "demo-ada",
        name: "Ada",
        mail: "ada@example.com",
        part: "in the group ops, and an administrator",
    },
    IssuerPerson {
        subject: "demo-bob",
        name: "Bob",
        mail: "bob@example.com",
        part: "in the group ops",
    },
];

/// The time that a person may take for an answer, for which the gateway holds the call.
const HOLD_SECONDS: u64 = 3600;
/// The time that the gateway has to start.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// The time for which the gateway keeps running after the last call if no one is at the terminal, so that the page
/// after the last answer still loads.
const LAST_PAGE: Duration = Duration::from_secs(3);
/// The interval of checks for the gateway's start.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The file of the configuration.
const CONFIG: &str = "gateway.toml";

/// The addresses of the demo's parts.
struct Addresses {
    gateway: SocketAddr,
    inbox: SocketAddr,
    issuer: SocketAddr,
}

/// Runs the demo to its end.
pub(crate) async fn run(keep: Option<PathBuf>) -> Result<Exit, Failure> {
    let stop = stop::listen()?;
    let folder = ConfigFolder::new(keep)?;
    let (listener, at) = addresses().await.map_err(no_port)?;
    let secret = start_issuer(listener, &at)?;
    let file = write_config(folder.path(), &at, &secret)?;
    introduce(&file);
    let mut gateway = Gateway::start(&file, &stop)?;
    for part in [at.inbox, at.gateway] {
        gateway.wait_until_it_listens(part).await?;
    }
    say_where(at.inbox);
    let played = Box::pin(play(&at, &stop)).await;
    if played.is_ok() {
        stay(at.inbox, &stop).await;
    }
    gateway.end().await;
    folder.say_where_it_is();
    let exit = played?;
    let file = match &folder {
        ConfigFolder::Kept(folder) => folder.join(CONFIG).display().to_string(),
        ConfigFolder::Passing(_) => CONFIG.to_owned(),
    };
    output::say_what_to_try(&[
        (
            &format!("mcp-elicit rules check {file}"),
            "find every mistake in a file of your own",
        ),
        (
            &format!("mcp-elicit gateway --config {file}"),
            "the same with your servers and your issuer: docs/teams.md",
        ),
    ]);
    Ok(exit)
}

/// The inbox's address of a gateway that is tried on one machine, as in docs/teams.md.
const OWN_INBOX: &str = "http://127.0.0.1:7878";

/// Serves only the issuer, for the operator's own gateway on this machine, until the process is stopped.
pub(crate) async fn serve_issuer(
    address: SocketAddr,
    folder: PathBuf,
    inbox: Option<&str>,
) -> Result<Exit, Failure> {
    if !address.ip().is_loopback() {
        let message =
            format!("{address} is not a loopback address: this issuer asks for no password");
        return Err(Failure::usage(message).hint("use an address such as 127.0.0.1:9900."));
    }
    let inbox = inbox.map_or(OWN_INBOX, |inbox| inbox.trim_end_matches('/'));
    Site::public(inbox).map_err(|error| {
        Failure::usage(format!("`--inbox-url {inbox}` is not an address")).because(error)
    })?;
    let stop = stop::listen()?;
    let no_key = |error: NoRandomness| Failure::usage("cannot make a key").because(error);
    let unusable = |error: io::Error| {
        Failure::usage(format!("{} cannot be used", folder.display())).because(error)
    };
    state_file::create_folders(&folder).map_err(unusable)?;
    let file = folder
        .canonicalize()
        .map_err(unusable)?
        .join("inbox.secret");
    // The secret of an earlier run is kept.
    state_file::create_once(&file, issuer::secret().map_err(no_key)?.as_bytes())
        .map_err(unusable)?;
    let client = IssuerClient {
        id: "inbox",
        secret: state_file::read_text(&file).map_err(unusable)?,
        redirect_uri: format!("{inbox}/login/return"),
    };
    let cannot_listen = |error: io::Error| {
        let hint = "name another address, such as 127.0.0.1:0 for any free port, and write the `issuer` that it prints into [login].";
        Failure::usage(format!("cannot listen at {address}"))
            .because(error)
            .hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(cannot_listen)?;
    let at = listener.local_addr().map_err(cannot_listen)?;
    let issuer = DemoIssuer::new(format!("http://{at}"), client, &PEOPLE).map_err(no_key)?;
    output::say(format_args!(
        "An issuer for a gateway with inbox-url = \"{inbox}\", which knows ada@example.com and bob@example.com. Its [login]:"
    ));
    output::say("");
    output::print("[login]\nmode = \"oidc\"")?;
    output::print(format_args!("issuer = \"http://{at}\""))?;
    output::print("client-id = \"inbox\"")?;
    let file = json!(file.display().to_string());
    output::print(format_args!("client-secret = {{ file = {file} }}"))?;
    output::say("");
    output::say("Ctrl-C ends it.");
    tokio::select! {
        served = axum::serve(listener, issuer.router()) => {
            served.map_err(|error| Failure::connection("the issuer broke").because(error))?;
            Ok(Exit::Done)
        }
        () = stop.cancelled() => Ok(Exit::Interrupted),
    }
}

/// The folder of the gateway's configuration and state.
enum ConfigFolder {
    /// A temporary folder, removed with the demo.
    Passing(tempfile::TempDir),
    /// A folder that is kept.
    Kept(PathBuf),
}

impl ConfigFolder {
    /// Creates the folder to keep, which must be empty or new, or a temporary one.
    fn new(keep: Option<PathBuf>) -> Result<Self, Failure> {
        let Some(path) = keep else {
            let made = tempfile::tempdir();
            return made
                .map(Self::Passing)
                .map_err(|error| Failure::usage("no folder for the demo").because(error));
        };
        let unusable = |error: io::Error| {
            Failure::usage(format!("{} cannot be used", path.display())).because(error)
        };
        state_file::create_folders(&path).map_err(unusable)?;
        let path = path.canonicalize().map_err(unusable)?;
        let is_used = std::fs::read_dir(&path).map_err(unusable)?.next().is_some();
        if is_used {
            let message = format!("{} is not empty", path.display());
            return Err(Failure::usage(message).hint("name a folder that does not exist yet."));
        }
        Ok(Self::Kept(path))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Passing(folder) => folder.path(),
            Self::Kept(path) => path,
        }
    }

    /// Reports at the end how to go on with the configuration.
    fn say_where_it_is(&self) {
        match self {
            Self::Passing(_) => output::say(
                "The demo's configuration was deleted; `mcp-elicit demo --team --keep DIR` keeps it.",
            ),
            Self::Kept(path) => output::say(format_args!(
                "The demo's configuration is in {}. Put your issuer, people and servers in it; docs/teams.md explains each step.",
                path.join(CONFIG).display()
            )),
        }
    }
}

/// Chooses free ports. The issuer's listener is kept; the other ports are released for the gateway, which starts
/// immediately.
async fn addresses() -> io::Result<(TcpListener, Addresses)> {
    let free = || TcpListener::bind(("127.0.0.1", 0));
    let (issuer, gateway, inbox) = (free().await?, free().await?, free().await?);
    let at = Addresses {
        gateway: gateway.local_addr()?,
        inbox: inbox.local_addr()?,
        issuer: issuer.local_addr()?,
    };
    Ok((issuer, at))
}

fn no_port(error: io::Error) -> Failure {
    Failure::usage("there is no free port on this machine").because(error)
}

/// Serves the issuer until this process ends, and returns the inbox's client secret.
fn start_issuer(listener: TcpListener, at: &Addresses) -> Result<String, Failure> {
    let no_key = |error: NoRandomness| Failure::usage("cannot make a key").because(error);
    let secret = issuer::secret().map_err(no_key)?;
    let client = IssuerClient {
        id: "inbox",
        secret: secret.clone(),
        redirect_uri: format!("http://{}/login/return", at.inbox),
    };
    let issuer =
        DemoIssuer::new(format!("http://{}", at.issuer), client, &PEOPLE).map_err(no_key)?;
    tokio::spawn(async move { axum::serve(listener, issuer.router()).await });
    Ok(secret)
}

/// Returns the configuration of the gateway, as an operator would write it.
fn config(folder: &Path, at: &Addresses, program: &Path) -> String {
    let text = |value: &dyn std::fmt::Display| json!(value.to_string()).to_string();
    let path = |name: &str| text(&folder.join(name).display());
    let program = text(&program.display());
    let mut file = format!(
        r#"# The configuration of `mcp-elicit demo --team`. The issuer ends with the demo: for a gateway of your own, [login] names yours.

listen = "{gateway}"        # where clients connect: /mcp/deploy and /mcp/backups
inbox = "{inbox}"         # where people answer
inbox-url = "http://{inbox}"
state = {state}

[login]                            # the company's login, here the demo's
mode = "oidc"
issuer = "http://{issuer}"
client-id = "inbox"
client-secret = {{ file = {secret} }}

[roles]
admin = ["person:ada"]

"#,
        gateway = at.gateway,
        inbox = at.inbox,
        issuer = at.issuer,
        state = path("state"),
        secret = path("inbox.secret"),
    );
    for person in PEOPLE {
        // Writing into a String cannot fail.
        let _ = write!(
            file,
            "[people.{}]\nmail = \"{}\"\n\n",
            person.name.to_lowercase(),
            person.mail
        );
    }
    let _ = write!(
        file,
        r#"[groups]
ops = ["ada", "bob"]

[[rules]]                          # `deploy` asks where to: two people of ops must agree
name = "deployments"
server = "deploy"
ask = {{ group = "ops", need = 2 }}
deadline = "1h"

[[rules]]                          # `delete_backup` asks nothing: two people of ops approve the call
name = "deletions"
server = "backups"
tool = "delete_*"
approve = true
ask = {{ group = "ops", need = 2 }}
edit = ["/archive"]
deadline = "1h"

[servers.deploy]
command = [{program}, "demo-server", "--timeout", "{HOLD_SECONDS}"]
hold = {HOLD_SECONDS}

[servers.backups]
command = [{program}, "demo-server", "--backups"]
hold = {HOLD_SECONDS}
"#
    );
    file
}

fn write_config(folder: &Path, at: &Addresses, secret: &str) -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::usage("cannot find this program to start the demo's servers").because(error)
    })?;
    let file = folder.join(CONFIG);
    let unwritable =
        |error: io::Error| Failure::usage("cannot write the demo's configuration").because(error);
    let secret_file = folder.join("inbox.secret");
    state_file::create_once(&secret_file, secret.as_bytes()).map_err(unwritable)?;
    let text = config(folder, at, &program);
    state_file::create_once(&file, text.as_bytes()).map_err(unwritable)?;
    Ok(file)
}

fn introduce(file: &Path) {
    output::say("Starting four programs, as in a real setup:");
    for (name, what) in [
        ("issuer", "your company's login; here it knows Ada and Bob"),
        (
            "gateway",
            "the clients' address, the rules, and the pages where people answer",
        ),
        ("deploy", "a server that asks where to deploy"),
        (
            "backups",
            "a server that asks nothing, so the gateway asks before it deletes",
        ),
    ] {
        output::say(format_args!("  {name:<8} {what}"));
    }
    output::say(format_args!(
        "The gateway's configuration: {}",
        file.display()
    ));
}

/// Reports the address at which people answer.
fn say_where(inbox: SocketAddr) {
    output::say("");
    let address = format!("http://{inbox}/");
    output::say(format_args!("{} {address}", styled(HINT, "Answer here:")));
    output::say(
        "  Sign in as Ada there, and as Bob in a private window of the same browser or in another one.",
    );
    output::say("");
}

/// Keeps the gateway running after the last call: until Ctrl-C on a terminal, since its pages are still open, and
/// briefly in a script.
async fn stay(inbox: SocketAddr, stop: &CancellationToken) {
    if io::stderr().is_terminal() {
        output::say("");
        output::say(format_args!(
            "Both calls are done. See http://{inbox}/audit and http://{inbox}/account;"
        ));
        output::say("Ctrl-C ends the demo.");
        stop.cancelled().await;
    } else {
        tokio::time::sleep(LAST_PAGE).await;
    }
}

/// The gateway's process.
struct Gateway {
    child: Child,
}

impl Gateway {
    fn start(file: &Path, stop: &CancellationToken) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::connection("cannot start the gateway").because(error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["gateway", "--config"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        if let Some(stderr) = child.stderr.take() {
            let stop = stop.clone();
            tokio::spawn(async move {
                let mut lines = BufReader::new(stderr).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    if stop.is_cancelled() {
                        break;
                    }
                    if line.contains("ERROR") || line.starts_with("error") {
                        output::say(line);
                    }
                }
            });
        }
        Ok(Self { child })
    }

    /// Waits until the gateway accepts connections at this address.
    async fn wait_until_it_listens(&mut self, at: SocketAddr) -> Result<(), Failure> {
        let listens = async {
            while TcpStream::connect(at).await.is_err() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let ended = tokio::select! {
            () = listens => return Ok(()),
            ended = self.child.wait() => ended,
            () = tokio::time::sleep(STARTS_WITHIN) => {
                return Err(Failure::connection("the gateway did not start in time"));
            }
        };
        let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(Failure::connection(format!(
            "the gateway did not start: {ended}"
        )))
    }

    async fn end(mut self) {
        // It may have ended already.
        let _ = self.child.kill().await;
    }
}

/// Makes both calls, one after the other, as a client that cannot be asked.
async fn play(at: &Addresses, stop: &CancellationToken) -> Result<Exit, Failure> {
    let mut arguments = Map::new();
    arguments.insert("name".to_owned(), json!("2026-11-01"));
    arguments.insert("archive".to_owned(), json!(false));
    let calls: [(&str, &str, Map<String, Value>); 2] = [
        ("deploy", "deploy", Map::new()),
        ("backups", "delete_backup", arguments),
    ];
    for (server, tool, arguments) in calls {
        let target = Target::Url(format!("http://{}/mcp/{server}", at.gateway));
        let events = Events::new(false, stop.clone());
        let client = ElicitingClient::new(
            Handler::new(false),
            server.to_owned(),
            ClientSettings::default(),
        );
        let connection = Connection::open(&target, client, &ConnectOptions::default())
            .await
            .map_err(|error| failures::connecting(&error, &target))?;
        // Every client lists the tools. From the list, the gateway learns which arguments an approver may change.
        let listed = connection.peer().list_all_tools().await;
        listed.map_err(|error| {
            Failure::connection(format!("the tools of {server} cannot be listed")).because(error)
        })?;
        output::say(format_args!(
            "An agent calls the tool {tool} on the server {server}. Two people in ops must answer."
        ));
        if tool == "deploy" {
            output::say(
                "If they choose production, its server asks a second question, which both must answer, too.",
            );
        }
        let options = CallOptions::default().stop(stop.clone());
        let called = connection.call_tool(tool, arguments, &options).await;
        let said = failures::ServerOutput::from_connection(&connection);
        connection.close().await;
        let result = called.map_err(|error| failures::calling(&error, &said, None))?;
        events.result(&result)?;
    }
    Ok(Exit::Done)
}
