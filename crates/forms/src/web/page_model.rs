//! The conversion of a question to the parts of its page. Pure: the output depends only on the arguments.

use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::{Draft, DraftValue};
use mcp_elicit_core::argument::{Original, changed_from};
use mcp_elicit_core::form::{Field, Form};
use mcp_elicit_core::link::Link;
use mcp_elicit_core::pointer;
use mcp_elicit_core::view::exact_argument;

use super::clock::{ago, moment};
use super::field::{FieldControl, FieldPart, OptionPart};
use super::form_decode::{self, FieldErrors, key, moment_controls};
use super::page::{
    Asker, CallPart, ClaimPart, CommentPart, EndLabel, EnteredPart, HistoryPart, HostPart, Problem,
    QueueRow, ReviewRow, TeamPart, TimeLeft, ToolPart,
};
use super::phrases::Phrases;
use super::question_store::{EndKind, Ended, QuestionSummary};
use super::team::{CommentView, HistoryLine, TeamView, ToolView};
use crate::view::{
    Control, FieldView, QuestionView, countdown, date_time, phrases, sanitize, validation,
};

/// The longest line of the history, in characters.
const HISTORY_LINE: usize = 4_000;

/// The most short arguments of a call that are shown without being opened.
const OPEN: usize = 4;

/// The most arguments of a call that waits for approval that are all shown, and the fewest that are folded.
const MANY: usize = 8;
const FOLDED: usize = 3;

/// The name and value of an argument, safe to show.
type Argument = (String, String);

/// The longest arguments in a row of a list, in characters.
const EXCERPT: usize = 160;
/// The number of options above which the list gets a search box.
const FEW: usize = 6;

/// The most short options that are shown side by side.
const SIDE_BY_SIDE: usize = 3;

/// The longest label of an option shown side by side, in characters.
const SHORT: usize = 14;

/// Returns the origin and the call. The arguments of a call that waits for approval are always visible.
pub(super) fn asker(
    question: &QuestionView,
    asked: SystemTime,
    now: SystemTime,
    team: Option<&TeamPart>,
) -> Asker {
    let is_approval = team.is_some_and(|team| team.is_approval);
    let origin = question.origin();
    let server = origin.name();
    let command = origin.command();
    Asker {
        initial: initial(&server),
        server,
        claimed: origin.claimed().filter(|_| command.is_none()),
        version: origin.version(),
        command,
        connection: origin.connection(),
        on_behalf_of: phrases::on_behalf_of(question),
        ago: Some(ago(asked, now)),
        call: question.call().map(|call| {
            let arguments = call.arguments_in_full();
            let reads = team.filter(|_| is_approval);
            let reads = reads.and_then(|team| team.reads.as_deref());
            let open = is_approval || arguments.len() <= OPEN && !call.is_shortened();
            let (arguments, others) = match reads {
                Some(reads) => without_others(arguments, reads, question),
                None => (arguments, Vec::new()),
            };
            CallPart {
                kind: call.kind().word(),
                name: call.name_in_full(),
                doubt: call.doubt(),
                raw: "as sent",
                called_with: match call.argument_count() {
                    None => "with the arguments of each call".to_owned(),
                    Some(0) => "without arguments".to_owned(),
                    Some(1) => "with 1 argument".to_owned(),
                    Some(count) => format!("with {count} arguments"),
                },
                open,
                arguments,
                others,
            }
        }),
    }
}

