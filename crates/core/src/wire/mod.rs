//! The protocol as it travels: JSON-RPC messages, capabilities, questions and replies of every revision.
//!
//! Knows what each revision says and how; never what a form means or a person wants. Reads without building value trees
//! and keeps what it does not know byte for byte, so that a relay can pass it on. Era differences live here.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `revision` | the dated revisions, the eras, the modes |
//! | [`frame`] | where a frame's members stand, found in one scan |
//! | `call_frame` | what a request calls |
//! | `call_kind` | the kinds of calls during which a server may ask |
//! | `envelope` | a JSON-RPC message and how it carries elicitation |
//! | [`message`] | writing messages |
//! | `id` | ids and progress tokens, kept as written |
//! | [`members`] | an object's members as bytes |
//! | [`method`] | method names |
//! | `capability` | what a client can ask a person |
//! | `request` | the question |
//! | `result` | the reply |
//! | `lenient` | an object as the last reader of a message takes it, duplicate members included |
//! | [`meta`] | `_meta`: progress token, and the rounds era's revision, client and capabilities |
//! | [`pushed`] | pushed era: -32042 and its completion |
//! | [`rounds`] | rounds era: `input_required`, `inputResponses`, the retry |
//! | [`sse`] | server-sent events, read and written |
//! | `notice` | cancellation and progress |
//! | [`spelling`] | names as lenient readers take them |
//! | `error` | what can be wrong with any of it |

mod call_frame;
mod call_kind;
mod capability;
mod envelope;
mod error;
pub mod frame;
mod id;
mod lenient;
pub mod members;
pub mod message;
pub mod meta;
pub mod method;
mod notice;
pub mod pushed;
mod request;
mod result;
mod revision;
pub mod rounds;
pub mod spelling;
pub mod sse;

pub use call_frame::{CallDefect, CallFrame};
pub use call_kind::{CallKind, UnknownCallKind};
pub use capability::Capability;
pub use envelope::{ElicitationMessage, Envelope, Kind, MAX_MESSAGE};
pub use error::{JsonProblem, WireError};
pub use frame::{Frame, FrameDefect, FrameIndex, FramePart};
pub use id::Id;
pub use lenient::LenientMembers;
pub use meta::Meta;
pub use notice::{Cancelled, Progress};
pub use pushed::{Complete, UrlRequired};
pub use request::{ElicitRequest, UnsupportedQuestion};
pub use result::{Action, ElicitResult};
pub use revision::{Era, Mode, Revision, UnknownMode, UnknownRevision};
pub use rounds::{InputRequest, InputRequired, InputResponses};
