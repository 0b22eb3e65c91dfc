//! Quiet hours, the limit per person, digests and retries, as functions of a time argument.

use std::time::Duration;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::document::parse_duration;
use mcp_elicit_policy::people::PersonEntry;

use crate::notice::QuestionEvent;
use crate::revealed::instant;

/// The most messages to one person per hour; the rest joins the digest.
pub const HOURLY_LIMIT: usize = 30;

/// The window of [`HOURLY_LIMIT`].
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The hours without messages, each day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    from: Time,
    to: Time,
}

impl QuietHours {
    /// Parses `22:00-07:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (time_of_day(from)?, time_of_day(to)?);
        (from != to).then_some(Self { from, to })
    }

    /// Returns the end of the quiet hours that `now` is in; `None` outside them.
    pub fn end_after(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let now = instant(now)?.to_zoned(zone.clone());
        let time = now.time();
        let is_quiet = if self.from < self.to {
            self.from <= time && time < self.to
        } else {
            time >= self.from || time < self.to
        };
        is_quiet.then(|| next_at(&now, self.to)).flatten()
    }
}

/// A digest in place of separate messages. Mail only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestTiming {
    /// No digest: each message is separate.
    #[default]
    Off,
    /// A digest this long after its first message.
    Every(Duration),
    /// A daily digest.
    Daily(Time),
}

impl DigestTiming {
    /// Parses `off`, `30m` or `daily 09:00`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "off" {
            return Some(Self::Off);
        }
        if let Some(at) = text.strip_prefix("daily ") {
            return time_of_day(at).map(Self::Daily);
        }
        parse_duration(text).map(Self::Every)
    }

    /// Returns the time of the digest that a message of `now` joins; `first` is the time of its first message.
    pub fn due(
        &self,
        now: Timestamp,
        first: Option<Timestamp>,
        zone: &TimeZone,
    ) -> Option<Timestamp> {
        match self {
            Self::Off => None,
            Self::Every(span) => Some(first.unwrap_or(now).after(*span)),
            Self::Daily(at) => {
                let start = instant(first.unwrap_or(now))?.to_zoned(zone.clone());
                next_at(&start, *at)
            }
        }
    }
}

/// Returns the next time at which clocks show this time of day.
fn next_at(now: &Zoned, time: Time) -> Option<Timestamp> {
    let today = now.date();
    let days = [today, today.checked_add(1.day()).ok()?];
    let at = days.into_iter().find_map(|day| {
        let at = day.to_datetime(time).to_zoned(now.time_zone().clone());
        at.ok().filter(|at| at > now)
    })?;
    let millis = u64::try_from(at.timestamp().as_millisecond()).ok()?;
    Some(Timestamp::from_millis(millis))
}

/// Parses `09:00`.
fn time_of_day(text: &str) -> Option<Time> {
    let two = |text: &str| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<i8>().ok()).flatten()
    };
    let (hour, minute) = text.split_once(':')?;
    Time::new(two(hour)?, two(minute)?, 0, 0).ok()
}

/// The message preferences of one person.
#[derive(Clone, Debug)]
pub struct Preferences {
    /// The hours in which only escalations are sent.
    pub quiet: Option<QuietHours>,
    /// The digest of mails.
    pub digest: DigestTiming,
    /// The person's time zone.
    pub zone: TimeZone,
}

impl Preferences {
    /// Reads the preferences of a person; `zone` is that of the configuration.
    pub fn from_entry(entry: &PersonEntry, zone: &TimeZone) -> Self {
        let own = entry.time_zone.as_deref();
        let own = own.and_then(|name| TimeZone::get(name).ok());
        Self {
            quiet: entry.quiet.as_deref().and_then(QuietHours::parse),
            digest: entry
                .digest
                .as_deref()
                .and_then(DigestTiming::parse)
                .unwrap_or_default(),
            zone: own.unwrap_or_else(|| zone.clone()),
        }
    }
}

/// The time of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Now.
    Now,
    /// Later, because of quiet hours, or too many messages.
    At(Timestamp),
    /// With the digest of that time.
    Digest(Timestamp),
}

/// The messages that a person has received.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentMessages<'a> {
    /// The times of the messages of the last hour, the earliest first; others are ignored.
    pub recent: &'a [Timestamp],
    /// The first message that waits for the next digest.
    pub first_in_digest: Option<Timestamp>,
    /// The time after which the limit delays the message no longer.
    pub latest: Option<Timestamp>,
}

/// The period in which messages delayed by the limit are combined if their deadlines are near, in milliseconds.
const TOGETHER_MS: u64 = 5 * 60 * 1000;

/// Returns the time until which the limit may delay a message that is useful until `until`: half of the remaining time,
/// at the beginning of a five-minute period if that has not passed.
pub fn latest(now: Timestamp, until: Timestamp) -> Timestamp {
    let half = now.after(until.since(now) / 2);
    let together = Timestamp::from_millis(half.as_millis() / TOGETHER_MS * TOGETHER_MS);
    if together > now { together } else { half }
}