/// Splits many arguments of a call that waits for approval: first those that its rule may read or that approvers may
/// change, then the others. A few are all shown, and so are all if the rule reads none that the call has.
fn without_others(
    arguments: Vec<Argument>,
    reads: &[String],
    question: &QuestionView,
) -> (Vec<Argument>, Vec<Argument>) {
    if arguments.len() <= MANY {
        return (arguments, Vec::new());
    }
    let fields = question.as_form().map(Form::fields).unwrap_or_default();
    // The fields' names are JSON Pointers.
    let editable = fields.iter().filter_map(|field| {
        let name = field.name().strip_prefix('/')?.split('/').next()?;
        Some(pointer::name(name))
    });
    let first: Vec<String> = editable
        .chain(reads.iter().cloned())
        .map(|name| sanitize::name(&name, sanitize::ARGUMENTS))
        .collect();
    let (mut shown, mut others): (Vec<Argument>, Vec<Argument>) = arguments
        .into_iter()
        .partition(|(name, _)| first.contains(name));
    // The order is the caller's: if the rule reads none, none matters less than another.
    if others.len() < FOLDED || shown.is_empty() {
        shown.append(&mut others);
    }
    (shown, others)
}

/// Returns the first letter of a name, for its badge.
fn initial(name: &str) -> String {
    let letter = name.chars().find(|c| c.is_alphanumeric());
    letter.map_or_else(|| "?".to_owned(), |c| c.to_uppercase().to_string())
}

pub(super) fn left(deadline: Option<SystemTime>, now: SystemTime) -> Option<TimeLeft> {
    let remaining = deadline?.duration_since(now).unwrap_or(Duration::ZERO);
    Some(TimeLeft {
        milliseconds: remaining.as_millis(),
        words: countdown::left(remaining),
        short: countdown::is_short(remaining),
    })
}

/// Returns every field with its value and errors. `zone` is offered if no zone is known yet. An argument of a call that
/// waits for approval marks characters that a control does not show.
pub(super) fn fields(
    views: &[FieldView],
    draft: &Draft,
    wrong: &FieldErrors,
    zone: &str,
    is_approval: bool,
) -> Vec<FieldPart> {
    let part = |(index, view): (usize, &FieldView)| FieldPart {
        key: key(index),
        label: view.label.clone(),
        required: view.required,
        mark: mark(views, view.required),
        about: view.description.clone(),
        limit: {
            let hidden = is_approval.then(|| hidden(draft.get(&view.name))).flatten();
            let parts = [limit(view), hidden.unwrap_or_default()];
            let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            parts.join(" · ")
        },
        errors: of(wrong, index).collect(),
        entry: entry(view, draft.get(&view.name), zone, is_approval),
    };
    views.iter().enumerate().map(part).collect()
}

/// Returns the mark of a field that is required, or is not: only the rarer kind of the form's fields has one.
fn mark(views: &[FieldView], is_required: bool) -> Option<&'static str> {
    let required = views.iter().filter(|view| view.required).count();
    let marks_required = required < views.len() - required && required > 0;
    match is_required {
        true if marks_required => Some("required"),
        false if !marks_required => Some("optional"),
        _ => None,
    }
}

fn of(wrong: &FieldErrors, index: usize) -> impl Iterator<Item = String> {
    wrong
        .iter()
        .filter(move |(at, _)| *at == index)
        .map(|(_, message)| message.clone())
}

/// Returns the limits in words; date controls explain their format themselves.
fn limit(view: &FieldView) -> String {
    match view.control {
        Control::Date | Control::DateTime => view
            .hints
            .iter()
            .skip(1)
            .cloned()
            .collect::<Vec<_>>()
            .join(" · "),
        _ => view.hint(),
    }
}

/// Returns the text with its hidden characters marked; `None` if it has none.
fn hidden(typed: &DraftValue) -> Option<String> {
    let DraftValue::Text(text) = typed else {
        return None;
    };
    // Line breaks are visible.
    let marked = sanitize::exact(text, sanitize::ARGUMENTS).replace("␊\n", "\n");
    (marked != *text).then(|| format!("with hidden characters marked: {marked}"))
}

