//! The parts of a question that may leave the gateway, and templates. Every text is safe to show.

use jiff::tz::TimeZone;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{quoted, reason_line};
use mcp_elicit_core::view::{CallView, sanitize};
use mcp_elicit_policy::rules::Reveal;

use crate::notice::{ChannelSummary, Notice, QuestionEvent, Recipient};

/// The parts of a notice that its [`Reveal`] permits. Never answers, comments, tokens or links that log a person in.
pub struct Revealed<'a> {
    notice: &'a Notice,
}

impl<'a> Revealed<'a> {
    /// Creates the view of a notice.
    pub const fn new(notice: &'a Notice) -> Self {
        Self { notice }
    }

    fn summary(&self) -> &'a ChannelSummary {
        &self.notice.summary
    }

    /// Returns `true` if more than the server's name and the link may leave.
    pub fn has_question(&self) -> bool {
        self.notice.reveal != Reveal::Minimal
    }

    /// Returns `true` if the arguments may leave, or there are none.
    pub fn has_arguments(&self) -> bool {
        self.notice.reveal == Reveal::Arguments
            || (self.has_question() && all_arguments(self.summary()).is_empty())
    }

    /// Returns the server's name.
    pub fn server(&self) -> String {
        sanitize::name(&self.summary().server, sanitize::LABEL)
    }

    /// Returns the tool, prompt or resource.
    pub fn tool(&self) -> Option<String> {
        self.name_of_question(self.summary().tool.as_deref())
    }

    /// Returns the caller's name, or the subject if there is no name.
    pub fn caller(&self) -> Option<String> {
        self.name_of_question(caller(self.summary()))
    }

    /// Returns `true` if a relevant text is longer than its shown part: the name of the server, of the tool or of the
    /// caller, the server's message or the address to open.
    pub fn is_cut(&self) -> bool {
        let summary = self.summary();
        let names = [
            Some(&*summary.server),
            summary.tool.as_deref(),
            caller(summary),
        ];
        let texts = [Some(&*summary.message), summary.address.as_deref()];
        let is_longer = |text: &str, most: usize| text.chars().nth(most).is_some();
        names
            .into_iter()
            .flatten()
            .any(|name| sanitize::name(name, sanitize::LABEL) != sanitize::name(name, usize::MAX))
            || texts
                .into_iter()
                .flatten()
                .any(|text| is_longer(text, sanitize::DESCRIPTION))
    }

    /// Returns the rule's name.
    pub fn rule(&self) -> Option<String> {
        self.of_question(self.summary().rule.as_deref())
    }

    /// Returns the group through which the recipient is asked, else everyone who is asked.
    pub fn group(&self) -> Option<String> {
        let groups = if let Recipient::Group(name) = &self.notice.to {
            name.clone()
        } else {
            let names = self.summary().addressed.iter();
            let names = names.map(|name| name.split_once(':').map_or(&**name, |(_, name)| name));
            names.collect::<Vec<_>>().join(", ")
        };
        self.of_question(Some(&groups))
    }

    /// Returns the deadline, in this zone.
    pub fn deadline(&self, zone: &TimeZone) -> Option<String> {
        self.has_question()
            .then(|| clock_text(self.summary().deadline, self.notice.at, zone))
    }

    /// Returns the server's message, with its line breaks.
    pub fn message(&self) -> Option<String> {
        self.has_question()
            .then(|| sanitize::text(&self.summary().message, sanitize::DESCRIPTION))
    }

    /// Returns the address of a question in url mode.
    pub fn address(&self) -> Option<String> {
        let address = self.summary().address.as_deref();
        address
            .filter(|_| self.has_question())
            .map(|address| sanitize::line(address, sanitize::DESCRIPTION))
    }

    /// Returns the arguments, by name.
    pub fn arguments(&self) -> Vec<(String, String)> {
        match self.notice.reveal {
            Reveal::Arguments => all_arguments(self.summary()),
            Reveal::Minimal | Reveal::Question => Vec::new(),
        }
    }

    /// Returns a sentence about the end, with the actor and the time.
    pub fn ending(&self, zone: &TimeZone) -> Option<String> {
        let ending = self.summary().ending.as_ref()?;
        let at = clock_text(ending.at, self.notice.at, zone);
        let by = ending.by.as_deref().filter(|_| self.has_question());
        let by = by.map(|by| sanitize::line(by, sanitize::LABEL));
        let words = first_upper(ending.event.words(self.summary().is_approval));
        let what = match self.tool() {
            Some(tool) => format!("{tool} on {}: {words}", self.server()),
            None => words,
        };
        let why = ending.why.iter().filter(|_| self.has_question());
        let why: Vec<String> = why
            .filter_map(|why| reason_line(why))
            .map(|why| quoted(&why))
            .collect();
        let why = match why.as_slice() {
            [] => String::new(),
            why => format!(". Why: {}", why.join(", ")),
        };
        Some(match by {
            Some(by) => format!("{what} by {by} at {at}{why}"),
            None => format!("{what} at {at}{why}"),
        })
    }

    /// Returns facts about the rule and its decision, each with a label, for readers: the operator's
    /// explanation, those who are missing, and, also after the end, the later calls that an approval lets through.
    pub fn plan_facts(&self) -> Vec<(&'static str, String)> {
        let summary = self.summary();
        let is_open = self.has_question() && summary.ending.is_none();
        let facts = [
            ("Why it is asked", summary.explain.as_deref()),
            ("More", summary.runbook.as_deref()),
            ("Missing", summary.missing.as_deref()),
        ];
        let facts = facts.into_iter().filter(|_| is_open);
        let facts = facts.filter_map(|(label, text)| {
            let text = sanitize::line(text?, sanitize::DESCRIPTION);
            (!text.is_empty()).then_some((label, text))
        });
        facts
            .chain(self.good_for().map(|text| ("Note", text)))
            .collect()
    }

    /// Returns the later calls that an approval would also let through, or that one which was given does, as a sentence.
    pub fn good_for(&self) -> Option<String> {
        let text = self.summary().good_for.as_deref();
        let text = sanitize::line(text.filter(|_| self.has_question())?, sanitize::DESCRIPTION);
        (!text.is_empty()).then_some(text)
    }

    fn of_question(&self, text: Option<&str>) -> Option<String> {
        let text = text.filter(|_| self.has_question())?;
        let text = sanitize::line(text, sanitize::LABEL);
        (!text.is_empty()).then_some(text)
    }

    fn name_of_question(&self, name: Option<&str>) -> Option<String> {
        let name = name.filter(|name| self.has_question() && !name.trim().is_empty())?;
        Some(sanitize::name(name, sanitize::LABEL))
    }

    /// Returns the subject line. It contains no text of the server or the caller, only the server's name in the
    /// configuration.
    pub fn subject(&self, zone: &TimeZone) -> String {
        let server = self.server();
        let event = match &self.summary().ending {
            Some(ending) => ending.event,
            None => self.notice.event,
        };
        let words = event.words(self.summary().is_approval);
        match self.deadline(zone) {
            Some(deadline)
                if self.notice.event.asks_to_act() && self.summary().ending.is_none() =>
            {
                format!("[gateway] {server}: {words} by {deadline}")
            }
            _ => format!("[gateway] {server}: {words}"),
        }
    }

    /// Returns the first sentence of a message, without a template.
    pub fn opening(&self) -> String {
        let server = self.server();
        let is_approval = self.summary().is_approval;
        let need = match self.summary().need {
            0 | 1 => String::new(),
            need => {
                let act = if is_approval { "approve" } else { "agree" };
                format!(" {need} people must {act}.")
            }
        };
        match (self.notice.event, self.tool()) {
            (QuestionEvent::Filled, _) => self.agreed_so_far(),
            (event, tool) if event.asks_to_act() && is_approval => match tool {
                Some(tool) => format!("A call to {tool} on {server} waits for approval.{need}"),
                None => format!("A call on {server} waits for approval.{need}"),
            },
            (event, tool) if event.asks_to_act() => match tool {
                Some(tool) => {
                    format!("{server} asks for a decision during a call to {tool}.{need}")
                }
                None => format!("{server} asks for a decision.{need}"),
            },
            (event, _) => format!("{server}: {}.", event.words(is_approval)),
        }
    }

    /// Returns the people who have confirmed the latest answers, those whose confirmation was dropped, and the number
    /// of missing confirmations.
    fn agreed_so_far(&self) -> String {
        let summary = self.summary();
        let server = self.server();
        let is_other = !summary.dropped.is_empty();
        let form = summary.form.as_deref();
        let is_plain = form.is_some_and(|form| form.fields().is_empty());
        let first = summary.agreed.get(..1).unwrap_or_default();
        let (by, agreement, act) = match summary.is_approval {
            true if is_other => (first, "approval", "approve"),
            true => (&*summary.agreed, "approval", "approve"),
            false if is_plain => (&*summary.agreed, "agreement", "agree"),
            false => (first, "agreement", "confirm"),
        };
        let by = self.people(by);
        let by = by.unwrap_or_else(|| "another person".to_owned());
        let did = match (summary.is_approval, is_other, self.tool()) {
            (true, true, Some(tool)) => format!("approved other arguments for the call to {tool}"),
            (true, true, None) => "approved other arguments for a call".to_owned(),
            (true, false, Some(tool)) => format!("approved the call to {tool}"),
            (true, false, None) => "approved a call".to_owned(),
            (false, _, Some(tool)) if is_plain => format!("agreed in a call to {tool}"),
            (false, _, None) if is_plain => "agreed".to_owned(),
            (false, true, Some(tool)) => format!("entered other answers in a call to {tool}"),
            (false, true, None) => "entered other answers".to_owned(),
            (false, false, Some(tool)) => format!("entered answers in a call to {tool}"),
            (false, false, None) => "entered answers".to_owned(),
        };
        let dropped = match (is_other, self.people(&summary.dropped)) {
            (false, _) => String::new(),
            (true, Some(names)) => format!(" The {agreement} of {names} no longer counts."),
            (true, None) => format!(" The {agreement} before that no longer counts."),
        };
        let agreed = summary.agreed.len().max(1);
        let more = usize::from(summary.need).saturating_sub(agreed);
        let more = match more {
            0 => String::new(),
            1 => format!(" 1 more person must {act}."),
            more => format!(" {more} more people must {act}."),
        };
        format!("{server}: {by} {did}.{dropped}{more}")
    }

    /// Returns these names in a sentence; `None` if there are none, or they may not leave.
    fn people(&self, names: &[String]) -> Option<String> {
        let names: Vec<_> = names
            .iter()
            .filter_map(|name| self.of_question(Some(name)))
            .collect();
        match &*names {
            [] => None,
            [one] => Some(one.clone()),
            [first @ .., last] => Some(format!("{} and {last}", first.join(", "))),
        }
    }
}

