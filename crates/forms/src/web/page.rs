//! The pages, as data and templates. Rendering is pure: the same page always gives the same text.
//!
//! Every string passes the templates' HTML escaping; this module has no exception, and no template uses one.

use askama::Template;

use super::clock::Moment;
use super::field::{FieldControl, FieldPart};
use super::markdown::{Block, ListMark, MarkdownMessage, MarkdownSpan};
use super::page_model::SubmitWords;
use super::yes_no::YesNoPart;
use crate::theme::{self, Tone};

/// The frame of every page.
#[derive(Clone, Debug, Default)]
pub(super) struct Shell {
    /// The path at the start of all links; empty at the root.
    pub base: String,
    /// `true` if the reader is signed in, so that links to questions work.
    pub inside: bool,
    /// The number of waiting questions.
    pub pending: usize,
    /// The name of the person who is signed in, on a site of several.
    pub name: Option<String>,
}

/// The remaining time.
#[derive(Clone, Debug)]
pub(super) struct TimeLeft {
    pub milliseconds: u128,
    pub words: String,
    pub short: bool,
}

/// The origin, as shown to the person.
#[derive(Clone)]
pub(super) struct Asker {
    pub server: String,
    pub initial: String,
    pub claimed: Option<String>,
    pub version: Option<String>,
    /// The command or address of a server that is shown by its claimed name.
    pub command: Option<String>,
    pub connection: Option<String>,
    /// The caller and the client.
    pub on_behalf_of: Option<String>,
    pub ago: Option<String>,
    pub call: Option<CallPart>,
}

/// The waiting call.
#[derive(Clone)]
pub(super) struct CallPart {
    pub kind: &'static str,
    pub name: String,
    pub doubt: Option<&'static str>,
    /// The arguments, in full.
    pub arguments: Vec<(String, String)>,
    /// Further arguments of a call that waits for approval, which are opened: its rule does not read them, and nobody
    /// may change them.
    pub others: Vec<(String, String)>,
    /// The label of arguments without a name: those that are not an object, or not JSON.
    pub raw: &'static str,
    /// Their number, in words.
    pub called_with: String,
    /// `true` if they are short enough to be shown without being opened.
    pub open: bool,
}

/// The targets of a question's buttons.
#[derive(Clone, Debug)]
pub(super) struct ButtonLinks {
    pub here: String,
    pub review: String,
    pub step: String,
    pub live: String,
    pub state: String,
    pub accept: String,
    pub decline: String,
    pub always: String,
    pub cancel: String,
}

impl ButtonLinks {
    /// Creates the links of the question `id` under `base`.
    pub(super) fn of(base: &str, id: &str) -> Self {
        let here = format!("{base}/q/{id}");
        let to = |what: &str| format!("{here}/{what}");
        Self {
            review: to("review"),
            step: to("step"),
            live: to("live"),
            state: to("state"),
            accept: to("accept"),
            decline: to("decline"),
            always: to("always"),
            cancel: to("cancel"),
            here,
        }
    }
}

/// One line of the summary of errors.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub anchor: String,
    pub label: String,
    pub message: String,
}

/// The parts that every page of one question shows.
#[derive(Clone)]
pub(super) struct AskedParts {
    pub asker: Asker,
    pub verb: &'static str,
    pub left: Option<TimeLeft>,
    /// The first line of the message, as the heading of the page; empty if the message begins otherwise.
    pub title: Vec<MarkdownSpan>,
    /// The message, without the title.
    pub message: MarkdownMessage,
    /// A note besides the question's own text.
    pub note: Option<String>,
    /// The heading of the warnings.
    pub care: &'static str,
    pub warnings: Vec<String>,
    /// `true` if the warnings must be confirmed before an answer is sent.
    pub must_allow: bool,
    pub links: ButtonLinks,
    pub csrf: String,
    /// `true` if declining permanently is offered here.
    pub always: bool,
    /// The team's view, if several people may answer.
    pub team: Option<TeamPart>,
    /// `true` if a reason for a decline, and a comment on an approval, are passed on.
    pub takes_reasons: bool,
    pub step: PageStep,
}

