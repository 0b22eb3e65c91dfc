//! The one spelling of rules, plans and people, of which digests are taken.
//!
//! Digests of rules are stored: in open questions, in the identity by which the same call finds its question again, and
//! in approvals that are valid for a while. The spelling must therefore not change for what a file could say before, and
//! is written here member by member, independent of names in the code. Every type is taken apart completely, so that a
//! new member does not compile until its spelling is decided: a member that came later is written only if it is set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroU8;
use std::time::Duration;

use mcp_elicit_core::wire::CallKind;

use crate::condition::Condition;
use crate::glob::Glob;
use crate::parts::Part;
use crate::people::{Addressee, Group, People, PersonEntry};
use crate::rules::targets::{TargetPattern, Targets};
use crate::rules::{
    ApprovalPlan, AskedPeople, Decision, OnError, OnTimeout, Plan, ReasonsReach, RefuseDecision,
    Reveal,
};
use crate::schedule::Escalation;

/// Returns a value in its spelling.
pub(crate) fn spelled(value: &(impl Spelled + ?Sized)) -> String {
    let mut out = String::new();
    value.spell(&mut out);
    out
}

/// A value with one spelling.
pub(crate) trait Spelled {
    /// Adds the spelling to a text.
    fn spell(&self, out: &mut String);
}

/// The members of a named value while they are written.
struct SpelledMembers<'o> {
    out: &'o mut String,
    is_first: bool,
}

impl<'o> SpelledMembers<'o> {
    fn of(name: &str, out: &'o mut String) -> Self {
        out.push_str(name);
        Self {
            out,
            is_first: true,
        }
    }

    fn with(mut self, name: &str, value: &(impl Spelled + ?Sized)) -> Self {
        let before = if std::mem::take(&mut self.is_first) {
            " { "
        } else {
            ", "
        };
        for part in [before, name, ": "] {
            self.out.push_str(part);
        }
        value.spell(self.out);
        self
    }

    /// Writes a member that came later: only if it is set, so that the spelling of all others stays.
    fn with_later(self, name: &str, value: &(impl Spelled + ?Sized), is_set: bool) -> Self {
        if is_set { self.with(name, value) } else { self }
    }

    fn end(self) {
        self.out.push_str(" }");
    }
}

/// Writes a value in parentheses after its name.
fn tuple(name: &str, value: &(impl Spelled + ?Sized), out: &mut String) {
    out.push_str(name);
    out.push('(');
    value.spell(out);
    out.push(')');
}

/// Writes values between brackets.
fn sequence<'v, T: Spelled + ?Sized + 'v>(
    [open, close]: [char; 2],
    values: impl IntoIterator<Item = &'v T>,
    out: &mut String,
) {
    out.push(open);
    for (number, value) in values.into_iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        value.spell(out);
    }
    out.push(close);
}

impl Spelled for str {
    /// In quotes. Characters beyond ASCII are escaped if they are invisible or combine with the one before.
    fn spell(&self, out: &mut String) {
        out.push('"');
        for one in self.chars() {
            match one {
                '\'' => out.push(one),
                other => out.extend(other.escape_debug()),
            }
        }
        out.push('"');
    }
}

impl Spelled for String {
    fn spell(&self, out: &mut String) {
        self.as_str().spell(out);
    }
}

