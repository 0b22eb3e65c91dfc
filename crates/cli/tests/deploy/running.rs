//! The two gateways of the compose file on a real PostgreSQL, behind HAProxy with the file's own configuration: an agent that
//! calls, a person who logs in at another replica, and a replica that is killed. Containers are processes here, at other
//! ports; the demo's issuer stands for dex.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mcp_elicit_testkit::chromium::report_skipped;
use mcp_elicit_testkit::peers::free_port;
use mcp_elicit_testkit::postgres::PostgresServer;
use reqwest::{Certificate, Client, ClientBuilder, Response};
use serde_json::{Value, json};

use crate::browser::{self, Browser};
use crate::files::make_state_folders;
use crate::{PROGRAM, SECRETS, STATE, search_path, text, yaml};

/// The interval at which something is looked at, and the number of times before a test gives up.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 1_200;
/// The addresses of the gateway's file.
const CALLS: &str = "https://mcp.example.com";
const INBOX: &str = "https://ask.example.com/";
/// The services of the compose file.
const NAMES: [&str; 2] = ["gateway-a", "gateway-b"];

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
/// Returns the program of the balancer, if it is installed.
pub(crate) fn haproxy() -> Option<&'static str> {
    let found = ["haproxy", "/usr/sbin/haproxy"];
    let runs = |program: &&&str| Command::new(program).arg("-v").output().is_ok();
    let found = found.iter().find(runs).copied();
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI has haproxy");
        report_skipped("no haproxy here, GATEWAYS BEHIND IT WERE NOT TESTED");
    }
    found
}

/// Looks until this is so.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("not in time: {what}");
}

/// One of the two gateways.
struct Replica {
    process: Process,
    calls: u16,
    inbox: u16,
    config: PathBuf,
    /// Its stderr.
    log: PathBuf,
}

impl Replica {
    /// Returns the status and the text of a page for operators. `None` while it does not listen.
    ///
    /// # Panics
    /// If it has ended.
    async fn page(&mut self, page: &str) -> Option<(u16, String)> {
        let ended = self.process.0.try_wait().unwrap();
        assert_eq!(ended, None, "{}", fs::read_to_string(&self.log).unwrap());
        let at = format!("http://127.0.0.1:{}{page}", self.calls);
        let client = browser::client().build().unwrap();
        let response = client.get(at).send().await.ok()?;
        Some((response.status().as_u16(), response.text().await.ok()?))
    }

    /// Returns `true` if one of its metrics has this value.
    async fn counts(&mut self, sample: &str) -> bool {
        let page = self.page("/metrics").await;
        page.is_some_and(|(_, text)| text.lines().any(|line| line == sample))
    }
}

/// The deployment of the compose file, in a folder.
struct Deployment {
    folder: tempfile::TempDir,
    compose: Value,
    issuer: u16,
    _issuer: Process,
}

