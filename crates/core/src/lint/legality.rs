//! The revisions on which a form can be asked as written, and the parts that older ones lack.
//!
//! The verdict is that of the official schema of each revision (`official`), with the exceptions in [`EXCEPTIONS`].

use serde_json::{Map, Value};

use super::official::{accepts_field, accepts_root};
use super::question::LocatedQuestion;
use super::report::{Legal, LintFindings, NOT_IN_REVISION, NOT_IN_SCHEMA, Severity};
use crate::form::{DefectCode, Defects, Field, Form, Kind};
use crate::pointer;
use crate::wire::Revision;

const OLD: Revision = Revision::V2025_06_18;

/// The only findings that make a form illegal although the official schema of the revision accepts it, each with its
/// reason.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    (
        NOT_IN_REVISION,
        "2025-06-18, `EnumSchema`: titled options are `enum` with `enumNames`; its clients show `oneOf` as a text",
    ),
    (
        "duplicate-field",
        "RFC 8259, section 4: names should be unique, because readers differ in which one they take",
    ),
    (
        "duplicate-member",
        "RFC 8259, section 4: names should be unique, because readers differ in which one they take",
    ),
    ("not-json", "a limit of this program: 128 levels"),
    ("too-large", "a limit of this program"),
    ("too-many-fields", "a limit of this program"),
    ("too-many-options", "a limit of this program"),
    ("pattern-cost", "a limit of this program"),
];

/// The official verdicts on a form and its parts.
#[derive(Debug)]
pub(super) struct Verdicts {
    written: Value,
    root: [bool; Revision::ALL.len()],
}

impl Verdicts {
    /// Judges the text of a schema.
    pub(super) fn new(schema: &str) -> Self {
        let written: Value = serde_json::from_str(schema).unwrap_or_default();
        let root = Revision::ALL.map(|revision| accepts_root(&written, revision));
        Self { written, root }
    }

    fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.written["properties"].as_object().into_iter().flatten()
    }

    /// Returns `true` if the revision accepts the root and every field.
    // Not inlined: within the loop over the revisions, its conditions came out of the optimizer in an order that differs
    // from build to build.
    #[inline(never)]
    fn accept_all(&self, revision: Revision) -> bool {
        let mut roots = Revision::ALL.into_iter().zip(self.root);
        roots.any(|(one, accepted)| one == revision && accepted)
            && self
                .fields()
                .all(|(_, field)| accepts_field(field, revision))
    }

    /// Returns `true` if the part at this pointer, a field or the root, is accepted by the revision, or by any if there
    /// is none.
    pub(super) fn accept(&self, pointer: &str, revision: Option<Revision>) -> bool {
        let field = field_of(pointer).and_then(|name| self.written["properties"].get(&name));
        Revision::ALL
            .into_iter()
            .zip(self.root)
            .filter(|(one, _)| revision.is_none_or(|asked| asked == *one))
            .any(|(revision, root)| match field {
                Some(field) => {
                    accepts_field(field, revision) && !(revision == OLD && has_titles(field))
                }
                None => root,
            })
    }
}

/// Returns `true` for a text with `oneOf`, which the oldest revision does not know.
fn has_titles(field: &Value) -> bool {
    field["type"] == "string" && field["oneOf"].is_array()
}

/// Returns the name of the field that a pointer into a schema leads to or through (RFC 6901, section 4).
pub(super) fn field_of(pointer: &str) -> Option<String> {
    let inside = pointer.strip_prefix("/properties/")?;
    let name = inside.split('/').next()?;
    Some(pointer::name(name))
}

