//! Dates and times as people write them, with the name of a zone where a form needs an offset.

use jiff::civil;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use mcp_elicit_core::answer::DraftValue;

/// The error for an unknown zone.
const UNKNOWN: &str =
    "the time zone is not known here; write one like Europe/Brussels, UTC or +02:00";

/// Converts a local time and its zone, `2026-11-30 09:00 Europe/Brussels` or `2026-11-30T09:00[Europe/Brussels]`, to
/// `2026-11-30T09:00:00+01:00`. Any other text is unchanged, for the form's own check.
///
/// # Errors
/// A sentence for the person if the zone is unknown, or if that time occurs twice or never on that day in the zone.
pub(crate) fn meant(typed: &DraftValue) -> Result<DraftValue, String> {
    let DraftValue::Text(text) = typed else {
        return Ok(typed.clone());
    };
    let Some((local, zone)) = parts(text.trim()) else {
        return Ok(typed.clone());
    };
    let Some(local) = local_time(local) else {
        return Ok(typed.clone());
    };
    let zone = zone_of(zone).ok_or(UNKNOWN)?;
    let zoned = zone.to_ambiguous_zoned(local);
    match zoned.offset() {
        AmbiguousOffset::Unambiguous { .. } => {}
        AmbiguousOffset::Gap { .. } => {
            return Err(
                "that day the clocks of this zone skip this time; write another time".to_owned(),
            );
        }
        AmbiguousOffset::Fold { before, after } => {
            return Err(format!(
                "that day the clocks of this zone show this time twice; write {} or {} as the zone",
                written(before),
                written(after)
            ));
        }
    }
    let zoned = zoned
        .compatible()
        .map_err(|_| "the date and time is outside what can be told".to_owned())?;
    let text = zoned.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string();
    Ok(DraftValue::Text(text))
}

/// Returns `true` if the text is a date and time that lacks only a zone.
#[cfg(feature = "terminal")]
pub(crate) fn lacks_zone(text: &str) -> bool {
    let text = text.trim();
    parts(text).is_none() && text.contains(':') && local_time(text).is_some()
}

/// Returns the local time and the zone's name.
pub(crate) fn parts(text: &str) -> Option<(&str, &str)> {
    if let Some(marked) = text.strip_suffix(']') {
        return marked.split_once('[');
    }
    let (local, zone) = text.rsplit_once(' ')?;
    let named = zone.starts_with(|c: char| c.is_ascii_alphabetic());
    (named && zone.len() > 1 && local.contains(':')).then_some((local.trim(), zone))
}

/// Reads `2026-5-31 14:30`, year first, with any of three separators.
fn local_time(text: &str) -> Option<civil::DateTime> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let parts: Vec<&str> = date.split(['-', '/', '.']).collect();
    let [year, month, day] = parts[..] else {
        return None;
    };
    format!("{year}-{month:0>2}-{day:0>2}T{}", time.trim())
        .parse()
        .ok()
}

fn written(offset: Offset) -> String {
    let minutes = offset.seconds().abs() / 60;
    let sign = if offset.is_negative() { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn zone_of(name: &str) -> Option<TimeZone> {
    if matches!(name, "Z" | "z") {
        return Some(TimeZone::UTC);
    }
    if name.starts_with(['+', '-', '−']) {
        let offset = name.replace('−', "-");
        // A date and time with that offset is parsed, which checks the offset.
        let moment = format!("2000-01-01T00:00:00{offset}");
        let pieces =
            jiff::fmt::temporal::DateTimeParser::new().parse_zoned(format!("{moment}[{offset}]"));
        return pieces.ok().map(|zoned| zoned.time_zone().clone());
    }
    TimeZone::get(name).ok()
}

/// Returns the name of this machine's zone, if it has one.
#[cfg(any(feature = "terminal", feature = "web"))]
pub(crate) fn zone_here() -> String {
    let zone = TimeZone::system();
    let name = zone.iana_name().unwrap_or("UTC");
    name.strip_prefix("Etc/").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<String, String> {
        meant(&DraftValue::Text(text.to_owned())).map(|typed| match typed {
            DraftValue::Text(text) => text,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_zone_may_be_named() {
        for (typed, moment) in [
            (
                "2026-05-31 14:30 Europe/Brussels",
                "2026-05-31T14:30:00+02:00",
            ),
            ("2026/5/31 14:30 UTC", "2026-05-31T14:30:00+00:00"),
            ("2026-11-30T09:00[Asia/Tokyo]", "2026-11-30T09:00:00+09:00"),
            ("2026-11-30T09:00[-03:00]", "2026-11-30T09:00:00-03:00"),
            ("2026-11-30 09:00Z", "2026-11-30 09:00Z"),
            ("next week", "next week"),
        ] {
            assert_eq!(said(typed).as_deref(), Ok(moment), "{typed}");
        }
        assert!(said("2026-05-31 14:30 Mars/Base").is_err_and(|why| !why.contains("Mars")));
    }

    #[test]
    fn a_time_that_clocks_show_twice_or_never_is_not_guessed() {
        let twice = said("2026-10-25 02:30 Europe/Brussels").unwrap_err();
        assert!(
            twice.contains("+02:00") && twice.contains("+01:00"),
            "{twice}"
        );
        assert!(said("2026-03-29 02:30 Europe/Brussels").is_err_and(|why| why.contains("skip")));
    }

    #[cfg(feature = "terminal")]
    #[test]
    fn a_missing_zone_is_noticed() {
        assert!(lacks_zone("2026-05-31 14:30") && lacks_zone("2026-5-31T14:30"));
        for whole in [
            "2026-05-31 14:30Z",
            "2026-05-31 14:30 UTC",
            "2026-05-31",
            "soon",
            "2026-05-31 14:30 +02:00",
        ] {
            assert!(!lacks_zone(whole), "{whole}");
        }
    }
}
