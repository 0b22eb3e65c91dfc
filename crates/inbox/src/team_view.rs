//! The team's view of a question for pages and programs, and the team's actions.

mod agreement;
pub(crate) mod history;
mod plan_lines;

pub use self::plan_lines::{good_for, good_until, reasons_reach};

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::question::ToolClaims;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_forms::web::{
    ClaimView, CommentView, EnteredView, MemberAct as Pressed, SubmitResult, TeamResult, TeamView,
    ToolView,
};
use mcp_elicit_policy::Addressee;
use mcp_elicit_policy::access::{self, AccessAction};
use mcp_elicit_policy::people::Group;
use mcp_elicit_policy::quorum::{AnswersDigest, Denied, Membership, QuorumState};
use mcp_elicit_record::audit::Actor;
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::store::Row;
use mcp_elicit_record::team::{
    ActDetails, Acted, Comment, Entered, MAX_COMMENT, MAX_COMMENTS, MAX_NOTES, Team, TeamAct,
};
use mcp_elicit_record::{Record, RecordError};

use crate::login::directory::{DirectoryNow, Sight};
use crate::viewer::InboxViewer;

/// The most people and groups offered for a delegation.
const MOST_DELEGATES: usize = 200;

/// The most people named in a refusal.
const MOST_NAMED: usize = 10;

/// Returns the team's view of a question for this viewer; `None` if no rule applies to it, or if the viewer may see
/// only that it exists.
///
/// # Errors
/// If the store fails, or something was sealed with another key.
pub async fn team_view(
    record: &Record,
    now: &DirectoryNow,
    viewer: &InboxViewer,
    row: &Row,
) -> Result<Option<TeamView>, RecordError> {
    let people = now.of(row);
    let sight = people.sight(viewer, row);
    let Some(team) = row.team.as_deref().filter(|_| sight >= Sight::Question) else {
        return Ok(None);
    };
    let standing = people.standing(viewer, row);
    let quorum = team.quorum();
    let me = viewer.person().map(|signed_in| signed_in.person.as_str());
    let is_excluded = quorum.excludes_caller() && standing.is_caller;
    let may_be_caller = me.is_some_and(|me| !people.is_other(me));
    let is_unknown =
        quorum.excludes_caller() && (people.is_caller_unknown() || may_be_caller && !is_excluded);
    let has_handed_on = me.is_some_and(|me| quorum.has_handed_on(me));
    let may_act = row.lifecycle.is_open()
        && people.may_act(viewer, row)
        && !(is_excluded || is_unknown || has_handed_on);
    let has_agreed = quorum
        .votes()
        .iter()
        .any(|voter| Some(voter.as_str()) == me);
    let claim = claim(record, now, team);
    let is_claimed = claim.is_some();
    let is_mine = is_claimed && quorum.claimed_by(record.now()) == me;
    let entered = record.entered(row)?.filter(|_| sight == Sight::Whole);
    let entered = entered
        .as_ref()
        .map(|entered| entered_view(now, entered, may_act && !has_agreed));
    let is_alone = matches!(
        quorum.addressees(),
        [Addressee::Caller | Addressee::Person(_)]
    );
    let mut lines = lines(
        now,
        row,
        team,
        is_mine,
        [is_excluded, is_unknown, has_handed_on],
        has_agreed,
    );
    let has_answers = |entered: &EnteredView| !entered.content.is_empty();
    let may_replace = may_act && entered.as_ref().is_some_and(has_answers);
    let name = |person: &str| now.display_name(person);
    lines.extend(agreement::lines(row, team, &people, me, may_replace, &name));
    lines.extend(plan_lines::upcoming(now, row, team, record.now()));
    let comments = record.comments(row)?.into_iter();
    Ok(Some(TeamView {
        is_approval: team.is_approval,
        lines,
        reasons_reach: reasons_reach(team),
        explain: team.explain.clone(),
        link: team.link.clone(),
        good_for: if row.lifecycle.is_open() {
            good_for(team)
        } else {
            good_until(row, team, me.is_some())
        },
        reasons: if row.lifecycle.is_open() {
            Vec::new()
        } else {
            record.reasons(row)?
        },
        tool: team.tool.as_deref().map(|claims| tool(claims, sight)),
        may_end_grant: me.is_some() && access::may(standing, AccessAction::EndGrant).is_ok(),
        reads: team.reads.clone(),
        version: quorum.version(),
        may_act,
        may_cancel: may_act && is_alone && *quorum.state() == QuorumState::Open,
        may_claim: may_act && !has_agreed && quorum.offers_claims() && !is_claimed,
        claim: claim.filter(|_| may_act && !is_mine),
        has_agreed,
        has_handed_on,
        handed_on_to: me
            .and_then(|me| quorum.delegated_by(me))
            .map(|to| named(now, to)),
        others_needed: quorum.need().get() - 1,
        delegates: if may_act {
            delegates(now, team, me.unwrap_or_default(), &people)
        } else {
            Vec::new()
        },
        may_comment: row.lifecycle.is_open()
            && me.is_some()
            && access::may(standing, AccessAction::Comment).is_ok(),
        comments: comments.map(|comment| comment_view(now, comment)).collect(),
        history: history::of(record, now, row, team).await?,
        entered,
    }))
}