impl Spelled for bool {
    fn spell(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

impl Spelled for NonZeroU8 {
    fn spell(&self, out: &mut String) {
        out.push_str(&self.to_string());
    }
}

impl Spelled for Duration {
    /// In seconds: a file has no shorter unit.
    fn spell(&self, out: &mut String) {
        out.push_str(&self.as_secs().to_string());
        if self.subsec_nanos() > 0 {
            let _never_fails = write!(out, ".{:09}", self.subsec_nanos());
        }
        out.push('s');
    }
}

impl<T: Spelled> Spelled for Option<T> {
    fn spell(&self, out: &mut String) {
        match self {
            Some(value) => tuple("Some", value, out),
            None => out.push_str("None"),
        }
    }
}

impl<T: Spelled> Spelled for Vec<T> {
    fn spell(&self, out: &mut String) {
        sequence(['[', ']'], self, out);
    }
}

impl Spelled for BTreeSet<String> {
    fn spell(&self, out: &mut String) {
        sequence(['{', '}'], self, out);
    }
}

impl<T: Spelled> Spelled for BTreeMap<String, T> {
    fn spell(&self, out: &mut String) {
        out.push('{');
        for (number, (name, value)) in self.iter().enumerate() {
            if number > 0 {
                out.push_str(", ");
            }
            name.spell(out);
            out.push_str(": ");
            value.spell(out);
        }
        out.push('}');
    }
}

impl Spelled for Addressee {
    fn spell(&self, out: &mut String) {
        match self {
            Self::Caller => out.push_str("Caller"),
            Self::Person(name) => tuple("Person", name, out),
            Self::Group(name) => tuple("Group", name, out),
        }
    }
}

impl Spelled for Part {
    fn spell(&self, out: &mut String) {
        let Self { to, need } = self;
        SpelledMembers::of("Part", out)
            .with("to", to)
            .with("need", need)
            .end();
    }
}

impl Spelled for Escalation {
    fn spell(&self, out: &mut String) {
        let Self { after, to } = self;
        SpelledMembers::of("Escalation", out)
            .with("after", after)
            .with("to", to)
            .end();
    }
}

impl Spelled for OnTimeout {
    fn spell(&self, out: &mut String) {
        out.push_str(match self {
            Self::Error => "Error",
            Self::HandBack => "HandBack",
        });
    }
}

impl Spelled for OnError {
    fn spell(&self, out: &mut String) {
        out.push_str(match self {
            Self::Match => "Match",
            Self::Skip => "Skip",
            Self::Refuse => "Refuse",
        });
    }
}

impl Spelled for Reveal {
    fn spell(&self, out: &mut String) {
        out.push_str(match self {
            Self::Minimal => "Minimal",
            Self::Question => "Question",
            Self::Arguments => "Arguments",
        });
    }
}

impl Spelled for ReasonsReach {
    fn spell(&self, out: &mut String) {
        let Self { caller, audit } = self;
        SpelledMembers::of("ReasonsReach", out)
            .with("caller", caller)
            .with("audit", audit)
            .end();
    }
}

impl Spelled for AskedPeople {
    fn spell(&self, out: &mut String) {
        let Self {
            to,
            each,
            need,
            not_caller,
            is_any,
        } = self;
        SpelledMembers::of("Ask", out)
            .with("to", to)
            .with_later("each", each, !each.is_empty())
            .with("need", need)
            .with("not_caller", not_caller)
            .with("is_any", is_any)
            .end();
    }
}

impl Spelled for Plan {
    fn spell(&self, out: &mut String) {
        let Self {
            ask,
            deadline,
            remind,
            escalate,
            on_timeout,
            claim,
            delegate_to,
            reauth,
            reveal,
            reasons,
            explain,
            link,
            keep_arguments,
        } = self;
        let is_explained = explain.is_some() || link.is_some();
        SpelledMembers::of("Plan", out)
            .with("ask", ask)
            .with("deadline", deadline)
            .with("remind", remind)
            .with("escalate", escalate)
            .with("on_timeout", on_timeout)
            .with("claim", claim)
            .with("delegate_to", delegate_to)
            .with("reauth", reauth)
            .with("reveal", reveal)
            .with_later("reasons", reasons, *reasons != ReasonsReach::default())
            .with_later("explain", explain, is_explained)
            .with_later("link", link, is_explained)
            .with_later("keep_arguments", keep_arguments, keep_arguments.is_some())
            .end();
    }
}

impl Spelled for RefuseDecision {
    fn spell(&self, out: &mut String) {
        let Self {
            reason,
            modes,
            credentials,
        } = self;
        SpelledMembers::of("Refusal", out)
            .with("reason", reason)
            .with("modes", modes)
            .with("credentials", credentials)
            .end();
    }
}

impl Spelled for ApprovalPlan {
    fn spell(&self, out: &mut String) {
        let Self {
            plan,
            edit,
            good_for,
        } = self;
        SpelledMembers::of("Approval", out)
            .with("plan", &**plan)
            .with("edit", edit)
            .with("good_for", good_for)
            .end();
    }
}

impl Spelled for Decision {
    fn spell(&self, out: &mut String) {
        match self {
            Self::Allow => out.push_str("Allow"),
            Self::Refuse(refusal) => tuple("Refuse", refusal, out),
            Self::Approve(approval) => tuple("Approve", approval, out),
            Self::Ask(plan) => tuple("Ask", &**plan, out),
        }
    }
}

impl Spelled for Glob {
    fn spell(&self, out: &mut String) {
        SpelledMembers::of("Glob", out)
            .with("text", self.text())
            .with("is_literal", &self.is_literal())
            .end();
    }
}

impl Spelled for CallKind {
    fn spell(&self, out: &mut String) {
        out.push_str(match self {
            Self::Tool => "Tool",
            Self::Prompt => "Prompt",
            Self::Resource => "Resource",
        });
    }
}

impl Spelled for TargetPattern {
    fn spell(&self, out: &mut String) {
        let Self { kind, name } = self;
        SpelledMembers::of("Target", out)
            .with("kind", kind)
            .with("name", name)
            .end();
    }
}

impl Spelled for Targets {
    fn spell(&self, out: &mut String) {
        match self {
            Self::All => out.push_str("All"),
            Self::Named(targets) => tuple("Named", targets, out),
        }
    }
}

impl Spelled for Condition {
    fn spell(&self, out: &mut String) {
        tuple("Condition", self.source(), out);
    }
}

impl Spelled for PersonEntry {
    fn spell(&self, out: &mut String) {
        let Self {
            name,
            mail,
            subject,
            local_user,
            channels,
            quiet,
            digest,
            time_zone,
        } = self;
        SpelledMembers::of("PersonEntry", out)
            .with("name", name)
            .with("mail", mail)
            .with("subject", subject)
            .with("local_user", local_user)
            .with("channels", channels)
            .with("quiet", quiet)
            .with("digest", digest)
            .with("time_zone", time_zone)
            .end();
    }
}

impl Spelled for Group {
    fn spell(&self, out: &mut String) {
        match self {
            Self::Listed(people) => tuple("Listed", people, out),
            Self::Claim(claim) => tuple("Claim", claim, out),
            Self::Mixed { people, claims } => SpelledMembers::of("Mixed", out)
                .with("people", people)
                .with("claims", claims)
                .end(),
        }
    }
}

impl Spelled for People {
    fn spell(&self, out: &mut String) {
        let Self {
            people,
            groups,
            admins,
            auditors,
        } = self;
        SpelledMembers::of("People", out)
            .with("people", people)
            .with("groups", groups)
            .with("admins", admins)
            .with("auditors", auditors)
            .end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_spelling() {
        for (text, spelling) in [
            ("", r#""""#),
            ("it's", r#""it's""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\n\t\r\0\u{7f}", r#""a\n\t\r\0\u{7f}""#),
            ("Köln 日本 \u{1f6e1}", "\"Köln 日本 \u{1f6e1}\""),
            // A combining accent, a variation selector, a space that does not break.
            ("e\u{301}\u{fe0f}\u{a0}", r#""e\u{301}\u{fe0f}\u{a0}""#),
        ] {
            assert_eq!(spelled(text), spelling);
        }
        let seconds = Duration::from_secs(90_061);
        assert_eq!(spelled(&Some(seconds)), "Some(90061s)");
        assert_eq!(spelled(&Duration::from_millis(1_500)), "1.500000000s");
        assert_eq!(spelled(&None::<bool>), "None");
        assert_eq!(spelled(&vec![true, false]), "[true, false]");
        assert_eq!(spelled(&Addressee::Caller), "Caller");
    }
}