/// A page of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageStep {
    /// A form, or a link to visit.
    Answer,
    /// A form without fields.
    Plain,
    /// The answers again, before they are sent.
    Review,
}

/// A way to leave a question that drops the draft, and has to be confirmed.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// The name of its action.
    pub act: &'static str,
    pub link: String,
    pub head: &'static str,
    /// The text about the message to the server.
    pub told: &'static str,
    pub yes: &'static str,
    /// The places that a reason reaches, if one can be given.
    pub reason: Option<String>,
}

/// The number of characters above which a title is set smaller.
const LONG_TITLE: usize = 90;

impl AskedParts {
    /// Returns `true` if the title takes several lines.
    pub(super) fn title_is_long(&self) -> bool {
        let characters = self.title.iter().map(|span| span.text().chars().count());
        characters.sum::<usize>() > LONG_TITLE
    }

    /// Returns every way to leave.
    pub(super) fn leavings(&self) -> Vec<Leaving> {
        let [head, told, yes] = self.phrases().decline;
        let told = if self.others_needed() > 0 {
            self.phrases().declined_for_all
        } else {
            told
        };
        let mut leavings = vec![
            Leaving {
                act: "decline",
                link: self.links.decline.clone(),
                head,
                told,
                yes,
                reason: self.reasons_reach(),
            },
            Leaving {
                act: "cancel",
                link: self.links.cancel.clone(),
                head: "Cancel this question?",
                told: "The server is told that you made no choice.",
                yes: "Cancel the question",
                reason: None,
            },
        ];
        if self.always {
            leavings.push(Leaving {
                act: "always",
                link: self.links.always.clone(),
                head: "Decline this server permanently?",
                told: "The server is told no, now and to every later question.",
                yes: "Decline all from this server",
                reason: None,
            });
        }
        leavings
    }
}

/// The team's view of a question.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each act is offered or not, by itself"
)]
pub(super) struct TeamPart {
    pub is_approval: bool,
    pub lines: Vec<String>,
    pub reasons_reach: String,
    pub explain: Option<String>,
    pub link: Option<String>,
    pub good_for: Option<String>,
    pub tool: Option<ToolPart>,
    pub reads: Option<Vec<String>>,
    pub version: u32,
    pub entered: Option<EnteredPart>,
    pub may_act: bool,
    pub may_cancel: bool,
    pub may_claim: bool,
    /// Another person's claim.
    pub claim: Option<ClaimPart>,
    pub has_agreed: bool,
    pub has_handed_on: bool,
    pub others_needed: u8,
    /// The action that the reader has just done, in words.
    pub did: Option<String>,
    /// The person or group to whom the reader has delegated the question last, in words.
    pub handed_on_to: Option<String>,
    pub delegates: Vec<(String, String)>,
    pub may_comment: bool,
    pub comments: Vec<CommentPart>,
    pub history: Vec<HistoryPart>,
}

/// A server's claims about a tool, safe to show.
#[derive(Clone)]
pub(super) struct ToolPart {
    pub description: Option<String>,
    pub hints: Vec<String>,
    /// The arguments that the call leaves out, each with the default that the server names, if any.
    pub absent: Vec<(String, Option<String>)>,
    pub more_absent: usize,
}

/// Another person's claim, which closes the form.
#[derive(Clone)]
pub(super) struct ClaimPart {
    pub by: String,
    pub left: TimeLeft,
    /// The remaining time in whole minutes, which the page does not update.
    pub minutes: String,
}

/// Answers that wait for the confirmation of others.
#[derive(Clone)]
pub(super) struct EnteredPart {
    pub by: String,
    /// The answers; of a call that waits for approval, the changed arguments.
    pub rows: Vec<ReviewRow>,
    /// The number of arguments that may change and are as the call has them.
    pub unchanged: usize,
    pub digest: String,
    pub may_confirm: bool,
}

