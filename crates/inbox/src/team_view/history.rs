//! The history of a question of a rule, in words: the people who were asked and told, those who have seen it, and their
//! actions.

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::reason_line;
use mcp_elicit_forms::web::HistoryLine;
use mcp_elicit_record::audit::Actor;
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::outbox::NO_CHANNEL;
use mcp_elicit_record::store::Row;
use mcp_elicit_record::store::outbox::{Notification, NotificationState};
use mcp_elicit_record::team::{Comment, Decided, Team};
use mcp_elicit_record::timeline::{TimelineEvent, TimelineKind};
use mcp_elicit_record::{Record, RecordError};

use super::{addressee, listed, named};
use crate::login::directory::DirectoryNow;

/// The most names in one line.
const NAMES: usize = 20;

/// Events whose messages ask people to act; other messages are not listed.
const ASKING: [&str; 4] = [
    "question.asked",
    "question.reminded",
    "question.escalated",
    "question.delegated",
];

/// The people who were told of one event in the same way.
struct NoticeLine<'m> {
    /// The event's word, and its time.
    event: (&'m str, Timestamp),
    /// The words before their names.
    head: String,
    at: Timestamp,
    names: Vec<String>,
}

/// A line, with the time by which it is sorted.
struct TimedLine {
    at: Timestamp,
    text: String,
    is_announced: bool,
}

/// Returns the history of the question, the earliest first.
pub(super) async fn of(
    record: &Record,
    now: &DirectoryNow,
    row: &Row,
    team: &Team,
) -> Result<Vec<HistoryLine>, RecordError> {
    let timeline = row.timeline();
    let comments = record.comments(row)?;
    let mut lines: Vec<TimedLine> = timeline
        .iter()
        .map(|event| TimedLine {
            at: event.at,
            text: {
                let text = happened(record, now, row, team, event, &timeline);
                let text = match event.through.as_deref() {
                    Some(channel) => format!("{text} through {}", in_words(channel)),
                    None => text,
                };
                match why(event, &timeline, &comments) {
                    Some(why) => format!("{text}: {why}"),
                    None => text,
                }
            },
            is_announced: event.kind != TimelineKind::Asked,
        })
        .collect();
    lines.extend(team.seen().iter().map(|seen| TimedLine {
        at: seen.at,
        text: format!("Shown to {}", now.display_name(&seen.by)),
        is_announced: false,
    }));
    // A reason or a comment on a decision is in the line of that decision.
    for comment in comments.iter().filter(|comment| comment.on.is_none()) {
        lines.push(TimedLine {
            at: comment.at,
            text: format!("{} wrote", now.display_name(&comment.by)),
            is_announced: true,
        });
    }
    lines.extend(notified(now, &record.messages_of(&row.id).await?));
    // Lines with the same time stay in this order.
    lines.sort_by_key(|line| line.at);
    let lines = lines.into_iter().map(|line| HistoryLine {
        at: Some(system_time(line.at)),
        text: line.text,
        is_announced: line.is_announced,
    });
    Ok(lines.collect())
}

/// Returns the reason or comment that a person gave with this event.
fn why(event: &TimelineEvent, timeline: &[TimelineEvent], comments: &[Comment]) -> Option<String> {
    let on = match event.kind {
        TimelineKind::Declined => Decided::Declined,
        TimelineKind::Filled | TimelineKind::Edited | TimelineKind::Confirmed => Decided::Agreed,
        _ => return None,
    };
    let [by] = event.by.as_ref()?.people() else {
        return None;
    };
    let decides = |kind| {
        matches!(
            kind,
            TimelineKind::Filled | TimelineKind::Edited | TimelineKind::Confirmed
        )
    };
    // A later decision of the same person has a text of its own.
    let mut later = timeline
        .iter()
        .filter(|later| later.by == event.by && later.at > event.at && decides(later.kind));
    let next = later.next().map(|next| next.at);
    let is_of = |comment: &&Comment| {
        comment.on == Some(on)
            && comment.by == *by
            && comment.at >= event.at
            && next.is_none_or(|next| comment.at < next)
    };
    let comment = comments.iter().find(is_of)?;
    reason_line(&comment.text)
}

