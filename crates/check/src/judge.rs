//! Verdicts from the facts of all cells of one tool.

use std::time::Duration;

use mcp_elicit_core::lint;
use mcp_elicit_core::text::beginning;
use mcp_elicit_core::wire::{Capability, Mode, Revision};
use serde_json::json;

use crate::cell::{Cell, CellGroup};
use crate::finding::{CellFinding, CellVerdict, Code};
use crate::observation::{CallEnd, LearnedQuestions, Observation, ObservedQuestion, SentFrame};
use crate::session::SessionOpenError;

/// The longest message that a person is expected to read, in characters.
const LONG_MESSAGE: usize = 1_000;
/// The longest text of a server in a finding, in bytes.
const LONGEST_QUOTE: usize = 200;

/// The result of one cell.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// The cell.
    pub cell: Cell,
    /// Its verdict.
    pub verdict: CellVerdict,
    /// The findings.
    pub findings: Vec<CellFinding>,
    /// The findings that were allowed.
    pub allowed: Vec<CellFinding>,
    /// The reason of [`CellVerdict::NotApplicable`].
    pub why: Option<String>,
    /// The frames of the cell.
    pub frames: Vec<SentFrame>,
    /// The time that it took.
    pub took: Duration,
}

impl CellResult {
    fn new(cell: Cell, verdict: CellVerdict) -> Self {
        Self {
            cell,
            verdict,
            findings: Vec::new(),
            allowed: Vec::new(),
            why: None,
            frames: Vec::new(),
            took: Duration::ZERO,
        }
    }

    fn not_applicable(cell: Cell, why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..Self::new(cell, CellVerdict::NotApplicable)
        }
    }

    /// Moves findings with these codes to the allowed ones.
    pub fn allow(&mut self, codes: &[Code]) {
        let (allowed, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.findings)
            .into_iter()
            .partition(|finding| codes.contains(&finding.code));
        let had_any = !allowed.is_empty();
        self.findings = kept;
        self.allowed.extend(allowed);
        if had_any {
            self.verdict = gravest(&self.findings).unwrap_or(CellVerdict::Pass);
        }
    }
}

fn gravest(findings: &[CellFinding]) -> Option<CellVerdict> {
    findings.iter().map(|finding| finding.code.verdict()).max()
}

/// Judges all cells of a tool on one revision: that of `learned`, and these, each with what it saw.
pub fn judge(
    learned: &LearnedQuestions,
    seen: &[(Cell, Result<Observation, SessionOpenError>)],
) -> Vec<CellResult> {
    let judging = Judging::new(learned, seen);
    let rules = Cell::RULES.into_iter().map(Cell::Wrong);
    let all = Cell::FIXED.into_iter().chain(rules);
    let mut results: Vec<CellResult> = all.filter_map(|cell| judging.result(cell)).collect();
    results.sort_by_key(|result| result.cell.group());
    results
}

struct Judging<'a> {
    learned: &'a LearnedQuestions,
    seen: &'a [(Cell, Result<Observation, SessionOpenError>)],
    /// The texts of a decline and a cancel.
    refusals: Vec<&'a str>,
    /// The effects of an accept.
    effects: Option<u64>,
}

impl<'a> Judging<'a> {
    fn new(
        learned: &'a LearnedQuestions,
        seen: &'a [(Cell, Result<Observation, SessionOpenError>)],
    ) -> Self {
        let refusals = seen
            .iter()
            .filter(|(cell, _)| matches!(cell, Cell::Decline | Cell::Cancel))
            .filter_map(|(_, seen)| seen.as_ref().ok()?.end()?.text());
        Self {
            learned,
            seen,
            refusals: refusals.collect(),
            effects: learned.accept.effect.map(|effect| effect.count),
        }
    }

    fn result(&self, cell: Cell) -> Option<CellResult> {
        let revision = self.learned.revision;
        if let Some(why) = cell.absent(revision) {
            return Some(CellResult::not_applicable(cell, why));
        }
        let run = match cell {
            Cell::Accept | Cell::Question => return Some(self.judged(cell, &self.learned.accept)),
            Cell::LateAnswer => Cell::NoAnswer,
            cell => cell,
        };
        let found = self.seen.iter().find(|(known, _)| *known == run);
        Some(match found {
            Some((_, Ok(seen))) => self.judged(cell, seen),
            Some((_, Err(error))) => {
                let mut result = CellResult::new(cell, CellVerdict::Fail);
                result.findings.push(CellFinding {
                    code: Code::Died,
                    message: format!("the session did not open: {error}"),
                });
                result
            }
            None if matches!(cell, Cell::Wrong(_)) => return None,
            None if self.learned.accept.asked.is_empty() => {
                CellResult::new(cell, CellVerdict::NotAsked)
            }
            None => CellResult::not_applicable(cell, "it was not run"),
        })
    }

