//! The rules of a gateway: the people who are asked, the rule that asks, the permission to act, and due times.
//!
//! Pure: facts and times go in, decisions come out. No clock, no file, no network, no protocol.
//!
//! | module | contents |
//! | --- | --- |
//! | [`rules`] | the parsed file, and its two decisions: [`rules::Rules::admit`] and [`rules::Rules::plan`] |
//! | [`people`] | people, groups and roles in the file |
//! | [`calling`] | the callers of calls, and their persons |
//! | [`facts`] | the facts about one call and one question that rules are matched with |
//! | [`access`] | the table of actions by role |
//! | [`quorum`] | the actions of people on one question, as transitions |
//! | [`parts`] | people of different groups who must all confirm |
//! | [`identity`] | the identity of a person besides the name, so that one person does not count as two |
//! | [`schedule`] | reminders, escalations and the deadline of one question |
//! | [`defect`] | errors in a file, each with its line and column |
//! | [`document`] | TOML values with their positions |
//! | `spelling` | rules and people in the one spelling of which digests are taken |
//! | `glob` | patterns for names |
//! | `condition` | `when`: CEL with fixed types and limited cost (feature `cel`) |

pub mod access;
pub mod calling;
mod condition;
pub mod defect;
pub mod document;
pub mod facts;
mod glob;
pub mod identity;
pub mod parts;
pub mod people;
pub mod quorum;
pub mod rules;
pub mod schedule;
mod spelling;

pub use calling::{CallingPerson, IdentifiedCaller};
pub use condition::ConditionError;
pub use defect::{RuleDefect, nearest};
pub use facts::{
    Annotations, Caller, CallerKind, Facts, FieldFacts, KnownCall, Now, QuestionFacts,
};
pub use people::{Addressee, People};
pub use rules::Rules;
