//! The relay under a simulator: a client, a server, a desk and a record on a virtual clock.

mod bounds;
mod bridging;
mod chaos;
mod dialogs;
mod echoes;
mod held;
mod passing;
mod states;
mod table;
mod transcripts;
mod turns;
mod whose;
mod world;
