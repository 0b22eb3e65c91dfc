//! A session of either era over a connection, with its frames.

use std::time::Duration;

use mcp_elicit_core::text::beginning;
use mcp_elicit_core::wire::{Capability, Era, Revision, meta, method};
use serde_json::{Map, Value, json};

use crate::connection::{CheckConnection, ReceivedText};
use crate::observation::{Observation, SentFrame};

/// The most frames of a server in one cell.
const MOST_FRAMES: usize = 10_000;
/// The longest kept part of a frame, in bytes.
const LONGEST_FRAME: usize = 2_000;
/// The longest noise that an error quotes, in bytes.
const LONGEST_NOISE: usize = 200;
/// The most tools that are listed.
const MOST_TOOLS: usize = 2_000;
/// The most pages of a list.
const MOST_PAGES: usize = 100;

/// A session.
pub struct CheckSession<'c> {
    connection: &'c mut dyn CheckConnection,
    revision: Revision,
    declares: Capability,
    time_limit: Duration,
    /// The id of the last request.
    last_id: u64,
    received: usize,
    frames: Vec<SentFrame>,
    /// The first text that was no JSON object.
    noise: Option<String>,
    listed_anew: bool,
}

/// The reason why a session did not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionOpenError {
    /// The server speaks another revision.
    #[error("the server does not speak {asked}; it offers {offered}")]
    OtherRevision {
        /// The requested revision.
        asked: Revision,
        /// The server's.
        offered: String,
    },
    /// The server refused.
    #[error("the server refused to open a session: {0}")]
    Refused(String),
    /// The server did not answer.
    #[error("the server did not answer its first request within {} s{}", .within.as_secs(), printed(.noise.as_ref()))]
    Silent {
        /// The time.
        within: Duration,
        /// A text in place of the answer.
        noise: Option<String>,
    },
    /// The server ended.
    #[error("the server ended before it answered its first request: {why}{}", printed(.noise.as_ref()))]
    Ended {
        /// The reason.
        why: String,
        /// A text in place of the answer.
        noise: Option<String>,
    },
    /// The server sends without end.
    #[error("the server sent {MOST_FRAMES} messages before it answered its first request{}", printed(.noise.as_ref()))]
    Flood {
        /// A text among them.
        noise: Option<String>,
    },
}

fn printed(noise: Option<&String>) -> String {
    noise
        .map(|noise| format!("; it printed {noise:?}, which is not a JSON-RPC message"))
        .unwrap_or_default()
}

/// A tool as the server lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// Its name.
    pub name: String,
    /// Its `annotations.readOnlyHint`.
    pub is_read_only: bool,
    /// Its `inputSchema`.
    pub schema: Value,
}

/// The result of a wait for a frame.
#[derive(Debug)]
pub(crate) enum Next {
    /// A frame.
    Frame(Value),
    /// Nothing in time.
    Silence,
    /// The connection has ended.
    Ended(String),
    /// Too many frames.
    Flood,
}

impl<'c> CheckSession<'c> {
    /// Opens a session in this revision, with these modes declared. `time_limit` is the longest wait for a response.
    ///
    /// # Errors
    /// If the server does not speak the revision, or does not answer within `opening`.
    pub fn open(
        connection: &'c mut dyn CheckConnection,
        revision: Revision,
        declares: Capability,
        opening: Duration,
        time_limit: Duration,
    ) -> Result<Self, SessionOpenError> {
        let mut session = Self {
            connection,
            revision,
            declares,
            time_limit,
            last_id: 0,
            received: 0,
            frames: Vec::new(),
            noise: None,
            listed_anew: false,
        };
        let params = match revision.era() {
            Era::Pushed => json!({
                "protocolVersion": revision.as_str(),
                "capabilities": session.capabilities(),
                "clientInfo": client_info(),
            }),
            Era::Rounds => json!({}),
        };
        let name = match revision.era() {
            Era::Pushed => method::INITIALIZE,
            Era::Rounds => method::DISCOVER,
        };
        let id = session.request(name, params);
        let response = session.response(id, opening);
        let noise = session.noise.clone();
        let response = match response {
            Next::Frame(response) => response,
            Next::Silence => {
                return Err(SessionOpenError::Silent {
                    within: opening,
                    noise,
                });
            }
            Next::Ended(why) => return Err(SessionOpenError::Ended { why, noise }),
            Next::Flood => return Err(SessionOpenError::Flood { noise }),
        };
        session.check_opening(&response)?;
        if revision.era() == Era::Pushed {
            session.send(&json!({"jsonrpc": "2.0", "method": method::INITIALIZED}));
        }
        Ok(session)
    }

