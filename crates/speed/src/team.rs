//! The load of a team: people with a page each, pending questions, and new ones every second. Measures the time from a
//! call to its question on a person's page, and from the person's action to the call's result.
//!
//! Every call waits for approval by a group of people, who reach the inbox through a proxy that names them. The gateway
//! is the real program, and approvals use the page's own forms.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory;
use crate::run::{now, stop};
use crate::say::{INITIALIZE, INITIALIZED, WrittenFrame};
use crate::web::{HttpBody, HttpHead};

/// The number of people, in groups of five.
const PEOPLE: usize = 500;
const GROUPS: usize = 100;
/// The number of groups whose questions are followed from the call to the result; each has one call at a time.
const FOLLOWED: usize = 10;
/// The number of threads that follow.
const FOLLOWERS: usize = 2;
/// The number of threads that reload people's pages.
const READERS: usize = 2;
/// The interval at which each person's page is loaded.
const LOOK: Duration = Duration::from_secs(10);
/// The interval at which a page is loaded while its person waits for a question.
const PAUSE: Duration = Duration::from_millis(5);
/// The time that the whole measurement may take beyond the load itself.
const TIME_LIMIT: Duration = Duration::from_secs(5 * 60);
/// The number of times that a page is read before the load.
const READINGS: usize = 20;

/// The size of the load.
#[derive(Clone, Copy)]
pub(crate) struct TeamLoad {
    /// The number of questions that are pending from the start.
    pub(crate) open: usize,
    /// The number of new questions per second.
    pub(crate) rate: u32,
    /// The duration in seconds.
    pub(crate) seconds: u64,
}

impl Default for TeamLoad {
    fn default() -> Self {
        Self {
            open: 10_000,
            rate: 100,
            seconds: 60,
        }
    }
}

/// The durations of one action.
#[derive(Default)]
struct ActionTimes(Mutex<Vec<Duration>>);

impl ActionTimes {
    fn add(&self, took: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(took);
    }

    /// Returns a table row: the number of durations, the median, the 95th percentile and the longest, in milliseconds.
    fn row(&self, what: &str) -> String {
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        all.sort();
        let at = |percent: usize| {
            let number = (all.len() * percent / 100).min(all.len().saturating_sub(1));
            all.get(number)
                .map_or(f64::NAN, |one| one.as_secs_f64() * 1e3)
        };
        let count = all.len();
        format!(
            "| {what} | {count} | {:.1} | {:.1} | {:.1} |\n",
            at(50),
            at(95),
            at(100)
        )
    }
}

/// The agent: one client on stdio, whose calls wait.
struct Agent {
    stdin: Mutex<ChildStdin>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Sender<()>>>,
}

impl Agent {
    fn send(&self, frame: &str) -> io::Result<()> {
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(stdin, "{frame}")
    }

    /// Makes a call that waits for this group. Returns a channel that gets a message with its result.
    fn call(&self, group: usize) -> io::Result<Receiver<()>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(id, tell);
        drop(waiting);
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"group":"g{group}","text":"{id}"}}}}}}"#
        ))?;
        Ok(told)
    }

    /// Reads results until the gateway ends.
    fn listen(&self, stdout: impl io::Read) {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let number = WrittenFrame::read(&line).and_then(|frame| frame.number());
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(tell) = number.and_then(|number| waiting.remove(&number)) {
                let _nobody_waits = tell.send(());
            }
        }
    }
}

/// A person at the inbox, behind the proxy.
struct InboxPerson {
    host: String,
    subject: String,
    cookie: Mutex<String>,
}

