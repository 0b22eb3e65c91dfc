//! Connections that are cut after each byte of the end of a batch, and of the server's reply to it: no write is lost, made
//! twice or reported wrongly.

use std::io::{self, Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::thread;

use mcp_elicit_testkit::postgres::PostgresServer;

use super::super::contract::{SingleWrites as _, acted, change, row};
use super::super::{RecordStore as _, Write};
use super::tests::connected;
use super::{Postgres, PostgresDatabase, PostgresSettings, statements};
use crate::OwnKeys;

/// The lengths of messages, in bytes.
const COMMIT: i64 = 12;
const SYNC: i64 = 5;
const READY: i64 = 6;
const REPLY: i64 = COMMIT + READY;

/// The number of bytes, from the beginning of a message, after which a connection ends. Negative ones are before it.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Of the client's `COMMIT`.
    Request(i64),
    /// Of the server's reply to it.
    Reply(i64),
}

/// A proxy before the server, which cuts the connection of a batch.
struct CuttingProxy {
    port: u16,
    shared: Arc<Mutex<CutParts>>,
}

#[derive(Default)]
struct CutParts {
    /// The cut of the next batch; `None` once that has begun to end.
    next: Option<Cut>,
    /// The number of cuts that were made.
    made: u32,
    /// The number of batches that were about to commit.
    batches: u32,
}

/// A connection whose batch is cut: the number of the request that commits, and the place.
type CutRequest = Arc<Mutex<Option<(u64, Cut)>>>;

impl CuttingProxy {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let shared: Arc<Mutex<CutParts>> = Arc::default();
        let parts = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    return;
                };
                let cut = CutRequest::default();
                let requests = Direction::of(&client, &server, &parts);
                let replies = Direction::of(&server, &client, &parts);
                let found = cut.clone();
                thread::spawn(move || requests.pass_requests(&found));
                thread::spawn(move || replies.pass_replies(&cut));
            }
        });
        Self { port, shared }
    }

    /// Sets the cut of the next batch.
    fn cut(&self, cut: Cut) {
        *self.shared.lock().unwrap() = CutParts {
            next: Some(cut),
            ..CutParts::default()
        };
    }

    /// Returns the numbers of cuts and of batches since then.
    fn counts(&self) -> (u32, u32) {
        let parts = self.shared.lock().unwrap();
        (parts.made, parts.batches)
    }
}

/// A direction of a connection.
struct Direction {
    from: TcpStream,
    to: TcpStream,
    /// The number of bytes that were passed on.
    passed: i64,
    /// The number at which the connection ends.
    end: Option<i64>,
    parts: Arc<Mutex<CutParts>>,
}

impl Direction {
    fn of(from: &TcpStream, to: &TcpStream, parts: &Arc<Mutex<CutParts>>) -> Self {
        Self {
            from: from.try_clone().expect("the stream"),
            to: to.try_clone().expect("the stream"),
            passed: 0,
            end: None,
            parts: parts.clone(),
        }
    }

    /// Reads a message, of which all but a client's first have a type before their length.
    fn message(&mut self, is_typed: bool) -> io::Result<Vec<u8>> {
        let start = usize::from(is_typed);
        let mut message = vec![0; start + 4];
        self.from.read_exact(&mut message)?;
        let length = message[start..].try_into().expect("four bytes");
        let length = usize::try_from(u32::from_be_bytes(length)).expect("a length");
        message.resize(start + length, 0);
        self.from.read_exact(&mut message[start + 4..])?;
        Ok(message)
    }

