//! Server-sent events: a parser of byte streams, and a writer.

use std::time::Duration;

/// The longest id of an event that is kept, in bytes: a longer one is ignored.
const MAX_ID: usize = 1_024;
/// The memory that is kept for further lines after a long one, in bytes.
const LINE_MEMORY: usize = 64 * 1024;

/// A parser that turns bytes into events as they arrive.
#[derive(Default)]
pub struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    id: Option<String>,
    retry: Option<Duration>,
    after_return: bool,
    /// `true` if the event has a name other than `message`.
    is_named: bool,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerEvent {
    /// Its data, with lines joined.
    pub data: Vec<u8>,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// `true` if it has no name, or `message`.
    pub is_message: bool,
}

impl EventReader {
    /// Adds bytes and calls `each` with every event that they complete.
    pub fn read(&mut self, bytes: &[u8], mut each: impl FnMut(ServerEvent)) {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, end) = (&rest[..at], rest[at]);
            // `\r\n` is one line end, even if it is split.
            let joined =
                self.after_return && end == b'\n' && line.is_empty() && self.line.is_empty();
            self.after_return = end == b'\r';
            if !joined {
                self.line.extend_from_slice(line);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut each);
                self.line = line;
                self.line.clear();
                self.line.shrink_to(LINE_MEMORY);
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.line.extend_from_slice(rest);
        }
    }

    /// Returns the number of bytes held for an incomplete event.
    pub fn held(&self) -> usize {
        let id = self.id.as_ref().map_or(0, String::len);
        self.line.len() + self.data.len() + id
    }

    /// Returns the reconnection time of the stream, if it set one.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn take_line(&mut self, line: &[u8], each: &mut impl FnMut(ServerEvent)) {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let id = self.id.take();
            let is_message = !std::mem::take(&mut self.is_named);
            if !data.is_empty() || id.is_some() {
                each(ServerEvent {
                    data,
                    id,
                    is_message,
                });
            }
            return;
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (
                &line[..at],
                line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..]),
            ),
            None => (line, &[][..]),
        };
        match name {
            b"data" => {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" if value.len() <= MAX_ID => {
                self.id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok();
                let millis = millis.and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            b"event" => self.is_named = !matches!(value, b"" | b"message"),
            // Comments have no meaning here, nor have ids that are too long.
            _ => {}
        }
    }
}

/// Returns an event with this data, which may have line breaks of any kind; they are read back as `\n`.
pub fn written(data: &[u8], id: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 32);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    for line in data.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        for part in line.split(|byte| *byte == b'\r') {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(part);
            out.push(b'\n');
        }
    }
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &[u8], step: usize) -> Vec<(String, Option<String>)> {
        let mut reader = EventReader::default();
        let mut found = Vec::new();
        for chunk in text.chunks(step) {
            reader.read(chunk, |event| {
                found.push((String::from_utf8(event.data).unwrap(), event.id));
            });
        }
        found
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text = b": hi\r\nid: 7\r\ndata: {\"a\":1}\r\n\r\nevent: message\ndata: x\ndata:y\n\nid: 8\ndata\n\ndata: cut off";
        for step in 1..text.len() {
            let found = events(text, step);
            assert_eq!(
                found[0],
                ("{\"a\":1}".to_owned(), Some("7".to_owned())),
                "{step}"
            );
            assert_eq!(found[1], ("x\ny".to_owned(), None));
            assert_eq!(found.len(), 3, "{step}: {found:?}");
        }
    }

    #[test]
    fn messages_are_told_from_other_events() {
        let text = b"event: ping\ndata: x\n\nevent: other\nid: 3\ndata: y\n\nevent: message\ndata: z\n\ndata: w\n\n";
        let mut found = Vec::new();
        EventReader::default().read(text, |event| {
            found.push((String::from_utf8(event.data).unwrap(), event.is_message));
        });
        let found: Vec<_> = found
            .iter()
            .map(|(data, is)| (data.as_str(), *is))
            .collect();
        assert_eq!(
            found,
            [("x", false), ("y", false), ("z", true), ("w", true)]
        );
    }

    #[test]
    fn a_long_id_is_ignored_and_nothing_long_is_kept() {
        let text = |id: usize| format!("id: {}\ndata: x\n\n", "i".repeat(id));
        let id_of = |id: usize| events(text(id).as_bytes(), 7)[0].1.clone();
        assert_eq!(id_of(MAX_ID), Some("i".repeat(MAX_ID)));
        assert_eq!(id_of(MAX_ID + 1), None);
        let mut reader = EventReader::default();
        reader.read(b"id: 1234567\ndata: abc\n: half", |_| {});
        assert_eq!(reader.held(), 7 + 3 + 6);
        reader.read(&vec![b'x'; 1_000_000], |_| {});
        assert_eq!(reader.held(), 7 + 3 + 6 + 1_000_000);
        reader.read(b"\n", |_| {});
        assert_eq!(reader.held(), 7 + 3);
        assert!(
            reader.line.capacity() <= LINE_MEMORY,
            "{}",
            reader.line.capacity()
        );
    }

    #[test]
    fn how_long_to_wait_is_read() {
        let mut reader = EventReader::default();
        reader.read(b"retry: soon\nid: 1\ndata:\n\n", |_| {});
        assert_eq!(reader.retry(), None);
        reader.read(b"retry: 250\n", |_| {});
        assert_eq!(reader.retry(), Some(Duration::from_millis(250)));
    }

    #[test]
    fn what_is_written_reads_back() {
        for data in ["{\"a\":\n1}", "{\"a\":\r\n1}", "{\"a\":\r1}"] {
            let text = written(data.as_bytes(), Some("s-1"));
            assert_eq!(
                events(&text, 5),
                [("{\"a\":\n1}".to_owned(), Some("s-1".to_owned()))],
                "{data:?}"
            );
        }
    }
}