fn entry(view: &FieldView, typed: &DraftValue, zone: &str, is_approval: bool) -> FieldControl {
    let value = match typed {
        DraftValue::Text(text) => text.clone(),
        DraftValue::Nothing | DraftValue::Picked(_) | DraftValue::Flag(_) => String::new(),
    };
    let line = |kind, inputmode, autocomplete, short| FieldControl::Line {
        kind,
        inputmode,
        autocomplete,
        value: value.clone(),
        short,
        grows: false,
    };
    match &view.control {
        Control::Text { long } if *long || value.contains('\n') => FieldControl::Lines { value },
        Control::Text { .. } => FieldControl::Line {
            kind: "text",
            inputmode: None,
            autocomplete: "off",
            value,
            short: false,
            grows: true,
        },
        Control::Email => line("email", Some("email"), "email", false),
        Control::Uri => line("url", Some("url"), "off", false),
        Control::Date => line("date", None, "off", true),
        Control::DateTime => {
            let (local, said) = moment_controls(&value);
            let zone = if said.is_empty() && local.is_empty() {
                zone.to_owned()
            } else {
                said
            };
            FieldControl::Moment { local, zone }
        }
        Control::Number {
            whole,
            minimum,
            maximum,
            step,
        } => {
            let text =
                |number: &Option<_>| number.as_ref().map(ToString::to_string).unwrap_or_default();
            FieldControl::Number {
                value,
                whole: *whole,
                least: text(minimum),
                most: text(maximum),
                step: text(step),
            }
        }
        Control::YesNo => FieldControl::Picks {
            kind: "radio",
            // An argument is written as in the list of arguments.
            options: [(true, "Yes", "true"), (false, "No", "false")]
                .into_iter()
                .enumerate()
                .map(|(index, (flag, answer, argument))| OptionPart {
                    index,
                    label: if is_approval { argument } else { answer }.to_owned(),
                    picked: *typed == DraftValue::Flag(flag),
                })
                .collect(),
            row: true,
            search: false,
            none: (!view.required).then_some(!matches!(typed, DraftValue::Flag(_))),
        },
        Control::One(_) => picks(view, typed, "radio"),
        Control::Several { .. } => picks(view, typed, "checkbox"),
    }
}

fn picks(view: &FieldView, typed: &DraftValue, kind: &'static str) -> FieldControl {
    let picked: &[String] = match typed {
        DraftValue::Picked(values) => values,
        DraftValue::Nothing | DraftValue::Text(_) | DraftValue::Flag(_) => &[],
    };
    let options: Vec<_> = view
        .control
        .options()
        .iter()
        .enumerate()
        .map(|(index, option)| OptionPart {
            index,
            label: option.label.clone(),
            picked: picked.contains(&option.value),
        })
        .collect();
    let one = kind == "radio";
    FieldControl::Picks {
        kind,
        row: one
            && options.len() <= SIDE_BY_SIDE
            && options
                .iter()
                .all(|option| option.label.chars().count() <= SHORT),
        search: options.len() > FEW,
        none: (one && !view.required).then(|| !options.iter().any(|option| option.picked)),
        options,
    }
}

pub(super) fn problems(views: &[FieldView], wrong: &FieldErrors) -> Vec<Problem> {
    wrong
        .iter()
        .map(|(index, message)| Problem {
            anchor: key(*index),
            label: views
                .get(*index)
                .map(|view| view.label.clone())
                .unwrap_or_default(),
            message: message.clone(),
        })
        .collect()
}

/// Returns the values to send, field by field: options by their labels, everything else exactly as the server gets it.
pub(super) fn review(
    form: &Form,
    views: &[FieldView],
    draft: &Draft,
    words: SubmitWords,
) -> Vec<ReviewRow> {
    views
        .iter()
        .map(|view| {
            let typed = draft.get(&view.name);
            let value = validation::value(form, view, typed);
            let field = form.fields().iter().find(|field| field.name() == view.name);
            ReviewRow {
                label: view.label.clone(),
                before: before(field, view, value.as_ref(), words),
                values: value
                    .map(|value| shown(view, &value, words))
                    .unwrap_or_default(),
                typed: validation::understood(form, view, typed).and_then(|_| typed_words(typed)),
                caveat: field.and_then(|field| field.caveat(typed)),
            }
        })
        .collect()
}

