//! Many questions at once: the memory for each, and the time to list them and to answer one.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use mcp_elicit_forms::web::SessionStore as _;
use mcp_elicit_inbox::state_folder::StateFolder;

use crate::line::PipedClient;
use crate::memory;
use crate::run::{now, stop};
use crate::say::ANSWER;
use crate::web::{HttpBody, HttpHead};

/// The time that all questions may take to arrive.
const TIME_LIMIT: Duration = Duration::from_secs(10 * 60);
/// The number of times that each request is timed.
const READINGS: usize = 20;
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

/// Starts this gateway, makes the server ask `count` questions, and returns the cost as Markdown.
pub(crate) fn measure(gateway: &Path, count: u32) -> io::Result<String> {
    let state = tempfile::tempdir()?;
    let own = std::env::current_exe()?.display().to_string();
    let folder = state.path().display().to_string();
    let mut words = vec![gateway.display().to_string()];
    words.extend(
        [
            "gateway",
            "--pending",
            "off",
            "--questions-per-minute",
            "off",
            "--hold",
            "86400",
            "--inbox",
            "127.0.0.1:0",
            "--state",
            &folder,
            "--",
            &own,
            "server",
            "stdio",
        ]
        .map(str::to_owned),
    );
    let mut line = PipedClient::start(&words, Stdio::piped())?;
    let inbox = inbox(&mut line, state.path())?;
    line.open_without_asking()?;
    let id = line.child.id();
    let before = memory::below(id).now;
    let begun = now();
    line.ask(u64::from(count))?;
    while inbox.waiting()? < u64::from(count) {
        if begun.elapsed() > TIME_LIMIT {
            return Err(io::Error::other("the questions never came"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let asked = begun.elapsed().as_secs_f64();
    let after = memory::below(id).now;
    let page = inbox.time("/api/questions?most=100")?;
    let list = inbox.time(&format!("{}/", inbox.pages))?;
    let search = inbox.time(&format!("{}/?find=nothing+like+this", inbox.pages))?;
    let mut answered = Vec::new();
    for _ in 0..ANSWERS {
        let said: serde_json::Value = serde_json::from_str(&inbox.get("/api/questions?most=1")?)?;
        let id = said["questions"][0]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let path = format!("/api/questions/{id}/answer");
        let begun = now();
        let (head, said) = inbox.send("POST", &path, ANSWER)?;
        if !head.first.contains(" 200") {
            return Err(io::Error::other(format!("the answer was refused: {said}")));
        }
        line.next_result()?;
        answered.push(begun.elapsed());
    }
    stop(line.child);
    let each = (after - before) * 1e3 / f64::from(count);
    Ok(format!(
        "| questions pending | {count} |\n| --- | --- |\n\
         | asked and recorded, a second | {:.0} |\n| memory before / with all of them, MB | {before:.0} / {after:.0} |\n\
         | memory for each, kB | {each:.1} |\n| a page of 100 from the API, ms | {page:.1} |\n\
         | the inbox's page, ms | {list:.1} |\n| a search that finds nothing, ms | {search:.1} |\n\
         | an answer handed in to the call's result, ms | {:.1} |\n",
        f64::from(count) / asked,
        middle(answered)
    ))
}

/// Signs in to the inbox with the first link that the gateway prints.
fn inbox(line: &mut PipedClient, state: &Path) -> io::Result<GatewayInbox> {
    let gone = || io::Error::other("the gateway did not say where its inbox is");
    let mut stderr = BufReader::new(line.child.stderr.take().ok_or_else(gone)?);
    let mut said = String::new();
    stderr.read_line(&mut said)?;
    thread::spawn(move || io::copy(&mut stderr, &mut io::sink()));
    let (_, address) = said.trim().split_once("http://").ok_or_else(gone)?;
    let (host, _) = address.split_once('/').ok_or_else(gone)?;
    let mut key = String::new();
    let sessions = StateFolder::at(state).sessions();
    sessions.change(&mut |table| {
        key = table.add_login(clock(), TIME_LIMIT)?;
        Ok(())
    })?;
    let mut inbox = GatewayInbox {
        host: host.to_owned(),
        token: fs::read_to_string(state.join("inbox.token"))?
            .trim()
            .to_owned(),
        cookie: String::new(),
        pages: String::new(),
    };
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
