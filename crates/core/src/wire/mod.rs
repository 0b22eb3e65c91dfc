//! The protocol on the wire: JSON-RPC messages, capabilities, questions and answers of every revision.
//!
//! This module knows the spellings of each revision, and not the meaning of forms or answers. It reads without building
//! value trees and keeps unknown members byte for byte, so that a relay can pass them on. Era differences belong here.
//!
//! | file | contents |
//! | --- | --- |
//! | `revision` | the dated revisions, the eras, the modes |
//! | [`frame`] | the positions of a frame's members, found in one scan |
//! | `call_frame` | the call of a request |
//! | `call_kind` | the kinds of calls during which a server may ask |
//! | `envelope` | a JSON-RPC message and its elicitation, if any |
//! | [`message`] | writing messages |
//! | `id` | ids and progress tokens, kept as written |
//! | [`members`] | an object's members as bytes |
//! | `lenient` | an object's members as lenient readers take them: the last one of each name |
//! | [`method`] | method names |
//! | `capability` | the modes in which a client can ask a person |
//! | `request` | the question |
//! | `result` | the result |
//! | [`meta`] | `_meta`: progress token, and the rounds era's revision, client and capabilities |
//! | [`pushed`] | pushed era: -32042 and its completion |
//! | [`rounds`] | rounds era: `input_required`, `inputResponses`, the retry |
//! | `every_era` | the declaration of a server that its tools ask in every era |
//! | `session_version` | the version of a session, for clients of any date |
//! | [`sse`] | server-sent events, reading and writing |
//! | `notice` | cancellation and progress |
//! | [`spelling`] | names as lenient readers take them |
//! | `error` | the errors of all of them |

mod call_frame;
mod call_kind;
mod capability;
mod envelope;
mod error;
mod every_era;
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
mod session_version;
pub mod spelling;
pub mod sse;

pub use call_frame::{CallDefect, CallFrame, RESERVED};
pub use call_kind::{CallKind, UnknownCallKind};
pub use capability::Capability;
pub use envelope::{ElicitationMessage, Envelope, MAX_MESSAGE, MessageKind};
pub use error::{JsonProblem, WireError};
pub use every_era::{ASKS_IN_EVERY_ERA, asks_in_every_era};
pub use frame::{Frame, FrameDefect, FrameIndex, FramePart};
pub use id::Id;
pub use lenient::LenientMembers;
pub use meta::Meta;
pub use notice::{Cancelled, ProgressNotification};
pub use pushed::{Complete, UrlRequired};
pub use request::{ElicitRequest, UnsupportedQuestion};
pub use result::{Action, ElicitResult};
pub use revision::{Era, Mode, Revision, UnknownMode, UnknownRevision};
pub use rounds::{InputRequest, InputRequired, InputResponses};
pub use session_version::SessionVersion;