/// Returns the entered answers for a person who may confirm them, or may not.
fn entered_view(now: &DirectoryNow, entered: &Entered, may_confirm: bool) -> EnteredView {
    EnteredView {
        may_confirm,
        by: now.display_name(&entered.by),
        digest: HEXLOWER.encode(&entered.digest),
        content: entered
            .content
            .as_deref()
            .and_then(|content| serde_json::from_str(content).ok())
            .unwrap_or_default(),
    }
}

fn comment_view(now: &DirectoryNow, comment: Comment) -> CommentView {
    CommentView {
        by: now.display_name(&comment.by),
        at: system_time(comment.at),
        text: comment.text,
    }
}

/// Returns the server's claims about a tool. Only those who see the call's arguments see which it leaves out.
fn tool(claims: &ToolClaims, sight: Sight) -> ToolView {
    let is_whole = sight == Sight::Whole;
    let absent = claims.absent.iter().filter(|_| is_whole);
    ToolView {
        description: claims.description.clone(),
        hints: claims.hints().into_iter().map(str::to_owned).collect(),
        absent: absent
            .map(|one| (one.name.clone(), one.default.clone()))
            .collect(),
        more_absent: if is_whole { claims.more_absent } else { 0 },
    }
}

/// Returns the current claim.
fn claim(record: &Record, now: &DirectoryNow, team: &Team) -> Option<ClaimView> {
    let at = record.now();
    let quorum = team.quorum();
    Some(ClaimView {
        by: now.display_name(quorum.claimed_by(at)?),
        until: system_time(quorum.claimed_until(at)?),
    })
}

fn lines(
    now: &DirectoryNow,
    row: &Row,
    team: &Team,
    is_mine: bool,
    [is_excluded, is_unknown, has_handed_on]: [bool; 3],
    has_agreed: bool,
) -> Vec<String> {
    let quorum = team.quorum();
    let people = now.of(row);
    let asked: Vec<String> = quorum
        .addressees()
        .iter()
        .map(|to| plan_lines::with_members(now, to, &people))
        .collect();
    // A question that was delegated back and forth names no one twice.
    let mut known: BTreeSet<String> = asked.iter().cloned().collect();
    let delegates = quorum.delegates();
    let delegates = delegates.map(|to| plan_lines::with_members(now, to, &people));
    let delegates: Vec<String> = delegates.filter(|to| known.insert(to.clone())).collect();
    let need = quorum.need().get();
    let votes = agreement::counted(team, &people);
    let mut lines = vec![format!(
        "The rule {} asks {}.",
        team.rule,
        listed(&asked, "and")
    )];
    if !delegates.is_empty() {
        lines.push(format!(
            "It was handed on to {}.",
            listed(&delegates, "and")
        ));
    }
    if !row.lifecycle.is_open() {
        return lines;
    }
    // A person who has confirmed reads the number of missing confirmations on a separate line.
    if need > 1 && !has_agreed {
        let (must, nobody) = if team.is_approval {
            ("approve the same call", "Nobody has approved it yet")
        } else {
            (
                "agree to the same answers",
                "No answers have been entered yet",
            )
        };
        let so_far = match votes {
            0 => nobody.to_owned(),
            votes => format!("{votes} of them so far"),
        };
        lines.push(format!("{need} people must {must}. {so_far}."));
        let missing = quorum.missing_parts(&people);
        if let Some(missing) = missing.in_words(&|to| named(now, to)) {
            lines.push(format!(
                "Missing: {missing}. One person counts for one group."
            ));
        }
    }
    if is_mine {
        lines.push("You have claimed the question: others cannot enter answers.".to_owned());
    }
    if is_excluded {
        lines.push("You make this call, so others have to answer.".to_owned());
    } else if is_unknown {
        lines.push(CALLER_UNKNOWN.to_owned());
    }
    if has_handed_on {
        lines.push("You handed this on; you can read it, but not answer.".to_owned());
    }
    lines
}