impl InboxPerson {
    fn new(host: &str, number: usize) -> Self {
        Self {
            host: host.to_owned(),
            subject: format!("s{number}"),
            cookie: Mutex::default(),
        }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> io::Result<(HttpHead, String)> {
        let stream = TcpStream::connect(&self.host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIME_LIMIT))?;
        let mut writer = stream.try_clone()?;
        let cookie = self
            .cookie
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (host, subject) = (&self.host, &self.subject);
        write!(
            writer,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\nx-forwarded-user: {subject}\r\naccept: text/html\r\ncookie: {cookie}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let head = HttpHead::read(&mut reader)?;
        let mut text = String::new();
        HttpBody::of(&head, &mut reader).read_to_string(&mut text)?;
        let set = head.get("set-cookie").split(';').next().unwrap_or_default();
        if !set.is_empty() {
            let mut cookie = self.cookie.lock().unwrap_or_else(PoisonError::into_inner);
            set.clone_into(&mut cookie);
        }
        Ok((head, text))
    }

    /// Returns the person's list.
    fn page(&self) -> io::Result<String> {
        let (head, page) = self.send("GET", "/", "")?;
        if head.first.contains(" 200") {
            Ok(page)
        } else {
            Err(io::Error::other(format!(
                "no list for {}: {}",
                self.subject, head.first
            )))
        }
    }

    /// Returns the ids of the questions on the person's list.
    fn questions(&self) -> io::Result<HashSet<String>> {
        let page = self.page()?;
        let links = page.split("/q/").skip(1);
        let ids = links.map(|rest| rest.split(['"', '/', '?', '#']).next().unwrap_or_default());
        Ok(ids.map(str::to_owned).collect())
    }

    /// Presses "Approve".
    fn approve(&self, id: &str) -> io::Result<()> {
        let (_, page) = self.send("GET", &format!("/q/{id}"), "")?;
        let token = page.split("name=\"csrf\" value=\"").nth(1);
        let token = token
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_default();
        let (head, said) =
            self.send("POST", &format!("/q/{id}/accept"), &format!("csrf={token}"))?;
        if head.first.contains(" 303") && !head.get("location").contains('?') {
            return Ok(());
        }
        let why = format!(
            "the approval was refused: {} {} {said}",
            head.first,
            head.get("location")
        );
        Err(io::Error::other(why))
    }
}

fn configuration(state: &Path) -> io::Result<String> {
    let own = std::env::current_exe()?.display().to_string();
    let mut text = format!(
        "inbox = \"127.0.0.1:0\"\nstate = \"{}\"\ntrusted-proxies = [\"127.0.0.1/32\"]\n\
         [login]\nmode = \"proxy\"\nissuer = \"https://id.example.com\"\nsubject-header = \"x-forwarded-user\"\n\
         [roles]\nadmin = [\"person:p0\"]\n\
         [servers.speed]\ncommand = [\"{own}\", \"server\", \"stdio\"]\nhold = 86400\npending = 0\nquestions-per-minute = 0\n",
        state.display()
    );
    let mut members = vec![Vec::new(); GROUPS];
    // The administrator, who is in no group, sees all questions and is not measured.
    let people = (0..PEOPLE).map(|person| (person, format!("p{person}")));
    for (person, name) in people {
        let _infallible = write!(
            text,
            "[people.{name}]\nmail = \"{name}@example.com\"\nsubject = \"s{person}\"\n"
        );
        if person > 0 {
            members[person % GROUPS].push(format!("\"{name}\""));
        }
    }
    text.push_str("[groups]\n");
    for (group, members) in members.iter().enumerate() {
        let _infallible = writeln!(text, "g{group} = [{}]", members.join(", "));
    }
    for group in 0..GROUPS {
        let _infallible = write!(
            text,
            "[[rules]]\nname = \"g{group}\"\ntool = \"echo\"\nwhen = 'arguments.group == \"g{group}\"'\non-error = \"skip\"\n\
             approve = true\nask = {{ group = \"g{group}\" }}\n"
        );
    }
    Ok(text)
}

/// A running gateway, with its agent and its people.
struct Rig {
    child: Child,
    agent: Arc<Agent>,
    people: Vec<InboxPerson>,
}

impl Rig {
    fn start(gateway: &Path, folder: &Path) -> io::Result<Self> {
        let file = folder.join("gateway.toml");
        fs::write(&file, configuration(&folder.join("state"))?)?;
        let mut child = Command::new(gateway)
            .args(["gateway", "--config"])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let gone =
            || io::Error::other("the gateway did not start; it needs the cargo feature `full`");
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        let mut stderr = BufReader::new(child.stderr.take().ok_or_else(gone)?);
        let host = loop {
            let mut said = String::new();
            if stderr.read_line(&mut said)? == 0 {
                return Err(gone());
            }
            if let Some((_, address)) = said.trim().split_once("http://") {
                break address
                    .split(['/', ' '])
                    .next()
                    .unwrap_or_default()
                    .to_owned();
            }
        };
        thread::spawn(move || io::copy(&mut stderr, &mut io::sink()));
        let agent = Arc::new(Agent {
            stdin: Mutex::new(stdin),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
        });
        let hears = agent.clone();
        thread::spawn(move || hears.listen(stdout));
        let (tell, opened) = channel();
        let mut waiting = agent.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(0, tell);
        drop(waiting);
        agent.send(&INITIALIZE.replace(r#"{"elicitation":{"form":{}}}"#, "{}"))?;
        opened.recv_timeout(TIME_LIMIT).map_err(io::Error::other)?;
        agent.send(INITIALIZED)?;
        let people = (0..PEOPLE)
            .map(|number| InboxPerson::new(&host, number))
            .collect();
        Ok(Self {
            child,
            agent,
            people,
        })
    }

    /// Returns the first person of a group, which the administrator never is.
    fn member(&self, group: usize) -> &InboxPerson {
        &self.people[group + GROUPS]
    }

    /// Asks questions until `open` of them are pending in the groups that are not followed.
    fn fill(&self, open: usize) -> io::Result<Duration> {
        let begun = now();
        let others = GROUPS - FOLLOWED;
        for number in 0..open {
            self.agent.call(FOLLOWED + number % others)?;
        }
        let last = FOLLOWED + open.saturating_sub(1) % others;
        let expected = open / others + usize::from(last - FOLLOWED < open % others);
        while open > 0 && self.member(last).questions()?.len() < expected.min(200) {
            if begun.elapsed() > TIME_LIMIT {
                return Err(io::Error::other("the questions never came"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(begun.elapsed())
    }

    /// Follows one question after another of some groups, from the call to its result.
    fn follow(
        &self,
        groups: &[usize],
        until: Instant,
        seen: &ActionTimes,
        answered: &ActionTimes,
    ) -> io::Result<()> {
        let mut known: HashSet<String> = HashSet::new();
        for group in groups.iter().cycle() {
            if now() >= until {
                return Ok(());
            }
            let person = self.member(*group);
            let begun = now();
            let result = self.agent.call(*group)?;
            let id = loop {
                let new = person.questions()?;
                if let Some(id) = new.into_iter().find(|id| !known.contains(id)) {
                    break id;
                }
                if begun.elapsed() > TIME_LIMIT {
                    return Err(io::Error::other("a question never came"));
                }
                thread::sleep(PAUSE);
            };
            seen.add(begun.elapsed());
            known.insert(id.clone());
            let begun = now();
            person.approve(&id)?;
            result.recv_timeout(TIME_LIMIT).map_err(io::Error::other)?;
            answered.add(begun.elapsed());
        }
        Ok(())
    }
}

/// Starts this gateway, applies the load, and returns the results as Markdown.
pub(crate) fn measure(gateway: &Path, load: TeamLoad) -> io::Result<String> {
    let folder = tempfile::tempdir()?;
    let rig = Rig::start(gateway, folder.path())?;
    let measured = run(&rig, load);
    stop(rig.child);
    measured
}

fn run(rig: &Rig, load: TeamLoad) -> io::Result<String> {
    let id = rig.child.id();
    let logins = ActionTimes::default();
    for person in &rig.people {
        let begun = now();
        person.page()?;
        logins.add(begun.elapsed());
    }
    let before = memory::below(id).now;
    let filled = rig.fill(load.open)?.as_secs_f64();
    let with_all = memory::below(id).now;
    let alone = ActionTimes::default();
    for person in rig.people.iter().skip(GROUPS + FOLLOWED).take(READINGS) {
        let begun = now();
        person.page()?;
        alone.add(begun.elapsed());
    }
    let (seen, answered, pages) = (
        ActionTimes::default(),
        ActionTimes::default(),
        ActionTimes::default(),
    );
    let until = now() + Duration::from_secs(load.seconds);
    let is_over = AtomicBool::new(false);
    let mut late = Duration::ZERO;
    thread::scope(|threads| -> io::Result<()> {
        let mut all = Vec::new();
        for follower in 0..FOLLOWERS {
            let groups: Vec<usize> = (follower..FOLLOWED).step_by(FOLLOWERS).collect();
            let (seen, answered) = (&seen, &answered);
            all.push(threads.spawn(move || rig.follow(&groups, until, seen, answered)));
        }
        for reader in 0..READERS {
            let (pages, is_over) = (&pages, &is_over);
            all.push(threads.spawn(move || read_pages(rig, reader, is_over, pages)));
        }
        let asked = ask(rig, load, until);
        is_over.store(true, Ordering::Relaxed);
        late = asked?;
        for one in all {
            one.join()
                .map_err(|_| io::Error::other("a thread of the load ended early"))??;
        }
        Ok(())
    })?;
    let after = memory::below(id);
    let TeamLoad {
        open,
        rate,
        seconds,
    } = load;
    let asked = f64::from(u32::try_from(open).unwrap_or(u32::MAX));
    Ok(format!(
        "{PEOPLE} people in {GROUPS} groups, {open} open questions, {rate} new a second for {seconds} s\n\n\
         | ms | times | median | 95 % | longest |\n| --- | --- | --- | --- | --- |\n{}{}{}{}{}\n\
         | | |\n| --- | --- |\n| asked and recorded, a second | {:.0} |\n| asked too late at the end, ms | {:.0} |\n\
         | memory before / with those that wait / at the end / most, MB | {before:.0} / {with_all:.0} / {:.0} / {:.0} |\n",
        logins.row("a first login and an empty list"),
        alone.row("a person's list, nothing else going on"),
        pages.row("a person's list under load"),
        seen.row("from the call to the question on a person's list"),
        answered.row("from opening the question to approve it to the call's result"),
        asked / filled,
        late.as_secs_f64() * 1e3,
        after.now,
        after.most,
    ))
}

/// Asks at the given rate until the end. Returns the delay of the last call.
fn ask(rig: &Rig, load: TeamLoad, until: Instant) -> io::Result<Duration> {
    let interval = Duration::from_secs(1) / load.rate.max(1);
    let mut due = now();
    let mut number = 0;
    while due < until {
        thread::sleep(due.saturating_duration_since(now()));
        rig.agent.call(FOLLOWED + number % (GROUPS - FOLLOWED))?;
        number += 1;
        due += interval;
    }
    Ok(now().saturating_duration_since(due))
}

/// Loads every person's page in turn.
fn read_pages(
    rig: &Rig,
    reader: usize,
    is_over: &AtomicBool,
    pages: &ActionTimes,
) -> io::Result<()> {
    let mine = rig.people.iter().skip(1).skip(reader).step_by(READERS);
    let count = u32::try_from(PEOPLE / READERS).unwrap_or(u32::MAX);
    let mut due = now();
    for person in mine.cycle() {
        if is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        thread::sleep(due.saturating_duration_since(now()));
        let begun = now();
        person.page()?;
        pages.add(begun.elapsed());
        due += LOOK / count;
    }
    Ok(())
}
