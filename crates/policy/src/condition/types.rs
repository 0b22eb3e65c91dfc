//! The types of expressions, and those of the variables that conditions read.

/// The type of an expression, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Bool,
    Int,
    Double,
    Text,
    Null,
    List(Box<Type>),
    Map(Box<Type>),
    Record(&'static RecordType),
    /// Determined at evaluation.
    Any,
}

/// A value with fixed members.
#[derive(Debug, PartialEq)]
pub(super) struct RecordType {
    pub(super) name: &'static str,
    pub(super) members: &'static [(&'static str, MemberType)],
}

/// The type of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MemberType {
    Bool,
    Int,
    Text,
}

static CALLER: RecordType = RecordType {
    name: "caller",
    members: &[
        ("issuer", MemberType::Text),
        ("subject", MemberType::Text),
        ("name", MemberType::Text),
        ("mail", MemberType::Text),
        ("client", MemberType::Text),
        ("person", MemberType::Text),
        ("kind", MemberType::Text),
    ],
};
static ANNOTATIONS: RecordType = RecordType {
    name: "annotations",
    members: &[
        ("readOnly", MemberType::Bool),
        ("destructive", MemberType::Bool),
        ("idempotent", MemberType::Bool),
        ("openWorld", MemberType::Bool),
    ],
};
static QUESTION: RecordType = RecordType {
    name: "question",
    members: &[
        ("mode", MemberType::Text),
        ("message", MemberType::Text),
        ("host", MemberType::Text),
        ("credentials", MemberType::Bool),
    ],
};
static FIELD: RecordType = RecordType {
    name: "a field",
    members: &[
        ("kind", MemberType::Text),
        ("format", MemberType::Text),
        ("required", MemberType::Bool),
        ("options", MemberType::Int),
    ],
};
static NOW: RecordType = RecordType {
    name: "now",
    members: &[
        ("unix", MemberType::Int),
        ("hour", MemberType::Int),
        ("minute", MemberType::Int),
        ("weekday", MemberType::Int),
        ("date", MemberType::Text),
    ],
};

/// The functions of conditions.
pub(super) const FUNCTIONS: [&str; 12] = [
    "has",
    "all",
    "exists",
    "exists_one",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "double",
    "string",
];

/// Returns the type of a variable.
pub(super) fn variable(name: &str) -> Option<Type> {
    Some(match name {
        "caller" => Type::Record(&CALLER),
        "groups" => Type::List(Box::new(Type::Text)),
        "server" | "tool" | "method" => Type::Text,
        "annotations" => Type::Record(&ANNOTATIONS),
        "arguments" => Type::Map(Box::new(Type::Any)),
        "question" => Type::Record(&QUESTION),
        "fields" => Type::Map(Box::new(Type::Record(&FIELD))),
        "now" => Type::Record(&NOW),
        _ => return None,
    })
}

impl Type {
    /// Returns the type in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Int => "a whole number".to_owned(),
            Self::Double => "a number".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Null => "null".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a map".to_owned(),
            Self::Record(record) => format!("`{}`", record.name),
            Self::Any => "any value".to_owned(),
        }
    }

    /// Returns `true` if a value of one type may be equal to one of the other.
    pub(super) fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _)
            | (_, Self::Any)
            | (Self::Int | Self::Double, Self::Int | Self::Double) => true,
            (Self::List(a), Self::List(b)) | (Self::Map(a), Self::Map(b)) => a.may_equal(b),
            (a, b) => a == b,
        }
    }

    /// Returns `true` if a value of this type may be one of the expected type.
    pub(super) fn is(&self, expected: &Self) -> bool {
        self.may_equal(expected)
    }
}
