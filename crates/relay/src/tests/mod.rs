//! The relay under a simulator: a client, a server, people and a record on a virtual clock.

pub(crate) mod approvals;
mod attribution;
mod both_eras;
mod bounds;
mod bridging;
mod budget;
mod candidates;
mod chaos;
mod cost;
mod dialogs;
mod held;
mod held_rounds;
mod ids;
mod mixed_rounds;
mod passed_rounds;
mod passing;
mod states;
mod table;
mod tasks;
mod transcripts;
mod turns;
mod unreadable;
mod world;
