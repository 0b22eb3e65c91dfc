//! The gateways, their calls and people, and what is known of each answer.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::{Delivery, Timestamp};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, yield_now};

use super::super::{Retention, asked, form, of};
use super::connection::{Connection, Gate};
use crate::encryption::Encryption;
use crate::peers::Peer;
use crate::store::{Change, Memory, RecordStore as _, Row, Write};
use crate::{
    Durability, LockFile, OwnKeys, Record, RecordEvent, RunningGateways, SessionKey, Verdict,
    associated_data,
};

/// The number of gateways.
const GATEWAYS: usize = 3;
/// The most calls at once.
const CALLS: usize = 12;
/// The number of callers, and of calls of each that differ.
const CALLERS: u64 = 2;
const MESSAGES: u64 = 2;
/// The time that answers, results, ended questions and events are kept.
const KEPT: Duration = Duration::from_secs(120);
/// The number of times that other tasks go on after each step.
const TURNS: usize = 6;

thread_local! {
    /// The clocks of the gateways, in milliseconds. Each test has a thread of its own.
    static CLOCKS: [Cell<u64>; GATEWAYS] = const { [const { Cell::new(0) }; GATEWAYS] };
}

fn clock<const GATEWAY: usize>() -> Timestamp {
    CLOCKS.with(|clocks| Timestamp::from_millis(clocks[GATEWAY].get()))
}

/// The clocks as functions.
const CLOCK: [fn() -> Timestamp; GATEWAYS] = [clock::<0>, clock::<1>, clock::<2>];

/// The events of a simulation, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) asked: u64,
    pub(super) saved: u64,
    pub(super) delivered: u64,
    pub(super) in_doubt: u64,
    pub(super) lapsed: u64,
    pub(super) ended: u64,
    pub(super) kills: u64,
    pub(super) pauses: u64,
    pub(super) lost_notices: u64,
    pub(super) taken_over: u64,
}

impl Summary {
    pub(super) fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.saved += other.saved;
        self.delivered += other.delivered;
        self.in_doubt += other.in_doubt;
        self.lapsed += other.lapsed;
        self.ended += other.ended;
        self.kills += other.kills;
        self.pauses += other.pauses;
        self.lost_notices += other.lost_notices;
        self.taken_over += other.taken_over;
    }
}

/// A question as a simulation knows it.
#[derive(Debug, Default)]
struct Known {
    /// The caller and the message of its call.
    call: Option<(u64, u64)>,
    /// The answer that a person was told is saved.
    saved: Option<String>,
    /// The answers that left for a server, and how many of them it refused.
    delivered: Vec<String>,
    refused: usize,
    /// The state of its row as last written.
    is_over: bool,
    delivery: Option<Delivery>,
    owner: String,
}