/// Returns the caller's name for readers. A name that a token gives stands beside the subject: the caller may have chosen it.
pub fn caller_name(now: &DirectoryNow, team: &Team) -> String {
    let caller = &team.caller;
    if let Some(person) = &caller.person {
        return now.display_name(person);
    }
    let name = sanitize::line(&caller.name, sanitize::LABEL);
    let is_of_token = !caller.issuer.is_empty() && !caller.subject.is_empty();
    if name.is_empty() || !is_of_token || caller.name == caller.subject {
        return name;
    }
    format!(
        "{name} ({})",
        sanitize::line(&caller.subject, sanitize::LABEL)
    )
}

/// Returns the people who are missing, in words, if they must come from different groups.
pub fn missing(now: &DirectoryNow, row: &Row, team: &Team) -> Option<String> {
    let people = now.of(row);
    let missing = team.quorum().missing_parts(&people);
    missing.in_words(&|to| named(now, to))
}

/// Returns an addressee in words.
fn named(now: &DirectoryNow, to: &Addressee) -> String {
    match to {
        Addressee::Caller => "the caller".to_owned(),
        Addressee::Person(name) => now.display_name(name),
        Addressee::Group(name) => format!("the group {name}"),
    }
}

/// Returns names in one phrase, such as `Ada, Bob and Cy`.
pub(crate) fn listed(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// Returns the people to whom a person may delegate the question: none if too few would be left to confirm.
fn delegates(
    now: &DirectoryNow,
    team: &Team,
    me: &str,
    membership: &dyn Membership,
) -> Vec<(String, String)> {
    let quorum = team.quorum();
    let people = now.rules().people();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |to: &Addressee| {
        let entry = (to.to_string(), named(now, to));
        if found.len() < MOST_DELEGATES
            && !found.contains(&entry)
            && quorum.may_delegate(me, to, membership)
            && plan_lines::adds_someone(quorum, me, to, membership)
        {
            found.push(entry);
        }
    };
    for to in quorum.addressees().iter().chain(quorum.delegate_to()) {
        match to {
            Addressee::Caller => {}
            Addressee::Person(_) => add(to),
            Addressee::Group(name) => {
                add(to);
                let members = people.groups.get(name).into_iter();
                for member in members.flat_map(Group::people) {
                    add(&Addressee::Person(member.to_owned()));
                }
            }
        }
    }
    found
}

/// Returns the reason why a question is no longer this viewer's; `None` if it is, or never was.
pub fn why_no_longer(now: &DirectoryNow, viewer: &InboxViewer, row: &Row) -> Option<Denied> {
    let (team, person) = (row.team.as_deref()?, viewer.person()?);
    match team.quorum().admits(&person.person, &now.of(row)) {
        Err(Denied::LeftGroup) => Some(Denied::LeftGroup),
        Ok(()) | Err(_) => None,
    }
}

/// Returns the audit's word for the button of a page; `None` for one that does not act on the question.
pub fn word_of(button: &str) -> Option<&'static str> {
    Some(match button {
        "accept" => "fill",
        "confirm" => "confirm",
        "decline" => "decline",
        "cancel" => "cancel",
        "claim" => "claim",
        "takeover" => "take-over",
        "delegate" => "delegate",
        "comment" => "comment",
        _ => return None,
    })
}

