//! The content of a question for channels, and recipients as the record stores them.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_elicit_channels::{CallerSummary, ChannelSummary, EndSummary, QuestionEvent, Recipient};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{ParsedBody, ParsedQuestion};
use mcp_elicit_core::wire::{ElicitRequest, members};
use mcp_elicit_inbox::login::directory::{Directory, DirectoryNow};
use mcp_elicit_inbox::record_question_store::RecordQuestionStore;
use mcp_elicit_inbox::team_view;
use mcp_elicit_policy::quorum::QuorumState;
use mcp_elicit_policy::rules::Reveal;
use mcp_elicit_policy::{Addressee, People};
use mcp_elicit_record::Record;
use mcp_elicit_record::audit::Actor;
use mcp_elicit_record::store::Row;
use mcp_elicit_record::team::Team;
use mcp_elicit_record::timeline::{TimelineEvent, TimelineKind};
use serde_json::value::RawValue;

use crate::runtime::QuestionLinks;

/// Returns `true` if only answers from pages count.
pub(crate) type PagesOnly = dyn Fn() -> bool + Send + Sync;

/// Returns the channels' event for one of a question's timeline.
pub(super) const fn event_of(kind: TimelineKind) -> QuestionEvent {
    match kind {
        TimelineKind::Asked => QuestionEvent::Asked,
        TimelineKind::Reminded => QuestionEvent::Reminded,
        TimelineKind::Escalated => QuestionEvent::Escalated,
        TimelineKind::Claimed | TimelineKind::TakenOver => QuestionEvent::Claimed,
        TimelineKind::Delegated => QuestionEvent::Delegated,
        TimelineKind::Filled | TimelineKind::Edited => QuestionEvent::Filled,
        TimelineKind::Confirmed => QuestionEvent::Confirmed,
        TimelineKind::Answered => QuestionEvent::Answered,
        TimelineKind::Declined => QuestionEvent::Declined,
        TimelineKind::Cancelled => QuestionEvent::Cancelled,
        TimelineKind::TimedOut => QuestionEvent::TimedOut,
        TimelineKind::Withdrawn => QuestionEvent::Withdrawn,
        TimelineKind::Failed => QuestionEvent::Failed,
    }
}

/// Writes a recipient for the record by name, so that the address is looked up when it is sent.
pub(super) fn written(to: &Recipient) -> Option<String> {
    match to {
        Recipient::Person { name, .. } => Some(Actor::person(name).to_string()),
        Recipient::Group(name) => Some(Actor::Group(name.clone()).to_string()),
        Recipient::Endpoint => Some("endpoint".to_owned()),
        // The device is identified by its endpoint; the sender adds its name.
        Recipient::Device(_) => None,
    }
}

/// Reads a recipient of the record; `None` if the person is no longer in the file.
pub(super) fn read(text: &str, people: &People) -> Option<Recipient> {
    match Actor::read(text).addressee() {
        Some(Addressee::Person(name)) => {
            let mail = people.people.get(&name)?.mail.clone();
            Some(Recipient::Person { name, mail })
        }
        Some(Addressee::Group(name)) => Some(Recipient::Group(name)),
        Some(Addressee::Caller) | None => (text == "endpoint").then_some(Recipient::Endpoint),
    }
}

/// Returns the title and the description of a form as a whole.
fn form_texts(schema: &RawValue) -> Vec<String> {
    let text = |name| members::text(members::member(schema, name)?).map(Cow::into_owned);
    ["title", "description"]
        .into_iter()
        .filter_map(text)
        .collect()
}

/// Returns a message as plain text: that of an approval is the gateway's own, with the name of its rule in backticks
/// for pages.
fn plain_message(message: &str, approval_by: Option<&String>) -> String {
    match approval_by {
        Some(rule) => message.replacen(&format!("`{rule}`"), rule, 1),
        None => message.to_owned(),
    }
}

/// Returns the actors in words: people by the names that readers know.
fn actors(people: &DirectoryNow, by: &Actor) -> String {
    let names = by.people().iter();
    let names: Vec<_> = names.map(|name| people.display_name(name)).collect();
    if names.is_empty() {
        return by.to_string();
    }
    names.join(", ")
}

/// Returns the people who had confirmed answers that were replaced; none if nothing was replaced.
fn dropped(timeline: &[TimelineEvent]) -> Vec<String> {
    let (mut agreed, mut dropped) = (Vec::new(), Vec::new());
    for event in timeline {
        let by = event.by.as_ref();
        let person = by.and_then(|by| by.people().first().cloned());
        match event.kind {
            TimelineKind::Edited => {
                dropped = std::mem::take(&mut agreed);
                agreed.extend(person);
                dropped.retain(|name| !agreed.contains(name));
            }
            TimelineKind::Filled | TimelineKind::Confirmed => agreed.extend(person),
            _ => {}
        }
    }
    dropped
}

/// The contents of questions for channels.
pub(super) struct Summaries {
    record: Arc<Record>,
    questions: RecordQuestionStore,
    links: Arc<QuestionLinks>,
    pages_only: Arc<PagesOnly>,
    directory: Directory,
}

impl Summaries {
    pub(super) fn new(
        record: Arc<Record>,
        links: Arc<QuestionLinks>,
        pages_only: Arc<PagesOnly>,
        directory: Directory,
    ) -> Self {
        Self {
            questions: RecordQuestionStore::new(record.clone()),
            record,
            links,
            pages_only,
            directory,
        }
    }

    /// Returns a snapshot of people, groups and roles.
    pub(super) fn people_now(&self) -> DirectoryNow {
        self.directory.now()
    }

