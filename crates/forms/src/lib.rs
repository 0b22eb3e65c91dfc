//! The faces of an elicitation question: how a person sees it and answers it.
//!
//! This crate decides how a [`Question`](view::Question) is worded, which control fits a field, in which
//! order things are shown, and what a key or a line means. It never decides whether an answer is right:
//! every answer leaves through `Form::read` of the core crate, and an action (accept, decline, cancel) is
//! only ever what a person did. Closing, crashing, running out of time or of input is a
//! [`NotAnswered`](view::NotAnswered), never an action.
//!
//! # Rooms
//!
//! - [`view`]: the pure view-model both faces share; no input, no output, no clock
//! - [`looks`]: what pages of the house have in common, as plain data
//! - [`terminal`]: asks in a terminal, step by step or line by line (feature `terminal`)
//! - [`web`]: asks in a browser, with pages that other programs can serve as their own (feature `web`)

pub mod looks;
#[cfg(feature = "terminal")]
pub mod terminal;
pub mod view;
#[cfg(feature = "web")]
pub mod web;