/// Decides when a message to one person is sent. `digests` is `true` for channels with digests.
pub fn timing(
    preferences: &Preferences,
    event: QuestionEvent,
    digests: bool,
    now: Timestamp,
    sent: SentMessages<'_>,
) -> Timing {
    // An escalation happens because time runs out: neither quiet hours nor one caller's many questions delay it.
    if event == QuestionEvent::Escalated {
        return Timing::Now;
    }
    let zone = &preferences.zone;
    let awake = |at: Timestamp| {
        preferences
            .quiet
            .and_then(|quiet| quiet.end_after(at, zone))
            .unwrap_or(at)
    };
    let recent = sent.recent.iter();
    let recent: Vec<_> = recent.filter(|at| now.since(**at) < HOUR).collect();
    if digests && let Some(due) = preferences.digest.due(now, sent.first_in_digest, zone) {
        return Timing::Digest(awake(due));
    }
    if recent.len() >= HOURLY_LIMIT {
        // The slot that becomes free first is that of the earliest of the newest `HOURLY_LIMIT`.
        let place = recent[recent.len() - HOURLY_LIMIT];
        let free = place.after(HOUR);
        let free = awake(sent.latest.map_or(free, |latest| free.min(latest)));
        return if digests {
            Timing::Digest(free)
        } else {
            Timing::At(free)
        };
    }
    let at = awake(now);
    if at > now {
        Timing::At(at)
    } else {
        Timing::Now
    }
}

/// The pause before the first repetition.
const FIRST_RETRY: Duration = Duration::from_secs(5);
/// The longest pause between repetitions.
const LONGEST_RETRY: Duration = Duration::from_secs(60 * 60);