/// A comment.
#[derive(Clone)]
pub(super) struct CommentPart {
    pub by: String,
    pub ago: String,
    pub text: String,
}

/// An entry in the history of a question.
#[derive(Clone)]
pub(super) struct HistoryPart {
    pub text: String,
    /// `true` for an action or a change, which the page announces.
    pub is_announced: bool,
    pub at: Option<Moment>,
    /// The event's unique name on the page: its time, and its position among those of that time.
    pub key: String,
}

impl AskedParts {
    /// Returns `true` if the reader may answer.
    pub(super) fn may_answer(&self) -> bool {
        self.team.as_ref().is_none_or(|team| team.may_act)
    }

    /// Returns the places that a reason for a decline reaches, if one can be given.
    fn reasons_reach(&self) -> Option<String> {
        if !self.takes_reasons {
            return None;
        }
        let team = self.team.as_ref().map(|team| team.reasons_reach.clone());
        Some(team.unwrap_or_else(|| "The server is told it, too.".to_owned()))
    }

    /// Returns the places that a comment on an approval reaches, if one can be given.
    pub(super) fn comments_reach(&self) -> Option<&str> {
        let team = self.team.as_ref().filter(|team| team.is_approval)?;
        self.takes_reasons.then_some(team.reasons_reach.as_str())
    }

    /// Returns `true` if a call waits for approval, and no server has asked.
    pub(super) fn is_approval(&self) -> bool {
        self.team.as_ref().is_some_and(|team| team.is_approval)
    }

    /// Returns the call that waits for approval.
    pub(super) fn approved_call(&self) -> Option<&CallPart> {
        self.asker.call.as_ref().filter(|_| self.is_approval())
    }

    /// Returns the server's claims about the tool of a call that waits for approval.
    pub(super) fn tool(&self) -> Option<&ToolPart> {
        self.team.as_ref()?.tool.as_ref()
    }

    /// Returns another person's claim, which closes the form.
    pub(super) fn claim(&self) -> Option<&ClaimPart> {
        self.team.as_ref()?.claim.as_ref()
    }

    /// Returns `true` if answers wait for confirmation, so that entering others is not the next step.
    pub(super) fn has_entered(&self) -> bool {
        self.team
            .as_ref()
            .is_some_and(|team| team.entered.is_some())
    }

    /// Returns `true` if the reader has confirmed the entered answers.
    pub(super) fn has_agreed(&self) -> bool {
        self.team.as_ref().is_some_and(|team| team.has_agreed)
    }

    /// Returns `true` if the reader has delegated the question.
    pub(super) fn has_handed_on(&self) -> bool {
        self.team.as_ref().is_some_and(|team| team.has_handed_on)
    }

    /// Returns the number of people who must confirm after the reader has entered answers.
    pub(super) fn others_needed(&self) -> u8 {
        self.team.as_ref().map_or(0, |team| team.others_needed)
    }

    /// Returns the wording of the values to send.
    pub(super) fn words(&self) -> SubmitWords {
        let is_approval = self.is_approval();
        if is_approval || self.others_needed() > 0 {
            SubmitWords::for_others(is_approval)
        } else {
            SubmitWords::Own
        }
    }

    /// Returns `true` if this page is the review.
    pub(super) fn is_review(&self) -> bool {
        self.step == PageStep::Review
    }

    /// Returns `true` if the reader confirms or declines beside the list of confirmations, since there is nothing to
    /// fill in.
    pub(super) fn decides_above(&self) -> bool {
        let entered = self.team.as_ref().and_then(|team| team.entered.as_ref());
        self.step == PageStep::Plain
            && entered.is_some_and(|entered| entered.may_confirm)
            && self.claim().is_none()
    }

    /// Returns `true` if the form is folded: the reader has confirmed the entered answers, or may confirm beside their
    /// list.
    pub(super) fn folds_form(&self) -> bool {
        let entered = self.team.as_ref().and_then(|team| team.entered.as_ref());
        self.has_agreed()
            || self.is_approval()
                && self.step == PageStep::Answer
                && entered.is_some_and(|entered| entered.may_confirm)
                && self.claim().is_none()
    }

