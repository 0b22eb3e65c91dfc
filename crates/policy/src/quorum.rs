//! The actions of people on one question, as a state that changes only by actions, timers and administrators.
//!
//! | act | who | open | filled, n of k votes |
//! | --- | --- | --- | --- |
//! | fill | addressed, eligible | k = 1: answered; else filled | the same answers: like confirm; others: the votes are dropped |
//! | confirm | addressed, eligible, once | refused | one more vote; with k votes answered |
//! | decline | addressed, eligible | declined | declined |
//! | cancel | the only addressee | cancelled | refused |
//! | claim, take over | addressed, eligible | claimed; unchanged within the first half of one's own claim | the same |
//! | delegate | addressed, eligible, if enough others are left | addressed anew | addressed anew, own vote kept |
//! | comment | addressed, or the caller | unchanged | unchanged |
//! | escalate | timer | more people are addressed | more people are addressed, votes stay |
//! | re-address | administrator | other people are addressed | open, votes dropped |
//! | time out, withdraw | timer; call or administrator | ended | ended |
//!
//! *Eligible* is evaluated at the action and again, for every vote, when the last one completes the question: the vote
//! of a person who is no longer eligible is dropped, and the votes of the others for the same answers stay. A vote is
//! stored with the [`Identity`] of its person, so that the same person cannot vote again under another name. A person
//! who has delegated the question can act again once it is delegated back to them by name. The answers themselves are
//! not stored here, only their digests.
//!
//! With parts ([`Part`]), k is their sum, and a vote is refused while it could count for no part that is still open. A
//! delegate counts for the parts of the person who delegated; a person whom an escalation added, for any part.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU8;
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use serde::{Deserialize, Serialize};

use crate::identity::{Identity, Sameness};
use crate::parts::{self, MissingParts, Part};
use crate::people::Addressee;
use crate::rules::Plan;

/// The SHA-256 of entered answers.
pub type AnswersDigest = [u8; 32];

/// The deepest chain of delegations.
const MAX_DELEGATIONS: u8 = 3;

/// The facts about people at the time of an action.
pub trait Membership: Send + Sync {
    /// Returns `true` if the person is currently a member of the group.
    fn is_member(&self, group: &str, person: &str) -> bool;
    /// Returns `true` if the person made the call: the same person, the owner of its key, or its local user.
    fn is_caller(&self, person: &str) -> bool;
    /// Returns the current members of the group; `None` if not all are known, as with a group by a claim.
    fn members(&self, _group: &str) -> Option<Vec<String>> {
        None
    }
    /// Returns `true` if the person certainly did not make the call.
    fn is_other(&self, person: &str) -> bool {
        !self.is_caller(person)
    }
    /// Returns the current identity of the person besides the name.
    fn identity(&self, _person: &str) -> Identity {
        Identity::default()
    }
    /// Returns `true` if the person is currently in the file, so that another name in the file is another person.
    fn is_in_file(&self, _person: &str) -> bool {
        true
    }
}

/// The acting person.
#[derive(Clone, Copy, Debug)]
pub struct ActingPerson<'a> {
    /// The person's name in the file.
    pub person: &'a str,
    /// The time since the person logged in; `None` if unknown.
    pub login_age: Option<Duration>,
}

/// An action of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Enter answers. `version` is that of the page on which they were entered.
    Fill {
        /// The answers.
        digest: AnswersDigest,
        /// See [`Quorum::version`].
        version: u32,
    },
    /// Confirm exactly the answers that were shown.
    Confirm {
        /// Those answers.
        digest: AnswersDigest,
    },
    /// Decline, for all.
    Decline,
    /// Dismiss the question.
    Cancel,
    /// Claim the question.
    Claim,
    /// Take over another person's claim.
    TakeOver,
    /// Delegate the question.
    Delegate {
        /// A person or a group.
        to: Addressee,
    },
    /// Comment.
    Comment,
}