/// Returns the pause before a message is sent again, after `attempts` failures. It is uniform between zero and 5 s ×
/// 3ⁿ, at most an hour; `random` is a random number. A pause requested by the receiver takes precedence, up to a day.
pub fn retry_pause(attempts: u32, random: u64, named: Option<Duration>) -> Duration {
    if let Some(named) = named {
        return named.min(Duration::from_secs(24 * 60 * 60));
    }
    let factor = 3_u32.checked_pow(attempts.saturating_sub(1).min(20));
    let bound = factor
        .and_then(|factor| FIRST_RETRY.checked_mul(factor))
        .map_or(LONGEST_RETRY, |bound| bound.min(LONGEST_RETRY));
    let millis = u64::try_from(bound.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(random % (millis + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let at: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_millis(u64::try_from(at.as_millisecond()).unwrap())
    }

    fn preferences(quiet: Option<&str>, digest: &str, zone: &str) -> Preferences {
        let entry = PersonEntry {
            quiet: quiet.map(str::to_owned),
            digest: Some(digest.to_owned()),
            time_zone: Some(zone.to_owned()),
            ..PersonEntry::default()
        };
        Preferences::from_entry(&entry, &TimeZone::UTC)
    }

    #[test]
    fn quiet_hours_may_cross_midnight() {
        let quiet = QuietHours::parse("22:00-07:00").unwrap();
        let end = |now| quiet.end_after(at(now), &TimeZone::UTC);
        assert_eq!(end("2026-11-22T21:59:59Z"), None);
        assert_eq!(
            end("2026-11-22T22:00:00Z"),
            Some(at("2026-11-23T07:00:00Z"))
        );
        assert_eq!(
            end("2026-11-23T06:59:00Z"),
            Some(at("2026-11-23T07:00:00Z"))
        );
        assert_eq!(end("2026-11-23T07:00:00Z"), None);
        let noon = QuietHours::parse("12:00-13:00").unwrap();
        let end = noon.end_after(at("2026-11-23T12:30:00Z"), &TimeZone::UTC);
        assert_eq!(end, Some(at("2026-11-23T13:00:00Z")));
        for text in [
            "",
            "22:00",
            "22:00-22:00",
            "24:00-07:00",
            "2:00-07:00",
            "22:00-07:00-",
        ] {
            assert_eq!(QuietHours::parse(text), None, "{text}");
        }
    }

    #[test]
    fn quiet_hours_are_the_persons_own_and_summer_time_counts() {
        let berlin = preferences(Some("22:00-02:30"), "off", "Europe/Berlin");
        // 02:30 does not exist on that night: clocks go from 02:00 to 03:00.
        let quiet = berlin.quiet.unwrap();
        let end = quiet.end_after(at("2026-03-28T23:00:00Z"), &berlin.zone);
        assert_eq!(end, Some(at("2026-03-29T01:30:00Z")));
    }

    #[test]
    fn only_escalations_pass_at_night() {
        let night = at("2026-11-22T23:00:00Z");
        let sleeper = preferences(Some("22:00-07:00"), "off", "UTC");
        let decide = |event| timing(&sleeper, event, true, night, SentMessages::default());
        let morning = Timing::At(at("2026-11-23T07:00:00Z"));
        for event in QuestionEvent::ALL {
            let expected = if event == QuestionEvent::Escalated {
                Timing::Now
            } else {
                morning
            };
            assert_eq!(decide(event), expected, "{event:?}");
        }
    }

    #[test]
    fn digests_collect_mails_and_wait_for_the_morning() {
        let now = at("2026-11-22T21:50:00Z");
        let reader = preferences(Some("22:00-07:00"), "30m", "UTC");
        let decide = |event, digests, sent| timing(&reader, event, digests, now, sent);
        let morning = at("2026-11-23T07:00:00Z");
        let none = SentMessages::default();
        assert_eq!(
            decide(QuestionEvent::Asked, true, none),
            Timing::Digest(morning)
        );
        assert_eq!(decide(QuestionEvent::Asked, false, none), Timing::Now);
        assert_eq!(decide(QuestionEvent::Escalated, true, none), Timing::Now);
        let first = SentMessages {
            first_in_digest: Some(at("2026-11-22T21:25:00Z")),
            ..none
        };
        assert_eq!(
            decide(QuestionEvent::Asked, true, first),
            Timing::Digest(at("2026-11-22T21:55:00Z"))
        );
        let daily = preferences(None, "daily 09:00", "UTC");
        assert_eq!(
            timing(&daily, QuestionEvent::Asked, true, now, none),
            Timing::Digest(at("2026-11-23T09:00:00Z"))
        );
    }

    #[test]
    fn the_thirty_first_message_of_an_hour_waits() {
        let start = at("2026-11-22T12:00:00Z");
        let sent: Vec<_> = (0..30)
            .map(|i| start.after(Duration::from_secs(i)))
            .collect();
        let now = start.after(Duration::from_secs(30 * 60));
        let anyone = preferences(None, "off", "UTC");
        let decide_by = |event, digests, recent, latest| {
            let sent = SentMessages {
                recent,
                first_in_digest: None,
                latest,
            };
            timing(&anyone, event, digests, now, sent)
        };
        let decide = |digests, recent| decide_by(QuestionEvent::Reminded, digests, recent, None);
        let free = start.after(HOUR);
        assert_eq!(decide(false, &sent[..29]), Timing::Now);
        assert_eq!(decide(false, &sent), Timing::At(free));
        assert_eq!(decide(true, &sent), Timing::Digest(free));
        // An escalation happens because time runs out, and no message is delayed until it is useless.
        assert_eq!(
            decide_by(QuestionEvent::Escalated, true, &sent, None),
            Timing::Now
        );
        let soon = now.after(Duration::from_secs(60));
        assert_eq!(
            decide_by(QuestionEvent::Asked, true, &sent, Some(soon)),
            Timing::Digest(soon)
        );
        let old: Vec<_> = (0..60)
            .map(|i| start.after(Duration::from_secs(i * 60)))
            .collect();
        let later = start.after(Duration::from_secs(3 * 60 * 60));
        let sent = SentMessages {
            recent: &old,
            first_in_digest: None,
            latest: None,
        };
        assert_eq!(
            timing(&anyone, QuestionEvent::Asked, false, later, sent),
            Timing::Now
        );
    }

    #[test]
    fn the_limit_delays_until_half_of_the_time_is_gone() {
        let now = at("2026-11-22T12:01:00Z");
        for (minutes, expected) in [
            (10, "2026-11-22T12:05:00Z"),
            (30, "2026-11-22T12:15:00Z"),
            // No period begins before half of it has passed.
            (6, "2026-11-22T12:04:00Z"),
            (0, "2026-11-22T12:01:00Z"),
        ] {
            let until = now.after(Duration::from_secs(minutes * 60));
            assert_eq!(latest(now, until), at(expected), "{minutes}");
        }
    }

    #[test]
    fn pauses_grow_to_an_hour() {
        let longest = |attempts| {
            let candidates = [u64::MAX, 0, 4_999, 5_000, 14_999, 15_000, 3_600_000];
            let pauses = candidates.map(|random| retry_pause(attempts, random, None));
            pauses.into_iter().max().unwrap()
        };
        assert_eq!(longest(1), Duration::from_secs(5));
        assert_eq!(longest(2), Duration::from_secs(15));
        for attempts in [8, 30, u32::MAX] {
            assert_eq!(longest(attempts), Duration::from_secs(60 * 60));
        }
        let named = Some(Duration::from_secs(42));
        assert_eq!(retry_pause(9, 7, named), Duration::from_secs(42));
        assert_eq!(
            retry_pause(1, 7, Some(Duration::MAX)),
            Duration::from_secs(24 * 60 * 60)
        );
    }

    #[test]
    fn digests_are_read() {
        assert_eq!(DigestTiming::parse("off"), Some(DigestTiming::Off));
        assert_eq!(
            DigestTiming::parse("30m"),
            Some(DigestTiming::Every(Duration::from_secs(30 * 60)))
        );
        for text in ["", "daily", "daily 9:00", "daily 25:00", "weekly"] {
            assert_eq!(DigestTiming::parse(text), None, "{text}");
        }
    }
}
