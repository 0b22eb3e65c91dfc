//! The replacement in builds without the feature `otel`, which trace nothing.

use std::sync::Arc;

use mcp_elicit_record::Record;
use mcp_elicit_relay::{AskId, CallId, Relay, StreamId};

use crate::frame::FrameBytes;

/// The traces of a gateway: none.
pub(crate) enum Traces {}

/// The open spans of a session: none.
pub(crate) enum SessionTraces {}

impl Traces {
    pub(crate) fn begin(_: Option<&str>, _: &Record) -> Option<Arc<Self>> {
        None
    }

    #[expect(clippy::unused_async, reason = "traces are of the feature `otel`")]
    pub(crate) async fn close(&self) {
        match *self {}
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        match *self {}
    }

    pub(crate) fn of_session(self: &Arc<Self>, _: &str) -> SessionTraces {
        match **self {}
    }
}

impl SessionTraces {
    pub(crate) fn client_frame(
        &self,
        _: StreamId,
        _: FrameBytes<'_>,
        _: Option<&str>,
    ) -> Option<String> {
        match *self {}
    }

    pub(crate) fn sent(&self, _: &Relay, _: CallId, _: FrameBytes<'_>) -> Option<String> {
        match *self {}
    }

    pub(crate) fn server_frame(&self, _: &Relay, _: FrameBytes<'_>) {
        match *self {}
    }

    pub(crate) fn response(&self, _: StreamId, _: FrameBytes<'_>) {
        match *self {}
    }

    pub(crate) fn stream_ended(&self, _: StreamId) {
        match *self {}
    }

    pub(crate) fn of_question(&self, _: &Relay, _: AskId) -> Option<String> {
        match *self {}
    }

    pub(crate) fn recorded(&self, _: AskId, _: &str, _: Option<&str>) {
        match *self {}
    }

    pub(crate) fn delivery_begun(&self, _: &Relay, _: &[AskId], _: &[String]) {
        match *self {}
    }

    pub(crate) fn delivery_ended(&self, _: &[String], _: &'static str) {
        match *self {}
    }

    pub(crate) fn question_gone(&self, _: &str) {
        match *self {}
    }

    pub(crate) fn session_ended(&self) {
        match *self {}
    }

    pub(crate) fn abandoned(&self, _: CallId) {
        match *self {}
    }

    pub(crate) fn take_over(&self, _: &Self, _: StreamId, _: &[u8]) {
        match *self {}
    }
}