    /// Returns `true` if the reader declines beside the list of confirmations.
    pub(super) fn declines_above(&self) -> bool {
        self.decides_above() || self.folds_form() && !self.has_agreed()
    }

    /// Returns the label of the button that sends the reviewed answers.
    pub(super) fn send(&self) -> &'static str {
        let phrases = self.phrases();
        match (self.others_needed(), self.has_entered()) {
            (0, _) => phrases.send,
            (_, false) => phrases.send_first,
            (_, true) => phrases.send_instead,
        }
    }

    /// Returns the reader's next step, and that of others.
    pub(super) fn next_step(&self) -> String {
        let entered = self.team.as_ref().and_then(|team| team.entered.as_ref());
        let dropped = entered.map(|entered| entered.by.as_str());
        self.phrases()
            .next_step(self.send(), dropped, self.others_needed())
    }

    /// Returns `true` if the reader may dismiss the question.
    pub(super) fn may_cancel(&self) -> bool {
        self.team.as_ref().is_none_or(|team| team.may_cancel)
    }
}

/// A form to fill in, or a confirmation if it has no fields.
#[derive(Template)]
#[template(path = "question.html")]
pub(super) struct QuestionPage {
    pub shell: Shell,
    pub asked: AskedParts,
    pub typed: bool,
    /// The way to leave that has to be confirmed.
    pub leaving: Option<Leaving>,
    pub problems: Vec<Problem>,
    pub fields: Vec<FieldPart>,
    pub zones: Vec<String>,
    /// The two buttons in place of the form, if it asks for nothing but a yes or no.
    pub yes_no: Option<YesNoPart>,
}

/// One answer as it will be sent.
#[derive(Clone)]
pub(super) struct ReviewRow {
    pub label: String,
    pub values: Vec<String>,
    /// The typed text, if the sent value differs.
    pub typed: Option<String>,
    /// The reason to check it again.
    pub caveat: Option<String>,
    /// The values before the approver changed them, in a call that waits for approval; empty if unchanged.
    pub before: Vec<String>,
}

/// The answers again, before they are sent.
#[derive(Template)]
#[template(path = "review.html")]
pub(super) struct ReviewPage {
    pub shell: Shell,
    pub asked: AskedParts,
    pub seen: String,
    pub unsure: Option<&'static str>,
    pub rows: Vec<ReviewRow>,
}

/// The parts of a link, so that the site stands out.
#[derive(Clone, Debug)]
pub(super) struct HostPart {
    /// The whole address, to open.
    pub url: String,
    /// The address up to its host.
    pub url_before: String,
    /// The host.
    pub name: String,
    /// The address after its host.
    pub url_after: String,
    /// The subdomain prefix.
    pub before: String,
    /// The registrable domain, or the whole host.
    pub site: String,
    /// The port.
    pub after: String,
}

/// A link to visit.
#[derive(Template)]
#[template(path = "visit.html")]
pub(super) struct VisitPage {
    pub shell: Shell,
    pub asked: AskedParts,
    pub host: HostPart,
}

/// The end of a question, on the queue page.
#[derive(Clone, Debug)]
pub(super) struct EndLabel {
    pub word: &'static str,
    pub tone: &'static str,
    pub ago: String,
    pub by: Option<String>,
}

/// One question on the queue page.
#[derive(Clone, Debug)]
pub(super) struct QueueRow {
    pub id: String,
    pub href: String,
    pub initial: String,
    pub server: String,
    pub call: Option<String>,
    pub called_by: Option<String>,
    pub rule: Option<String>,
    pub excerpt: String,
    pub arguments: Option<String>,
    pub ago: Option<String>,
    pub left: Option<TimeLeft>,
    pub end: Option<EndLabel>,
}

/// A view of the list.
#[derive(Clone, Debug)]
pub(super) struct ViewLink {
    pub href: String,
    pub label: &'static str,
    pub is_current: bool,
}