/// The wording of the values to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmitWords {
    /// An answer of a single person.
    Own,
    /// An answer that others have to confirm: no other text looks the same.
    ToConfirm,
    /// An argument of a call that waits for approval: no other value looks the same.
    Argument,
}

impl SubmitWords {
    /// Returns the wording of values that others have to confirm.
    pub(super) const fn for_others(is_approval: bool) -> Self {
        if is_approval {
            Self::Argument
        } else {
            Self::ToConfirm
        }
    }
}

/// Returns a value in words.
fn shown(view: &FieldView, value: &serde_json::Value, words: SubmitWords) -> Vec<String> {
    match (words, value) {
        (SubmitWords::Argument, value)
            if value.is_string() || value.is_number() || value.is_boolean() =>
        {
            vec![exact_argument(value)]
        }
        (SubmitWords::ToConfirm, serde_json::Value::String(text))
            if !view.is_secret && view.control.options().is_empty() =>
        {
            vec![exact_text(text)]
        }
        _ => view.sent(value),
    }
}

/// Returns a text that no other text looks like, quoted if its ends would be invisible or it looks like an empty
/// answer.
fn exact_text(text: &str) -> String {
    // Line breaks are marked.
    let edges = text.trim_matches('\n');
    let is_plain = edges.trim() == edges
        && !text.is_empty()
        && !text.starts_with('"')
        && text != Phrases::of(false).none;
    if is_plain {
        return sanitize::exact(text, sanitize::ARGUMENTS);
    }
    let quoted = serde_json::Value::from(text).to_string();
    sanitize::exact(&quoted, sanitize::ARGUMENTS)
}

/// Returns the previous value of an argument, in words; empty if it is unchanged, or is an answer to a server's
/// question.
fn before(
    field: Option<&Field>,
    view: &FieldView,
    value: Option<&serde_json::Value>,
    words: SubmitWords,
) -> Vec<String> {
    let before = field
        .filter(|_| words == SubmitWords::Argument)
        .and_then(|field| changed_from(field, value));
    match before {
        Some(Original::Given(before)) => shown(view, &before, words),
        Some(Original::LeftOut) => vec![Phrases::of(true).none.to_owned()],
        None => Vec::new(),
    }
}

/// Returns the team's view of a question, safe to show.
pub(super) fn team(question: &QuestionView, team: TeamView, now: SystemTime) -> TeamPart {
    let name = |text: &str| sanitize::line(text, sanitize::LABEL);
    let fields = question.as_form().map(Form::fields).unwrap_or_default();
    let words = SubmitWords::for_others(team.is_approval);
    let row = |content: &serde_json::Map<String, serde_json::Value>, field: &Field| {
        let (view, value) = (FieldView::from_field(field), content.get(field.name()));
        ReviewRow {
            before: before(Some(field), &view, value, words),
            values: match value {
                Some(value) => shown(&view, value, words),
                None => vec![Phrases::of(team.is_approval).none.to_owned()],
            },
            label: view.label,
            typed: None,
            caveat: None,
        }
    };
    TeamPart {
        is_approval: team.is_approval,
        lines: team.lines,
        reasons_reach: team.reasons_reach,
        explain: team
            .explain
            .map(|text| sanitize::line(&text, sanitize::LABEL)),
        link: team.link,
        good_for: team.good_for,
        tool: team.tool.map(tool),
        reads: team.reads,
        version: team.version,
        entered: team.entered.map(|entered| EnteredPart {
            by: name(&entered.by),
            rows: {
                let rows = fields.iter().map(|field| row(&entered.content, field));
                // The call's own arguments stand above.
                rows.filter(|row| !team.is_approval || !row.before.is_empty())
                    .collect()
            },
            unchanged: if team.is_approval {
                let same = fields.iter().map(|field| row(&entered.content, field));
                same.filter(|row| row.before.is_empty()).count()
            } else {
                0
            },
            digest: entered.digest,
            may_confirm: entered.may_confirm,
        }),
        may_act: team.may_act,
        may_cancel: team.may_cancel,
        may_claim: team.may_claim,
        claim: team.claim.and_then(|claim| {
            let left = left(Some(claim.until), now)?;
            Some(ClaimPart {
                by: name(&claim.by),
                minutes: match left.milliseconds.div_ceil(60_000) {
                    0 | 1 => "minute".to_owned(),
                    minutes => format!("{minutes} minutes"),
                },
                left,
            })
        }),
        has_agreed: team.has_agreed,
        has_handed_on: team.has_handed_on,
        others_needed: team.others_needed,
        did: None,
        handed_on_to: team.handed_on_to.as_deref().map(name),
        delegates: team.delegates,
        may_comment: team.may_comment,
        comments: comments(team.comments, now),
        history: history(team.history),
    }
}

