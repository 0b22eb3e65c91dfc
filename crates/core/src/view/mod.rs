//! A question as every frontend shows it: its origin, call and message, and the reasons to be careful with it.
//!
//! Programs that answer without a screen show people the same information, so this part of the view model needs no
//! frontend.
//!
//! - [`QuestionView`], [`Origin`], [`CallView`], [`QuestionBody`]: the question, its server, its call, and its form or
//!   link; [`PendingView`]: a question that waits behind another
//! - [`Warning`]: a reason to be careful, shown before anything is typed or opened
//! - [`sanitize`]: text from a peer, made safe to show

mod call;
mod origin;
mod question;
pub mod sanitize;
mod warning;

pub use crate::wire::CallKind;
pub use call::{CallView, exact_argument};
pub use origin::Origin;
pub use question::{PendingView, QuestionBody, QuestionView};
pub use warning::{Warning, warnings};
