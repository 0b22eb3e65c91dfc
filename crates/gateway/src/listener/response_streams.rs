//! The streams of one HTTP client: one for each of its requests and one for the session, each with its latest messages,
//! so that a client can resume a lost stream (2025-11-25, transports, resumability).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;

use crate::byte_account::ByteShare;
use crate::frame::FrameBytes;
use crate::listener::caller_bytes::CallerBytes;
use crate::listener::event_queue::{EventReceiver, EventSender, event_queue};
use crate::server_challenge::ServerChallenge;
use crate::session::ClientTransport;
use mcp_elicit_core::wire::sse;
use mcp_elicit_relay::StreamId;

/// The kept messages of one stream, for a client that resumes it.
const REPLAYABLE: usize = 64;
/// The messages that wait for a session's stream to be opened.
const WAITING: usize = 1_000;

/// The number of streams of one client above which lost ones are dropped.
const LOST: usize = 256;

/// The time for which the stream of an answer can be resumed after its connection has ended: the client may not have read
/// what was written. Longer than a client may read nothing.
const RESUMABLE: Duration = Duration::from_secs(120);

/// The bytes waiting on one stream above which it is closed, because the client does not read.
const UNREAD: usize = 64 * 1024 * 1024;
/// The bytes that may always wait on one stream: a client that reads gets its messages, whatever others do not read.
const ALWAYS: usize = 64 * 1024;
/// The bytes of memory that a message takes besides its own, roughly.
const EVENT: usize = 256;

/// Bytes that wait to be read, until this is dropped.
#[derive(Debug)]
struct UnreadBytes {
    bytes: usize,
    of: Arc<AtomicUsize>,
    caller: Arc<CallerBytes>,
}

impl UnreadBytes {
    /// Counts a message; `None` if too much waits beside it.
    fn count(
        bytes: usize,
        of: &Arc<AtomicUsize>,
        to: &EventSender,
        caller: &Arc<CallerBytes>,
    ) -> Option<Arc<Self>> {
        let bytes = bytes + EVENT;
        let before = of.fetch_add(bytes, Ordering::AcqRel);
        caller.unread.add(bytes);
        let counted = Arc::new(Self {
            bytes,
            of: of.clone(),
            caller: caller.clone(),
        });
        // On a stream, a single message may have any allowed length.
        let fits = before == 0 || before + bytes <= UNREAD;
        let has_room = before + bytes <= ALWAYS || caller.make_room(to.queue());
        (fits && has_room).then_some(counted)
    }
}

impl Drop for UnreadBytes {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
        self.caller.unread.remove(self.bytes);
    }
}

/// Bytes on their way to a client, which count as unread until they are written.
struct SentBytes<B> {
    bytes: B,
    _unread: Option<Arc<UnreadBytes>>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for SentBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// A message that is kept for a client that resumes its stream, counted until it is dropped.
struct StoredEvent {
    count: u64,
    event: StreamEvent,
    is_handed_over: bool,
    of: Arc<CallerBytes>,
}

impl StoredEvent {
    fn new(count: u64, event: StreamEvent, of: &Arc<CallerBytes>) -> Self {
        of.stored.add(event.frame.len() + EVENT);
        Self {
            count,
            event,
            is_handed_over: false,
            of: of.clone(),
        }
    }

    /// Returns the account in which it counts.
    fn account(&self) -> &ByteShare {
        if self.is_handed_over {
            &self.of.handed_over
        } else {
            &self.of.stored
        }
    }

    /// Counts it with the messages that were handed to connections, with all of their streams.
    fn hand_over(&mut self) {
        let bytes = self.event.frame.len() + EVENT;
        self.account().remove(bytes);
        self.is_handed_over = true;
        self.account().add(bytes);
    }
}

impl Drop for StoredEvent {
    fn drop(&mut self) {
        self.account().remove(self.event.frame.len() + EVENT);
    }
}

/// One message on a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamEvent {
    /// The frame; stored copies share its bytes.
    pub frame: Bytes,
    /// `true` if it answers the request that opened the stream.
    pub last: bool,
    /// The server's challenge, if it answers with one.
    pub challenge: Option<Box<ServerChallenge>>,
    id: String,
    /// Counted as long as it waits to be read.
    unread: Option<Arc<UnreadBytes>>,
}