/// Returns a server's claims about a tool, safe to show.
fn tool(tool: ToolView) -> ToolPart {
    let argument = |(name, default): (String, Option<String>)| {
        let default = default.map(|default| sanitize::line(&default, sanitize::LABEL));
        (sanitize::name(&name, sanitize::LABEL), default)
    };
    ToolPart {
        description: tool
            .description
            .map(|text| sanitize::text(text.trim(), sanitize::DESCRIPTION)),
        hints: tool.hints,
        absent: tool.absent.into_iter().map(argument).collect(),
        more_absent: tool.more_absent,
    }
}

/// Returns the comments of people, safe to show.
pub(super) fn comments(comments: Vec<CommentView>, now: SystemTime) -> Vec<CommentPart> {
    let part = |comment: CommentView| CommentPart {
        by: sanitize::line(&comment.by, sanitize::LABEL),
        ago: ago(comment.at, now),
        text: sanitize::text(&comment.text, sanitize::ARGUMENTS),
    };
    comments.into_iter().map(part).collect()
}

/// Returns the history of a question, safe to show.
pub(super) fn history(lines: Vec<HistoryLine>) -> Vec<HistoryPart> {
    let mut last = (None, 0);
    let part = |line: HistoryLine| HistoryPart {
        text: sanitize::line(&line.text, HISTORY_LINE),
        is_announced: line.is_announced,
        key: {
            let at = line
                .at
                .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            let at = at.map(|at| at.as_millis());
            if line.is_announced {
                last = (at, if last.0 == at { last.1 + 1 } else { 0 });
            }
            format!("{}.{}", at.unwrap_or_default(), last.1)
        },
        at: line.at.and_then(moment),
    };
    lines.into_iter().map(part).collect()
}

/// Returns the typed text, if the sent value differs.
fn typed_words(typed: &DraftValue) -> Option<String> {
    let DraftValue::Text(text) = typed else {
        return None;
    };
    let words = match date_time::parts(text) {
        Some((local, zone)) => format!("{} {zone}", local.replace('T', " ")),
        None => text.clone(),
    };
    Some(sanitize::line(&words, sanitize::LABEL))
}

pub(super) fn host(link: &Link) -> HostPart {
    let shown = link.shown();
    let host = link.host();
    let (name, registrable) = (host.ascii(), host.registrable().unwrap_or(host.ascii()));
    HostPart {
        url: link.as_str().to_owned(),
        url_before: shown.before.to_owned(),
        name: shown.domain.to_owned(),
        url_after: shown.after.to_owned(),
        before: name
            .strip_suffix(registrable)
            .unwrap_or_default()
            .to_owned(),
        site: registrable.to_owned(),
        after: link
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default(),
    }
}

pub(super) fn row(summary: &QuestionSummary, base: &str, now: SystemTime) -> QueueRow {
    let waits = summary.ended.is_none();
    QueueRow {
        id: summary.id.to_string(),
        href: format!("{base}/q/{}", summary.id),
        initial: initial(&summary.server),
        server: summary.server.clone(),
        call: summary.call.clone(),
        called_by: summary.caller.clone(),
        rule: summary.rule.clone(),
        excerpt: summary.excerpt.clone(),
        arguments: summary
            .arguments
            .as_deref()
            .map(|arguments| sanitize::line(arguments, EXCERPT)),
        ago: waits.then(|| ago(summary.asked, now)),
        left: if waits {
            left(summary.deadline, now)
        } else {
            None
        },
        end: summary
            .ended
            .as_ref()
            .map(|ended| end(ended, now, summary.is_approval)),
    }
}