    fn judged(&self, cell: Cell, seen: &Observation) -> CellResult {
        if let Some(why) = &seen.not_applicable {
            return CellResult::not_applicable(cell, why.clone());
        }
        if cell == Cell::StateTwice && seen.effect.is_none() {
            return CellResult::not_applicable(
                cell,
                "only --effect shows whether it is used twice",
            );
        }
        let mut findings = CellFindings::default();
        if cell == Cell::Question {
            questions(&self.learned.accept, self.learned.revision, &mut findings);
        } else {
            ends(cell, seen, &mut findings);
            self.look(cell, seen, &mut findings);
        }
        let findings = findings.0;
        let is_asked = !seen.asked.is_empty() || cell.group() == CellGroup::Declared;
        let is_asked = is_asked && !self.learned.accept.asked.is_empty();
        let verdict = gravest(&findings).unwrap_or(if is_asked {
            CellVerdict::Pass
        } else {
            CellVerdict::NotAsked
        });
        CellResult {
            findings,
            frames: seen.frames.clone(),
            took: seen.took,
            ..CellResult::new(cell, verdict)
        }
    }

    fn accept_succeeds(&self) -> bool {
        self.learned.accept.end().is_some_and(CallEnd::is_success)
    }

    /// Returns `true` if the call had the words of accept.
    fn is_like_accept(&self, seen: &Observation) -> bool {
        let accepted = self.learned.accept.end();
        let accepted = accepted.filter(|end| end.is_success());
        let text = accepted.and_then(CallEnd::text);
        text.is_some()
            && seen
                .end()
                .filter(|end| end.is_success())
                .and_then(CallEnd::text)
                == text
    }

    /// Returns `true` if a content or action was taken as an accept.
    fn is_taken(&self, seen: &Observation) -> bool {
        if let (Some(effect), Some(1..)) = (seen.effect, self.effects) {
            return effect.count > 0;
        }
        if seen.went_on {
            return true;
        }
        let text = seen.end().filter(|end| end.is_success());
        let text = text.and_then(CallEnd::text);
        !seen.asked_again && text.is_some_and(|text| !self.refusals.contains(&text))
    }

    fn look(&self, cell: Cell, seen: &Observation, findings: &mut CellFindings) {
        let count = seen.effect.map_or(0, |effect| effect.count);
        match cell {
            Cell::Accept | Cell::AnswerTwice | Cell::UnknownId => {
                self.accepted(cell, seen, findings);
                let most = match cell {
                    Cell::Accept => 1,
                    _ => self.effects.unwrap_or(1).max(1),
                };
                if count > most {
                    findings.add(
                        Code::EffectTwice,
                        format!("{count} effects after one accept"),
                    );
                }
            }
            Cell::DeclaredNone | Cell::DeclaredEmpty | Cell::DeclaredForm | Cell::DeclaredUrl => {
                self.declared(cell, seen, count, findings);
            }
            Cell::AcceptLeast => {
                if self.accept_succeeds() && is_error(seen.end()) {
                    let end = described(seen.end());
                    findings.add(
                        Code::LeastFailed,
                        format!("the required fields alone end in {end}"),
                    );
                }
            }
            Cell::Decline | Cell::Cancel | Cell::Error | Cell::DeclineWithContent => {
                self.refused(cell, seen, count, findings);
            }
            Cell::NoAnswer => {
                if seen.gave_up == Some(false) {
                    findings.add(
                        Code::NoTimeout,
                        "the server did not give up waiting within --time",
                    );
                }
            }
            Cell::LateAnswer => {
                if seen.gave_up == Some(true) && count > 0 {
                    findings.add(
                        Code::EffectWithoutAccept,
                        "an answer took effect after its call had ended",
                    );
                }
            }
            Cell::Disconnect | Cell::Cancelled => {
                if count > 0 {
                    findings.add(
                        Code::EffectWithoutAccept,
                        format!("{count} effects, and nobody accepted"),
                    );
                }
                if seen.exits == Some(false) {
                    findings.add(
                        Code::OutlivesClient,
                        "the process did not exit after its stdin was closed",
                    );
                }
            }
            Cell::TwoCalls => self.two_calls(seen, count, findings),
            Cell::Wrong(_)
            | Cell::NoContent
            | Cell::NullContent
            | Cell::ListContent
            | Cell::UnknownMember => self.content(cell, seen, findings),
            Cell::UnknownAction => {
                if count > 0 || self.is_like_accept(seen) {
                    findings.add(
                        Code::UnknownActionAccepted,
                        "the action \"approve\" counts as accept",
                    );
                }
            }
            Cell::StateChanged
            | Cell::StateOfOtherTool
            | Cell::StateOfOtherArguments
            | Cell::StateTwice
            | Cell::NoState
            | Cell::MissingKey
            | Cell::ExtraKey => self.rounds(cell, seen, count, findings),
            Cell::Question => {}
        }
    }