/// The waiting questions, and those that ended lately.
#[derive(Template)]
#[template(path = "queue.html")]
pub(super) struct QueuePage {
    pub shell: Shell,
    pub head: &'static str,
    /// The text of a view without waiting questions.
    pub nothing: &'static str,
    /// The address of the whole view, without a search.
    pub whole: String,
    pub find: String,
    /// The name of the view, if it is not the default.
    pub view: Option<&'static str>,
    /// The views to choose from; none on a site of one person.
    pub views: Vec<ViewLink>,
    /// The number of waiting questions that are not shown.
    pub more: usize,
    /// `true` if more questions wait than were counted.
    pub is_cut: bool,
    /// The address of a page with more questions, if there are any.
    pub longer: Option<String>,
    pub pending: Vec<QueueRow>,
    pub recent: Vec<QueueRow>,
}

impl QueuePage {
    /// Returns the number of waiting questions, in words.
    fn waiting(&self) -> String {
        match self.shell.pending {
            pending if self.is_cut => format!("{pending} or more questions are waiting for you"),
            1 => "One question is waiting for you".to_owned(),
            pending => format!("{pending} questions are waiting for you"),
        }
    }

    /// Returns the number of questions missing from the list, in words.
    fn missing(&self) -> Option<String> {
        const LISTED: &str =
            "Those that were asked first and last are listed. Search to find one of the others.";
        match self.more {
            // A search finds all, and their number is not known.
            _ if self.is_cut && !self.find.is_empty() => None,
            _ if self.is_cut && self.view.is_none() => {
                let waiting = self.pending.len() + self.more;
                Some(format!("{waiting} or more are waiting. {LISTED}"))
            }
            _ if self.is_cut => Some(format!("More questions wait than are counted. {LISTED}")),
            0 => None,
            more => Some(format!(
                "{more} more are waiting. Search to find one of them."
            )),
        }
    }

    /// Returns the number of matching questions, in words.
    fn matching(&self) -> String {
        match self.pending.len() + self.recent.len() {
            0 => "Nothing matches".to_owned(),
            1 => "One question matches".to_owned(),
            found => format!("{found} questions match"),
        }
    }
}

/// The line that lets the reader go.
#[derive(Clone, Debug)]
pub(super) struct ClosePart {
    /// The server that has the answer, and may ask again.
    pub server: String,
    /// `true` for a moment after the end, in which the server may ask its next question.
    pub is_early: bool,
}

/// A link at the foot of a notice.
#[derive(Clone, Debug)]
pub(super) struct NoticeLink {
    pub href: String,
    pub label: String,
}

impl NoticePage {
    /// Returns a line with its commands, which stand between backticks, set as code. Pages for a signed-in reader quote
    /// servers and people, whose text stays as it is.
    fn spans(&self, line: &str) -> Vec<MarkdownSpan> {
        if self.shell.inside {
            return vec![MarkdownSpan::Plain(line.to_owned())];
        }
        let span = |(index, text): (usize, &str)| match index % 2 {
            0 => MarkdownSpan::Plain(text.to_owned()),
            _ => MarkdownSpan::Code(text.to_owned()),
        };
        line.split('`').enumerate().map(span).collect()
    }
}

/// A notice: the end of a question, a missing page, a login.
#[derive(Template)]
#[template(path = "notice.html")]
pub(super) struct NoticePage {
    pub shell: Shell,
    pub tone: Tone,
    pub head: String,
    pub lines: Vec<String>,
    pub acts: Vec<NoticeLink>,
    /// The last line, if nothing else waits for the reader.
    pub close: Option<ClosePart>,
    /// The address of an automatic redirect.
    pub forward: Option<String>,
    /// The page to which a signed-in browser is sent, below its stored path.
    pub enter: Option<String>,
    /// The page that the button for signing in on this machine's desktop leads to; `None` for no button.
    pub desktop_next: Option<String>,
    /// The history of a question that has ended.
    pub history: Vec<HistoryPart>,
    /// The comments on it.
    pub comments: Vec<CommentPart>,
}
