//! Sentences about the plan of a question: its people by name, the coming reminders and escalations, the reach of
//! reasons, and the later calls that an approval also lets through.

use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::Addressee;
use mcp_elicit_policy::quorum::{Membership, Quorum, QuorumEnd, QuorumState};
use mcp_elicit_policy::rules::duration_text;
use mcp_elicit_policy::schedule::Due;
use mcp_elicit_record::store::Row;
use mcp_elicit_record::team::Team;

use super::{listed, named};
use crate::login::directory::DirectoryNow;

/// The most members of a group that are named.
const MEMBERS: usize = 6;
/// The most coming steps that are named.
const STEPS: usize = 4;

/// Returns an addressee in words, with the members of a group by name as far as they are known.
pub(super) fn with_members(now: &DirectoryNow, to: &Addressee, people: &dyn Membership) -> String {
    let words = named(now, to);
    let Addressee::Group(group) = to else {
        return words;
    };
    let (members, others) = match people.members(group) {
        Some(members) => (members, false),
        None => (now.known_members(group), true),
    };
    let mut names: Vec<String> = members.iter().map(|name| now.display_name(name)).collect();
    names.sort();
    let more = names.len().saturating_sub(MEMBERS);
    names.truncate(MEMBERS);
    if more > 0 {
        names.push(format!("{more} more"));
    } else if others && !names.is_empty() {
        names.push("others whom their login puts there".to_owned());
    }
    if !names.is_empty() {
        format!("{words} ({})", listed(&names, "and"))
    } else if others {
        format!("{words} (those whom their login puts there; nobody has logged in yet)")
    } else {
        format!("{words} (nobody)")
    }
}

/// Returns a sentence about the coming reminders and escalations and the end, for an open question.
pub(super) fn upcoming(
    now: &DirectoryNow,
    row: &Row,
    team: &Team,
    at: Timestamp,
) -> Option<String> {
    if !row.lifecycle.is_open() {
        return None;
    }
    let coming = team.upcoming(row.lifecycle.asked_at());
    let in_time = |due: Timestamp| duration_text(to_minutes(due.since(at)));
    let steps = coming.iter().filter_map(|(due, step)| match step {
        Due::Remind => Some(format!("a reminder in {}", in_time(*due))),
        Due::Escalate(to) => Some(format!(
            "in {} {} is asked, too",
            in_time(*due),
            named(now, to)
        )),
        Due::TimeOut => None,
    });
    let steps: Vec<String> = steps.take(STEPS).collect();
    (!steps.is_empty()).then(|| format!("What comes next: {}.", steps.join("; ")))
}

/// Returns a time in whole minutes, rounded up, if it is at least one.
fn to_minutes(time: Duration) -> Duration {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let rounded = if seconds > 60 {
        seconds.div_ceil(60) * 60
    } else {
        seconds.max(1)
    };
    Duration::from_secs(rounded)
}

/// Returns the places that a reason or comment reaches, as a sentence for the person who writes it.
pub fn reasons_reach(team: &Team) -> String {
    let caller = match (team.reasons.caller, team.is_approval) {
        (true, true) => "The caller and its program read it",
        (true, false) => "The server is told it",
        (false, _) => "The caller is not told it",
    };
    let others = if team.reasons.audit {
        "it is kept in the history of the question and in the audit"
    } else {
        "it is kept in the history of the question"
    };
    format!("{caller}; {others}.")
}

/// Returns the later calls that an approval also lets through, as a sentence.
pub fn good_for(team: &Team) -> Option<String> {
    let time = team.good_for.filter(|_| team.is_approval)?;
    // The caller is named on the same page, with its subject: a name alone may be one that it has chosen.
    Some(format!(
        "An approval also lets the caller make this same call again for {}, without asking anyone.",
        duration_text(time)
    ))
}

/// Returns the time until which an approval that was given lets the same call through again, as a sentence.
pub fn good_until(row: &Row, team: &Team, is_person: bool) -> Option<String> {
    let time = team.good_for.filter(|_| team.is_approval)?;
    if !matches!(
        team.quorum().state(),
        QuorumState::Ended(QuorumEnd::Answered { .. })
    ) {
        return None;
    }
    let until = row.lifecycle.ended_at()?.after(time).as_millis();
    let until = jiff::Timestamp::from_millisecond(i64::try_from(until).ok()?).ok()?;
    let how = if is_person {
        String::new()
    } else {
        let id = row.id.get(..8).unwrap_or(&row.id);
        format!(" (mcp-elicit grants end {id})")
    };
    Some(format!(
        "The caller may make this same call again until {}, without asking anyone, unless the approval is ended before{how}.",
        until.strftime("%Y-%m-%d %H:%M UTC"),
    ))
}

/// Returns `true` if a delegation asks someone who could not act before.
pub(super) fn adds_someone(
    quorum: &Quorum,
    me: &str,
    to: &Addressee,
    people: &dyn Membership,
) -> bool {
    match to {
        Addressee::Group(group) => people.members(group).is_none_or(|members| {
            members
                .iter()
                .any(|name| name != me && quorum.admits(name, people).is_err())
        }),
        Addressee::Caller | Addressee::Person(_) => true,
    }
}