    fn accepted(&self, cell: Cell, seen: &Observation, findings: &mut CellFindings) {
        let is_first = cell == Cell::Accept;
        if is_error(seen.end()) && (is_first || self.accept_succeeds()) && !seen.asked.is_empty() {
            let end = described(seen.end());
            findings.add(Code::AcceptFailed, format!("valid content ends in {end}"));
        }
        if seen.without_reason && is_first {
            findings.add(Code::AskedAgain, "valid content is asked for again");
        }
    }

    fn declared(&self, cell: Cell, seen: &Observation, count: u64, findings: &mut CellFindings) {
        let declares = match self.learned.revision {
            Revision::V2025_06_18 => cell.declares().and(Capability::FORM),
            _ => cell.declares(),
        };
        for mode in [Mode::Form, Mode::Url] {
            let is_asked = seen.asked.iter().any(|asked| asked.mode == mode);
            if is_asked && !declares.has(mode) {
                findings.add(
                    Code::AskedUndeclared,
                    format!("a question in {mode} mode, which the client did not declare"),
                );
            }
        }
        let asks = !self.learned.accept.asked.is_empty();
        if asks && seen.asked.is_empty() && count > 0 {
            findings.add(
                Code::EffectWithoutAccept,
                "a client that cannot be asked gets the effect without a question",
            );
        }
    }

    fn refused(&self, cell: Cell, seen: &Observation, count: u64, findings: &mut CellFindings) {
        if count > 0 {
            findings.add(
                Code::EffectWithoutAccept,
                format!("{count} effects, and nobody accepted"),
            );
        } else if self.is_like_accept(seen) {
            findings.add(
                Code::RefusalLikeAccept,
                format!("the result of {cell} has the words of accept"),
            );
        }
        if seen.without_reason {
            findings.add(
                Code::AskedAgain,
                format!("the same question follows {cell}"),
            );
        }
    }

    fn two_calls(&self, seen: &Observation, count: u64, findings: &mut CellFindings) {
        let ended = |end: &&CallEnd| matches!(end, CallEnd::Result { .. } | CallEnd::Error { .. });
        let wrong = seen.ends.iter().filter(ended);
        let wrong = wrong.filter(|end| !end.is_success()).count();
        if self.accept_succeeds() && wrong > 0 {
            findings.add(
                Code::CallsMixed,
                format!("of two calls at once, {wrong} end in an error, and one alone does not"),
            );
        }
        let most = 2 * self.effects.unwrap_or(1).max(1);
        if count > most {
            findings.add(
                Code::EffectTwice,
                format!("{count} effects after two accepts"),
            );
        }
    }

    fn content(&self, cell: Cell, seen: &Observation, findings: &mut CellFindings) {
        let form = self.learned.form_question();
        let form = form.and_then(|(_, asked)| asked.form());
        let is_wrong = match (cell, form) {
            // An unknown member is an answer to any form that is not closed, and no content to one without required fields.
            (Cell::UnknownMember, Some(form)) => form.closed(),
            (Cell::NoContent | Cell::NullContent, Some(form)) => {
                !form.violations(&json!({})).is_empty()
            }
            _ => true,
        };
        if is_wrong && self.is_taken(seen) {
            let end = described(seen.end());
            findings.add(
                Code::WrongContentAccepted,
                format!("{cell} is taken as an answer; the call ends in {end}"),
            );
        }
    }

