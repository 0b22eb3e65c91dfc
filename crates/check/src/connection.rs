//! The connection to a server, which the caller provides.

use std::time::Duration;

use serde_json::Value;

/// A text of the server, or its absence.
#[derive(Clone, Debug, PartialEq)]
pub enum ReceivedText {
    /// A JSON object.
    Frame(Value),
    /// Text that is no JSON object, cut.
    Noise(String),
    /// Nothing within the time.
    Silence,
    /// The connection has ended, for this reason.
    Ended(String),
}

/// A fresh process or session of the server. Frames are sent as they are, wrong ones too.
pub trait CheckConnection {
    /// Sends a frame. A failure shows as [`ReceivedText::Ended`].
    fn send(&mut self, frame: &Value);

    /// Waits for the next text of the server, at most this long.
    fn next(&mut self, within: Duration) -> ReceivedText;

    /// Returns the time since the connection began.
    fn elapsed(&self) -> Duration;

    /// Leaves without a word: closes the input of a process, or the streams of a session. Returns `false` if a process
    /// had to be told to end; `None` if that is not known.
    fn leave(&mut self) -> Option<bool>;
}