/// Determines the revisions of a form, and adds the findings about those that it is not legal on. `parts` are the legal
/// parts of a form with defects.
pub(super) fn look(
    question: &LocatedQuestion<'_>,
    verdicts: &Verdicts,
    form: Result<&Form, &Defects>,
    parts: Option<&Form>,
    findings: &mut LintFindings,
) -> Legal {
    let excepted = form.is_err_and(|defects| {
        let outside = |code: DefectCode| {
            let named = |(exception, _): &(&str, &str)| *exception == code.as_str();
            EXCEPTIONS.iter().any(named)
        };
        defects.iter().any(|defect| outside(defect.code))
    });
    let mut legal = Legal::judged_by(|revision| !excepted && verdicts.accept_all(revision));
    let first = findings.count();
    for (name, written) in verdicts.fields() {
        let at = question.field(name);
        let nothing = Map::new();
        let keywords = written.as_object().unwrap_or(&nothing);
        if written["type"] == "array" {
            not_on_old(
                &at,
                "cannot ask to pick several options",
                "ask for one, or ask a yes/no question for each",
                findings,
            );
        } else if has_titles(written) {
            legal = legal.and(Legal::judged_by(|revision| revision != OLD));
            not_on_old(
                &format!("{at}/oneOf"),
                "does not know `oneOf`",
                "2025-06-18 spells titled options `enum` with `enumNames`",
                findings,
            );
        }
        if findings.revision() != Some(OLD) && keywords.contains_key("enumNames") {
            findings.note(
                &format!("{at}/enumNames"),
                "deprecated-enum-names",
                "`enumNames` is deprecated since 2025-11-25 and only kept for older servers",
                "write `oneOf` with `const` and `title`, unless clients of 2025-06-18 must understand it",
            );
        }
    }
    look_at_dialect(question, verdicts, findings);
    let defective: Vec<String> = form.err().map_or_else(Vec::new, |defects| {
        let fields = defects.iter();
        fields.filter_map(|one| field_of(&one.pointer)).collect()
    });
    for field in form.ok().or(parts).into_iter().flat_map(Form::fields) {
        if !defective.iter().any(|name| name == field.name()) {
            look_at_field(question, verdicts, field, findings);
        }
    }
    if legal == Legal::nowhere() {
        findings.raise_exclusions(first);
    }
    legal
}

/// Adds a finding for a `$schema` that is not a text, which only the oldest revision accepts: it does not name it.
fn look_at_dialect(
    question: &LocatedQuestion<'_>,
    verdicts: &Verdicts,
    findings: &mut LintFindings,
) {
    let is_text = verdicts.written.get("$schema").is_none_or(Value::is_string);
    if is_text || findings.revision() == Some(OLD) || !verdicts.written.is_object() {
        return;
    }
    let level = if findings.revision().is_some() {
        Severity::Error
    } else {
        Severity::Warning
    };
    let at = question.at("/$schema");
    let message = format!("{} wants a text as `$schema`", Revision::LATEST);
    findings.put(level, &at, NOT_IN_SCHEMA, message, "leave it out");
}

/// Adds the findings about a field that the parser accepts.
fn look_at_field(
    question: &LocatedQuestion<'_>,
    verdicts: &Verdicts,
    field: &Field,
    findings: &mut LintFindings,
) {
    let at = question.field(field.name());
    if findings.revision() == Some(OLD)
        && field.default().is_some()
        && !matches!(field.kind(), Kind::Boolean(_))
    {
        findings.note(
            &format!("{at}/default"),
            "default-ignored",
            format!("{OLD} has defaults for booleans only: clients may not show this one"),
            "",
        );
    }
    let Some(written) = verdicts.written["properties"].get(field.name()) else {
        return;
    };
    let latest = match findings.revision() {
        // Several choices are reported as missing in the revision.
        Some(OLD) if written["type"] == "array" => return,
        asked => asked.unwrap_or(Revision::LATEST),
    };
    if !accepts_field(written, latest) {
        let (place, message, help) = beyond_the_schema(written);
        findings.error(
            &format!("{at}{place}"),
            NOT_IN_SCHEMA,
            format!("{latest} {message}"),
            help,
        );
    }
}

/// Returns what the official schema lacks in a field that the parser accepts: the place, the message and the help.
fn beyond_the_schema(written: &Value) -> (&'static str, &'static str, &'static str) {
    let items = &written["items"];
    if items["oneOf"].is_array() {
        let help = "write `anyOf` with `const` and `title` (`TitledMultiSelectEnumSchema`)";
        ("/items/oneOf", "has no `oneOf` in `items`", help)
    } else if items["anyOf"].is_array() {
        let help = "give each option a `title`, or list the values as `enum`";
        ("/items/anyOf", "needs a `title` for each option", help)
    } else if items["enum"].is_array() {
        let help = "add \"type\": \"string\" to `items` (`UntitledMultiSelectEnumSchema`)";
        ("/items", "needs a `type` for the options", help)
    } else {
        (
            "",
            "does not have this kind of field",
            "see `PrimitiveSchemaDefinition`",
        )
    }
}

fn not_on_old(at: &str, what: &str, help: &str, findings: &mut LintFindings) {
    let message = format!("{OLD} {what}");
    match findings.revision() {
        Some(OLD) => findings.error(at, NOT_IN_REVISION, message, help),
        None => findings.note(at, NOT_IN_REVISION, message, help),
        Some(Revision::V2025_11_25 | Revision::V2026_07_28) => {}
    }
}