    fn rounds(&self, cell: Cell, seen: &Observation, count: u64, findings: &mut CellFindings) {
        let taken = seen.went_on || seen.ends.iter().any(CallEnd::is_success);
        match cell {
            Cell::StateChanged if taken => findings.add(
                Code::ChangedStateAccepted,
                "a requestState with one changed character is accepted",
            ),
            Cell::StateOfOtherTool | Cell::StateOfOtherArguments if taken => findings.add(
                Code::ForeignStateAccepted,
                "the requestState of another call is accepted",
            ),
            Cell::StateTwice if count > self.effects.unwrap_or(1).max(1) => findings.add(
                Code::EffectTwice,
                format!("{count} effects: one requestState is good for several"),
            ),
            Cell::NoState if taken => findings.add(
                Code::MissingStateAccepted,
                "answers without their requestState are accepted",
            ),
            Cell::MissingKey if taken => findings.add(
                Code::MissingAnswerAccepted,
                "the call succeeds without an answer to its question",
            ),
            Cell::MissingKey if is_error(seen.end()) => findings.add(
                Code::MissingAnswerRefused,
                format!("a missing answer ends in {}", described(seen.end())),
            ),
            Cell::ExtraKey if self.accept_succeeds() && is_error(seen.end()) => findings.add(
                Code::ExtraKeyRefused,
                format!("an unexpected key ends in {}", described(seen.end())),
            ),
            _ => {}
        }
    }
}

/// Every call must end, and leave a server that responds.
fn ends(cell: Cell, seen: &Observation, findings: &mut CellFindings) {
    if cell == Cell::NoAnswer {
        return;
    }
    for end in &seen.ends {
        match end {
            CallEnd::Never => findings.add(Code::NeverEnds, "the call got no response"),
            CallEnd::Died(why) => findings.add(Code::Died, format!("the server ended: {why}")),
            CallEnd::Flood => findings.add(
                Code::Flood,
                "the server sent more questions or messages than one call can need",
            ),
            CallEnd::Result { .. } | CallEnd::Error { .. } | CallEnd::Left => {}
        }
    }
    let never_ended = seen.ends.contains(&CallEnd::Never);
    if seen.responds == Some(false) && !never_ended {
        findings.add(
            Code::Stuck,
            "the server does not respond to tools/list after the call",
        );
    }
}

/// Checks the questions of the first call.
fn questions(seen: &Observation, revision: Revision, findings: &mut CellFindings) {
    if seen.pushed_in_rounds {
        findings.add(
            Code::PushedInRounds,
            "elicitation/create was sent as a request",
        );
    }
    let mut known: Vec<&ObservedQuestion> = Vec::new();
    for asked in &seen.asked {
        if known.iter().any(|one| one.is_same(asked)) {
            continue;
        }
        known.push(asked);
        let report = lint::lint(&asked.params.to_string(), Some(revision));
        let errors = report.findings.iter();
        for error in errors.filter(|one| one.level == lint::Severity::Error) {
            findings.add(
                Code::IllegalQuestion,
                format!("{} at {}: {}", error.code, error.pointer, error.message),
            );
        }
        let length = asked.message().chars().count();
        if length > LONG_MESSAGE {
            findings.add(
                Code::LongMessage,
                format!("a message of {length} characters"),
            );
        }
    }
}

fn is_error(end: Option<&CallEnd>) -> bool {
    match end {
        Some(CallEnd::Result { is_error, .. }) => *is_error,
        Some(CallEnd::Error { .. }) => true,
        Some(CallEnd::Never | CallEnd::Died(_) | CallEnd::Flood | CallEnd::Left) | None => false,
    }
}

/// Returns an end in words.
fn described(end: Option<&CallEnd>) -> String {
    let quote = |text: &str| format!("{:?}", beginning(text, LONGEST_QUOTE));
    match end {
        Some(CallEnd::Result { is_error, text }) => {
            let kind = if *is_error { "an error" } else { "the result" };
            format!("{kind} {}", quote(text))
        }
        Some(CallEnd::Error { code, message }) => format!("the error {code} {}", quote(message)),
        Some(CallEnd::Never) => "no response".to_owned(),
        Some(CallEnd::Died(_)) => "the end of the server".to_owned(),
        Some(CallEnd::Flood) => "too many messages".to_owned(),
        Some(CallEnd::Left) | None => "nothing".to_owned(),
    }
}

#[derive(Default)]
struct CellFindings(Vec<CellFinding>);

impl CellFindings {
    /// Adds a finding, once.
    fn add(&mut self, code: Code, message: impl Into<String>) {
        let finding = CellFinding {
            code,
            message: message.into(),
        };
        if !self.0.contains(&finding) {
            self.0.push(finding);
        }
    }
}
