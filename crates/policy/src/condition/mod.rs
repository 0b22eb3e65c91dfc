//! `when`: a condition in CEL over facts with fixed types. Its cost is bounded when it is parsed, since an evaluation cannot be
//! stopped.
//!
//! | file | contents |
//! | --- | --- |
//! | `check` | types, names and bounds, over the tree as it was written |
//! | `domains` | values that members never have, and texts that a condition needs |
//! | `types` | the types of expressions and variables |
//! | `environment` | the values of one decision, made when a condition first reads them |
//! | `arguments` | the arguments of a call, read without rounding a number |
//! | `comparison` | conjuncts that are compared without CEL |
//! | `typed_operators` | `==`, `!=` and `in`, for which values of different types are an error |
//! | `program` | the parsed condition |
//! | `size` | bounds of the text, before it is parsed |
//! | `absent` | in place of all that, without the feature `cel` |

#[cfg(not(feature = "cel"))]
mod absent;
#[cfg(feature = "cel")]
mod arguments;
#[cfg(feature = "cel")]
mod check;
#[cfg(feature = "cel")]
mod comparison;
#[cfg(feature = "cel")]
mod domains;
#[cfg(feature = "cel")]
mod environment;
#[cfg(feature = "cel")]
mod program;
#[cfg(feature = "cel")]
mod size;
#[cfg(feature = "cel")]
mod typed_operators;
#[cfg(feature = "cel")]
mod types;

#[cfg(not(feature = "cel"))]
pub(crate) use absent::{Condition, Environment, Interner};
#[cfg(feature = "cel")]
pub(crate) use comparison::Interner;
#[cfg(feature = "cel")]
pub(crate) use environment::Environment;
#[cfg(feature = "cel")]
pub(crate) use program::Condition;

/// A mistake or warning in a condition, at a byte of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Counted from 0.
    pub(crate) at: usize,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Texts without one of which, at a path such as `caller.kind`, a condition is false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Required {
    pub(crate) path: String,
    pub(crate) texts: Vec<String>,
    /// The byte of the condition at which they stand, counted from 0.
    pub(crate) at: usize,
}

/// A condition that could not be evaluated. Holds no value of the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A member is not there.
    #[error("`{0}` is absent")]
    Absent(String),
    /// A member of a value is not there, and the rule does not name it.
    #[error("a member is absent")]
    AbsentMember,
    /// A value has a type that the condition does not take.
    #[error("a value has the wrong type for {0}")]
    WrongType(String),
    /// The call is not known: the server did not say for which of several it asks.
    #[error("the call is not known")]
    UnknownCall,
    /// The arguments are not a JSON object, too large, or have a member twice.
    #[error("the arguments cannot be read")]
    UnreadableArguments,
    /// The condition is neither true nor false.
    #[error("the condition is neither true nor false")]
    NotBoolean,
    /// A division by zero, a number out of its range, or an index out of bounds.
    #[error("a number is out of range")]
    OutOfRange,
    /// Anything else.
    #[error("the condition cannot be evaluated")]
    Other,
}

#[cfg(feature = "cel")]
impl ConditionError {
    fn wrong_comparison() -> Self {
        Self::WrongType("this comparison".to_owned())
    }
}
