//! The messages of a call that is handed back while a person is asked, and the markers of results that the gateway
//! creates.

use serde_json::{Value, json};

use crate::decisions::VoteProgress;
use crate::{CallKind, Timestamp};

/// The member of a result's `_meta`, or of an error's `data`, that marks a call as handed back, to be made again.
pub const HANDED_BACK: &str = "mcp-elicit/handed-back";

/// The member of a result's `_meta`, or of an error's `data`, with the reason why the gateway did not call the server:
/// `declined`, `timed-out`, `refused` or `failed`.
pub const NOT_CALLED: &str = "mcp-elicit/not-called";

/// The member of a result's `_meta`, or of an error's `data`, with the state of the approval that a call waits for:
/// `question`, `until` (milliseconds since 1970), `retryAfter` (seconds), `votes`, `need` and `missing`.
pub const WAITING: &str = "mcp-elicit/waiting";

/// The time after which a call that waits for approval is best made again, in seconds.
const RETRY_AFTER: u64 = 60;

/// The reason why the gateway does not call a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotCalled {
    /// A person declined the call.
    Declined,
    /// Too few people approved the call before its deadline.
    TimedOut,
    /// The rules refuse the call.
    Refused,
    /// No person could be asked, or the question was withdrawn.
    Failed,
}

impl NotCalled {
    /// Returns the value of [`NOT_CALLED`].
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Declined => "declined",
            Self::TimedOut => "timed-out",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// The question that a handed-back call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// Another call's question: the call waits for its turn.
    OtherCall,
    /// Its own question, with certainty.
    OwnQuestion,
    /// A question that may be its own.
    PossibleQuestion,
}

/// Returns the message for a call of `target` at the server of this name; a person can answer at `link`.
pub(crate) fn words(
    server: &str,
    kind: CallKind,
    target: &str,
    waits: WaitsFor,
    link: Option<&str>,
) -> String {
    let at = link.map_or_else(
        || "where its operator set it up".to_owned(),
        |link| format!("here: {link}"),
    );
    let needs = match waits {
        WaitsFor::OtherCall => {
            return format!(
                "Not done yet. The server {server} is at work on another call, which waits for a person's answer. \
                 Ask the person to answer {at} - then call {target} again with the same arguments."
            );
        }
        WaitsFor::OwnQuestion => "needs",
        WaitsFor::PossibleQuestion => "may need",
    };
    format!(
        "Not done yet. The server {server} {needs} a person's answer before the {} {target} can go on. \
         Ask the person to answer {at} - then call {target} again with the same arguments. \
         This question is not asked twice.",
        kind.word()
    )
}

/// Returns a sentence without its end about an approval that a call waits for.
pub(crate) fn waiting_words(progress: &VoteProgress) -> String {
    let asked = clock(progress.asked_at);
    let times = match progress.until {
        Some(until) => {
            let day = |at: Timestamp| at.as_millis() / DAY;
            let later = match day(until).saturating_sub(day(progress.asked_at)) {
                0 => String::new(),
                1 => " the next day".to_owned(),
                days => format!(" {days} days later"),
            };
            format!("asked {asked}, until {} UTC{later}", clock(until))
        }
        None => format!("asked {asked} UTC"),
    };
    format!("Waiting for approval by {} ({times})", progress.missing)
}

/// Returns the message for a call that waits for approval. Its caller's person cannot give it, and the server knows
/// nothing of the call.
pub(crate) fn approval_words(
    kind: CallKind,
    target: &str,
    progress: &VoteProgress,
    link: Option<&str>,
) -> String {
    let page = link.map_or_else(String::new, |link| {
        format!(" Its page, for those who are asked: {link}")
    });
    format!(
        "Not done yet. {}. You need do nothing: the people were asked, and nobody is asked twice. \
         Call the {} {target} again with the same arguments in {RETRY_AFTER} s to learn the result.{page}",
        waiting_words(progress),
        kind.word()
    )
}

/// Returns the value of [`WAITING`].
pub(crate) fn waiting_mark(question: &str, progress: &VoteProgress) -> Value {
    json!({
        "question": question,
        "until": progress.until.map(Timestamp::as_millis),
        "retryAfter": RETRY_AFTER,
        "votes": progress.votes,
        "need": progress.need,
        "missing": progress.missing,
    })
}

/// A day, in milliseconds.
const DAY: u64 = 24 * 60 * 60_000;

/// Returns the time of day in UTC: `20:08`.
fn clock(at: Timestamp) -> String {
    let minutes = at.as_millis() / 60_000 % (24 * 60);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Returns the state of a task whose question people are asked, with the address of its page.
pub(crate) fn waiting_for_person(link: Option<&str>) -> String {
    match link {
        Some(link) => format!("Waiting for a person to answer at {link}"),
        None => "Waiting for a person to answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_approval_on_another_day_says_so() {
        const HOUR: u64 = 60 * 60_000;
        let told = |hours: u64| {
            waiting_words(&VoteProgress {
                missing: "1 of security".to_owned(),
                votes: 0,
                need: 1,
                asked_at: Timestamp::from_millis(DAY + 17 * HOUR),
                until: Some(Timestamp::from_millis(DAY + (17 + hours) * HOUR)),
            })
        };
        for (hours, end) in [
            (2, "until 19:00 UTC)"),
            (8, "until 01:00 UTC the next day)"),
            (24, "until 17:00 UTC the next day)"),
            (72, "until 17:00 UTC 3 days later)"),
        ] {
            assert!(told(hours).ends_with(end), "{}", told(hours));
        }
    }
}