impl StreamEvent {
    /// Returns the message as an event; with an id if streams can be resumed. It counts as unread until it is dropped.
    pub(crate) fn written(self, with_id: bool) -> Bytes {
        let bytes = sse::written(&self.frame, with_id.then_some(self.id.as_str()));
        Bytes::from_owner(SentBytes {
            bytes,
            _unread: self.unread,
        })
    }

    /// Returns the message for a response of its own. It counts as unread until it is dropped.
    pub(crate) fn into_frame(self) -> Bytes {
        Bytes::from_owner(SentBytes {
            bytes: self.frame,
            _unread: self.unread,
        })
    }
}

#[derive(Default)]
struct Stream {
    to: Option<EventSender>,
    kept: VecDeque<StoredEvent>,
    count: u64,
    /// The last message that a client listened to.
    said: u64,
    /// `true` if its request has been answered.
    answered: bool,
    /// The number of connections that its answer was handed to.
    handed_over: u64,
    /// Bytes that wait to be read.
    unread: Arc<AtomicUsize>,
}

impl Stream {
    fn is_open(&self) -> bool {
        self.to.as_ref().is_some_and(EventSender::is_open)
    }

    /// Returns `true` if its answer was handed to a connection, so that its client probably has it.
    fn is_handed_over(&self) -> bool {
        self.handed_over > 0
    }
}

/// An answer that was handed to a connection. When this is dropped, the connection has ended.
pub(crate) struct HandedOver {
    streams: Arc<ResponseStreams>,
    stream_id: StreamId,
    count: u64,
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        let (stream_id, count) = (self.stream_id, self.count);
        let Ok(runtime) = Handle::try_current() else {
            return self.streams.forget(stream_id, count);
        };
        let streams = Arc::downgrade(&self.streams);
        runtime.spawn(async move {
            tokio::time::sleep(RESUMABLE).await;
            if let Some(streams) = streams.upgrade() {
                streams.forget(stream_id, count);
            }
        });
    }
}

/// The reason why there is no stream to listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamError {
    /// Another listener has the session's stream.
    Open,
    /// The request's stream does not exist, or no longer.
    Done,
}

/// Returns the stream of an event, and its position there.
fn event_id(event: Option<&str>) -> Option<(StreamId, u64)> {
    let (stream_id, count) = event?.split_once('-')?;
    Some((StreamId(stream_id.parse().ok()?), count.parse().ok()?))
}

/// The streams of one client.
pub(crate) struct ResponseStreams {
    by_stream: Mutex<HashMap<StreamId, Stream>>,
    caller: Arc<CallerBytes>,
    /// `true` if all streams belong to one client with a session. No other can resume one.
    one_client: bool,
    /// `true` once nothing more will be sent.
    ended: AtomicBool,
}

impl ResponseStreams {
    /// Creates the streams of all clients of a caller without a session.
    pub(crate) fn of_caller(principal: &str) -> Self {
        Self::new(CallerBytes::of(principal), false)
    }

    /// Creates the streams of one client of a caller, with a session: messages that belong to none of its requests may go
    /// to any of them.
    pub(crate) fn of_one_client(principal: &str) -> Self {
        Self::new(CallerBytes::of(principal), true)
    }

    fn new(caller: Arc<CallerBytes>, one_client: bool) -> Self {
        Self {
            by_stream: Mutex::default(),
            caller,
            one_client,
            ended: AtomicBool::new(false),
        }
    }

    /// Returns `true` if they belong to one client with a session, and not to all clients without one.
    pub(crate) fn is_of_one_client(&self) -> bool {
        self.one_client
    }

