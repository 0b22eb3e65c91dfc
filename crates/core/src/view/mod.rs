//! A question as every frontend shows it: its origin, call and message, and the reasons to be careful with it.
//!
//! Programs that answer without a screen tell people the same things, so this part of the view model needs no frontend.
//!
//! - [`Question`], [`Origin`], [`Call`], [`Ask`]: the server that asks, for which call, and the form or link; [`Next`]: a question
//!   that waits behind another
//! - [`Warning`]: a reason to be careful, shown before anything is typed or opened
//! - [`inert`]: text from a peer, made harmless to look at

mod call;
pub mod inert;
mod origin;
mod question;
mod warning;

pub use call::{Call, CallKind};
pub use origin::Origin;
pub use question::{Ask, Next, Question};
pub use warning::{Warning, warnings};
