//! Many questions at once: the memory for each, and the time to list them and to answer one. Their record is a file, or on
//! PostgreSQL, where several gateways can share it. The demo server asks them, in the era of rounds: a question belongs to
//! its call, so calls need not take turns.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use mcp_elicit_forms::web::SessionStore as _;
use mcp_elicit_inbox::state_folder::StateFolder;

use crate::line::PipedClient;
use crate::memory;
use crate::run::{now, stop};
use crate::web::{HttpBody, HttpHead};

/// The time that all questions may take to arrive.
const TIME_LIMIT: Duration = Duration::from_secs(10 * 60);
/// The number of times that each request is timed.
const READINGS: usize = 20;
/// The answer to a question of the server.
const ANSWER: &str = r#"{"action":"accept","content":{"environment":"staging"}}"#;
/// The number of questions that are answered.
const ANSWERS: usize = 50;

/// The inbox of a running gateway.
struct GatewayInbox {
    host: String,
    token: String,
    cookie: String,
    /// The path below which the pages are served.
    pages: String,
}

impl GatewayInbox {
    fn get(&self, path: &str) -> io::Result<String> {
        self.send("GET", path, "").map(|(_, body)| body)
    }

    fn send(&self, method: &str, path: &str, body: &str) -> io::Result<(HttpHead, String)> {
        let stream = TcpStream::connect(&self.host)?;
        stream.set_nodelay(true)?;
        let mut writer = stream.try_clone()?;
        write!(
            writer,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncookie: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.host,
            self.token,
            self.cookie,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let head = HttpHead::read(&mut reader)?;
        let mut text = String::new();
        HttpBody::of(&head, &mut reader).read_to_string(&mut text)?;
        Ok((head, text))
    }

    fn waiting(&self) -> io::Result<u64> {
        let said: serde_json::Value = serde_json::from_str(&self.get("/api/questions?most=1")?)?;
        Ok(said["waiting"].as_u64().unwrap_or(0))
    }

    /// Returns the time of a request to this path in milliseconds, as the median of several.
    fn time(&self, path: &str) -> io::Result<f64> {
        let mut took = Vec::new();
        for _ in 0..READINGS {
            let begun = now();
            self.get(path)?;
            took.push(begun.elapsed());
        }
        Ok(middle(took))
    }
}

fn middle(mut took: Vec<Duration>) -> f64 {
    took.sort();
    took.get(took.len() / 2)
        .map_or(f64::NAN, |one| one.as_secs_f64() * 1e3)
}

/// The questions, and where they are recorded.
pub(crate) struct PendingLoad {
    /// The number of questions of all gateways.
    pub(crate) count: u32,
    /// The address of an empty PostgreSQL database; otherwise the record is a file of the gateway.
    pub(crate) record: Option<String>,
    /// The number of gateways. Several need a database.
    pub(crate) gateways: u32,
}

impl PendingLoad {
    /// Starts one of the gateways, with the keys of the first.
    fn start(&self, gateway: &Path, folder: &Path, number: u32) -> io::Result<StartedGateway> {
        let state_of = |number: u32| folder.join(number.to_string());
        let state = state_of(number);
        // As a gateway makes it: it warns of one that others may read.
        fs::DirBuilder::new().mode(0o700).create(&state)?;
        if number > 0 {
            for key in ["seal.key", "identity.key"] {
                fs::copy(state_of(0).join(key), state.join(key))?;
            }
        }
        let program = gateway.display().to_string();
        let folder = state.display().to_string();
        let mut words = vec![program.clone(), "gateway".to_owned()];
        if let Some(record) = &self.record {
            words.extend(["--record", record].map(str::to_owned));
        }
        let options = ["--pending", "off", "--questions-per-minute", "off"];
        let places = ["--hold", "86400", "--inbox", "127.0.0.1:0"];
        let server = ["--state", &folder, "--", &program, "demo-server"];
        let rest = options.iter().chain(&places).chain(&server);
        words.extend(rest.map(|word| (*word).to_owned()));
        let mut line = PipedClient::start(&words, Stdio::piped())?;
        let inbox = inbox(&mut line, &state, self.record.is_none())?;
        line.open_without_asking()?;
        Ok(StartedGateway { line, inbox })
    }