/// The reason why an action is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The question was never addressed to this person.
    #[error("the question is not addressed to this person")]
    NotAddressed,
    /// The question was addressed to a group that the person has left.
    #[error("this person has left the group that was asked")]
    LeftGroup,
    /// The rule excludes the caller, who is this person.
    #[error("the caller cannot answer this question")]
    IsCaller,
    /// The rule excludes the caller, who may be this person.
    #[error("it is not known whether this person is the caller")]
    CallerUnknown,
    /// This person has delegated the question.
    #[error("this person has delegated the question")]
    Delegated,
    /// Another person has claimed the question.
    #[error("another person has claimed the question")]
    Claimed,
    /// The answers differ from those that were shown.
    #[error("the answers have changed")]
    Changed,
    /// There is nothing to confirm.
    #[error("no answers have been entered yet")]
    NothingFilled,
    /// This person has already confirmed.
    #[error("this person has agreed already")]
    AlreadyVoted,
    /// This person has already confirmed under another name.
    #[error("this person has agreed already, under another name")]
    AlreadyVotedAs,
    /// A person has confirmed who may be this person under another name.
    #[error("it is not known whether this person has agreed already, under another name")]
    VoterUnknown,
    /// Enough people of this person's parts have confirmed.
    #[error("enough people of this person's group have agreed; others are missing")]
    NotMissing,
    /// The question has ended.
    #[error("the question has ended")]
    Ended,
    /// The login is older than the rule allows.
    #[error("the login is too old")]
    LoginTooOld,
    /// The question has several addressees, or no claims.
    #[error("this act is not offered")]
    NotOffered,
    /// The rule does not allow delegation to them, or the chain is too long.
    #[error("the question cannot be delegated to them")]
    CannotDelegate,
    /// Fewer people would be left who can answer than must confirm.
    #[error("{need} people must agree, and only {left} would be left who can answer")]
    TooFewLeft {
        /// The number of people who must confirm.
        need: u8,
        /// The number of people who would be left.
        left: usize,
    },
}

impl Denied {
    /// Returns the word for the audit and for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotAddressed => "not-addressed",
            Self::LeftGroup => "left-group",
            Self::IsCaller => "is-caller",
            Self::CallerUnknown => "caller-unknown",
            Self::Delegated => "delegated",
            Self::Claimed => "claimed",
            Self::Changed => "changed",
            Self::NothingFilled => "nothing-filled",
            Self::AlreadyVoted => "already-voted",
            Self::AlreadyVotedAs => "already-voted-as",
            Self::VoterUnknown => "voter-unknown",
            Self::NotMissing => "not-missing",
            Self::Ended => "ended",
            Self::LoginTooOld => "login-too-old",
            Self::NotOffered => "not-offered",
            Self::CannotDelegate => "cannot-delegate",
            Self::TooFewLeft { .. } => "too-few-left",
        }
    }
}

/// The state of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuorumState {
    /// No answers were entered.
    Open,
    /// Answers were entered, and not enough people have confirmed them.
    Filled {
        /// The answers.
        digest: AnswersDigest,
        /// The people who confirm; the first has entered the answers, unless that vote was dropped.
        votes: Vec<String>,
    },
    /// It has ended.
    Ended(QuorumEnd),
}

/// The end of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuorumEnd {
    /// Enough people confirmed.
    Answered {
        /// The answers.
        digest: AnswersDigest,
        /// The people who confirmed.
        votes: Vec<String>,
    },
    /// A person declined.
    Declined {
        /// That person.
        by: String,
    },
    /// The only addressee dismissed it.
    Cancelled {
        /// That person.
        by: String,
    },
    /// It was not answered in time, which is never an answer.
    TimedOut,
    /// The call ended, or an administrator withdrew the question.
    Withdrawn,
}

/// A notice for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuorumNotice {
    /// People who confirmed must check again, because the answers changed.
    LookAgain(Vec<String>),
    /// The vote of this person no longer counts, because the person is no longer eligible.
    VoteDropped(String),
    /// The answers are erased, because others are asked now.
    AnswersErased,
    /// This person's claim was taken over.
    TakenOver(String),
}

