//! Log messages of the server, between the eras: a pushed session has one level, and each request of the rounds era its
//! own.
//!
//! A request of the rounds era without a level gets no log messages (2026-07-28, logging); a pushed server is told the
//! most verbose level of such a request.

use crate::parts::log_levels::LogLevel;
use mcp_elicit_core::wire::{Id, members, message, meta};
use serde_json::json;

use crate::frame_edit;
use crate::{CallId, ClientForward, Relay, ServerForward, StreamId};
use mcp_elicit_core::wire::frame::{Frame, FramePart};

/// Returns the level that a request of the rounds era names in its `_meta`.
fn level_of(frame: Frame<'_>) -> Option<LogLevel> {
    LogLevel::read(frame.member(FramePart::Meta, meta::LOG_LEVEL)?)
}

impl Relay {
    /// Returns the level that a request of a rounds client names, and tells a pushed server.
    pub(crate) fn requested_log_level(&mut self, frame: Frame<'_>) -> Option<LogLevel> {
        if !self.client.has_log_level_per_request() {
            return None;
        }
        let level = level_of(frame)?;
        self.ask_for_logs(level);
        Some(level)
    }

    /// Sets the one level of a pushed server: the most verbose that a request has named so far.
    fn ask_for_logs(&mut self, level: LogLevel) {
        if !self.server.has_logging() || !self.log_levels.lower_server(level) {
            return;
        }
        let id = self.new_id();
        let params = members::raw_value(&json!({"level": level.name()}));
        let frame = message::request(&id, "logging/setLevel", Some(&params));
        self.effects.tell_server(frame, None);
    }

    /// Sets the level of a pushed client's session, which a rounds server is told with each request.
    pub(crate) fn set_log_level(
        &mut self,
        stream: StreamId,
        id: &Id,
        frame: Frame<'_>,
    ) -> ClientForward {
        let level = frame.member(FramePart::Params, "level");
        let Some(level) = level.and_then(LogLevel::read) else {
            let why = "`level` must be one of the levels of RFC 5424, in lower case";
            let refusal = frame_edit::ErrorResponse::new(-32602, why);
            self.effects
                .tell_client(stream, refusal.to_response(id), true);
            return ClientForward::Handled;
        };
        self.log_levels.client_asks_for(level);
        let nothing = members::raw_value(&json!({}));
        self.effects
            .tell_client(stream, message::result(id, &nothing), true);
        ClientForward::Handled
    }

    /// Forwards a log message of the server to those requests of a rounds client that asked for its level. A rounds
    /// server obeys the level itself, so there only the request has to be found if requests share a pipe.
    pub(crate) fn server_logs(&mut self, via: Option<CallId>, frame: Frame<'_>) -> ServerForward {
        let server_keeps_to_it = self.server.has_log_level_per_request();
        let one_way = via.is_some() || !self.settings.client_streams;
        if !self.client.has_log_level_per_request() || (server_keeps_to_it && one_way) {
            return self.calls.forward_in_session(via);
        }
        let level = frame.member(FramePart::Params, "level");
        let Some(level) = level.and_then(LogLevel::read) else {
            return ServerForward::Handled;
        };
        let asked = |key: &CallId| {
            let call = self.calls.get(*key)?;
            call.log_level().filter(|wanted| *wanted <= level)?;
            call.stream()
        };
        let mut streams: Vec<StreamId> = if let Some(key) = via {
            asked(&key).into_iter().collect()
        } else {
            // Over stdio the request is unknown: each that asked for it may be meant.
            let keys = self.calls.keys(|call| call.log_level().is_some());
            keys.iter().filter_map(asked).collect()
        };
        streams.sort_unstable();
        streams.dedup();
        if let [stream] = streams[..] {
            return ServerForward::AsIs {
                stream,
                last: false,
            };
        }
        for stream in streams {
            self.effects
                .tell_client(stream, frame.text().to_owned(), false);
        }
        ServerForward::Handled
    }
}