    fn check_opening(&self, response: &Value) -> Result<(), SessionOpenError> {
        if let Some(error) = response.get("error") {
            let message = error["message"].as_str().unwrap_or("an error");
            return Err(SessionOpenError::Refused(
                beginning(message, LONGEST_NOISE).to_owned(),
            ));
        }
        let result = &response["result"];
        let spoken: Vec<&str> = match self.revision.era() {
            Era::Pushed => result["protocolVersion"].as_str().into_iter().collect(),
            Era::Rounds => {
                let all = result["supportedVersions"].as_array();
                all.into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect()
            }
        };
        if spoken.contains(&self.revision.as_str()) {
            return Ok(());
        }
        let offered = spoken.join(", ");
        Err(SessionOpenError::OtherRevision {
            asked: self.revision,
            offered: beginning(&offered, LONGEST_NOISE).to_owned(),
        })
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();
        if let Some(value) = self.declares.to_value(self.revision) {
            capabilities.insert("elicitation".to_owned(), value);
        }
        Value::Object(capabilities)
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn time_limit(&self) -> Duration {
        self.time_limit
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.connection.elapsed()
    }

    /// Returns the frames so far.
    pub(crate) fn take_frames(&mut self) -> Vec<SentFrame> {
        std::mem::take(&mut self.frames)
    }

    pub(crate) fn leave(&mut self) -> Option<bool> {
        self.connection.leave()
    }

    /// Sends a request of this revision. Returns its id.
    pub(crate) fn request(&mut self, name: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        if self.revision.era() == Era::Rounds {
            params["_meta"] = json!({
                meta::PROTOCOL_VERSION: self.revision.as_str(),
                meta::CLIENT_INFO: client_info(),
                meta::CLIENT_CAPABILITIES: self.capabilities(),
            });
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": name, "params": params}));
        id
    }

    /// Sends a frame as it is.
    pub(crate) fn send(&mut self, frame: &Value) {
        self.log(false, &frame.to_string());
        self.connection.send(frame);
    }

    fn log(&mut self, from_server: bool, text: &str) {
        if self.frames.len() < Observation::FRAMES {
            let kept = beginning(text, LONGEST_FRAME);
            let text = if kept.len() < text.len() {
                format!("{kept}...")
            } else {
                kept.to_owned()
            };
            self.frames.push(SentFrame { from_server, text });
        }
    }

    /// Returns the server's next frame before this time of the connection.
    pub(crate) fn next_until(&mut self, deadline: Duration) -> Next {
        loop {
            let left = deadline.saturating_sub(self.connection.elapsed());
            if left.is_zero() {
                return Next::Silence;
            }
            match self.connection.next(left) {
                ReceivedText::Silence => return Next::Silence,
                ReceivedText::Ended(why) => return Next::Ended(why),
                ReceivedText::Noise(text) => {
                    let text = beginning(&text, LONGEST_NOISE).to_owned();
                    self.noise.get_or_insert(text);
                }
                ReceivedText::Frame(frame) => {
                    self.log(true, &frame.to_string());
                    self.listed_anew |= frame["method"] == "notifications/tools/list_changed";
                    self.received += 1;
                    if self.received > MOST_FRAMES {
                        return Next::Flood;
                    }
                    return Next::Frame(frame);
                }
            }
            self.received += 1;
            if self.received > MOST_FRAMES {
                return Next::Flood;
            }
        }
    }

    /// Answers a request of the server that asks no person.
    pub(crate) fn respond(&mut self, request: &Value) {
        let id = &request["id"];
        let response = match request["method"].as_str() {
            Some("ping") => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            Some("roots/list") => json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}),
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        self.send(&response);
    }

    /// Returns the response to a request that asks nothing.
    pub(crate) fn response(&mut self, id: u64, within: Duration) -> Next {
        let deadline = self.elapsed() + within;
        loop {
            match self.next_until(deadline) {
                Next::Frame(frame) => {
                    if is_response_to(&frame, id) {
                        return Next::Frame(frame);
                    }
                    if is_request(&frame) {
                        self.respond(&frame);
                    }
                }
                other => return other,
            }
        }
    }

    /// Returns the tools of the server; `None` if it does not list them.
    pub fn tools(&mut self) -> Option<Vec<ServerTool>> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let id = self.request("tools/list", params);
            let Next::Frame(response) = self.response(id, self.time_limit) else {
                return None;
            };
            let result = response.get("result")?;
            for tool in result["tools"].as_array()?.iter().take(MOST_TOOLS) {
                tools.push(ServerTool {
                    name: tool["name"].as_str()?.to_owned(),
                    is_read_only: tool["annotations"]["readOnlyHint"] == true,
                    schema: tool["inputSchema"].clone(),
                });
            }
            match result["nextCursor"].as_str() {
                Some(cursor) if tools.len() < MOST_TOOLS => params = json!({"cursor": cursor}),
                _ => break,
            }
        }
        Some(tools)
    }

    /// Waits until the server says that its list of tools has changed, at most this long. Some register their tools a
    /// moment after they are opened.
    pub fn tools_change(&mut self, within: Duration) -> bool {
        let deadline = self.elapsed() + within;
        while !std::mem::take(&mut self.listed_anew) {
            match self.next_until(deadline) {
                Next::Frame(frame) if is_request(&frame) => self.respond(&frame),
                Next::Frame(_) => {}
                Next::Silence | Next::Ended(_) | Next::Flood => return self.listed_anew,
            }
        }
        true
    }
}

/// Returns this client's description of itself.
fn client_info() -> Value {
    json!({"name": "mcp-elicit-check", "version": env!("CARGO_PKG_VERSION")})
}

pub(crate) fn is_response_to(frame: &Value, id: u64) -> bool {
    frame.get("method").is_none() && frame["id"] == id
}

pub(crate) fn is_request(frame: &Value) -> bool {
    frame.get("method").is_some() && frame.get("id").is_some_and(|id| !id.is_null())
}