/// A question to several people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    to: Vec<Addressee>,
    /// The parts that must all be filled; none if `need` of all must confirm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    need: NonZeroU8,
    not_caller: bool,
    claim_time: Option<Duration>,
    reauth: Option<Duration>,
    delegate_to: Vec<Addressee>,
    /// The members when the question was asked.
    asked: Vec<String>,
    delegations: Vec<Delegation>,
    claim: Option<Claim>,
    version: u32,
    state: QuorumState,
    /// The people whose votes for the entered answers were dropped, because they are no longer eligible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<String>,
    /// The identities of the people who confirm, by name, at that time. Questions stored by an earlier version have
    /// none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    identities: BTreeMap<String, Identity>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Delegation {
    from: String,
    to: Addressee,
    depth: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    by: String,
    until: Timestamp,
}

/// The question after an action, and the notices.
pub type QuorumStep = (Quorum, Vec<QuorumNotice>);

impl Quorum {
    /// Creates a question that was just asked. `asked` are the people currently addressed.
    pub fn new(plan: &Plan, asked: Vec<String>) -> Self {
        Self {
            to: plan.ask.to.clone(),
            parts: plan.ask.each.clone(),
            need: plan.ask.need,
            not_caller: plan.ask.not_caller,
            claim_time: plan.claim,
            reauth: plan.reauth,
            delegate_to: plan.delegate_to.clone(),
            asked,
            delegations: Vec::new(),
            claim: None,
            version: 0,
            state: QuorumState::Open,
            dropped: Vec::new(),
            identities: BTreeMap::new(),
        }
    }

    /// Returns the state.
    pub fn state(&self) -> &QuorumState {
        &self.state
    }

    /// Returns the addressees, including those added by escalations.
    pub fn addressees(&self) -> &[Addressee] {
        &self.to
    }

    /// Returns the people to whom others have delegated the question.
    pub fn delegates(&self) -> impl Iterator<Item = &Addressee> {
        self.delegations.iter().map(|step| &step.to)
    }

    /// Returns `true` if this person has delegated the question and it was not delegated back, so that they cannot act
    /// on it.
    pub fn has_handed_on(&self, person: &str) -> bool {
        let mut latest_first = self.delegations.iter().rev();
        let last = latest_first.find(|step| {
            step.from == person || matches!(&step.to, Addressee::Person(to) if to == person)
        });
        last.is_some_and(|step| step.from == person)
    }

    /// Returns the latest addressee of this person's delegations.
    pub fn delegated_by(&self, person: &str) -> Option<&Addressee> {
        let mut latest_first = self.delegations.iter().rev();
        latest_first
            .find(|step| step.from == person)
            .map(|step| &step.to)
    }

    /// Returns the people who have delegated the question and cannot act on it.
    pub fn handed_on(&self) -> BTreeSet<&str> {
        let from = self.delegations.iter().map(|step| step.from.as_str());
        from.filter(|person| self.has_handed_on(person)).collect()
    }

    /// Returns the additional people to whom this question may be delegated.
    pub fn delegate_to(&self) -> &[Addressee] {
        &self.delegate_to
    }

    /// Returns the number of people who must confirm.
    pub fn need(&self) -> NonZeroU8 {
        self.need
    }