/// Submits a person's outcome for a question of a rule.
///
/// # Errors
/// If the record fails.
pub async fn submit(
    record: &Record,
    now: &DirectoryNow,
    viewer: &InboxViewer,
    row: &Row,
    outcome: &Outcome,
    version: u32,
    reason: Option<&str>,
) -> Result<SubmitResult, RecordError> {
    let act = match outcome {
        Outcome::Accept(answers) => TeamAct::Fill {
            answers: Some(answers),
            version,
        },
        Outcome::Visit => TeamAct::Fill {
            answers: None,
            version,
        },
        Outcome::Decline => TeamAct::Decline { note: reason },
        Outcome::Cancel => TeamAct::Cancel,
    };
    let people = now.of(row);
    let Some(actor) = people.actor(viewer) else {
        return Ok(SubmitResult::Gone);
    };
    let details = ActDetails {
        comment: reason,
        channel: None,
    };
    let acted = record.act_with(&row.id, act, actor, &people, details);
    Ok(match acted.await? {
        Acted::Done(team, _) if matches!(team.quorum().state(), QuorumState::Ended(_)) => {
            SubmitResult::Won
        }
        Acted::Done(..) => SubmitResult::Waits,
        Acted::Denied(Denied::LoginTooOld) => SubmitResult::LoginTooOld,
        Acted::Denied(denied) => SubmitResult::Refused(sentence(denied)),
        Acted::UnusableText => SubmitResult::Refused(REASON_TOO_LONG.to_owned()),
        Acted::NoPlan | Acted::Gone => SubmitResult::Gone,
    })
}

/// Performs an action of a team member other than answering.
///
/// # Errors
/// If the record fails.
pub async fn act(
    record: &Record,
    now: &DirectoryNow,
    viewer: &InboxViewer,
    row: &Row,
    pressed: &Pressed,
) -> Result<TeamResult, RecordError> {
    let people = now.of(row);
    let Some(actor) = people.actor(viewer) else {
        return Ok(TeamResult::Gone);
    };
    let refused = |why: &str| Ok(TeamResult::Refused(why.to_owned()));
    let me = actor.person;
    let act = match pressed {
        Pressed::Confirm { digest, .. } => match digest_in(digest) {
            Some(digest) => TeamAct::Confirm { digest },
            None if has_answers(row) => return refused(&sentence(Denied::Changed)),
            None => return refused(&sentence(Denied::NothingFilled)),
        },
        Pressed::Claim => TeamAct::Claim,
        Pressed::TakeOver => TeamAct::TakeOver,
        Pressed::Delegate { to, note } => match addressee(to) {
            Some(to) => TeamAct::Delegate { to, note },
            None => return refused(&not_delegable(now, row, me, &people)),
        },
        Pressed::Comment { text } => TeamAct::Comment { text },
    };
    let comment = match pressed {
        Pressed::Confirm { comment, .. } => comment.as_deref(),
        _ => None,
    };
    let details = ActDetails {
        comment,
        channel: None,
    };
    let acted = record.act_with(&row.id, act, actor, &people, details);
    Ok(match acted.await? {
        Acted::Done(..) => TeamResult::Done,
        Acted::Denied(Denied::LoginTooOld) => TeamResult::LoginTooOld,
        Acted::Denied(Denied::CannotDelegate) => {
            TeamResult::Refused(not_delegable(now, row, me, &people))
        }
        Acted::Denied(denied) => TeamResult::Refused(sentence(denied)),
        Acted::UnusableText => TeamResult::Refused(unusable(pressed).to_owned()),
        Acted::NoPlan | Acted::Gone => TeamResult::Gone,
    })
}

/// Returns `true` if there are entered answers that others may confirm.
fn has_answers(row: &Row) -> bool {
    let team = row.team.as_deref();
    team.is_some_and(|team| matches!(team.quorum().state(), QuorumState::Filled { .. }))
}