/// Returns an event of the timeline in words.
fn happened(
    record: &Record,
    now: &DirectoryNow,
    row: &Row,
    team: &Team,
    event: &TimelineEvent,
    timeline: &[TimelineEvent],
) -> String {
    let by = actors(now, event.by.as_ref());
    let to = event.to.as_ref().and_then(Actor::addressee);
    let to = to.map_or_else(|| "others".to_owned(), |to| named(now, &to));
    let is_approval = team.is_approval;
    match event.kind {
        TimelineKind::Asked => {
            // People added by an escalation are named there.
            let is_later = |to: &Actor| timeline.iter().any(|event| event.to.as_ref() == Some(to));
            let first = team.quorum().addressees().iter();
            let first = first.filter(|to| !is_later(&Actor::from(*to)));
            let first: Vec<String> = first.map(|to| named(now, to)).collect();
            let asked = listed(&first, "and");
            if is_approval {
                format!("The gateway asked {asked} to approve the call")
            } else {
                format!("{} asked {asked}", row.body.server)
            }
        }
        TimelineKind::Reminded => "Those who had not acted were reminded".to_owned(),
        TimelineKind::Escalated => format!("Escalated: {to} was asked, too"),
        TimelineKind::Claimed => format!("{by} claimed it"),
        TimelineKind::TakenOver => format!("{by} took it over"),
        TimelineKind::Delegated => format!("{by} handed it on to {to}"),
        TimelineKind::Filled | TimelineKind::Edited if !event.edited.is_empty() => {
            let changed = argument_labels(record, row, &event.edited);
            format!("{by} approved with {} changed", listed(&changed, "and"))
        }
        TimelineKind::Filled if is_approval => format!("{by} approved"),
        TimelineKind::Filled => format!("{by} entered answers"),
        TimelineKind::Edited if is_approval => {
            format!("{by} approved with the arguments of the call, unchanged")
        }
        TimelineKind::Edited => format!("{by} entered other answers"),
        TimelineKind::Confirmed if is_approval => format!("{by} approved, too"),
        TimelineKind::Confirmed => format!("{by} agreed"),
        TimelineKind::Answered if is_approval => format!("Approved by {by}"),
        TimelineKind::Answered => format!("Answered by {by}"),
        TimelineKind::Declined => format!("Declined by {by}"),
        TimelineKind::Cancelled => format!("Cancelled by {by}"),
        TimelineKind::TimedOut => "Nobody answered in time".to_owned(),
        TimelineKind::Withdrawn => because("Withdrawn", row),
        TimelineKind::Failed => because("Failed", row),
    }
}

/// Returns the arguments of these JSON Pointers by their labels in the form of the approval.
fn argument_labels(record: &Record, row: &Row, pointers: &[String]) -> Vec<String> {
    let parsed = record.parsed(row);
    let form = parsed.as_ref().and_then(|parsed| parsed.form());
    let fields = form.map(Form::fields).unwrap_or_default();
    let label = |pointer: &String| {
        let field = fields.iter().find(|field| field.name() == pointer);
        let title = field.and_then(|field| field.title());
        title.unwrap_or(pointer).to_owned()
    };
    pointers.iter().map(label).collect()
}

fn because(word: &str, row: &Row) -> String {
    match row.lifecycle.reason_in_words() {
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    }
}

/// Returns the actors of an event in words: people by the names that readers know.
pub(crate) fn actors(now: &DirectoryNow, by: Option<&Actor>) -> String {
    let Some(by) = by else {
        return "a person".to_owned();
    };
    let people = by.people().iter();
    let names: Vec<String> = people.map(|one| now.display_name(one)).collect();
    if names.is_empty() {
        return by.to_string();
    }
    listed(&names, "and")
}

/// Returns lines about the messages to people, with their results.
fn notified(now: &DirectoryNow, messages: &[Notification]) -> Vec<TimedLine> {
    // One line for people who were told of the same event in the same way: a second reminder is another event.
    let mut lines: Vec<NoticeLine> = Vec::new();
    for message in messages {
        let asks = ASKING.contains(&message.event.as_str());
        let Some(outcome) = (asks && message.recipient != "endpoint")
            .then(|| outcome(message))
            .flatten()
        else {
            continue;
        };
        let event = (message.event.as_str(), message.at);
        let head = if message.channel == NO_CHANNEL {
            "Could not be notified, since no channel has an address of theirs".to_owned()
        } else {
            outcome
        };
        let name = recipient(now, message);
        let mut known = lines.iter_mut();
        match known.find(|told| told.event == event && told.head == head) {
            Some(told) => told.names.push(name),
            None => lines.push(NoticeLine {
                event,
                head,
                at: message.done_at.unwrap_or(message.at),
                names: vec![name],
            }),
        }
    }
    let line = |told: NoticeLine| {
        let mut names = told.names;
        let more = names.len().saturating_sub(NAMES);
        names.truncate(NAMES);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        TimedLine {
            at: told.at,
            text: format!("{}: {}", told.head, listed(&names, "and")),
            is_announced: false,
        }
    };
    lines.into_iter().map(line).collect()
}

/// Returns a channel in words.
fn in_words(channel: &str) -> &str {
    match channel {
        "slack" => "Slack",
        "teams" => "Teams",
        "push" => "a browser notification",
        other => other,
    }
}

/// Returns the result of a message; `None` if there is nothing to say.
fn outcome(message: &Notification) -> Option<String> {
    let channel = in_words(&message.channel);
    let why = message.why.as_deref().unwrap_or("unknown");
    Some(match message.state {
        NotificationState::Sent => format!("Notified through {channel}"),
        NotificationState::Failed => format!("Could not be notified through {channel} ({why})"),
        NotificationState::Due | NotificationState::Sending if message.attempts > 1 => {
            format!("Not notified through {channel} yet ({why})")
        }
        NotificationState::Due | NotificationState::Sending | NotificationState::Skipped => {
            return None;
        }
    })
}

fn recipient(now: &DirectoryNow, message: &Notification) -> String {
    match (&message.person, addressee(&message.recipient)) {
        (Some(person), _) => now.display_name(person),
        (None, Some(to)) => named(now, &to),
        (None, None) => "a person".to_owned(),
    }
}
