//! The streams of one HTTP client: one for each of its requests and one for the session, each with what was said on it
//! lately, so that a client that lost a stream can take it up again (2025-11-25, transports, resumability).

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::challenge::Challenge;
use super::frame::Frame;
use super::session::ClientSide;
use super::sse;
use crate::relay::Door;

/// Messages kept of one stream for a client that comes back.
const KEPT: usize = 64;
/// Messages that wait for a session's stream to be opened.
const WAITING: usize = 1_000;

/// Streams of one client, beyond which those that were lost are given up.
const LOST: usize = 256;

/// One message on a stream.
#[derive(Clone, Debug)]
pub struct Told {
    /// The frame; kept ones are the same bytes.
    pub frame: Bytes,
    /// Whether it answers the request that opened the stream.
    pub last: bool,
    /// What the server wants first, where it answers with that.
    pub challenge: Option<Box<Challenge>>,
    id: String,
}

impl Told {
    /// The message as an event; with an id where streams can be taken up again.
    pub fn written(&self, with_id: bool) -> Vec<u8> {
        sse::written(&self.frame, with_id.then_some(self.id.as_str()))
    }
}

#[derive(Default)]
struct Stream {
    to: Option<mpsc::UnboundedSender<Told>>,
    kept: VecDeque<(u64, Told)>,
    count: u64,
}

/// Why there is no stream to listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStream {
    /// Somebody listens to the session's already.
    Open,
    /// The request's stream is not there (any more).
    Done,
}

/// The streams of one client.
#[derive(Default)]
pub struct Streams {
    by_door: Mutex<HashMap<Door, Stream>>,
}

impl Streams {
    fn streams(&self) -> MutexGuard<'_, HashMap<Door, Stream>> {
        self.by_door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stream of a request. The oldest of too many that were lost and not taken up again is given up for it.
    pub fn open(&self, door: Door) -> mpsc::UnboundedReceiver<Told> {
        let (to, told) = mpsc::unbounded_channel();
        let mut streams = self.streams();
        if streams.len() >= LOST {
            let lost = |stream: &Stream| {
                stream
                    .to
                    .as_ref()
                    .is_none_or(mpsc::UnboundedSender::is_closed)
            };
            let oldest = streams.iter().filter(|(_, stream)| lost(stream));
            if let Some(oldest) = oldest
                .map(|(door, _)| *door)
                .filter(|door| *door != Door::SESSION)
                .min()
            {
                streams.remove(&oldest);
            }
        }
        streams.insert(
            door,
            Stream {
                to: Some(to),
                ..Stream::default()
            },
        );
        told
    }

    /// Opens the session's stream, or takes up the one that said the event `last`.
    pub fn listen(
        &self,
        last: Option<&str>,
    ) -> Result<(Door, mpsc::UnboundedReceiver<Told>), NoStream> {
        let seen = last
            .and_then(|last| last.split_once('-'))
            .and_then(|(door, count)| Some((Door(door.parse().ok()?), count.parse::<u64>().ok()?)));
        let (door, after) = seen.unwrap_or((Door::SESSION, 0));
        let mut streams = self.streams();
        let stream = match door {
            Door::SESSION => streams.entry(door).or_default(),
            // One that is done with, or that was never there, will say nothing.
            door => streams.get_mut(&door).ok_or(NoStream::Done)?,
        };
        if seen.is_none() && stream.to.as_ref().is_some_and(|to| !to.is_closed()) {
            return Err(NoStream::Open);
        }
        let (to, told) = mpsc::unbounded_channel();
        for (count, kept) in &stream.kept {
            if *count > after {
                // The receiver is right here.
                let _ = to.send(kept.clone());
            }
        }
        stream.to = Some(to);
        Ok((door, told))
    }

    /// The stream is done with; whether it was there.
    pub fn close(&self, door: Door) -> bool {
        self.streams().remove(&door).is_some()
    }
}

impl Streams {
    fn say(&self, door: Door, frame: Frame<'_>, last: bool, challenge: Option<Box<Challenge>>) {
        let mut streams = self.streams();
        let stream = if door == Door::SESSION {
            streams.entry(door).or_default()
        } else {
            // A request that was given up has no stream.
            let Some(stream) = streams.get_mut(&door) else {
                return;
            };
            stream
        };
        stream.count += 1;
        let told = Told {
            frame: frame.kept(),
            last,
            challenge,
            id: format!("{}-{}", door.0, stream.count),
        };
        let keep = if door == Door::SESSION { WAITING } else { KEPT };
        stream.kept.push_back((stream.count, told.clone()));
        if stream.kept.len() > keep {
            stream.kept.pop_front();
        }
        if let Some(to) = &stream.to
            && to.send(told).is_err()
        {
            stream.to = None;
        }
    }
}

impl ClientSide for Streams {
    fn send(&self, door: Door, frame: Frame<'_>, last: bool) {
        self.say(door, frame, last, None);
    }

    fn challenge(&self, door: Door, frame: Frame<'_>, challenge: &Challenge) {
        self.say(door, frame, true, Some(Box::new(challenge.clone())));
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_stream_is_taken_up_where_it_was() {
        let streams = Streams::default();
        let first = streams.open(Door(3));
        streams.send(Door(3), Frame::Lent(b"one"), false);
        drop(first);
        streams.send(Door(3), Frame::Lent(b"two"), false);
        streams.send(Door(3), Frame::Lent(b"three"), true);
        let (door, mut told) = streams.listen(Some("3-1")).unwrap();
        assert_eq!(door, Door(3));
        assert_eq!(told.try_recv().unwrap().frame, "two");
        let last = told.try_recv().unwrap();
        assert!(last.last);
        assert_eq!(last.written(true), b"id: 3-3\ndata: three\n\n");
    }

    #[test]
    fn the_sessions_stream_has_what_was_said_before_it_was_opened() {
        let streams = Streams::default();
        streams.send(Door::SESSION, Frame::Lent(b"early"), false);
        let (_, mut told) = streams.listen(None).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "early");
        assert_eq!(streams.listen(None).err(), Some(NoStream::Open));
        assert_eq!(streams.listen(Some("8-1")).err(), Some(NoStream::Done));
        for lost in 10..10 + LOST as u64 {
            drop(streams.open(Door(lost)));
        }
        let all = streams.streams().len();
        assert_eq!(all, LOST, "the oldest lost stream made room");
        assert!(streams.close(Door(11)) && !streams.close(Door(10)));
        streams.send(Door(9), Frame::Lent(b"nobody asked"), false);
        assert!(!streams.close(Door(9)));
    }
}