/// Returns the reason why the question is not delegated, and the people to whom it can be, as offered by the page.
fn not_delegable(now: &DirectoryNow, row: &Row, me: &str, people: &dyn Membership) -> String {
    let offered = row.team.as_deref();
    let offered = offered.map_or_else(Vec::new, |team| delegates(now, team, me, people));
    let mut names: Vec<String> = offered.into_iter().map(|(_, name)| name).collect();
    let others = names.len().saturating_sub(MOST_NAMED);
    if others > 0 {
        names.truncate(MOST_NAMED);
        names.push(format!("{others} others whom its page offers"));
    }
    let to_whom = match names.as_slice() {
        [] => "it can be handed on to nobody, so answer or decline it".to_owned(),
        names => format!("it can be handed on to {}", listed(names, "or")),
    };
    format!("The question cannot be handed on to them: {to_whom}.")
}

/// The refusal if the rule excludes a caller who is unknown.
const CALLER_UNKNOWN: &str = "The rule wants others than the caller to answer, and it is not known which person makes this call.";

/// The refusal of a reason or comment that does not fit.
const REASON_TOO_LONG: &str =
    "The text is too long, or has nothing to read: 500 characters at most.";

/// Returns the reason why the text of an action was refused, as a sentence.
fn unusable(pressed: &Pressed) -> &'static str {
    const {
        assert!(
            MAX_COMMENT == 2_000 && MAX_COMMENTS == 50 && MAX_NOTES == 20,
            "the sentences name them"
        );
    }
    let (text, too_many) = match pressed {
        Pressed::Delegate { note, .. } => (
            note.as_str(),
            "You have handed this question on 20 times: answer or decline it, or ask its other people to.",
        ),
        Pressed::Comment { text } => (
            text.as_str(),
            "You have written 50 comments on this question, and no more are taken from you. Others can still comment.",
        ),
        Pressed::Confirm { .. } => return REASON_TOO_LONG,
        Pressed::Claim | Pressed::TakeOver => ("", ""),
    };
    if text.trim().is_empty() {
        "There is no text: write something first."
    } else if text.chars().count() > MAX_COMMENT {
        "The text is too long: 2,000 characters at most."
    } else {
        too_many
    }
}

/// Reads a digest in hexadecimal digits.
pub fn digest_in(text: &str) -> Option<AnswersDigest> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Reads `person:NAME` or `group:NAME`.
pub fn addressee(text: &str) -> Option<Addressee> {
    Actor::read(text).addressee()
}

/// Returns the refusal of an action, as a sentence for the person.
pub fn sentence(denied: Denied) -> String {
    let plain = match denied {
        Denied::TooFewLeft { need, left } => {
            let left = match left {
                0 => "no one is left".to_owned(),
                1 => "only 1 is left".to_owned(),
                left => format!("only {left} are left"),
            };
            return format!(
                "{need} people must agree; without you {left}: hand it on to a person who is not asked yet."
            );
        }
        Denied::NotAddressed => "This question is not addressed to you.",
        Denied::LeftGroup => "This question was addressed to a group that you have left.",
        Denied::IsCaller => "You make this call, so others have to answer.",
        Denied::CallerUnknown => CALLER_UNKNOWN,
        Denied::Delegated => "You have handed this question on, so others answer it now.",
        Denied::Claimed => "Another person has claimed this question. Take it over, or wait.",
        Denied::Changed => {
            "The entered answers have changed since you looked. Look again, then decide."
        }
        Denied::NothingFilled => {
            "Nobody has entered answers yet, or they were dropped since. Open the question to enter some, or wait until somebody has."
        }
        Denied::AlreadyVoted => "You have agreed already. Others have to agree, too.",
        Denied::AlreadyVotedAs => {
            "You have agreed already, under another name. Others have to agree, too."
        }
        Denied::VoterUnknown => {
            "A person who may be you under another name has already agreed. Another person has to agree."
        }
        Denied::NotMissing => {
            "Enough people of your group have agreed already. Only people of the other groups are missing."
        }
        Denied::Ended => "The question has ended.",
        Denied::LoginTooOld => "Your login is too old for this question: log in again.",
        Denied::NotOffered => "That is not offered for this question.",
        Denied::CannotDelegate => {
            "The question cannot be handed on to them: choose one of those whom its page offers."
        }
    };
    plain.to_owned()
}