    /// Passes a message on, or the bytes of it before the cut, which ends both directions.
    fn pass(&mut self, message: &[u8]) -> io::Result<()> {
        let after = self.passed + i64::try_from(message.len()).expect("a length");
        let Some(end) = self.end.filter(|end| *end <= after) else {
            self.passed = after;
            return self.to.write_all(message);
        };
        let left = usize::try_from(end - self.passed).expect("a cut that is not behind");
        self.to.write_all(&message[..left])?;
        self.parts.lock().unwrap().made += 1;
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    fn pass_requests(mut self, cut: &CutRequest) {
        let passed = |way: &mut Self| -> io::Result<()> {
            let first = way.message(false)?;
            way.pass(&first)?;
            let (mut requests, text) = (0, statements::MOVE_AUDIT_END.text.as_bytes());
            loop {
                let message = way.message(true)?;
                let has = |text: &[u8]| message.windows(text.len()).any(|part| part == text);
                if message[0] == b'P' && has(text) {
                    let mut parts = way.parts.lock().unwrap();
                    parts.batches += 1;
                    if let Some(next) = parts.next.take() {
                        // The last statement of a batch, then its end.
                        *cut.lock().unwrap() = Some((requests + 2, next));
                    }
                }
                if matches!(message[0], b'Q' | b'S') {
                    requests += 1;
                }
                if message[0] == b'S'
                    && let Some((commit, Cut::Request(bytes))) = *cut.lock().unwrap()
                    && commit == requests + 1
                {
                    way.end = Some(way.passed + SYNC + bytes);
                }
                way.pass(&message)?;
            }
        };
        let _end = passed(&mut self);
        self.end_both();
    }

    fn pass_replies(mut self, cut: &CutRequest) {
        let passed = |way: &mut Self| -> io::Result<()> {
            // The first is of no request, but of the connection.
            let mut ready = 0;
            loop {
                let message = way.message(true)?;
                ready += u64::from(message[0] == b'Z');
                if message[0] == b'Z'
                    && let Some((commit, Cut::Reply(bytes))) = *cut.lock().unwrap()
                    && commit == ready
                {
                    way.end = Some(way.passed + READY + bytes);
                }
                way.pass(&message)?;
            }
        };
        let _end = passed(&mut self);
        self.end_both();
    }

    fn end_both(&self) {
        for stream in [&self.from, &self.to] {
            let _closed_already = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Makes batches whose connection is cut at each of these places. `attempts` says how often a batch may be made.
async fn no_write_is_lost(
    cuts: impl Iterator<Item = Cut>,
    attempts: fn(Cut) -> RangeInclusive<u32>,
) {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let keys = OwnKeys::random().unwrap();
    let direct = Postgres::at(connected(&database)).with_keys(&keys);
    direct.ready().await.unwrap();
    let proxy = CuttingProxy::start(server.port());
    let (port, name) = (proxy.port, &database.name);
    let address = format!("postgres://postgres@127.0.0.1:{port}/{name}");
    let settings = PostgresSettings::read(&address).unwrap();
    let store = Postgres::at(PostgresDatabase::new(settings).unwrap()).with_keys(&keys);
    store.ready().await.unwrap();
    let (mut expected, mut found) = (Vec::new(), 0);
    for cut in cuts {
        for is_change in [false, true] {
            let id = format!("{cut:?} {is_change}");
            let (first, next) = (row(&id, 1_000), acted(&row(&id, 1_000)));
            let asked = format!("asked {id}");
            if is_change {
                store.insert(first.clone(), asked.clone()).await.unwrap();
                proxy.cut(cut);
            } else {
                proxy.cut(cut);
                let inserted = store.insert(first.clone(), asked.clone()).await;
                assert!(inserted.is_ok(), "{id}: {inserted:?}");
                assert!(attempts(cut).contains(&proxy.counts().1), "{id}");
                assert_eq!(direct.find(id.clone()).await.unwrap(), Some(first), "{id}");
            }
            let mut changed = change(next.clone(), 0);
            changed.audit = vec![format!("changed {id}")];
            let changed = store.change(vec![changed]).await;
            assert!(matches!(changed, Ok(true)), "{id}: {changed:?}");
            if is_change {
                assert!(attempts(cut).contains(&proxy.counts().1), "{id}");
            }
            assert_eq!(direct.find(id.clone()).await.unwrap(), Some(next), "{id}");
            let noted = Write::Note(format!("noted {id}"));
            store.write(Arc::new(vec![noted])).await.unwrap();
            assert_eq!(proxy.counts().0, 1, "{id} was cut");
            expected.extend(["asked", "changed", "noted"].map(|event| format!("{event} {id}")));
            found += 1;
        }
    }
    assert!(found > 0);
    let links = crate::audit::read(&direct).await.unwrap();
    let entries: Vec<&String> = links.iter().map(|link| &link.entry).collect();
    assert_eq!(entries, expected.iter().collect::<Vec<_>>());
    let check = crate::audit::verify(&links, Some(&keys.chain()));
    assert!(
        matches!(check, crate::audit::ChainCheck::Whole { .. }),
        "{check:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_after_any_byte_of_a_commit_loses_no_write_and_repeats_none() {
    // Before the message are the bytes of the last statement's end; after it are those of the next batch.
    let cuts = (-SYNC..=COMMIT + SYNC).map(Cut::Request);
    let attempts = |cut| match cut {
        Cut::Request(..COMMIT) => 2..=2,
        // The server may notice the end before it reads the whole message.
        Cut::Request(COMMIT) => 1..=2,
        Cut::Request(_) | Cut::Reply(_) => 1..=1,
    };
    no_write_is_lost(cuts, attempts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_after_any_byte_of_the_reply_to_a_commit_loses_no_write_and_repeats_none()
{
    let cuts = (-READY..=REPLY + READY).map(Cut::Reply);
    let attempts = |cut| match cut {
        // It is not known if the server has read the message.
        Cut::Reply(..=0) => 1..=2,
        Cut::Request(_) | Cut::Reply(_) => 1..=1,
    };
    no_write_is_lost(cuts, attempts).await;
}