/// Returns the arguments of a question's call, by name; none for `{}`.
pub(crate) fn all_arguments(summary: &ChannelSummary) -> Vec<(String, String)> {
    let arguments = summary.arguments.as_deref();
    let call = arguments.map(|arguments| CallView::tool("").with_json(arguments));
    call.map_or_else(Vec::new, |call| call.arguments_in_full())
}

/// Returns the caller's name as received, or the subject if there is no name.
pub(crate) fn caller(summary: &ChannelSummary) -> Option<&str> {
    let caller = &summary.caller;
    let names = [&*caller.name, &*caller.subject];
    names.into_iter().find(|name| !name.trim().is_empty())
}

fn first_upper(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// Returns a time for people: `14:30 UTC`, with its date if it is not the day of `now`.
pub fn clock_text(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (Some(at), Some(now)) = (instant(at), instant(now)) else {
        return "an unknown time".to_owned();
    };
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let format = if at.date() == now.date() {
        "%H:%M %Z"
    } else {
        "%Y-%m-%d %H:%M %Z"
    };
    at.strftime(format).to_string()
}

/// Returns the instant of a timestamp; `None` after the year 9999.
pub(crate) fn instant(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(at.as_millis()).ok()?).ok()
}

/// A sentence of the operator, with names in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Name(TemplateName),
}