impl Deployment {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let issuer = free_port();
        let kept = folder.path().join("issuer");
        let process = Process::start(
            Command::new(PROGRAM)
                .args(["demo", "--issuer", &format!("127.0.0.1:{issuer}")])
                .args(["--inbox-url", INBOX.trim_end_matches('/'), "--keep"])
                .arg(&kept)
                .stderr(Stdio::null()),
        );
        let made = kept.join("inbox.secret");
        let secret = until("the issuer", async || fs::read(&made).ok()).await;
        let secrets = folder.path().join("secrets");
        fs::create_dir(&secrets).unwrap();
        fs::write(secrets.join("inbox-client-secret"), secret).unwrap();
        let compose = yaml::documents(&text("deploy/compose/compose.yaml")).remove(0);
        make_state_folders(&compose, folder.path());
        Self {
            folder,
            compose,
            issuer,
            _issuer: process,
        }
    }

    fn secrets(&self) -> String {
        self.folder.path().join("secrets").display().to_string()
    }

    /// Starts a gateway as its service does. What is replaced are folders, and names and ports of other services.
    fn start(&self, name: &str, database: u16) -> Replica {
        let folder = self.folder.path();
        let (calls, inbox, peers) = (free_port(), free_port(), free_port());
        let state = folder.join("state").join(&name["gateway-".len()..]);
        let file = text("deploy/compose/gateway/gateway.toml")
            .replace("0.0.0.0:8080", &format!("0.0.0.0:{calls}"))
            .replace("0.0.0.0:7878", &format!("0.0.0.0:{inbox}"))
            .replace("0.0.0.0:8443", &format!("0.0.0.0:{peers}"))
            .replace(STATE, &state.to_string_lossy())
            .replace("postgres:5432", &format!("127.0.0.1:{database}"))
            .replace(
                "https://id.example.com",
                &format!("http://127.0.0.1:{}", self.issuer),
            )
            .replace(SECRETS, &self.secrets());
        let config = folder.join(format!("{name}.toml"));
        fs::write(&config, file).unwrap();
        let words = self.compose["services"][name]["command"]
            .as_array()
            .unwrap();
        let words = words.iter().map(|word| match word.as_str().unwrap() {
            "/etc/mcp-elicit/gateway.toml" => config.to_string_lossy().into_owned(),
            word if word == format!("{name}:8443") => format!("127.0.0.1:{peers}"),
            word => word.to_owned(),
        });
        let log = folder.join(format!("{name}.log"));
        let stderr = fs::File::create(&log).unwrap();
        let mut command = Command::new(PROGRAM);
        let command = command
            .args(words)
            .env("PATH", search_path())
            .stderr(stderr);
        Replica {
            process: Process::start(command),
            calls,
            inbox,
            config,
            log,
        }
    }

    /// Asks a gateway as the check of its service's health does.
    fn probe(&self, name: &str) {
        let state = self.folder.path().join("state");
        let state = state.join(&name["gateway-".len()..]);
        let words = &self.compose["services"][name]["healthcheck"]["test"];
        let words: Vec<&str> = words
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        let ["CMD", "mcp-elicit", words @ ..] = &words[..] else {
            panic!("{words:?}");
        };
        let words = words
            .iter()
            .map(|word| word.replace(STATE, &state.to_string_lossy()));
        let done = Command::new(PROGRAM).args(words).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// Starts the balancer before these gateways, whose servers are all but one of the inbox. Returns its port.
    async fn balance(
        &self,
        program: &str,
        replicas: &[Replica; 2],
        without_inbox: &str,
    ) -> (Process, u16) {
        let (port, health) = (free_port(), free_port());
        let mut file = text("deploy/compose/haproxy.cfg")
            .replace("bind :8443", &format!("bind 127.0.0.1:{port}"))
            .replace("127.0.0.1:8404", &format!("127.0.0.1:{health}"))
            .replace("issuer:5556", &format!("127.0.0.1:{}", self.issuer))
            .replace(SECRETS, &self.secrets());
        for (name, replica) in NAMES.iter().zip(replicas) {
            let checked = format!("{name}:7878 check port 8080");
            assert!(file.contains(&checked));
            let checked_here = format!("127.0.0.1:{} check port {}", replica.inbox, replica.calls);
            file = file.replace(&checked, &checked_here).replace(
                &format!("{name}:8080"),
                &format!("127.0.0.1:{}", replica.calls),
            );
            if *name == without_inbox {
                let lines = file.lines().filter(|line| !line.contains(&checked_here));
                file = lines.collect::<Vec<_>>().join("\n") + "\n";
            }
        }
        let config = self.folder.path().join(format!("haproxy-{port}.cfg"));
        fs::write(&config, file).unwrap();
        let checked = Command::new(program)
            .arg("-c")
            .arg("-f")
            .arg(&config)
            .output();
        let checked = checked.unwrap();
        assert!(checked.status.success(), "{checked:?}");
        let mut command = Command::new(program);
        command
            .arg("-db")
            .arg("-f")
            .arg(&config)
            .stderr(Stdio::null());
        let process = Process::start(&mut command);
        let probe = format!("http://127.0.0.1:{health}/health");
        let client = browser::client().build().unwrap();
        until("the balancer is healthy", async || {
            let response = client.get(&probe).send().await.ok()?;
            response.status().is_success().then_some(())
        })
        .await;
        (process, port)
    }

    /// Returns a client that finds the names of the balancer at this port, and believes the authority of `make-secrets`.
    fn client(&self, port: u16) -> ClientBuilder {
        let authority = fs::read(Path::new(&self.secrets()).join("authority.pem")).unwrap();
        let at = ([127, 0, 0, 1], port).into();
        browser::client()
            .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
            .resolve("mcp.example.com", at)
            .resolve("ask.example.com", at)
    }
}

