//! Frontends for elicitation questions: a terminal and a browser.
//!
//! This crate decides how a [`QuestionView`](view::QuestionView) is worded, which control fits a field, in which order
//! things are shown, and what a key or a line means. It never decides whether an answer is right: every answer passes
//! `Form::read` of the core crate, and an action (accept, decline, cancel) is only ever a person's. Closing, crashing,
//! running out of time or of input is a [`FrontendError`](view::FrontendError), never an action.
//!
//! # Modules
//!
//! - [`view`]: the pure view model that both frontends share, without input, output or clock
//! - [`theme`]: the style of all web pages of the project, as plain data
//! - [`terminal`]: asks in a terminal, step by step or line by line (feature `terminal`)
//! - [`web`]: asks in a browser, with pages that other programs can serve (feature `web`)

#[cfg(feature = "terminal")]
pub mod terminal;
pub mod theme;
pub mod view;
#[cfg(feature = "web")]
pub mod web;