    /// Returns the parts that must all be filled; none if [`need`](Self::need) of all must confirm.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the confirmations that are missing from the parts; none without parts.
    pub fn missing_parts(&self, people: &dyn Membership) -> MissingParts<'_> {
        if matches!(self.state, QuorumState::Ended(_)) || self.parts.is_empty() {
            return MissingParts::default();
        }
        let votes = self.votes().iter();
        let counting = votes.filter(|voter| self.counts(voter, people));
        let votes: Vec<_> = counting.map(|voter| self.parts_of(voter, people)).collect();
        parts::missing(&self.parts, &votes)
    }

    /// Returns the indexes of the parts that the confirmation of a person counts for.
    fn parts_of(&self, person: &str, people: &dyn Membership) -> Vec<usize> {
        self.parts_within(person, people, u8::MAX)
            .into_iter()
            .collect()
    }

    /// Returns the same, by delegations of at most this depth.
    fn parts_within(&self, person: &str, people: &dyn Membership, depth: u8) -> BTreeSet<usize> {
        let is_in = |part: &Part| part.to.iter().any(|to| reaches(to, person, people));
        let of_plan = |to: &Addressee| self.parts.iter().any(|part| part.to.contains(to));
        let mut added = self.to.iter().filter(|to| !of_plan(to));
        if added.any(|to| reaches(to, person, people)) {
            return (0..self.parts.len()).collect();
        }
        let own = self.parts.iter().enumerate();
        let own = own.filter(|(_, part)| is_in(part)).map(|(index, _)| index);
        let mut found: BTreeSet<usize> = own.collect();
        for step in self.delegations.iter().filter(|step| step.depth <= depth) {
            if reaches(&step.to, person, people) && self.is_still_delegate(&step.to, people) {
                found.extend(self.parts_within(&step.from, people, step.depth - 1));
            }
        }
        found
    }

    /// Returns the number of these people whose confirmations count together.
    fn counted<'a>(&self, voters: impl Iterator<Item = &'a str>, people: &dyn Membership) -> usize {
        if self.parts.is_empty() {
            return voters.count();
        }
        let all: Vec<_> = voters.map(|voter| self.parts_of(voter, people)).collect();
        parts::most_counted(&self.parts, &all)
    }

    /// Returns `true` if the caller's own person cannot answer.
    pub fn excludes_caller(&self) -> bool {
        self.not_caller
    }

    /// Returns `true` if only people with a recent login can act.
    pub fn needs_recent_login(&self) -> bool {
        self.reauth.is_some()
    }

    /// Checks that a person can answer now: they are asked, not excluded as the caller, and have not delegated the
    /// question.
    pub fn admits(&self, person: &str, people: &dyn Membership) -> Result<(), Denied> {
        self.eligible(person, people)?;
        if self.has_handed_on(person) {
            return Err(Denied::Delegated);
        }
        Ok(())
    }

    /// Returns the people who confirm so far; the first has entered the answers, unless that vote was dropped.
    pub fn votes(&self) -> &[String] {
        match &self.state {
            QuorumState::Filled { votes, .. }
            | QuorumState::Ended(QuorumEnd::Answered { votes, .. }) => votes,
            QuorumState::Open | QuorumState::Ended(_) => &[],
        }
    }

    /// Returns the people whose votes for the entered answers do not count, because they are no longer eligible.
    pub fn void_votes(&self, people: &dyn Membership) -> Vec<&str> {
        let waiting = match &self.state {
            QuorumState::Filled { votes, .. } => votes.as_slice(),
            QuorumState::Open | QuorumState::Ended(_) => &[],
        };
        let not_eligible = waiting.iter().filter(|voter| !self.counts(voter, people));
        let dropped = self.dropped.iter().chain(not_eligible);
        dropped.map(String::as_str).collect()
    }

    /// Returns the number of people who can act on the question: those to whom it is addressed, except for those who
    /// have delegated it or whom the rule excludes. With parts, the most of them who can count together. `None` if not
    /// all are known.
    pub fn people_left(&self, people: &dyn Membership) -> Option<usize> {
        let mut found = BTreeSet::new();
        let mut has_caller = false;
        let delegates = self.delegates();
        let delegates = delegates.filter(|to| self.is_still_delegate(to, people));
        for to in self.to.iter().chain(delegates) {
            match to {
                Addressee::Caller => has_caller = !self.not_caller,
                Addressee::Person(name) => {
                    found.insert(name.clone());
                }
                Addressee::Group(group) => found.extend(people.members(group)?),
            }
        }
        let is_known = found.iter().any(|person| people.is_caller(person));
        let gave_up =
            |step: &Delegation| people.is_caller(&step.from) && self.has_handed_on(&step.from);
        // The caller's name is unknown here.
        let unnamed = has_caller && !is_known && !self.delegations.iter().any(gave_up);
        found.retain(|person| {
            !(self.has_handed_on(person) || self.not_caller && !people.is_other(person))
        });
        let counted = self.counted(found.iter().map(String::as_str), people);
        Some(counted + usize::from(unnamed))
    }

    /// Returns `true` if the question is currently addressed to this person, by the plan, an escalation or a
    /// delegation.
    pub fn is_addressed_to(&self, person: &str, people: &dyn Membership) -> bool {
        self.depth(person, people).is_some()
    }

    /// Returns the number of times that the entered answers have changed. A page that shows an older version must be
    /// reloaded.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the number of missing votes; 0 once the question has ended.
    pub fn missing(&self) -> u8 {
        match &self.state {
            QuorumState::Open => self.need.get(),
            QuorumState::Filled { votes, .. } => self.need.get().saturating_sub(count(votes)),
            QuorumState::Ended(_) => 0,
        }
    }

    /// Returns `true` if the rule has claims.
    pub fn offers_claims(&self) -> bool {
        self.claim_time.is_some()
    }

    /// Returns the person who has claimed the question, while the claim is valid.
    pub fn claimed_by(&self, now: Timestamp) -> Option<&str> {
        let claim = self.claim.as_ref().filter(|claim| claim.until > now)?;
        Some(&claim.by)
    }

    /// Returns the time at which the claim expires, while it is valid.
    pub fn claimed_until(&self, now: Timestamp) -> Option<Timestamp> {
        let claim = self.claim.as_ref().filter(|claim| claim.until > now)?;
        Some(claim.until)
    }

    /// Returns the question after an action of a person, or the refusal.
    pub fn act(
        &self,
        by: ActingPerson<'_>,
        act: Act,
        now: Timestamp,
        people: &dyn Membership,
    ) -> Result<QuorumStep, Denied> {
        if matches!(self.state, QuorumState::Ended(_)) {
            return Err(Denied::Ended);
        }
        if act == Act::Comment {
            let may_see = people.is_caller(by.person) || self.depth(by.person, people).is_some();
            return may_see
                .then(|| (self.clone(), Vec::new()))
                .ok_or(Denied::NotAddressed);
        }
        self.admits(by.person, people)?;
        if let Some(limit) = self.reauth
            && by.login_age.is_none_or(|age| age > limit)
        {
            return Err(Denied::LoginTooOld);
        }
        match act {
            Act::Fill { digest, version } => self.fill(by.person, digest, version, now, people),
            Act::Confirm { digest } => self.confirm(by.person, digest, people),
            Act::Decline => Ok(self.ended(QuorumEnd::Declined {
                by: by.person.to_owned(),
            })),
            Act::Cancel => self.cancel(by.person),
            Act::Claim | Act::TakeOver => self.claim(by.person, &act, now),
            Act::Delegate { to } => self.delegate(by.person, to, people),
            Act::Comment => Ok((self.clone(), Vec::new())),
        }
    }

    /// Returns the question with one more addressee. An ended question is unchanged.
    #[must_use]
    pub fn escalate(&self, to: Addressee) -> Self {
        let mut next = self.clone();
        if !matches!(next.state, QuorumState::Ended(_)) && !next.to.contains(&to) {
            next.to.push(to);
        }
        next
    }

    /// Returns the question with other addressees, set by an administrator: votes, claims and delegations are dropped.
    pub fn readdress(&self, to: Vec<Addressee>, asked: Vec<String>) -> Result<QuorumStep, Denied> {
        let mut next = self.clone();
        let notices = match next.state {
            QuorumState::Ended(_) => return Err(Denied::Ended),
            QuorumState::Open => Vec::new(),
            QuorumState::Filled { votes, .. } => {
                next.version += 1;
                vec![QuorumNotice::LookAgain(votes), QuorumNotice::AnswersErased]
            }
        };
        next.state = QuorumState::Open;
        next.dropped.clear();
        next.identities.clear();
        (next.to, next.asked) = (to, asked);
        next.parts.clear();
        next.delegations.clear();
        next.claim = None;
        Ok((next, notices))
    }

    /// Returns the question after its deadline.
    pub fn time_out(&self) -> Result<Self, Denied> {
        self.stop(QuorumEnd::TimedOut)
    }

    /// Returns the question after its call has ended, or an administrator has withdrawn it.
    pub fn withdraw(&self) -> Result<Self, Denied> {
        self.stop(QuorumEnd::Withdrawn)
    }

    fn stop(&self, ending: QuorumEnd) -> Result<Self, Denied> {
        if matches!(self.state, QuorumState::Ended(_)) {
            return Err(Denied::Ended);
        }
        Ok(self.ended(ending).0)
    }

    fn ended(&self, ending: QuorumEnd) -> QuorumStep {
        let mut next = self.clone();
        next.state = QuorumState::Ended(ending);
        next.claim = None;
        (next, Vec::new())
    }

    /// Returns the number of delegations that led to this person: 0 for those whom the plan asks, `None` for others.
    fn depth(&self, person: &str, people: &dyn Membership) -> Option<u8> {
        if self.to.iter().any(|to| reaches(to, person, people)) {
            return Some(0);
        }
        let delegated = self.delegations.iter();
        let to_person = delegated.filter(|step| {
            reaches(&step.to, person, people) && self.is_still_delegate(&step.to, people)
        });
        to_person.map(|step| step.depth).min()
    }

    /// Returns `true` if the question may currently be delegated to them: a person who was chosen as a member of a
    /// group must still be one.
    fn is_still_delegate(&self, to: &Addressee, people: &dyn Membership) -> bool {
        match to {
            Addressee::Person(name) => self.may_go_to(name, people),
            Addressee::Caller | Addressee::Group(_) => true,
        }
    }

    /// Returns `true` if this person is asked, or the question may be delegated to them.
    fn may_go_to(&self, person: &str, people: &dyn Membership) -> bool {
        let mut allowed = self.to.iter().chain(&self.delegate_to);
        allowed.any(|addressee| reaches(addressee, person, people))
    }

    /// Checks that the question is addressed to a person, and that the rule does not exclude them.
    fn eligible(&self, person: &str, people: &dyn Membership) -> Result<u8, Denied> {
        let Some(depth) = self.depth(person, people) else {
            let is_delegate = |to: &Addressee| matches!(to, Addressee::Person(to) if to == person);
            let was_asked =
                self.asked.iter().any(|asked| asked == person) || self.delegates().any(is_delegate);
            return Err(if was_asked {
                Denied::LeftGroup
            } else {
                Denied::NotAddressed
            });
        };
        if self.not_caller && !people.is_other(person) {
            return Err(if people.is_caller(person) {
                Denied::IsCaller
            } else {
                Denied::CallerUnknown
            });
        }
        Ok(depth)
    }

    fn fill(
        &self,
        person: &str,
        digest: AnswersDigest,
        version: u32,
        now: Timestamp,
        people: &dyn Membership,
    ) -> Result<QuorumStep, Denied> {
        if self.claimed_by(now).is_some_and(|by| by != person) {
            return Err(Denied::Claimed);
        }
        if let QuorumState::Filled { digest: known, .. } = &self.state
            && *known == digest
        {
            return self.confirm(person, digest, people);
        }
        // Answers that a person has not seen cannot be replaced.
        if version != self.version {
            return Err(Denied::Changed);
        }
        self.check_is_missing(&[], person, people)?;
        let mut next = self.clone();
        next.version += 1;
        let mut notices = Vec::new();
        if let QuorumState::Filled { votes, .. } = &self.state {
            let others = votes.iter().filter(|voter| *voter != person);
            notices.push(QuorumNotice::LookAgain(others.cloned().collect()));
        }
        next.state = QuorumState::Filled {
            digest,
            votes: vec![person.to_owned()],
        };
        next.dropped.clear();
        next.identities.clear();
        next.keep_identity(person, people);
        next.complete(people, &mut notices);
        Ok((next, notices))
    }

    fn confirm(
        &self,
        person: &str,
        digest: AnswersDigest,
        people: &dyn Membership,
    ) -> Result<QuorumStep, Denied> {
        let mut next = self.clone();
        let QuorumState::Filled {
            digest: known,
            votes,
        } = &mut next.state
        else {
            return Err(Denied::NothingFilled);
        };
        if *known != digest {
            return Err(Denied::Changed);
        }
        let mut notices = Vec::new();
        if let Some(at) = votes.iter().position(|voter| voter == person) {
            if self.is_still(person, people) {
                return Err(Denied::AlreadyVoted);
            }
            notices.push(QuorumNotice::VoteDropped(votes.remove(at)));
        }
        self.check_is_another(votes, person, people)?;
        self.check_is_missing(votes, person, people)?;
        votes.push(person.to_owned());
        next.keep_identity(person, people);
        next.dropped.retain(|other| other != person);
        next.complete(people, &mut notices);
        Ok((next, notices))
    }

    /// Checks that the confirmation of a person would count beside those of these voters.
    fn check_is_missing(
        &self,
        voters: &[String],
        person: &str,
        people: &dyn Membership,
    ) -> Result<(), Denied> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let counting = voters.iter().filter(|voter| self.counts(voter, people));
        let before: Vec<&str> = counting.map(String::as_str).collect();
        let counted = self.counted(before.iter().copied(), people);
        let with = before.into_iter().chain([person]);
        if self.counted(with, people) > counted {
            Ok(())
        } else {
            Err(Denied::NotMissing)
        }
    }

    fn keep_identity(&mut self, person: &str, people: &dyn Membership) {
        let identity = people.identity(person);
        if identity.is_empty() {
            self.identities.remove(person);
        } else {
            self.identities.insert(person.to_owned(), identity);
        }
    }

    /// Checks that a person is certainly not one of these voters under another name.
    fn check_is_another(
        &self,
        voters: &[String],
        person: &str,
        people: &dyn Membership,
    ) -> Result<(), Denied> {
        let (own, is_in_file) = (people.identity(person), people.is_in_file(person));
        for voter in voters {
            let now = people.identity(voter);
            let known = self.identities.get(voter);
            let are_in_file =
                is_in_file && self.is_still(voter, people) && people.is_in_file(voter);
            match own.compare(known.unwrap_or(&now), are_in_file) {
                Sameness::Same => return Err(Denied::AlreadyVotedAs),
                Sameness::Unknown => return Err(Denied::VoterUnknown),
                Sameness::Different => {}
            }
        }
        Ok(())
    }

    /// Returns `true` if the name of a voter still means the person who confirmed. The file may have given it to
    /// someone else since.
    fn is_still(&self, voter: &str, people: &dyn Membership) -> bool {
        let known = self.identities.get(voter);
        known.is_none_or(|known| known.compare(&people.identity(voter), false) == Sameness::Same)
    }

    /// Returns `true` if a vote counts: the voter is still the person who confirmed, and may still answer.
    fn counts(&self, voter: &str, people: &dyn Membership) -> bool {
        self.is_still(voter, people) && self.eligible(voter, people).is_ok()
    }

    /// Ends the question if enough people confirm, after every vote was evaluated again.
    fn complete(&mut self, people: &dyn Membership, notices: &mut Vec<QuorumNotice>) {
        let QuorumState::Filled { digest, votes } = &self.state else {
            return;
        };
        if count(votes) < self.need.get() {
            return;
        }
        let (digest, all) = (*digest, votes.clone());
        let counts = |voter: &String| self.counts(voter, people);
        let (votes, dropped): (Vec<_>, Vec<_>) = all.into_iter().partition(counts);
        self.dropped.extend(dropped.iter().cloned());
        notices.extend(dropped.into_iter().map(QuorumNotice::VoteDropped));
        let counted = self.counted(votes.iter().map(String::as_str), people);
        if counted >= usize::from(self.need.get()) {
            self.claim = None;
            self.state = QuorumState::Ended(QuorumEnd::Answered { digest, votes });
        } else {
            self.state = QuorumState::Filled { digest, votes };
        }
    }

    fn cancel(&self, person: &str) -> Result<QuorumStep, Denied> {
        let is_alone = matches!(
            self.to.as_slice(),
            [Addressee::Caller | Addressee::Person(_)]
        );
        if !is_alone || !self.delegations.is_empty() || self.state != QuorumState::Open {
            return Err(Denied::NotOffered);
        }
        Ok(self.ended(QuorumEnd::Cancelled {
            by: person.to_owned(),
        }))
    }

    fn claim(&self, person: &str, act: &Act, now: Timestamp) -> Result<QuorumStep, Denied> {
        let time = self.claim_time.ok_or(Denied::NotOffered)?;
        let before = self.claimed_by(now).filter(|by| *by != person);
        if before.is_some() && *act == Act::Claim {
            return Err(Denied::Claimed);
        }
        let is_theirs = self.claim.as_ref().is_some_and(|claim| claim.by == person);
        let lasts = |claim: &Claim| claim.until > now.after(time / 2);
        if is_theirs && self.claim.as_ref().is_some_and(lasts) {
            return Ok((self.clone(), Vec::new()));
        }
        let notices = before.map(|by| QuorumNotice::TakenOver(by.to_owned()));
        let mut next = self.clone();
        next.claim = Some(Claim {
            by: person.to_owned(),
            until: now.after(time),
        });
        Ok((next, notices.into_iter().collect()))
    }

    /// Returns `true` if the person may now delegate the question to this addressee.
    pub fn may_delegate(&self, person: &str, to: &Addressee, people: &dyn Membership) -> bool {
        self.delegate(person, to.clone(), people).is_ok()
    }

    fn delegate(
        &self,
        person: &str,
        to: Addressee,
        people: &dyn Membership,
    ) -> Result<QuorumStep, Denied> {
        let depth = self.eligible(person, people)? + 1;
        let is_allowed = match &to {
            Addressee::Caller => false,
            Addressee::Group(_) => self.to.contains(&to) || self.delegate_to.contains(&to),
            Addressee::Person(name) => {
                name != person
                    && self.may_go_to(name, people)
                    && (!self.not_caller || people.is_other(name))
            }
        };
        if !is_allowed || depth > MAX_DELEGATIONS {
            return Err(Denied::CannotDelegate);
        }
        let mut next = self.clone();
        if self.claim.as_ref().is_some_and(|claim| claim.by == person) {
            next.claim = None;
        }
        next.delegations.push(Delegation {
            from: person.to_owned(),
            to,
            depth,
        });
        // If too few are left already, a delegation makes no difference.
        let need = self.need.get();
        if let (Some(before), Some(left)) = (self.people_left(people), next.people_left(people))
            && left < before
            && left < usize::from(need)
        {
            return Err(Denied::TooFewLeft { need, left });
        }
        Ok((next, Vec::new()))
    }
}

fn reaches(to: &Addressee, person: &str, people: &dyn Membership) -> bool {
    match to {
        Addressee::Caller => people.is_caller(person),
        Addressee::Person(name) => name == person,
        Addressee::Group(group) => people.is_member(group, person),
    }
}

fn count(votes: &[String]) -> u8 {
    u8::try_from(votes.len()).unwrap_or(u8::MAX)
}
