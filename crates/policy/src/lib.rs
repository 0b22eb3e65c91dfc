//! The rules of a gateway: who is asked, by which rule, who may act, and when something is due.
//!
//! Pure: facts and times go in, decisions come out. No clock, no file, no network, no protocol.
//!
//! | module | contents |
//! | --- | --- |
//! | [`rules`] | the parsed file, and its two decisions: [`rules::Rules::admit`] and [`rules::Rules::plan`] |
//! | [`people`] | people, groups and roles of the file |
//! | [`calling`] | the callers of calls, and the people who they are |
//! | [`facts`] | the facts about one call and one question that rules are matched with |
//! | [`access`] | the table of role by action |
//! | [`quorum`] | the acts of people on one question, as transitions |
//! | [`identity`] | what is known of a person beside the name, so that one person does not count as two |
//! | [`schedule`] | reminders, escalations and the deadline of one question |
//! | [`defect`] | mistakes in a file, each with its line and column |
//! | [`document`] | TOML values with their places |
//! | `glob` | patterns for names |
//! | `condition` | `when`: CEL with fixed types and bounded cost (feature `cel`) |

pub mod access;
pub mod calling;
mod condition;
pub mod defect;
pub mod document;
pub mod facts;
mod glob;
pub mod identity;
pub mod people;
pub mod quorum;
pub mod rules;
pub mod schedule;

pub use calling::{CallingPerson, IdentifiedCaller};
pub use condition::ConditionError;
pub use defect::{RuleDefect, nearest};
pub use facts::{Annotations, Call, Caller, CallerKind, Facts, FieldFacts, Now, QuestionFacts};
pub use people::{Addressee, People};
pub use rules::Rules;