/// A program with a key that calls tools.
#[derive(Clone)]
struct Agent {
    client: Client,
    key: String,
}

impl Agent {
    async fn post(&self, session: Option<&str>, message: &Value) -> Option<Response> {
        self.post_at(&format!("{CALLS}/mcp"), session, message)
            .await
    }

    async fn post_at(&self, at: &str, session: Option<&str>, message: &Value) -> Option<Response> {
        let mut request = self
            .client
            .post(at)
            .bearer_auth(&self.key)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(message.to_string());
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.send().await.ok()
    }

    /// Opens a session. Returns its id.
    async fn open(&self) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}});
        let opened = self.post(None, &message).await.unwrap();
        assert_eq!(opened.status(), 200);
        let session = opened.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(
            self.post(Some(&session), &ready).await.unwrap().status(),
            202
        );
        session
    }

    /// Lists the tools. Returns the status of the response, if there is one.
    async fn list(&self, session: &str) -> Option<u16> {
        self.list_at(&format!("{CALLS}/mcp"), session).await
    }

    /// Lists the tools at an address.
    async fn list_at(&self, at: &str, session: &str) -> Option<u16> {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        let response = self.post_at(at, Some(session), &message).await?;
        Some(response.status().as_u16())
    }

    /// Calls the tool that asks. Returns the text of the result, or nothing if its connection ends before.
    async fn deploy(&self, session: &str, version: u32) -> Option<String> {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "deploy", "arguments": {"version": version}}});
        let response = self.post(Some(session), &message).await?;
        if response.status() != 200 {
            return None;
        }
        let body = response.text().await.ok()?;
        let mut events = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let result: Value = serde_json::from_str(events.next_back().unwrap_or(&body)).ok()?;
        Some(result["result"]["content"][0]["text"].as_str()?.to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_behind_the_balancer_answer_at_each_other_and_one_may_be_killed() {
    let Some(program) = haproxy() else {
        return;
    };
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let deployment = Deployment::new().await;
    let script = text("deploy/compose/postgres/elicit.sql").replace(SECRETS, &deployment.secrets());
    let file = deployment.folder.path().join("elicit.sql");
    fs::write(&file, script).unwrap();
    server.sql_file("postgres", &file).unwrap();
    // As in PostgreSQL's image.
    let rules = server.data().join("pg_hba.conf");
    let trusting = fs::read_to_string(&rules).unwrap();
    fs::write(
        &rules,
        format!("host all elicit 127.0.0.1/32 scram-sha-256\n{trusting}"),
    )
    .unwrap();
    server.sql("postgres", "SELECT pg_reload_conf()").unwrap();

    let mut replicas = NAMES.map(|name| deployment.start(name, server.port()));
    for replica in &mut replicas {
        for page in ["/ready", "/health"] {
            until(page, async || {
                let (status, _) = replica.page(page).await?;
                (status == 200).then_some(())
            })
            .await;
        }
    }
    for name in NAMES {
        deployment.probe(name);
    }
    let (_balancer, port) = deployment.balance(program, &replicas, "").await;
    let made = Command::new(PROGRAM)
        .args([
            "tokens",
            "make",
            "agent",
            "--scope",
            "call",
            "--no-person",
            "--json",
            "--config",
        ])
        .arg(&replicas[0].config)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let agent = Agent {
        client: deployment.client(port).build().unwrap(),
        key: made["token"].as_str().unwrap().to_owned(),
    };

    // Sessions are at both, and each stays where it is.
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(agent.open().await);
    }
    for replica in &mut replicas {
        assert!(!replica.counts("mcp_elicit_sessions 0").await);
    }
    for session in sessions.iter().cycle().take(16) {
        assert_eq!(agent.list(session).await, Some(200));
    }
    // A balancer that has forgotten a session may send it to either.
    for session in &sessions {
        for replica in &replicas {
            let at = format!("http://127.0.0.1:{}/mcp", replica.calls);
            let client = browser::client().build().unwrap();
            let other = Agent {
                client,
                ..agent.clone()
            };
            assert_eq!(other.list_at(&at, session).await, Some(200));
        }
    }
    // Operators' pages are not for callers.
    for page in ["/metrics", "/ready", "/health", "/elsewhere"] {
        let response = agent.client.get(format!("{CALLS}{page}")).send().await;
        assert_eq!(response.unwrap().status(), 404, "{page}");
    }

    // A call that is held at one gateway is answered at the other.
    let call = |session: &str, version| {
        let (agent, session) = (agent.clone(), session.to_owned());
        tokio::spawn(async move { agent.deploy(&session, version).await })
    };
    let first = call(&sessions[0], 1);
    let holder = until("a gateway holds the call", async || {
        for (number, replica) in replicas.iter_mut().enumerate() {
            if replica.counts("mcp_elicit_calls 1").await {
                return Some(number);
            }
        }
        None
    })
    .await;
    let (_other_balancer, other) = deployment.balance(program, &replicas, NAMES[holder]).await;
    let client = || deployment.client(other);
    let mut ada = Browser::signed_in(client(), INBOX, 0).await;
    let question = ada.asked(INBOX, "").await;
    let page = ada.fill(&question, "f0=0&f1=first", "first").await;
    assert_eq!(page.status, 200, "{}", page.text);
    let done = first.await.unwrap().unwrap();
    assert!(done.contains("staging") && done.contains("first"), "{done}");

    // The gateway of another call is killed: the same call, in a new session at the one that is left, finds its question.
    let second = call(&sessions[0], 2);
    let asked = ada.asked(INBOX, &question).await;
    assert!(replicas[holder].counts("mcp_elicit_calls 1").await);
    replicas[holder].process.0.kill().unwrap();
    assert_eq!(second.await.unwrap(), None, "its connection ends");
    let gone = until("the balancer sends the session to the other", async || {
        let status = agent.list(&sessions[0]).await?;
        (status != 502 && status != 503).then_some(status)
    })
    .await;
    assert_eq!(gone, 404, "its gateway has ended");
    let session = agent.open().await;
    let again = call(&session, 2);
    let left = &mut replicas[1 - holder];
    until("the other holds the call", async || {
        left.counts("mcp_elicit_calls 1").await.then_some(())
    })
    .await;
    assert_eq!(
        ada.asked(INBOX, &question).await,
        asked,
        "it is the same question"
    );
    let page = ada.fill(&asked, "f0=0&f1=second", "second").await;
    assert_eq!(page.status, 200, "{}", page.text);
    let done = again.await.unwrap().unwrap();
    assert!(done.contains("second"), "{done}");
    let audited = Command::new(PROGRAM)
        .args(["audit", "--verify", "--config"])
        .arg(&left.config)
        .output()
        .unwrap();
    assert!(audited.status.success(), "{audited:?}");

    // The other is told to stop.
    let process = &mut replicas[1 - holder].process.0;
    let told = Command::new("kill")
        .args(["-TERM", &process.id().to_string()])
        .status();
    assert!(told.unwrap().success());
    assert!(process.wait().unwrap().success());
}