    /// Returns `true` while a client waits for the response to a request.
    pub(crate) fn has_open_requests(&self) -> bool {
        let waits = |(id, stream): (&StreamId, &Stream)| {
            *id != StreamId::SESSION && !stream.answered && stream.is_open()
        };
        self.streams().iter().any(waits)
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<StreamId, Stream>> {
        self.by_stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stream of a request. If there are too many lost ones, the oldest is dropped.
    pub(crate) fn open(&self, stream_id: StreamId) -> EventReceiver {
        let (to, told) = event_queue();
        self.caller.watch(to.queue());
        let mut streams = self.streams();
        if self.ended.load(Ordering::Relaxed) {
            // The listener receives the end.
            return told;
        }
        if streams.len() >= LOST {
            let lost = |stream: &Stream| !stream.is_open();
            let oldest = streams.iter().filter(|(_, stream)| lost(stream));
            let oldest = oldest
                .filter(|(stream_id, _)| **stream_id != StreamId::SESSION)
                .min_by_key(|(stream_id, stream)| (!stream.is_handed_over(), **stream_id))
                .map(|(stream_id, _)| *stream_id);
            if let Some(oldest) = oldest {
                streams.remove(&oldest);
            }
        }
        streams.insert(
            stream_id,
            Stream {
                to: Some(to),
                ..Stream::default()
            },
        );
        told
    }

    /// Returns `true` if the event belongs to the stream of a request, and not to the session's.
    pub(crate) fn is_of_request(event: Option<&str>) -> bool {
        event_id(event).is_some_and(|(stream_id, _)| stream_id != StreamId::SESSION)
    }

    /// Opens the session's stream, or resumes the one with the event `last`.
    pub(crate) fn listen(
        &self,
        last: Option<&str>,
    ) -> Result<(StreamId, EventReceiver), StreamError> {
        let seen = event_id(last);
        let stream_id = seen.map_or(StreamId::SESSION, |(stream_id, _)| stream_id);
        let mut streams = self.streams();
        if self.ended.load(Ordering::Relaxed) {
            return Err(StreamError::Done);
        }
        let stream = match stream_id {
            StreamId::SESSION => streams.entry(stream_id).or_default(),
            // One that has ended, or never existed, will send nothing.
            stream_id => streams.get_mut(&stream_id).ok_or(StreamError::Done)?,
        };
        if seen.is_none() && stream.is_open() {
            return Err(StreamError::Open);
        }
        // A client that does not say where it stopped has received everything that was listened to.
        let after = seen.map_or(stream.said, |(_, after)| after);
        let (to, told) = event_queue();
        self.caller.watch(to.queue());
        // What an earlier connection has not read still counts for its caller, but leaves this one its room.
        stream.unread = Arc::default();
        stream.said = after.min(stream.count);
        let mut is_whole = true;
        for kept in stream.kept.iter().filter(|kept| kept.count > after) {
            let event = &kept.event;
            let unread = UnreadBytes::count(event.frame.len(), &stream.unread, &to, &self.caller);
            if unread.is_none() {
                is_whole = false;
                break;
            }
            let event = StreamEvent {
                unread,
                ..event.clone()
            };
            if !to.send(event) {
                // It was cut for another stream of the caller.
                is_whole = false;
                break;
            }
            stream.said = kept.count;
        }
        // The client of a stream that ends after a part of its messages resumes it after that.
        stream.to = is_whole.then_some(to);
        if is_whole {
            stream.said = stream.count;
        }
        Ok((stream_id, told))
    }

    /// Returns `true` if a client listens to the session's stream.
    pub(crate) fn is_listened_to(&self) -> bool {
        let streams = self.streams();
        streams.get(&StreamId::SESSION).is_some_and(Stream::is_open)
    }

    /// Ends the session's stream for its listener. Later messages wait for the next one.
    pub(crate) fn hang_up(&self) {
        if let Some(stream) = self.streams().get_mut(&StreamId::SESSION) {
            stream.to = None;
        }
    }

    /// Ends every stream, with its stored messages.
    pub(crate) fn end(&self) {
        let mut streams = self.streams();
        self.ended.store(true, Ordering::Relaxed);
        streams.clear();
    }

    /// Ends a stream whose answer is handed to its connection. The stream of one client with a session can be resumed for a
    /// while, since the connection may break before the client has read the answer; any other is closed.
    pub(crate) fn hand_over(self: &Arc<Self>, stream_id: StreamId) -> Option<HandedOver> {
        let mut streams = self.streams();
        if !self.one_client {
            streams.remove(&stream_id);
            return None;
        }
        let stream = streams.get_mut(&stream_id)?;
        stream.to = None;
        stream.handed_over += 1;
        let count = stream.handed_over;
        for kept in &mut stream.kept {
            kept.hand_over();
        }
        self.keep_less_handed_over(&mut streams);
        Some(HandedOver {
            streams: self.clone(),
            stream_id,
            count,
        })
    }

    /// Closes the client's oldest streams whose answer was handed over until its caller has no more of these than it may.
    fn keep_less_handed_over(&self, streams: &mut HashMap<StreamId, Stream>) {
        while self.caller.handed_over.is_exceeded() {
            let handed_over = streams.iter().filter(|(_, stream)| stream.is_handed_over());
            let Some(oldest) = handed_over.map(|(stream_id, _)| *stream_id).min() else {
                return;
            };
            streams.remove(&oldest);
        }
    }

    /// Closes a stream whose answer was handed to this many connections, the last of which has ended, unless another
    /// connection has resumed it.
    fn forget(&self, stream_id: StreamId, count: u64) {
        let mut streams = self.streams();
        let known = streams.get(&stream_id);
        if known.is_some_and(|stream| stream.handed_over == count && !stream.is_open()) {
            streams.remove(&stream_id);
        }
    }

    /// Closes the stream; returns `false` if it did not exist.
    pub(crate) fn close(&self, stream_id: StreamId) -> bool {
        self.streams().remove(&stream_id).is_some()
    }
}

impl ResponseStreams {
    fn say(
        &self,
        stream_id: StreamId,
        frame: FrameBytes<'_>,
        last: bool,
        challenge: Option<Box<ServerChallenge>>,
    ) {
        let mut streams = self.streams();
        let stream_id = self.instead_of(stream_id, &streams);
        let stream = if stream_id == StreamId::SESSION {
            streams.entry(stream_id).or_default()
        } else {
            // A request that was cancelled has no stream.
            let Some(stream) = streams.get_mut(&stream_id) else {
                return;
            };
            stream
        };
        stream.count += 1;
        let told = StreamEvent {
            frame: frame.to_bytes(),
            last,
            challenge,
            id: format!("{}-{}", stream_id.0, stream.count),
            unread: None,
        };
        stream.answered |= last;
        if self.one_client {
            let kept = StoredEvent::new(stream.count, told.clone(), &self.caller);
            stream.kept.push_back(kept);
        }
        if let Some(to) = &stream.to {
            let unread = UnreadBytes::count(told.frame.len(), &stream.unread, to, &self.caller);
            let read_on = unread.is_some();
            let told = StreamEvent { unread, ..told };
            // A client that does not read finds the stored messages when it resumes.
            if read_on && to.send(told) {
                stream.said = stream.count;
            } else {
                stream.to = None;
            }
        }
        let mut bytes: usize = stream.kept.iter().map(|kept| kept.event.frame.len()).sum();
        while let Some(oldest) = stream.kept.front() {
            let waits = stream_id == StreamId::SESSION && oldest.count > stream.said;
            let few = stream.kept.len() <= if waits { WAITING } else { REPLAYABLE };
            if (few && bytes <= UNREAD) || stream.kept.len() == 1 {
                break;
            }
            bytes -= oldest.event.frame.len();
            stream.kept.pop_front();
        }
        self.keep_less(&mut streams);
    }

    /// Drops the client's oldest kept messages until its caller has no more than it may: first those of lost requests, then what
    /// waits for its session's stream, then those of streams that it reads. Answers that were handed over count apart.
    fn keep_less(&self, streams: &mut HashMap<StreamId, Stream>) {
        while self.caller.stored.is_exceeded() {
            let keeps = streams
                .iter_mut()
                .filter(|(_, stream)| !stream.kept.is_empty() && !stream.is_handed_over());
            let oldest = keeps.min_by_key(|(stream_id, stream)| {
                (
                    stream.is_open(),
                    **stream_id == StreamId::SESSION,
                    **stream_id,
                )
            });
            let Some((_, stream)) = oldest else {
                return;
            };
            stream.kept.pop_front();
        }
    }

    /// Returns the stream for a message: if no client listens to the session's stream, that of the newest request
    /// (2025-11-25, transports: before the response, a server may send messages about the request).
    fn instead_of(&self, stream_id: StreamId, streams: &HashMap<StreamId, Stream>) -> StreamId {
        let listened = streams.get(&StreamId::SESSION).is_some_and(Stream::is_open);
        if stream_id != StreamId::SESSION || !self.one_client || listened {
            return stream_id;
        }
        let waits = |(stream_id, stream): &(&StreamId, &Stream)| {
            **stream_id != StreamId::SESSION && stream.is_open() && !stream.answered
        };
        let newest = streams
            .iter()
            .filter(waits)
            .map(|(stream_id, _)| *stream_id)
            .max();
        newest.unwrap_or(stream_id)
    }
}

impl ClientTransport for ResponseStreams {
    fn send(&self, stream_id: StreamId, frame: FrameBytes<'_>, last: bool) {
        self.say(stream_id, frame, last, None);
    }

    fn challenge(&self, stream_id: StreamId, frame: FrameBytes<'_>, challenge: &ServerChallenge) {
        self.say(stream_id, frame, true, Some(Box::new(challenge.clone())));
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_account::SharedByteAccount;
    use crate::listener::event_queue::ReceiveError;

    fn account(limit: usize, share: usize) -> &'static SharedByteAccount {
        Box::leak(Box::new(SharedByteAccount::new(limit, share, ALWAYS)))
    }

    #[test]
    fn a_lost_stream_is_taken_up_where_it_was() {
        let streams = ResponseStreams::of_one_client("test");
        let first = streams.open(StreamId(3));
        streams.send(StreamId(3), FrameBytes::Lent(b"one"), false);
        drop(first);
        streams.send(StreamId(3), FrameBytes::Lent(b"two"), false);
        streams.send(StreamId(3), FrameBytes::Lent(b"three"), true);
        let (stream_id, mut told) = streams.listen(Some("3-1")).unwrap();
        assert_eq!(stream_id, StreamId(3));
        assert_eq!(told.try_recv().unwrap().frame, "two");
        let last = told.try_recv().unwrap();
        assert!(last.last);
        assert_eq!(last.written(true), &b"id: 3-3\ndata: three\n\n"[..]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_handed_to_a_connection_can_be_resumed_for_a_while() {
        let streams = Arc::new(ResponseStreams::of_one_client("test"));
        let mut told = streams.open(StreamId(3));
        streams.send(StreamId(3), FrameBytes::Lent(b"answer"), true);
        let written = told.try_recv().unwrap().written(true);
        let connection = streams.hand_over(StreamId(3)).unwrap();
        assert_eq!(told.try_recv().err(), Some(ReceiveError::Ended));
        assert!(!streams.has_open_requests());
        // The connection breaks before the client has read anything.
        drop((told, written, connection));
        tokio::time::sleep(RESUMABLE / 2).await;
        let (_, mut told) = streams.listen(Some("3-0")).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "answer");
        let connection = streams.hand_over(StreamId(3)).unwrap();
        assert_eq!(told.try_recv().err(), Some(ReceiveError::Ended));
        // Its time begins again with the end of the last connection.
        tokio::time::sleep(RESUMABLE).await;
        drop((told, connection));
        tokio::time::sleep(RESUMABLE / 2).await;
        drop(streams.listen(Some("3-0")).unwrap());
        tokio::time::sleep(RESUMABLE).await;
        assert_eq!(streams.listen(Some("3-0")).err(), Some(StreamError::Done));
        assert!(streams.streams().is_empty());
    }

    #[tokio::test]
    async fn answers_that_were_handed_over_take_no_room_of_lost_ones_and_are_bounded() {
        const LIMIT: usize = 8 * 1024 * 1024;
        let bytes = CallerBytes::new(
            ByteShare::new(account(LIMIT, 4)),
            ByteShare::new(account(LIMIT, 8)),
        );
        let bytes = Arc::new(bytes);
        let client = || Arc::new(ResponseStreams::new(bytes.clone(), true));
        let (answered, lost) = (client(), client());
        let frame = vec![b'x'; LIMIT / 16];
        for id in 1..=200 {
            drop(answered.open(StreamId(id)));
            answered.send(StreamId(id), FrameBytes::Lent(&frame), true);
            drop(answered.hand_over(StreamId(id)));
            assert_eq!(bytes.stored.bytes(), 0);
            assert!(!bytes.handed_over.is_exceeded());
        }
        assert!(bytes.handed_over.bytes() > 100 * frame.len());
        assert_eq!(answered.listen(Some("1-0")).err(), Some(StreamError::Done));
        let (_, mut told) = answered.listen(Some("200-0")).unwrap();
        assert_eq!(told.try_recv().unwrap().frame.len(), frame.len());
        // Another session of the caller has all of its room.
        drop(lost.open(StreamId(1)));
        lost.send(StreamId(1), FrameBytes::Lent(&frame), true);
        let (_, mut told) = lost.listen(Some("1-0")).unwrap();
        assert_eq!(told.try_recv().unwrap().frame.len(), frame.len());
        drop((answered, lost, told));
        assert_eq!((bytes.stored.bytes(), bytes.handed_over.bytes()), (0, 0));
    }

    #[tokio::test]
    async fn answers_that_were_handed_over_make_room_before_lost_ones() {
        let streams = Arc::new(ResponseStreams::of_one_client("test"));
        drop(streams.open(StreamId(1)));
        for id in 2..=LOST as u64 {
            drop(streams.open(StreamId(id)));
            streams.send(StreamId(id), FrameBytes::Lent(b"answer"), true);
            drop(streams.hand_over(StreamId(id)));
        }
        for id in 1_000..1_100 {
            drop(streams.open(StreamId(id)));
        }
        assert_eq!(streams.streams().len(), LOST);
        streams.send(StreamId(1), FrameBytes::Lent(b"late"), true);
        let (_, mut told) = streams.listen(Some("1-0")).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "late");
        // Clients without a session resume nothing.
        let streams = Arc::new(ResponseStreams::of_caller("test"));
        drop(streams.open(StreamId(1)));
        assert!(streams.hand_over(StreamId(1)).is_none());
        assert!(streams.streams().is_empty());
    }

    #[test]
    fn a_sessions_stream_that_was_ended_goes_on_for_the_next_listener() {
        let streams = ResponseStreams::of_one_client("test");
        let (_, mut told) = streams.listen(None).unwrap();
        assert!(streams.is_listened_to());
        streams.hang_up();
        assert!(!streams.is_listened_to());
        assert_eq!(told.try_recv().unwrap_err(), ReceiveError::Ended);
        streams.send(StreamId::SESSION, FrameBytes::Lent(b"meanwhile"), false);
        let (_, mut told) = streams.listen(None).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "meanwhile");
    }

    #[test]
    fn the_sessions_stream_has_what_was_said_before_it_was_opened() {
        let streams = ResponseStreams::of_one_client("test");
        streams.send(StreamId::SESSION, FrameBytes::Lent(b"early"), false);
        let (_, mut told) = streams.listen(None).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "early");
        assert_eq!(streams.listen(None).err(), Some(StreamError::Open));
        assert_eq!(streams.listen(Some("8-1")).err(), Some(StreamError::Done));
        for lost in 10..10 + LOST as u64 {
            drop(streams.open(StreamId(lost)));
        }
        let all = streams.streams().len();
        assert_eq!(all, LOST, "the oldest lost stream made room");
        assert!(streams.close(StreamId(11)) && !streams.close(StreamId(10)));
        streams.send(StreamId(9), FrameBytes::Lent(b"nobody asked"), false);
        assert!(!streams.close(StreamId(9)));
    }

