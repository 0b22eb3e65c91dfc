//! Puts the gateway before the servers in the configuration files of MCP clients, and takes it away again.
//!
//! A file is not written anew: a parser gives the byte ranges of values, only these are replaced, and the result is read
//! again and compared with the intended values. Comments, order, indentation, line ends and a byte order mark stay.
//!
//! | file | contents |
//! | --- | --- |
//! | `clients` | the files of each client and their form, as data (`clients.toml`); paths for each system |
//! | `parse` | JSON with comments, TOML and YAML as one tree of values with byte ranges |
//! | `tree` | that tree |
//! | `servers` | the servers in a file, and the changes for one |
//! | `environment` | paths and variables with which a project puts its own code in the gateway's place |
//! | `edit` | a change as a change of values, and as edits of bytes |
//! | `document` | a file in memory: planned changes, their check, their diff |
//! | `write` | replacing a file: whole before or after, whenever the program is killed |
//! | `journal` | what each file was before a change |
//! | `undo` | the way back |
//!
//! Everything but `write` and `journal` is pure: the system, the environment and the bytes of files are arguments. Only whether
//! a path is in the project is asked of the disk, for links.

mod clients;
mod document;
mod edit;
mod environment;
pub mod journal;
mod parse;
mod servers;
mod tree;
pub mod undo;
pub mod write;

pub use clients::{ClientFiles, FileLocation, PathFacts, System};
pub use document::{
    ChangedServer, DiffLine, Document, FilePlan, LeftAlone, MAX_BYTES, MAX_ENTRIES, ReadError,
    ShortLimit, Wish,
};
pub use parse::{FileFormat, SyntaxError};
pub use servers::{ServerEntry, SetupState};