/// A name in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateName {
    Server,
    Tool,
    Caller,
    Group,
    Deadline,
    Rule,
}

impl TemplateName {
    const ALL: [(&'static str, Self); 6] = [
        ("server", Self::Server),
        ("tool", Self::Tool),
        ("caller", Self::Caller),
        ("group", Self::Group),
        ("deadline", Self::Deadline),
        ("rule", Self::Rule),
    ];
}

/// An error in a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// The byte at which it occurs.
    pub at: usize,
    /// The error.
    pub message: String,
}

/// The longest template, in bytes.
const LONGEST_TEMPLATE: usize = 1000;

impl Template {
    /// Parses a template. It supports `{server} {tool} {caller} {group} {deadline} {rule}`.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let error = |at, message: &str| {
            Err(TemplateError {
                at,
                message: message.to_owned(),
            })
        };
        if text.len() > LONGEST_TEMPLATE {
            return error(0, "the text is longer than 1000 bytes");
        }
        if let Some(at) = text.find(char::is_control) {
            return error(at, "the text has a control character");
        }
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(found) = text[at..].find(['{', '}']) {
            let open = at + found;
            if text[open..].starts_with('}') {
                return error(open, "a `}` without its `{`");
            }
            if open > at {
                parts.push(TemplatePart::Text(text[at..open].to_owned()));
            }
            let Some(length) = text[open..].find('}') else {
                return error(open, "a `{` without its `}`");
            };
            let written = &text[open + 1..open + length];
            let name = TemplateName::ALL.iter().find(|(name, _)| *name == written);
            let Some((_, name)) = name else {
                let known = TemplateName::ALL
                    .map(|(name, _)| format!("{{{name}}}"))
                    .join(" ");
                return error(open, &format!("unknown name in braces; known: {known}"));
            };
            parts.push(TemplatePart::Name(*name));
            at = open + length + 1;
        }
        if at < text.len() {
            parts.push(TemplatePart::Text(text[at..].to_owned()));
        }
        Ok(Self(parts))
    }

    /// Returns the sentence for a notice. A part that is hidden or unknown becomes a dash.
    pub fn render(&self, revealed: &Revealed<'_>, zone: &TimeZone) -> String {
        let value = |name| match name {
            TemplateName::Server => Some(revealed.server()),
            TemplateName::Tool => revealed.tool(),
            TemplateName::Caller => revealed.caller(),
            TemplateName::Group => revealed.group(),
            TemplateName::Deadline => revealed.deadline(zone),
            TemplateName::Rule => revealed.rule(),
        };
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Name(name) => value(*name).unwrap_or_else(|| "–".to_owned()),
        };
        self.0.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::EndSummary;
    use crate::notice::tests::{notice, summary};

    fn every_text(notice: &Notice) -> String {
        let revealed = Revealed::new(notice);
        let zone = TimeZone::UTC;
        let parts = [
            revealed.tool(),
            revealed.caller(),
            revealed.rule(),
            revealed.group(),
            revealed.deadline(&zone),
            revealed.message(),
            revealed.address(),
            revealed.ending(&zone),
            Some(revealed.subject(&zone)),
            Some(revealed.opening()),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        format!("{parts:?} {:?}", revealed.arguments())
    }

    #[test]
    fn each_amount_tells_what_it_may() {
        let at = |reveal| every_text(&notice(summary("{}"), QuestionEvent::Asked, reveal));
        let minimal = at(Reveal::Minimal);
        for hidden in ["deploy_app", "Ada", "ops", "10:", "version 4", "production"] {
            assert!(!minimal.contains(hidden), "{hidden}: {minimal}");
        }
        let question = at(Reveal::Question);
        for told in ["deploy_app", "Ada Lovelace", "ops", "version 4"] {
            assert!(question.contains(told), "{told}: {question}");
        }
        assert!(!question.contains("environment"), "{question}");
        assert!(at(Reveal::Arguments).contains("environment"));
    }

    #[test]
    fn a_call_that_waits_for_approval_is_no_question_of_its_server() {
        let mut approval = summary("{}");
        approval.is_approval = true;
        for (reveal, words) in [
            (Reveal::Question, "A call to deploy_app on "),
            (Reveal::Minimal, "A call on "),
        ] {
            let notice = notice(approval.clone(), QuestionEvent::Asked, reveal);
            let opening = Revealed::new(&notice).opening();
            assert!(opening.starts_with(words), "{opening}");
            assert!(
                opening.contains(" waits for approval. 2 people must approve."),
                "{opening}"
            );
        }
    }

    #[test]
    fn agreement_is_told_by_name_with_what_is_missing_and_what_was_dropped() {
        let said = |is_approval, dropped: &[&str], reveal| {
            let mut filled = summary(r#"{"go":{"type":"boolean"}}"#);
            filled.need = 3;
            filled.is_approval = is_approval;
            filled.agreed = vec!["Ada".to_owned()];
            filled.dropped = dropped.iter().map(|&name| name.to_owned()).collect();
            Revealed::new(&notice(filled, QuestionEvent::Filled, reveal)).opening()
        };
        let cases: [(bool, &[&str], &str); 4] = [
            (
                true,
                &[],
                "deploy: Ada approved the call to deploy_app. 2 more people must approve.",
            ),
            (
                true,
                &["Bob M.", "Eve"],
                "deploy: Ada approved other arguments for the call to deploy_app. \
                 The approval of Bob M. and Eve no longer counts. 2 more people must approve.",
            ),
            (
                false,
                &[],
                "deploy: Ada entered answers in a call to deploy_app. 2 more people must confirm.",
            ),
            (
                false,
                &["Bob"],
                "deploy: Ada entered other answers in a call to deploy_app. \
                 The agreement of Bob no longer counts. 2 more people must confirm.",
            ),
        ];
        for (is_approval, dropped, words) in cases {
            assert_eq!(said(is_approval, dropped, Reveal::Question), words);
        }
        assert_eq!(
            said(false, &["Bob"], Reveal::Minimal),
            "deploy: another person entered other answers. The agreement before that no longer counts. 2 more people must confirm."
        );
        let mut plain = summary("{}");
        plain.agreed = vec!["Ada".to_owned()];
        assert_eq!(
            Revealed::new(&notice(plain, QuestionEvent::Filled, Reveal::Question)).opening(),
            "deploy: Ada agreed in a call to deploy_app. 1 more person must agree."
        );
        let approval = QuestionEvent::Answered.words(true);
        assert_eq!(
            (approval, QuestionEvent::Answered.words(false)),
            ("approved", "answered")
        );
    }

    #[test]
    fn texts_of_servers_and_callers_are_harmless() {
        let mut hostile = summary("{}");
        hostile.message = "\u{1b}[2Jx\u{202e}y".to_owned();
        hostile.caller.name = "A\r\nBcc: all@example.com".to_owned();
        hostile.tool = Some("a\nb".to_owned());
        let text = every_text(&notice(hostile, QuestionEvent::Asked, Reveal::Arguments));
        assert!(
            !text.contains('\u{1b}') && !text.contains("\\u{1b}"),
            "{text}"
        );
        assert!(
            !text.contains("\\r\\nBcc") && !text.contains("a\\nb"),
            "{text}"
        );
    }

    #[test]
    fn a_text_that_is_cut_is_known_to_be() {
        type Change = fn(&mut ChannelSummary, String);
        let is_cut = |change: Change, length: usize| {
            let mut long = summary("{}");
            change(&mut long, "x".repeat(length));
            Revealed::new(&notice(long, QuestionEvent::Asked, Reveal::Arguments)).is_cut()
        };
        let name = sanitize::LABEL;
        let text = sanitize::DESCRIPTION;
        let cases: [(Change, usize); 5] = [
            (|summary, text| summary.server = text, name),
            (|summary, text| summary.tool = Some(text), name),
            (|summary, text| summary.caller.name = text, name),
            (|summary, message| summary.message = message, text),
            (|summary, text| summary.address = Some(text), text),
        ];
        for (change, most) in cases {
            // A few characters more are shown instead of a note about them.
            assert!(!is_cut(change, most) && is_cut(change, most + 25));
        }
        // Quotes and escapes count, too.
        let quoted: Change = |summary, text| summary.tool = Some(text + "\n");
        assert!(is_cut(quoted, name + 23));
    }

    #[test]
    fn the_subject_names_the_deadline_and_the_end() {
        let zone = TimeZone::UTC;
        let subject = |notice: &Notice| Revealed::new(notice).subject(&zone);
        let mut ended = summary("{}");
        let asked = notice(ended.clone(), QuestionEvent::Asked, Reveal::Question);
        assert_eq!(
            subject(&asked),
            "[gateway] deploy: decision needed by 10:30 UTC"
        );
        ended.ending = Some(EndSummary {
            event: QuestionEvent::Declined,
            by: Some("ops-2".to_owned()),
            at: ended.asked_at,
            why: vec!["wrong\n\u{201d}cluster".to_owned()],
        });
        let ended = notice(ended, QuestionEvent::Declined, Reveal::Question);
        assert_eq!(subject(&ended), "[gateway] deploy: declined");
        assert_eq!(
            Revealed::new(&ended).ending(&zone).unwrap(),
            "deploy_app on deploy: Declined by ops-2 at 10:00 UTC. Why: \u{201c}wrong 'cluster\u{201d}"
        );
    }

    #[test]
    fn templates_know_six_names() {
        let asked = notice(summary("{}"), QuestionEvent::Asked, Reveal::Question);
        let render = |text: &str, notice: &Notice| {
            let template = Template::parse(text).unwrap();
            template.render(&Revealed::new(notice), &TimeZone::UTC)
        };
        assert_eq!(
            render(
                "{server} asks {group} by {deadline}: {tool}, {caller}, {rule}.",
                &asked
            ),
            "deploy asks ops by 10:30 UTC: deploy_app, Ada Lovelace, deploy-production."
        );
        let minimal = notice(summary("{}"), QuestionEvent::Asked, Reveal::Minimal);
        assert_eq!(render("{server} {caller}", &minimal), "deploy –");
        for (text, at) in [
            ("x {what}", 2),
            ("{server", 0),
            ("a}", 1),
            ("a\nb", 1),
            ("{{server}}", 0),
        ] {
            assert_eq!(Template::parse(text).unwrap_err().at, at, "{text}");
        }
    }
}
