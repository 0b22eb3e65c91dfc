//! Profiles of MCP clients: what a client really does with a question, beside what it declares. Data with evidence, no
//! code for a single client.
//!
//! The profiles that come with the program are in `profiles.toml`. An operator's own files are read after them. All
//! entries that match a client apply in order, and later keys win. A profile never makes up an act: it decides who is
//! asked, and which acts of a client are doubted.
//!
//! Pure: the text of files, the environment and a client's messages are arguments.
//!
//! | file | contents |
//! | --- | --- |
//! | `entry` | one entry of a file: a match, keys and evidence |
//! | `read` | reading a file, with the position of each mistake |
//! | `matching` | the conditions of an entry |
//! | `profile` | the keys that apply to a client |
//! | `acts` | the answers of a client in which a program decides, for tests of servers |
//! | `profiles` | all entries, in order |

mod acts;
mod entry;
mod matching;
mod profile;
mod profiles;
mod read;

pub use acts::{ProgramAct, ProgramActs};
pub use entry::{EntrySource, Evidence, How, Played, ProfileEntry};
pub use matching::{EnvironmentVariables, MatchCondition, ObservedClient};
pub use profile::{Apps, Dialog, EmptyForm, MessageEffect, PassedOn, Profile, Shows, Titles, View};
pub use profiles::{Profiles, Recognized};
pub use read::{ProfileError, duration};
