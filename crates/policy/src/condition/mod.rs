//! `when`: a condition in CEL over facts with fixed types. Its cost is limited when it is parsed, since an evaluation
//! cannot be stopped.
//!
//! | file | contents |
//! | --- | --- |
//! | `check` | types, names and limits, over the tree as written |
//! | `domains` | values that members never have, and texts that a condition requires |
//! | `types` | the types of expressions and variables |
//! | `environment` | the values of one decision, created on first use |
//! | `arguments` | the arguments of a call, parsed without rounding numbers |
//! | `comparison` | conjuncts that are compared without CEL |
//! | `typed_operators` | `==`, `!=` and `in`, for which values of different types are an error |
//! | `prefixes` | paths that are compared with a prefix as text |
//! | `program` | the parsed condition |
//! | `size` | limits on the text, before it is parsed |
//! | `absent` | the replacement without the feature `cel` |

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
mod prefixes;
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

/// An error or warning in a condition, at a byte of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Counted from 0.
    pub(crate) at: usize,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// The texts of which a condition requires one, at a path such as `caller.kind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Required {
    pub(crate) path: String,
    pub(crate) texts: Vec<String>,
    /// The byte of the condition at which they occur, counted from 0.
    pub(crate) at: usize,
}

/// The truth of a condition while some facts are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "cel"),
    expect(dead_code, reason = "without conditions there is nothing to recall")
)]
pub(crate) enum Recalled {
    /// It does not depend on them.
    Known(Result<bool, ConditionError>),
    /// These facts would decide it.
    Needs(Vec<&'static str>),
}

/// An error of evaluating a condition. It contains no value of the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A member is absent.
    #[error("`{0}` is absent")]
    Absent(String),
    /// A member of a value is absent, and the rule does not name it.
    #[error("a member is absent")]
    AbsentMember,
    /// A value has an unsuitable type.
    #[error("a value has the wrong type for {0}")]
    WrongType(String),
    /// The call is unknown: the server did not name the one in which it asks.
    #[error("the call is not known")]
    UnknownCall,
    /// The arguments are not a JSON object, too large, or have a duplicate member.
    #[error("the arguments cannot be read")]
    UnreadableArguments,
    /// The result is neither true nor false.
    #[error("the condition is neither true nor false")]
    NotBoolean,
    /// A division by zero, a number out of range, or an index out of bounds.
    #[error("a number is out of range")]
    OutOfRange,
    /// Any other error.
    #[error("the condition cannot be evaluated")]
    Other,
}

#[cfg(feature = "cel")]
impl ConditionError {
    fn wrong_comparison() -> Self {
        Self::WrongType("this comparison".to_owned())
    }
}