    /// Makes the servers ask all questions at once, and waits until they are recorded.
    fn ask(&self, gateways: &mut [StartedGateway]) -> io::Result<()> {
        let each = self.count / self.gateways;
        thread::scope(|scope| {
            let asking: Vec<_> = (0..)
                .zip(&mut *gateways)
                .map(|(number, gateway)| {
                    let from = each * number;
                    let to = if number + 1 == self.gateways {
                        self.count
                    } else {
                        from + each
                    };
                    scope.spawn(move || gateway.line.ask(from.into()..to.into()))
                })
                .collect();
            asking.into_iter().try_for_each(|asked| {
                let panicked = |_| io::Error::other("a client has ended");
                asked.join().map_err(panicked)?
            })
        })?;
        let begun = now();
        while gateways[0].inbox.waiting()? < u64::from(self.count) {
            if begun.elapsed() > TIME_LIMIT {
                return Err(io::Error::other("the questions never came"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// A running gateway with its client.
struct StartedGateway {
    line: PipedClient,
    inbox: GatewayInbox,
}

/// Returns the resident memory of these gateways with their servers, in MB.
fn resident(gateways: &[StartedGateway]) -> f64 {
    let each = gateways
        .iter()
        .map(|one| memory::below(one.line.child.id()).now);
    each.sum()
}

/// Starts gateways, makes their servers ask the questions, and returns the cost as Markdown.
pub(crate) fn measure(gateway: &Path, load: &PendingLoad) -> io::Result<String> {
    let folder = tempfile::tempdir()?;
    let mut gateways = Vec::new();
    for number in 0..load.gateways {
        gateways.push(load.start(gateway, folder.path(), number)?);
    }
    let before = resident(&gateways);
    let begun = now();
    load.ask(&mut gateways)?;
    let asked = begun.elapsed().as_secs_f64();
    let after = resident(&gateways);
    let inbox = &gateways[0].inbox;
    let mut rows = vec![
        (
            "asked and recorded, a second",
            format!("{:.0}", f64::from(load.count) / asked),
        ),
        (
            "memory before / with all of them, MB",
            format!("{before:.0} / {after:.0}"),
        ),
        (
            "memory for each, kB",
            format!("{:.1}", (after - before) * 1e3 / f64::from(load.count)),
        ),
    ];
    let mut times = vec![(
        "a page of 100 from the API, ms",
        inbox.time("/api/questions?most=100")?,
    )];
    let path = "/api/questions?find=nothing+like+this";
    times.push((
        "a search of the API that finds nothing, ms",
        inbox.time(path)?,
    ));
    if !inbox.pages.is_empty() {
        times.push((
            "the inbox's page, ms",
            inbox.time(&format!("{}/", inbox.pages))?,
        ));
        let path = format!("{}/?find=nothing+like+this", inbox.pages);
        times.push(("a search on it that finds nothing, ms", inbox.time(&path)?));
    }
    if let [one] = &mut gateways[..] {
        times.push((
            "an answer handed in to the call's result, ms",
            answer_some(one)?,
        ));
    }
    rows.extend(
        times
            .into_iter()
            .map(|(what, ms)| (what, format!("{ms:.1}"))),
    );
    for gateway in gateways {
        stop(gateway.line.child);
    }
    let head = [
        format!("| questions pending | {} |", load.count),
        "| --- | --- |".to_owned(),
    ];
    let rows = rows
        .into_iter()
        .map(|(what, figure)| format!("| {what} | {figure} |"));
    let lines: Vec<String> = head.into_iter().chain(rows).collect();
    Ok(lines.join("\n") + "\n")
}

/// Answers some of the questions, and returns the median time to the call's result in milliseconds.
fn answer_some(gateway: &mut StartedGateway) -> io::Result<f64> {
    let mut answered = Vec::new();
    for _ in 0..ANSWERS {
        let said: serde_json::Value =
            serde_json::from_str(&gateway.inbox.get("/api/questions?most=1")?)?;
        let id = said["questions"][0]["id"].as_str().unwrap_or_default();
        let path = format!("/api/questions/{id}/answer");
        let begun = now();
        let (head, said) = gateway.inbox.send("POST", &path, ANSWER)?;
        if !head.first.contains(" 200") {
            return Err(io::Error::other(format!("the answer was refused: {said}")));
        }
        gateway.line.next_result()?;
        answered.push(begun.elapsed());
    }
    Ok(middle(answered))
}

/// Returns the inbox of the first link that the gateway prints; signed in, for its pages, if its sessions are in a file.
fn inbox(line: &mut PipedClient, state: &Path, signs_in: bool) -> io::Result<GatewayInbox> {
    let gone = || io::Error::other("the gateway did not say where its inbox is");
    let mut stderr = BufReader::new(line.child.stderr.take().ok_or_else(gone)?);
    let mut said = String::new();
    stderr.read_line(&mut said)?;
    thread::spawn(move || io::copy(&mut stderr, &mut io::sink()));
    let (_, address) = said.trim().split_once("http://").ok_or_else(gone)?;
    let (host, _) = address.split_once('/').ok_or_else(gone)?;
    let mut inbox = GatewayInbox {
        host: host.to_owned(),
        token: fs::read_to_string(state.join("inbox.token"))?
            .trim()
            .to_owned(),
        cookie: String::new(),
        pages: String::new(),
    };
    if !signs_in {
        return Ok(inbox);
    }
    let mut key = String::new();
    let sessions = StateFolder::at(state).sessions();
    sessions.change(&mut |table| {
        key = table.add_login(clock(), TIME_LIMIT)?;
        Ok(())
    })?;
    let (head, _) = inbox.send("GET", &format!("/login?key={key}"), "")?;
    let set = head.get("set-cookie");
    inbox
        .cookie
        .push_str(set.split(';').next().unwrap_or_default());
    let path = set.split("Path=").nth(1).unwrap_or_default();
    inbox
        .pages
        .push_str(path.split(';').next().unwrap_or_default());
    Ok(inbox)
}

#[expect(clippy::disallowed_methods, reason = "a link ends at a time of day")]
fn clock() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