    /// Returns the page of a question; `None` if there is no inbox now.
    pub(super) fn link(&self, id: &str) -> Option<String> {
        (self.links)(id)
    }

    /// Returns `true` if this question can be answered on its page only: answers of others are to be confirmed, the
    /// login must be recent, a credential is asked for, messages may not show the question, it may belong to one of
    /// several calls, which the page lists, or only answers from pages count.
    pub(super) fn needs_page(&self, row: &Row, team: &Team) -> bool {
        let quorum = team.quorum();
        let hides_answers = match quorum.state() {
            QuorumState::Open => false,
            // Nothing was entered into a form without fields, such as an approval: agreeing to it is all.
            QuorumState::Filled { .. } => {
                let parsed = self.record.parsed(row);
                let form = parsed.as_deref().and_then(ParsedQuestion::form);
                form.is_none_or(|form| !form.fields().is_empty())
            }
            QuorumState::Ended(_) => true,
        };
        hides_answers
            || quorum.needs_recent_login()
            || team.reveal == Reveal::Minimal
            || !row.body.others.is_empty()
            || (self.pages_only)()
            || self
                .questions
                .readable(row)
                .ok()
                .flatten()
                .is_none_or(|readable| readable.asks_for_credential())
    }

    /// Returns the content of a question for channels, with the names of people for readers. Answers and comments are
    /// not part of it.
    pub(super) fn of(&self, row: &Row, link: String, now: Timestamp) -> Option<ChannelSummary> {
        let team = row.team.as_deref()?;
        let quorum = team.quorum();
        let parsed = self.record.parsed(row);
        let parsed = parsed.as_deref();
        let request = parsed.map(|parsed| &parsed.request);
        let message = request.map_or(&*row.body.message, ElicitRequest::message);
        let (form_texts, address) = match request {
            Some(ElicitRequest::Form { schema, .. }) => (form_texts(schema), None),
            Some(ElicitRequest::Url { url, .. }) => (Vec::new(), Some(url.clone())),
            None => (Vec::new(), None),
        };
        let form = parsed.and_then(|parsed| match &parsed.body {
            ParsedBody::Form(form) => Some(form.clone()),
            ParsedBody::Link(_) => None,
        });
        let delegates = quorum.delegates();
        let addressed = quorum.addressees().iter().chain(delegates);
        let timeline = row.timeline();
        let people = self.directory.now();
        let named = |names: &[String]| {
            let names = names.iter();
            names.map(|name| people.display_name(name)).collect()
        };
        let last = timeline.last();
        let ending = last.map(|last| (event_of(last.kind), last));
        let ending = ending.filter(|(event, _)| event.is_end());
        let caller = &team.caller;
        Some(ChannelSummary {
            question: row.id.clone(),
            version: u64::from(quorum.version()),
            server: row.body.server.clone(),
            tool: row.body.target.clone(),
            rule: Some(team.rule.clone()),
            caller: CallerSummary {
                issuer: caller.issuer.clone(),
                subject: caller.subject.clone(),
                name: team_view::caller_name(&people, team),
            },
            message: plain_message(message, team.is_approval.then_some(&team.rule)),
            arguments: self.record.arguments(row).ok()?,
            explain: team.explain.clone(),
            runbook: team.link.clone(),
            missing: team_view::missing(&people, row, team),
            reasons_reach: team_view::reasons_reach(team),
            good_for: if row.lifecycle.is_open() {
                team_view::good_for(team)
            } else {
                team_view::good_until(row, team, true)
            },
            form,
            form_texts,
            address,
            addressed: addressed.map(ToString::to_string).collect(),
            need: quorum.need().get(),
            agreed: named(quorum.votes()),
            dropped: named(&dropped(&timeline)),
            claimed_by: quorum.claimed_by(now).map(|name| people.display_name(name)),
            needs_page: self.needs_page(row, team),
            is_approval: team.is_approval,
            asked_at: row.lifecycle.asked_at(),
            deadline: row.lifecycle.deadline().unwrap_or_default(),
            ending: ending.map(|(event, last)| EndSummary {
                event,
                by: last.by.as_ref().map(|by| actors(&people, by)),
                at: last.at,
                why: self.record.reasons(row).unwrap_or_default(),
            }),
            link,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_whose_answers_were_replaced_are_named_and_nobody_else() {
        let happened = |kind, person: &str| TimelineEvent {
            kind,
            at: Timestamp::from_millis(1),
            by: Some(Actor::person(person)),
            to: None,
            through: None,
            edited: Vec::new(),
        };
        let filled = happened(TimelineKind::Filled, "ada");
        let confirmed = happened(TimelineKind::Confirmed, "bob");
        let eve = happened(TimelineKind::Edited, "eve");
        let own = happened(TimelineKind::Edited, "ada");
        for (timeline, names) in [
            (vec![filled.clone(), confirmed.clone()], vec![]),
            (
                vec![filled.clone(), confirmed.clone(), eve.clone()],
                vec!["ada", "bob"],
            ),
            // A person who replaces their own answers has dropped no one else's.
            (vec![filled.clone(), own.clone()], vec![]),
            (vec![filled, eve, confirmed, own], vec!["eve", "bob"]),
        ] {
            assert_eq!(dropped(&timeline), names);
        }
    }

    #[test]
    fn only_the_message_of_an_approval_loses_its_markup() {
        let message = "The rule `deletions` requires approval.";
        let plain = "The rule deletions requires approval.";
        let rule = "deletions".to_owned();
        assert_eq!(plain_message(message, Some(&rule)), plain);
        assert_eq!(plain_message(message, None), message);
    }
}
