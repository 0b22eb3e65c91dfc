//! The selection of audit events as people write it, and the names of API keys in entries, for the page and the command.

use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use mcp_elicit_core::lifecycle::{AuditEvent, Timestamp};
use mcp_elicit_record::audit::{self, Actor, AuditFilter, AuditedEvent, AuditedQuestion, Member};
use mcp_elicit_record::principal::Principal;

use crate::api_tokens::ApiTokens;

/// The prefix of a key's name in the record.
const KEY: &str = "key-";

/// A selection of audit events, as people write it. Empty texts select all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSelection {
    /// The name of an event.
    pub event: String,
    /// The name of an outcome ([`audit::OUTCOMES`]).
    pub outcome: String,
    /// The server.
    pub server: String,
    /// The beginning of the question's id.
    pub question: String,
    /// A person who acted, or an actor in the words of the audit.
    pub person: String,
    /// A caller: the note or the id of an API key, or the beginning of a name in the record.
    pub caller: String,
    /// The earliest time: a day, a time, or a span before now such as `24h`.
    pub since: String,
    /// The latest time; a day is included.
    pub until: String,
}

/// A time that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableTime(String);

impl fmt::Display for UnreadableTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.chars().take(40).collect();
        write!(
            f,
            "{text:?} is not a time; use a day such as 2026-11-27, a time such as 2026-11-27T14:30 (UTC), or a span before now such as 24h or 7d"
        )
    }
}

impl std::error::Error for UnreadableTime {}

impl AuditSelection {
    /// Returns the filter of this selection, with the keys of this folder by their notes.
    ///
    /// # Errors
    /// If a time cannot be read.
    pub fn filter(
        &self,
        keys: Option<&ApiTokens>,
        now: Timestamp,
    ) -> Result<AuditFilter, UnreadableTime> {
        let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let mut events: Vec<String> = text(&self.event).into_iter().collect();
        if let Some(outcome) = text(&self.outcome) {
            let of_outcome = audit::events_of_outcome(&outcome).map(str::to_owned);
            // An unknown outcome, or one of another event, selects nothing.
            let wanted = of_outcome.unwrap_or(outcome);
            let is_other = events.first().is_some_and(|event| *event != wanted);
            events = if is_other {
                vec![String::new()]
            } else {
                vec![wanted]
            };
        }
        Ok(AuditFilter {
            events,
            server: text(&self.server),
            call: None,
            question: text(&self.question),
            questions: Vec::new(),
            person: text(&self.person),
            callers: text(&self.caller)
                .map(|caller| callers(&caller, keys))
                .unwrap_or_default(),
            since: text(&self.since)
                .map(|text| time(&text, now, false))
                .transpose()?,
            until: text(&self.until)
                .map(|text| time(&text, now, true))
                .transpose()?,
        })
    }
}

/// Returns the beginnings of the record's names of a caller.
fn callers(caller: &str, keys: Option<&ApiTokens>) -> Vec<String> {
    let all = keys.and_then(|keys| keys.list().ok()).unwrap_or_default();
    let of_note = all.iter().filter(|key| key.name == caller);
    let mut names: Vec<String> = of_note.map(crate::api_tokens::ApiToken::caller).collect();
    if names.is_empty() {
        names.push(caller.to_owned());
    }
    // The id of a key without its prefix, as `tokens list` shows it.
    if caller.len() >= 4 && caller.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        names.push(format!("{KEY}{caller}"));
    }
    names
}

/// Returns the time that people write as a day, a time, or a span before now.
///
/// # Errors
/// If the text is none of these.
pub fn earliest(text: &str, now: Timestamp) -> Result<Timestamp, UnreadableTime> {
    time(text, now, false)
}

/// Returns a time as people write it; the end of a day if it `includes` that day.
fn time(text: &str, now: Timestamp, includes: bool) -> Result<Timestamp, UnreadableTime> {
    let wrong = || UnreadableTime(text.to_owned());
    let of = |at: jiff::Timestamp| {
        let millis = u64::try_from(at.as_millisecond()).map_err(|_| wrong())?;
        Ok(Timestamp::from_millis(millis))
    };
    let in_utc = |at: DateTime| {
        let zoned = at.to_zoned(TimeZone::UTC).map_err(|_| wrong())?;
        of(zoned.timestamp())
    };
    if let Some(span) = span(text) {
        return Ok(Timestamp::from_millis(now.as_millis().saturating_sub(span)));
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return of(at);
    }
    // A text with a time is a date too.
    if !text.contains([':', 'T', ' '])
        && let Ok(day) = text.parse::<Date>()
    {
        let day = if includes {
            day.tomorrow().map_err(|_| wrong())?
        } else {
            day
        };
        return in_utc(day.at(0, 0, 0, 0));
    }
    in_utc(text.parse::<DateTime>().map_err(|_| wrong())?)
}

