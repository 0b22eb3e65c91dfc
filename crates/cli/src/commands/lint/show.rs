//! Shows a report to a person: each finding at its place in the source, then the revisions on which the question is
//! legal.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use mcp_elicit_core::lint::{LintFinding, LintReport, Severity};
use mcp_elicit_core::wire::Revision;

use super::locate::{broken_at, locate};
use crate::output::{ERROR, GOOD, WARNING, harmless, say, styled};

/// The largest number of findings that are shown, and the largest piece of source that is shown, in bytes.
const SHOWN: usize = 60;
const LONGEST_PIECE: usize = 4_000;

/// Shows the whole report.
pub(super) fn report(report: &LintReport, source: &str, name: &str) {
    let renderer = Renderer::styled();
    for finding in report.findings.iter().take(SHOWN) {
        say(renderer.render(&[group(finding, source, name)]));
        say("");
    }
    if report.findings.len() > SHOWN {
        say(format_args!(
            "... and {} more; --json gives them all",
            report.findings.len() - SHOWN
        ));
        say("");
    }
    verdict(report);
}

fn group<'a>(finding: &'a LintFinding, source: &'a str, name: &'a str) -> Group<'a> {
    let level = match finding.level {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = Group::with_title(
        level
            .primary_title(harmless(&finding.message))
            .id(finding.code),
    );
    if let Some((piece, first_line, span)) = piece(finding, source) {
        let annotation = AnnotationKind::Primary.span(span);
        group = group.element(
            Snippet::source(piece)
                .line_start(first_line)
                .path(name)
                .annotation(annotation),
        );
    } else if !finding.pointer.is_empty() {
        group = group.element(Level::NOTE.message(format!("at {}", harmless(&finding.pointer))));
    }
    if !finding.help.is_empty() {
        group = group.element(Level::HELP.message(finding.help.as_str()));
    }
    group
}

/// Returns the lines that contain a finding's place, the number of the first line, and the place within them.
fn piece<'a>(
    finding: &LintFinding,
    source: &'a str,
) -> Option<(Cow<'a, str>, usize, Range<usize>)> {
    let place = locate(source, &finding.pointer).or_else(|| broken_at(source))?;
    let start = source[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let end = source[place.end..]
        .find('\n')
        .map_or(source.len(), |at| place.end + at);
    let lines = source
        .get(start..end)
        .map(|lines| lines.strip_suffix('\r').unwrap_or(lines))
        .filter(|lines| lines.len() <= LONGEST_PIECE && !lines.trim().is_empty())?;
    let first_line = source[..start].matches('\n').count() + 1;
    let within = |at: usize| (at - start).min(lines.len());
    let span = within(place.start)..within(place.end);
    Some((without_c1(lines), first_line, span))
}

/// Replaces the second set of control characters (U+0080 to U+009F), which some terminals obey and the renderer does
/// not spell out. The replacement has the same length in bytes, so that locations stay right.
fn without_c1(lines: &str) -> Cow<'_, str> {
    let is_c1 = |c: char| matches!(c, '\u{80}'..='\u{9f}');
    if lines.contains(is_c1) {
        lines.replace(is_c1, "\u{b7}").into()
    } else {
        lines.into()
    }
}

fn verdict(report: &LintReport) {
    let (legal, illegal): (Vec<Revision>, Vec<Revision>) = Revision::ALL
        .into_iter()
        .partition(|revision| report.legal.on(*revision));
    let list = |revisions: &[Revision]| {
        revisions
            .iter()
            .map(|revision| revision.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !legal.is_empty() {
        say(format_args!(
            "{} {}",
            styled(GOOD, "legal on:"),
            list(&legal)
        ));
    }
    if !illegal.is_empty() {
        let style = if legal.is_empty() { ERROR } else { WARNING };
        say(format_args!(
            "{} {}",
            styled(style, "not legal on:"),
            list(&illegal)
        ));
    }
    if let Some(reading) = report.reading {
        say(format_args!("who shows it: {}", reading.sentence()));
    }
    let count = |level, one: &str| {
        let n = report
            .findings
            .iter()
            .filter(|finding| finding.level == level)
            .count();
        format!("{n} {one}{}", if n == 1 { "" } else { "s" })
    };
    if report.findings.is_empty() {
        say("no findings");
    } else {
        let (errors, warnings) = (
            count(Severity::Error, "error"),
            count(Severity::Warning, "warning"),
        );
        say(format_args!(
            "{errors}, {warnings}, {}",
            count(Severity::Note, "note")
        ));
    }
}