/// The state that all tasks share.
pub(super) struct World {
    questions: Mutex<HashMap<String, Known>>,
    violation: Mutex<Option<String>>,
    summary: Mutex<Summary>,
    /// The gateways that were told of a change, by their names.
    notices: Mutex<Vec<String>>,
    random: Mutex<u64>,
    encryption: Encryption,
    /// The gateways that each one takes to run.
    running: Mutex<HashMap<String, u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl World {
    /// Returns a number below this one.
    pub(super) fn below(&self, limit: u64) -> u64 {
        let mut state = lock(&self.random);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut next = *state;
        next = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        next = (next ^ (next >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (next ^ (next >> 31)) % limit.max(1)
    }

    /// Returns `true` in so many of a hundred cases.
    fn happens(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap();
        all.get(at)
    }

    fn violated(&self, why: String) {
        lock(&self.violation).get_or_insert(why);
    }

    fn known<T>(&self, id: &str, work: impl FnOnce(&mut Known) -> T) -> T {
        work(lock(&self.questions).entry(id.to_owned()).or_default())
    }

    fn count(&self, work: impl FnOnce(&mut Summary)) {
        work(&mut lock(&self.summary));
    }

    /// Looks at the writes that a gateway made.
    pub(super) fn wrote(&self, by: &str, writes: &[Write], made: &[bool]) {
        for (write, _) in writes.iter().zip(made).filter(|(_, made)| **made) {
            match write {
                Write::Insert { row, .. } => self.saw(row),
                Write::Change(changes) => {
                    for Change { row, .. } in changes {
                        self.saw(row);
                        if row.owner != by {
                            self.notify(&row.owner);
                        }
                    }
                }
                Write::Note(_) | Write::PurgeAudit { .. } => {}
            }
        }
    }

    /// A notice of a change: it may be lost, and come several times.
    fn notify(&self, gateway: &str) {
        if self.happens(40) {
            self.count(|summary| summary.lost_notices += 1);
            return;
        }
        let mut notices = lock(&self.notices);
        notices.push(gateway.to_owned());
        if self.happens(30) {
            notices.push(gateway.to_owned());
        }
    }

    /// Looks at a row as it is in the store now.
    fn saw(&self, row: &Row) {
        let lifecycle = &row.lifecycle;
        let waits = matches!(
            lifecycle.delivery(),
            Some(Delivery::Waiting | Delivery::Failed)
        );
        let value = row.content.as_deref().filter(|_| waits).map(|sealed| {
            let data = associated_data(&row.id, "content");
            self.encryption.open(&data, sealed).unwrap_or_default()
        });
        let (seen, why) = self.known(&row.id, |known| {
            let is_new_end =
                lifecycle.is_over() && (!known.is_over || known.delivery != lifecycle.delivery());
            known.is_over = lifecycle.is_over();
            known.delivery = lifecycle.delivery();
            let owner = std::mem::replace(&mut known.owner, row.owner.clone());
            let is_taken_over = !owner.is_empty() && owner != row.owner;
            let why = known.saved.as_ref().and_then(|saved| {
                if lifecycle.phase().action().is_none() {
                    return Some(format!("the saved answer {saved} is gone: {lifecycle:?}"));
                }
                if !waits {
                    return None;
                }
                match value {
                    None => Some(format!("the saved answer {saved} has no value any more")),
                    Some(value) if value.contains(&format!("\"{saved}\"")) => None,
                    Some(value) => Some(format!("{saved} was saved, and {value} waits")),
                }
            });
            ((is_new_end, is_taken_over), why)
        });
        if let Some(why) = why {
            self.violated(why);
        }
        let (is_new_end, is_taken_over) = seen;
        self.count(|summary| {
            summary.taken_over += u64::from(is_taken_over);
            if !is_new_end {
                return;
            }
            match lifecycle.delivery() {
                Some(Delivery::Lapsed) => summary.lapsed += 1,
                Some(Delivery::InDoubt) => summary.in_doubt += 1,
                Some(_) => {}
                None => summary.ended += 1,
            }
        });
    }

    /// A person was told that an answer is saved.
    fn saved(&self, id: &str, value: &str) {
        self.count(|summary| summary.saved += 1);
        let why = self.known(id, |known| {
            let other = known.saved.replace(value.to_owned());
            if let Some(other) = other {
                return Some(format!("{other} and {value} were saved for one question"));
            }
            let other = known.delivered.iter().find(|delivered| *delivered != value);
            other.map(|other| format!("{value} was saved, and {other} delivered"))
        });
        if let Some(why) = why {
            self.violated(why);
        }
    }

    /// An answer left for the server of a call.
    fn delivered(&self, id: &str, call: (u64, u64), reply: &str) {
        self.count(|summary| summary.delivered += 1);
        let reply: serde_json::Value = serde_json::from_str(reply).unwrap();
        let value = reply["content"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let why = self.known(id, |known| {
            known.delivered.push(value.clone());
            if known.call != Some(call) {
                return Some(format!(
                    "{value} of {:?} was delivered to {call:?}",
                    known.call
                ));
            }
            if known.delivered.len() > known.refused + 1 {
                return Some(format!(
                    "{value} was delivered twice: {:?}",
                    known.delivered
                ));
            }
            let other = known.saved.as_ref().filter(|saved| **saved != value);
            other.map(|saved| format!("{saved} was saved, and {value} delivered"))
        });
        if let Some(why) = why {
            self.violated(why);
        }
    }

    /// A call waits for a question.
    fn waits(&self, id: &str, call: (u64, u64)) {
        let why = self.known(id, |known| {
            let first = *known.call.get_or_insert(call);
            (first != call).then(|| format!("{call:?} waits for the question of {first:?}"))
        });
        if let Some(why) = why {
            self.violated(why);
        }
    }
}

/// The running gateways as one of them sees them, which may be wrong.
struct Seen {
    name: String,
    world: Arc<World>,
    now: Mutex<HashMap<String, bool>>,
}

impl Seen {
    fn look(&self) {
        // In a hundred cases, how often it is taken to run.
        let running = lock(&self.world.running).clone();
        let mut now = lock(&self.now);
        now.clear();
        for (name, percent) in running {
            now.insert(name, self.world.happens(percent.into()));
        }
    }
}

impl RunningGateways for Seen {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_running(&self, name: &str) -> bool {
        lock(&self.now).get(name).copied().unwrap_or(false)
    }

    fn peers(&self) -> Arc<[Peer]> {
        Arc::new([])
    }

    fn clock_offset_ms(&self) -> Option<i64> {
        None
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        self.look();
        async {}.boxed()
    }

    fn decide<'a>(&'a self, _names: Vec<&'a str>) -> BoxFuture<'a, ()> {
        self.refresh()
    }
}

/// A running gateway.
struct Gateway {
    name: String,
    record: Arc<Record>,
    is_open: Arc<AtomicBool>,
    is_paused: bool,
    tasks: Vec<JoinHandle<()>>,
    /// The calls that wait, each told when its client leaves.
    calls: Vec<(JoinHandle<()>, Arc<Notify>)>,
}

impl Gateway {
    fn start(
        number: usize,
        incarnation: u64,
        world: &Arc<World>,
        gate: &Arc<Gate>,
        below: &Arc<Memory>,
        keys: &OwnKeys,
    ) -> Self {
        let name = format!("g{number}n{incarnation}");
        lock(&world.running).insert(name.clone(), 97);
        let is_open = Arc::new(AtomicBool::new(true));
        let connection = Connection {
            gateway: name.clone(),
            below: below.clone(),
            gate: gate.clone(),
            world: world.clone(),
            is_open: is_open.clone(),
        };
        let seen = Seen {
            name: name.clone(),
            world: world.clone(),
            now: Mutex::default(),
        };
        let lock = LockFile::among(Arc::new(seen));
        let record = Record::new(Arc::new(connection), keys.clone(), lock, CLOCK[number]);
        let record = record.with_delivering_sessions().with_retention(Retention {
            answers: KEPT,
            results: KEPT,
            ended: KEPT,
            audit: Some(KEPT),
        });
        Self {
            name,
            record: Arc::new(record),
            is_open,
            is_paused: false,
            tasks: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Ends it as `kill -9` does.
    fn kill(&self, gate: &Gate, world: &World) {
        self.is_open.store(false, Ordering::SeqCst);
        for task in self
            .tasks
            .iter()
            .chain(self.calls.iter().map(|(task, _)| task))
        {
            task.abort();
        }
        gate.end(&self.name, world);
        // Others may not know it yet.
        lock(&world.running).insert(self.name.clone(), 30);
    }

    /// Forgets what has ended, and passes on its panics.
    async fn clear(&mut self) {
        let (ended, tasks) = std::mem::take(&mut self.tasks)
            .into_iter()
            .partition::<Vec<_>, _>(JoinHandle::is_finished);
        self.tasks = tasks;
        for task in ended {
            task.await.unwrap();
        }
        let (ended, calls) = std::mem::take(&mut self.calls)
            .into_iter()
            .partition::<Vec<_>, _>(|(task, _)| task.is_finished());
        self.calls = calls;
        for (task, _) in ended {
            task.await.unwrap();
        }
    }
}

/// Makes a call that asks one question, and waits for its answer.
async fn call(
    world: Arc<World>,
    record: Arc<Record>,
    call: (u64, u64),
    key: u64,
    leaves: Arc<Notify>,
) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (caller, message) = call;
    let who = of("s", &format!("caller {caller}"));
    let mut question = asked(&format!("Message {message}"));
    question.until = record.now().after(KEPT * 2);
    let created = record.create(
        &who,
        &question,
        SessionKey(key),
        &tell,
        Durability::BeforeSeen,
    );
    let Ok(recorded) = created.await else {
        return;
    };
    world.count(|summary| summary.asked += 1);
    world.waits(&recorded.id, call);
    let ids = [recorded.id];
    let mut is_answered = recorded.answered;
    loop {
        if is_answered {
            let taken = record.deliver(&ids).await;
            let is_taken = matches!(&taken, Ok(Some(_)));
            if let Ok(Some(replies)) = taken {
                world.delivered(&ids[0], call, &replies[0]);
                let reported = match world.below(10) {
                    0 => {
                        record
                            .delivery_in_doubt(&ids, "the transport says nothing")
                            .await
                    }
                    1 => {
                        world.known(&ids[0], |known| known.refused += 1);
                        record.delivery_refused(&ids, "the server says no").await
                    }
                    _ => record.confirm(&ids).await,
                };
                let _may_fail_as_in_a_session = reported;
            }
            let _may_fail_too = record.write_behind(&ids[0]).await;
            if is_taken {
                return;
            }
            is_answered = false;
        }
        tokio::select! {
            event = told.recv() => match event {
                Some(RecordEvent::Answered { .. }) => is_answered = true,
                Some(RecordEvent::Ended { .. } | RecordEvent::TakenOver { .. }) | None => return,
                Some(_) => {}
            },
            () = leaves.notified() => {
                let _may_fail = record.release_session(&tell).await;
                return;
            }
        }
    }
}

/// Makes so many steps; returns the first violation.
pub(super) async fn simulate(seed: u64, steps: u64, compares: bool) -> Result<Summary, String> {
    let keys = OwnKeys::random().unwrap();
    let world = Arc::new(World {
        questions: Mutex::default(),
        violation: Mutex::default(),
        summary: Mutex::default(),
        notices: Mutex::default(),
        random: Mutex::new(seed),
        encryption: keys.encryption.clone(),
        running: Mutex::default(),
    });
    CLOCKS.with(|clocks| {
        for clock in clocks {
            clock.set(1_000_000_000);
        }
    });
    let gate = Arc::new(Gate::new(compares));
    let below = Arc::new(Memory::keyed(keys.chain()));
    let mut started = 0_u64;
    let mut start = |number| {
        started += 1;
        Gateway::start(number, started, &world, &gate, &below, &keys)
    };
    let mut gateways: Vec<Gateway> = (0..GATEWAYS).map(&mut start).collect();
    let mut serial = 0_u64;
    for step in 0..steps {
        let number = usize::try_from(world.below(GATEWAYS as u64)).unwrap();
        let chance = world.below(1_000);
        let gateway = &mut gateways[number];
        match chance {
            0..650 => {
                let paused: Vec<String> = gateways
                    .iter()
                    .filter(|gateway| gateway.is_paused)
                    .map(|gateway| gateway.name.clone())
                    .collect();
                gate.pass_one(&world, &paused);
            }
            650..750 if gateway.calls.len() < CALLS / GATEWAYS => {
                serial += 1;
                let kind = (world.below(CALLERS), world.below(MESSAGES));
                let leaves = Arc::new(Notify::new());
                let (record, tell) = (gateway.record.clone(), leaves.clone());
                let task = tokio::spawn(call(world.clone(), record, kind, serial, leaves));
                gateway.calls.push((task, tell));
            }
            750..830 => {
                let open = gate.open_rows(&below).await;
                if let Some(id) = world.pick(&open).cloned() {
                    serial += 1;
                    let value = format!("v{serial}");
                    let (record, world) = (gateway.record.clone(), world.clone());
                    let durability = if world.happens(50) {
                        Durability::WithDelivery
                    } else {
                        Durability::BeforeSeen
                    };
                    gateway.tasks.push(tokio::spawn(async move {
                        let answers = form().check(serde_json::json!({ "name": value })).unwrap();
                        let outcome = Outcome::Accept(answers);
                        let submitted = record.submit(&id, &outcome, "inbox", durability).await;
                        if matches!(submitted, Ok(Verdict::Won)) {
                            world.saved(&id, &value);
                        }
                    }));
                }
            }
            830..890 => {
                let name = {
                    let mut notices = lock(&world.notices);
                    let at = usize::try_from(world.below(notices.len() as u64)).unwrap();
                    // In any order.
                    (!notices.is_empty()).then(|| notices.swap_remove(at))
                };
                let told = gateways
                    .iter_mut()
                    .find(|gateway| Some(&gateway.name) == name.as_ref());
                if let Some(gateway) = told {
                    poll(gateway);
                }
            }
            890..910 => poll(gateway),
            910..935 => {
                let record = gateway.record.clone();
                gateway.tasks.push(tokio::spawn(async move {
                    let _may_fail = record.sweep().await;
                }));
            }
            935..960 => {
                if let Some((_, leaves)) = world.pick(&gateway.calls) {
                    leaves.notify_one();
                }
            }
            960..980 => move_clocks(&world, number),
            980..988 => tokio::time::advance(Duration::from_millis(11)).await,
            988..996 => {
                gateway.is_paused = !gateway.is_paused;
                let percent = if gateway.is_paused { 50 } else { 97 };
                world.count(|summary| summary.pauses += u64::from(gateway.is_paused));
                lock(&world.running).insert(gateway.name.clone(), percent);
            }
            996.. => {
                gateway.kill(&gate, &world);
                world.count(|summary| summary.kills += 1);
                gateways[number] = start(number);
            }
            _ => {}
        }
        for _ in 0..TURNS {
            yield_now().await;
        }
        if step % 64 == 0 {
            for gateway in &mut gateways {
                gateway.clear().await;
            }
        }
        if let Some(violation) = lock(&world.violation).take() {
            return Err(format!("step {step}: {violation}"));
        }
    }
    // Everything goes on to its end.
    for _ in 0..50_000 {
        gate.pass_one(&world, &[]);
        yield_now().await;
    }
    check_end(&world, &below).await;
    match lock(&world.violation).take() {
        Some(violation) => Err(format!("at the end: {violation}")),
        None => Ok(lock(&world.summary).clone()),
    }
}

/// Looks whether each saved answer is delivered, waits, or has ended in a state that people see.
async fn check_end(world: &World, below: &Memory) {
    let left: Vec<String> = lock(&world.questions)
        .iter()
        .filter(|(_, known)| known.saved.is_some() && !known.is_over)
        .map(|(id, _)| id.clone())
        .collect();
    for id in left {
        match below.find(id.clone()).await.unwrap() {
            Some(row) => world.saw(&row),
            None => world.violated(format!("the question {id} with a saved answer is gone")),
        }
    }
}

fn poll(gateway: &mut Gateway) {
    let record = gateway.record.clone();
    gateway.tasks.push(tokio::spawn(async move {
        let _may_fail = record.poll_others().await;
    }));
}

/// Lets time pass, and sometimes one clock jump by hours.
fn move_clocks(world: &World, number: usize) {
    let (passed, jump) = (world.below(20_000), world.below(10_000_000));
    CLOCKS.with(|clocks| {
        for clock in clocks {
            clock.set(clock.get() + passed);
        }
        let clock = &clocks[number];
        match world.below(40) {
            0 => clock.set(clock.get() + jump),
            1 => clock.set(clock.get().saturating_sub(jump)),
            // As a server of times sets it.
            2 => clock.set(clocks[0].get()),
            _ => {}
        }
    });
}

/// The right of one access to the store to go on.
pub(super) type Pass = oneshot::Sender<()>;