/// Returns a span such as `24h`, in milliseconds.
fn span(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    number.checked_mul(seconds)?.checked_mul(1_000)
}

/// Returns a caller in words: an API key by its id and its note.
pub fn caller_in_words(caller: &str, keys: Option<&ApiTokens>) -> String {
    let Some(Principal::Key(id)) = Principal::parse(caller) else {
        return caller.to_owned();
    };
    let name = keys.map_or_else(|| id.to_owned(), |keys| keys.in_words(id));
    if name == id {
        return caller.to_owned();
    }
    let name = name.trim_end_matches(&format!(" ({id})"));
    format!("{KEY}{id} ({name})")
}

/// Adds the note of the API key that made the call to its id.
pub fn name_key(entry: &mut AuditedEvent, keys: Option<&ApiTokens>) {
    if let Some(caller) = entry.text(Member::Principal) {
        let caller = caller_in_words(caller, keys);
        entry.replace_text(Member::Principal, caller);
    }
}

/// Returns the outcome of a question in words.
pub fn outcome_in_words(question: &AuditedQuestion) -> &str {
    match question.outcome.as_deref() {
        None => "open",
        Some(outcome) if outcome == AuditEvent::Answered.as_str() && question.is_approval => {
            "approved"
        }
        Some(outcome) => audit::event_in_words(outcome),
    }
}

/// Returns the details of a question in words: actor, caller, rule, delivery.
pub fn details_in_words(question: &AuditedQuestion, keys: Option<&ApiTokens>) -> Vec<String> {
    let mut details = Vec::new();
    if !question.by.is_empty() {
        let by = Actor::read(&question.by).in_words();
        let is_place = ["in the ", "on the ", "over the "]
            .iter()
            .any(|start| by.starts_with(start));
        details.push(if is_place { by } else { format!("by {by}") });
    }
    if !question.reason.is_empty() {
        details.push(question.reason.clone());
    }
    if !question.caller.is_empty() {
        let caller = caller_in_words(&question.caller, keys);
        details.push(format!("called by {caller}"));
    }
    if !question.rule.is_empty() {
        details.push(format!("rule {}", question.rule));
    }
    if let Some(delivery) = &question.delivery {
        details.push(audit::event_in_words(delivery).to_owned());
    }
    details
}

/// Returns the call of a question in words.
pub fn call_in_words(question: &AuditedQuestion) -> String {
    let or = |text: &str, other: &str| {
        if text.is_empty() {
            other.to_owned()
        } else {
            text.to_owned()
        }
    };
    let server = or(&question.server, "an unknown server");
    if question.target.is_empty() {
        return format!("a question of {server}");
    }
    format!("{} on {server}", question.target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_moments_and_spans() {
        let now = Timestamp::from_millis(1_764_244_800_000);
        for (text, includes, expected) in [
            ("2025-11-27", false, Some(1_764_201_600_000)),
            ("2025-11-27", true, Some(1_764_288_000_000)),
            ("2025-11-27T12:00", true, Some(1_764_244_800_000)),
            ("2025-11-27 12:00:01", false, Some(1_764_244_801_000)),
            ("2025-11-27T12:00:00+01:00", false, Some(1_764_241_200_000)),
            ("24h", false, Some(1_764_158_400_000)),
            ("7d", false, Some(1_763_640_000_000)),
            ("99999999999999999999d", false, None),
            ("h", false, None),
            ("-1h", false, None),
            ("yesterday", false, None),
            ("2025-13-01", false, None),
            ("1969-01-01", false, None),
            ("é", false, None),
        ] {
            let read = time(text, now, includes).ok().map(Timestamp::as_millis);
            assert_eq!(read, expected, "{text}");
        }
        let wrong = time("2025-13-01", now, false).unwrap_err().to_string();
        assert!(
            wrong.contains("\"2025-13-01\" is not a time; use a day"),
            "{wrong}"
        );
    }

    #[test]
    fn callers_are_found_by_the_note_of_their_key() {
        let folder = tempfile::tempdir().unwrap();
        let keys = crate::state_folder::StateFolder::at(folder.path()).api_tokens();
        assert_eq!(callers("local", Some(&keys)), ["local"]);
        assert_eq!(callers("e4d9", None), ["e4d9", "key-e4d9"]);
        let wanted = AuditSelection {
            outcome: "accepted".to_owned(),
            event: "shown".to_owned(),
            ..AuditSelection::default()
        };
        let now = Timestamp::from_millis(0);
        let filter = wanted.filter(None, now).unwrap();
        assert_eq!(filter.events, [""], "no event is both");
    }
}