fn end(ended: &Ended, now: SystemTime, is_approval: bool) -> EndLabel {
    let (word, tone) = match &ended.how {
        EndKind::Answered if is_approval => ("approved", "good"),
        EndKind::Answered => ("answered", "good"),
        EndKind::Visited => ("visited", "good"),
        EndKind::Declined => ("declined", "bad"),
        EndKind::Cancelled => ("cancelled", ""),
        EndKind::TimedOut => ("timed out", "warn"),
        EndKind::Withdrawn(_) => ("withdrawn", ""),
        EndKind::Failed(_) => ("failed", "bad"),
    };
    EndLabel {
        word,
        tone,
        ago: ago(ended.at, now),
        by: ended
            .by
            .as_deref()
            .map(|by| sanitize::line(without_session(by), sanitize::LABEL)),
    }
}

/// Returns the responder without the id of the browser's session, which is for the audit.
pub(super) fn without_session(by: &str) -> &str {
    match by.split_once(", session ") {
        Some((browser @ "in the browser", _)) => browser,
        _ => by,
    }
}

/// Returns the zones to offer, and that of this machine.
pub(super) fn zones(views: &[FieldView]) -> Vec<String> {
    if views.iter().all(|view| view.control != Control::DateTime) {
        return Vec::new();
    }
    let mut names: Vec<_> = jiff::tz::db()
        .available()
        .map(|name| name.as_str().to_owned())
        .filter(|name| {
            name.contains('/') && !name.starts_with("posix/") && !name.starts_with("right/")
        })
        .collect();
    names.push("UTC".to_owned());
    names
}

/// Returns the draft to show: the saved one, or every default.
pub(super) fn draft_of(views: &[FieldView], saved: Option<Draft>) -> Draft {
    saved.unwrap_or_else(|| form_decode::untouched(views))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::Origin;

    fn arguments(count: usize) -> Vec<Argument> {
        let one = |index: usize| (format!("argument{index}"), index.to_string());
        (0..count).map(one).collect()
    }

    fn names(arguments: &[Argument]) -> Vec<&str> {
        arguments.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// An approval whose approvers may change this argument.
    fn may_change(name: &str) -> QuestionView {
        let field = format!("/{name}");
        let properties = json!({ field: {"type": "string"} });
        let schema = json!({"type": "object", "properties": properties});
        let form = Form::from_value(&schema).unwrap();
        QuestionView::form(Origin::new("shop"), "Refund?", form)
    }

    #[test]
    fn of_many_arguments_those_that_matter_are_shown_and_the_others_folded() {
        let question = may_change("argument3");
        let reads = ["argument9".to_owned()];
        let (shown, others) = without_others(arguments(12), &reads, &question);
        assert_eq!(names(&shown), ["argument3", "argument9"]);
        assert_eq!(others.len(), 10);
        // Nothing that matters is known: all are shown.
        let none = may_change("absent");
        let (shown, others) = without_others(arguments(12), &[], &none);
        assert_eq!(names(&shown), names(&arguments(12)));
        assert!(others.is_empty(), "the caller chooses the order");
    }

    #[test]
    fn a_few_arguments_or_few_others_are_all_shown() {
        let question = may_change("argument0");
        let (shown, others) = without_others(arguments(MANY), &[], &question);
        assert_eq!((shown.len(), others.len()), (MANY, 0));
        let reads: Vec<String> = (1..7).map(|index| format!("argument{index}")).collect();
        let (shown, others) = without_others(arguments(9), &reads, &question);
        assert_eq!((shown.len(), others.len()), (9, 0));
    }
}