    #[test]
    fn what_was_listened_to_is_not_said_again_to_who_does_not_ask_for_it() {
        let streams = ResponseStreams::of_one_client("test");
        let (_, mut told) = streams.listen(None).unwrap();
        streams.send(StreamId::SESSION, FrameBytes::Lent(b"heard"), false);
        assert_eq!(told.try_recv().unwrap().frame, "heard");
        drop(told);
        streams.send(StreamId::SESSION, FrameBytes::Lent(b"missed"), false);
        let (_, mut told) = streams.listen(None).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "missed");
        assert!(told.try_recv().is_err());
        drop(told);
        let (_, mut told) = streams.listen(Some("0-0")).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "heard");
        assert_eq!(told.try_recv().unwrap().frame, "missed");
    }

    #[test]
    fn a_stream_that_nobody_reads_is_cut_and_what_is_kept_is_bounded() {
        let streams = ResponseStreams::of_one_client("test");
        let mut told = streams.open(StreamId(1));
        let long = vec![b'x'; UNREAD / 4 + 1];
        for _ in 0..6 {
            streams.send(StreamId(1), FrameBytes::Lent(&long), false);
        }
        let mut waiting = 0;
        while told.try_recv().is_ok() {
            waiting += 1;
        }
        assert_eq!(waiting, 3, "what waited is there, and nothing more");
        assert_eq!(told.try_recv().err(), Some(ReceiveError::Ended));
        let (_, mut told) = streams.listen(Some("1-3")).unwrap();
        assert_eq!(told.try_recv().unwrap().id, "1-4");
    }

    #[test]
    fn what_is_kept_for_lost_streams_has_a_bound_for_each_client_and_for_all() {
        const LIMIT: usize = 8 * 1024 * 1024;
        const SHARE: usize = 8;
        let all = account(LIMIT, SHARE);
        let client = || {
            let caller =
                CallerBytes::new(ByteShare::new(account(LIMIT, SHARE)), ByteShare::new(all));
            ResponseStreams::new(Arc::new(caller), true)
        };
        let frame = vec![b'x'; LIMIT / 16];
        let hostile: Vec<_> = (0..64).map(|_| client()).collect();
        for streams in &hostile {
            for id in 1..=4 {
                drop(streams.open(StreamId(id)));
                streams.send(StreamId(id), FrameBytes::Lent(&frame), true);
            }
            let bytes = streams.caller.stored.bytes();
            assert!(bytes <= LIMIT / SHARE, "{bytes}");
        }
        assert!(all.total() <= LIMIT);
        // The newest is the one that a client resumes.
        let (_, mut told) = hostile[0].listen(Some("4-0")).unwrap();
        assert_eq!(told.try_recv().unwrap().frame.len(), frame.len());
        let other = client();
        drop(other.open(StreamId(1)));
        other.send(StreamId(1), FrameBytes::Lent(b"short"), true);
        let (_, mut told) = other.listen(Some("1-0")).unwrap();
        assert_eq!(told.try_recv().unwrap().frame, "short");
        drop((hostile, other));
        assert_eq!(all.total(), 0);
    }

    #[test]
    fn nothing_is_kept_for_clients_that_cannot_resume() {
        let streams = ResponseStreams::of_caller("without a session");
        drop(streams.open(StreamId(1)));
        streams.send(StreamId(1), FrameBytes::Lent(b"lost"), true);
        assert_eq!(streams.caller.stored.bytes(), 0);
    }

    #[test]
    fn what_a_caller_does_not_read_has_a_bound_until_it_is_written() {
        const LIMIT: usize = 8 * 1024 * 1024;
        let all = account(LIMIT, 4);
        let caller = || {
            let caller = CallerBytes::new(ByteShare::new(all), ByteShare::new(account(LIMIT, 8)));
            ResponseStreams::new(Arc::new(caller), false)
        };
        let frame = vec![b'x'; LIMIT / 16];
        let hostile = caller();
        let mut bodies = Vec::new();
        let mut refused = 0;
        for id in 1..=16 {
            let mut told = hostile.open(StreamId(id));
            hostile.send(StreamId(id), FrameBytes::Lent(&frame), true);
            match told.try_recv() {
                // On its way to a client that reads nothing.
                Ok(event) => bodies.push(event.into_frame()),
                Err(_) => refused += 1,
            }
        }
        assert_eq!((bodies.len(), refused), (3, 13), "with what each takes");
        let other = caller();
        let mut told = other.open(StreamId(1));
        other.send(StreamId(1), FrameBytes::Lent(&frame), true);
        assert_eq!(
            told.try_recv().unwrap().written(false).len(),
            frame.len() + 8
        );
        drop(bodies);
        assert_eq!(all.total(), 0);
        let mut told = hostile.open(StreamId(20));
        hostile.send(StreamId(20), FrameBytes::Lent(&frame), true);
        assert!(told.try_recv().is_ok());
    }

    #[test]
    fn a_client_that_does_not_read_keeps_no_message_from_the_callers_other_clients() {
        const LIMIT: usize = 8 * 1024 * 1024;
        let all = account(LIMIT, 4);
        let caller = CallerBytes::new(ByteShare::new(all), ByteShare::new(account(LIMIT, 8)));
        let caller = Arc::new(caller);
        let client = || ResponseStreams::new(caller.clone(), true);
        let (unread, reads) = (client(), client());
        let frame = vec![b'x'; 32 * 1024];
        let told: Vec<_> = (1..=2).map(|id| unread.open(StreamId(id))).collect();
        for _ in 0..200 {
            for id in 1..=2 {
                unread.send(StreamId(id), FrameBytes::Lent(&frame), false);
            }
            assert!(all.total() <= LIMIT / 4 + 4 * ALWAYS, "{}", all.total());
        }
        let mut answer = reads.open(StreamId(9));
        reads.send(StreamId(9), FrameBytes::Lent(b"answer"), true);
        assert_eq!(answer.try_recv().unwrap().frame, "answer");
        // A longer one has room too: what is not read is taken back.
        let long = vec![b'x'; LIMIT / 8];
        let mut answer = reads.open(StreamId(10));
        reads.send(StreamId(10), FrameBytes::Lent(&long), true);
        assert_eq!(answer.try_recv().unwrap().frame.len(), long.len());
        // What is on its way cannot be taken back; short messages pass all the same.
        let on_its_way: Vec<_> = (20..40)
            .filter_map(|id| {
                let mut told = unread.open(StreamId(id));
                unread.send(StreamId(id), FrameBytes::Lent(&long), true);
                Some(told.try_recv().ok()?.into_frame())
            })
            .collect();
        assert!(on_its_way.len() < 3);
        let mut answer = reads.open(StreamId(11));
        reads.send(StreamId(11), FrameBytes::Lent(b"answer"), true);
        assert_eq!(answer.try_recv().unwrap().frame, "answer");
        drop((told, on_its_way));
        assert_eq!(all.total(), 0);
    }

    #[test]
    fn what_is_sent_again_to_who_does_not_read_has_a_bound_too() {
        const LIMIT: usize = 8 * 1024 * 1024;
        let all = account(LIMIT, 4);
        let caller = CallerBytes::new(ByteShare::new(all), ByteShare::new(account(16 * LIMIT, 1)));
        let streams = ResponseStreams::new(Arc::new(caller), true);
        let frame = vec![b'x'; LIMIT / 16];
        drop(streams.open(StreamId(1)));
        for _ in 0..2 {
            streams.send(StreamId(1), FrameBytes::Lent(&frame), false);
        }
        let listen = || streams.listen(Some("1-0")).unwrap().1;
        let unread: Vec<_> = (0..16).map(|_| listen()).collect();
        assert!(all.total() <= LIMIT / 4, "{}", all.total());
        drop(unread);
        assert_eq!(all.total(), 0);
        // A connection that has ended with a part leaves the rest for the next one.
        let (mut first, mut second) = (listen(), listen());
        assert_eq!(first.try_recv().err(), Some(ReceiveError::Ended), "cut");
        let on_its_way = [second.try_recv().unwrap(), second.try_recv().unwrap()];
        let mut third = listen();
        let last = third.try_recv().unwrap();
        assert_eq!(
            (last.id.as_str(), third.try_recv().err()),
            ("1-1", Some(ReceiveError::Ended))
        );
        drop((second, on_its_way, last));
        let (_, mut told) = streams.listen(Some("1-1")).unwrap();
        assert_eq!(told.try_recv().unwrap().id, "1-2");
    }

    #[test]
    fn every_stream_ends_with_what_was_said_on_it() {
        let streams = ResponseStreams::of_one_client("test");
        let (_, mut session) = streams.listen(None).unwrap();
        let mut request = streams.open(StreamId(1));
        streams.send(StreamId(1), FrameBytes::Lent(b"over"), true);
        streams.end();
        assert_eq!(request.try_recv().unwrap().frame, "over");
        for told in [&mut session, &mut request, &mut streams.open(StreamId(2))] {
            assert_eq!(told.try_recv().err(), Some(ReceiveError::Ended));
        }
        assert_eq!(streams.listen(None).err(), Some(StreamError::Done));
    }

    #[test]
    fn a_client_without_a_session_stream_hears_on_the_stream_of_its_request() {
        let streams = ResponseStreams::of_one_client("test");
        let mut first = streams.open(StreamId(1));
        streams.send(StreamId(1), FrameBytes::Lent(b"answer"), true);
        assert_eq!(first.try_recv().unwrap().frame, "answer");
        streams.send(StreamId::SESSION, FrameBytes::Lent(b"waits"), false);
        assert!(
            first.try_recv().is_err(),
            "an answered request hears no more"
        );
        let mut second = streams.open(StreamId(2));
        streams.send(StreamId::SESSION, FrameBytes::Lent(b"log"), false);
        assert_eq!(second.try_recv().unwrap().frame, "log");
        let (_, mut session) = streams.listen(None).unwrap();
        assert_eq!(session.try_recv().unwrap().frame, "waits");
        streams.send(StreamId::SESSION, FrameBytes::Lent(b"there"), false);
        assert_eq!(session.try_recv().unwrap().frame, "there");
        assert!(second.try_recv().is_err());
    }
}
