//! A server's claims about a tool, for people who approve a call of it.

use serde::{Deserialize, Serialize};

/// A server's claims about a tool, as people who approve a call of it read them. Nothing checks them.
///
/// They are no part of the question's identity: a server that describes its tool in other words asks no other question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolClaims {
    /// The description, at most [`ToolClaims::MAX_DESCRIPTION`] characters of it. It must be sanitized before it is
    /// shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `readOnlyHint`, if the server lists it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `destructiveHint`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// `idempotentHint`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// Arguments of the tool's schema that the call leaves out, at most [`ToolClaims::MAX_ABSENT`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<AbsentArgument>,
    /// The number of further ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_absent: usize,
}

/// An argument of a tool's schema that a call leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsentArgument {
    /// The name. It must be sanitized before it is shown.
    pub name: String,
    /// The default in the schema, JSON; `None` if it has none. It must be sanitized before it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl ToolClaims {
    /// The longest kept description, in characters.
    pub const MAX_DESCRIPTION: usize = 2_000;
    /// The most arguments that are named.
    pub const MAX_ABSENT: usize = 20;

    /// Returns the hints in words, the weightiest first. Whether a tool is destructive or idempotent means nothing if it
    /// is read-only (`ToolAnnotations` of the schema).
    pub fn hints(&self) -> Vec<&'static str> {
        let changes = match (self.read_only, self.destructive) {
            (Some(true), _) => "read-only: it changes nothing",
            (_, Some(true)) => "destructive: it may delete or overwrite",
            (_, Some(false)) => "not destructive: it may change things, but only adds to them",
            (Some(false), None) => "not read-only: it may change things",
            (None, None) => "no word on whether it changes or deletes anything",
        };
        let again = match self.idempotent.filter(|_| self.read_only != Some(true)) {
            Some(true) => Some("idempotent: the same call again changes nothing more"),
            Some(false) => Some("not idempotent: the same call again has its effect again"),
            None => None,
        };
        let reach = match self.open_world {
            Some(true) => Some("open world: it reaches other systems"),
            Some(false) => Some("closed world: it reaches no other system"),
            None => None,
        };
        [Some(changes), again, reach]
            .into_iter()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_mean_nothing_beside_another_are_left_out() {
        let hints = |read_only, destructive, idempotent, open_world| {
            let claims = ToolClaims {
                read_only,
                destructive,
                idempotent,
                open_world,
                ..ToolClaims::default()
            };
            claims.hints().join("; ")
        };
        assert_eq!(
            hints(Some(true), Some(true), Some(false), None),
            "read-only: it changes nothing"
        );
        assert!(hints(None, Some(true), None, None).starts_with("destructive"));
        assert!(hints(Some(false), Some(true), None, None).starts_with("destructive"));
        assert!(hints(Some(false), None, None, None).starts_with("not read-only"));
        assert_eq!(
            hints(None, Some(false), Some(true), Some(true))
                .matches(": ")
                .count(),
            3
        );
        assert!(hints(None, None, None, None).starts_with("no word"));
    }
}
