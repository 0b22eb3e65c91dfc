//! The actions of people in Slack, over the record: each is checked against the person's current role, as on a page.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mcp_elicit_channels::ChannelSummary;
use mcp_elicit_channels::slack::{ActionRefusal, Done, SlackInteractions, SlackUser};
use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::login::directory::{Directory, DirectoryNow};
use mcp_elicit_inbox::team_view::sentence;
use mcp_elicit_inbox::viewer::{InboxViewer, SignedIn};
use mcp_elicit_policy::Addressee;
use mcp_elicit_policy::quorum::{ActingPerson, Denied, QuorumState};
use mcp_elicit_record::audit;
use mcp_elicit_record::store::Row;
use mcp_elicit_record::team::{ActDetails, Acted, Team, TeamAct};
use mcp_elicit_record::{Record, RecordError, UsedKind};

use super::Notifier;

/// The channel's name in the audit.
const CHANNEL: &str = "slack";
/// The interval between log entries about refused requests, in milliseconds.
const QUIET: u64 = 60_000;

/// The people who may act in Slack.
pub(crate) struct SlackPeople {
    /// The current people, groups and roles.
    pub(crate) directory: Directory,
    /// The people who may log in; empty for everyone in the file.
    pub(crate) allow: Vec<Addressee>,
}

/// The actions of people in Slack.
pub(super) struct SlackActs {
    notifier: Arc<Notifier>,
    people: SlackPeople,
    /// The time of the last log entry about a refused request.
    told: Mutex<Option<Timestamp>>,
}

/// A question that a person may act on in Slack.
struct Actable {
    row: Row,
    person: String,
    now: DirectoryNow,
}

impl SlackActs {
    pub(super) fn new(notifier: Arc<Notifier>, people: SlackPeople) -> Self {
        Self {
            notifier,
            people,
            told: Mutex::default(),
        }
    }

    fn record(&self) -> &Record {
        &self.notifier.record
    }

    /// Returns the only person in the file with this mail address, if they may log in to the inbox.
    fn person(&self, now: &DirectoryNow, who: &SlackUser) -> Option<String> {
        let people = now.rules().people().people.iter();
        let mut found =
            people.filter(|(_, person)| person.mail.as_deref() == Some(who.mail.as_str()));
        let (Some((name, _)), None) = (found.next(), found.next()) else {
            return None;
        };
        let allow = &self.people.allow;
        let may_log_in = allow.is_empty() || now.is_one_of(allow, name);
        may_log_in.then(|| name.clone())
    }

    /// Returns the question, if this person may act on it in Slack now. A refusal is audited.
    async fn actable(
        &self,
        who: &SlackUser,
        question: &str,
        act: &str,
    ) -> Result<Actable, ActionRefusal> {
        let record = self.record();
        let row = record
            .find(question)
            .await
            .map_err(|fault| failed(&fault))?;
        // The same for a missing question, and for one without a rule.
        let row = row.filter(|row| row.team.is_some());
        let row = row.ok_or_else(|| denied(Denied::NotAddressed))?;
        let now = self.people.directory.now();
        let person = self.person(&now, who);
        let refusal = match &person {
            None => Some(ActionRefusal {
                code: "unknown-person",
                words: "No person in the gateway's file has the mail address of your Slack account. Answer in the inbox; the gateway's operator can add your `mail` to [people]."
                    .to_owned(),
            }),
            Some(person) => self.refusal(&now, &row, person),
        };
        match (person, refusal) {
            (Some(person), None) => Ok(Actable { row, person, now }),
            (person, refusal) => {
                let by = match person {
                    Some(person) => audit::Actor::person(&person),
                    None => audit::Actor::SlackUser(who.user.clone()),
                };
                let refusal = refusal.unwrap_or_else(|| denied(Denied::NotAddressed));
                let noted = record.note_refused(&row, act, &by, refusal.code, Some(CHANNEL));
                if let Err(fault) = noted.await {
                    tracing::error!(%fault, "an act that was refused in Slack is not in the audit");
                }
                Err(refusal)
            }
        }
    }

    /// Returns the reason why a person may not act on a question in Slack.
    fn refusal(&self, now: &DirectoryNow, row: &Row, person: &str) -> Option<ActionRefusal> {
        let team = row.team.as_deref()?;
        let people = now.of(row);
        if let Err(why) = team.quorum().admits(person, &people) {
            return Some(denied(why));
        }
        if !people.may_act(&viewer(person), row) {
            return Some(denied(Denied::NotAddressed));
        }
        // A person who has never logged in may be the caller under an unknown subject.
        if team.quorum().excludes_caller() && team.caller.person.is_none() && !now.is_bound(person)
        {
            return Some(ActionRefusal {
                code: "caller-unknown",
                words: "The rule wants others than the caller. Log in to the inbox once, so that it is known who you are.".to_owned(),
            });
        }
        let record = self.record();
        if !row.lifecycle.is_open() || row.lifecycle.is_due(record.now()) {
            return Some(denied(Denied::Ended));
        }
        None
    }

    /// Refuses actions on a question that only its page can handle.
    fn check_page(&self, row: &Row) -> Result<(), ActionRefusal> {
        let team = row.team.as_deref();
        if team.is_some_and(|team| self.notifier.summaries.needs_page(row, team)) {
            return Err(ActionRefusal {
                code: "needs-page",
                words: "This question can only be answered in the inbox.".to_owned(),
            });
        }
        Ok(())
    }

    async fn act(
        &self,
        actable: &Actable,
        act: TeamAct<'_>,
        comment: Option<&str>,
    ) -> Result<Done, ActionRefusal> {
        let Actable { row, person, now } = actable;
        let by = ActingPerson {
            person,
            // Slack does not report login times.
            login_age: None,
        };
        let (record, people) = (self.record(), now.of(row));
        let details = ActDetails {
            channel: Some(CHANNEL),
            comment,
        };
        let acted = record.act_with(&row.id, act, by, &people, details);
        match acted.await.map_err(|fault| failed(&fault))? {
            Acted::Done(team, _) if matches!(team.quorum().state(), QuorumState::Ended(_)) => {
                Ok(Done::Ended)
            }
            Acted::Done(..) => Ok(Done::Waits),
            Acted::Denied(why) => Err(denied(why)),
            Acted::UnusableText | Acted::NoPlan | Acted::Gone => Err(denied(Denied::NotAddressed)),
        }
    }
}

#[async_trait]
impl SlackInteractions for SlackActs {
    async fn is_first(&self, signature: [u8; 32], until: Timestamp) -> bool {
        // In the record: another gateway may serve the same address, or have served it before.
        let kind = UsedKind::SlackSignature;
        match self.record().use_once(kind, &signature, until).await {
            Ok(is_first) => is_first,
            Err(fault) => {
                tracing::error!(%fault, "that a request of Slack was used cannot be stored, so it is refused");
                false
            }
        }
    }

    async fn question(
        &self,
        who: &SlackUser,
        question: &str,
    ) -> Result<Arc<ChannelSummary>, ActionRefusal> {
        let Actable { row, person, .. } = self.actable(who, question, "look").await?;
        let (record, summaries) = (self.record(), &self.notifier.summaries);
        let link = summaries.link(&row.id).unwrap_or_default();
        let summary = summaries.of(&row, link, record.now());
        let summary = summary.ok_or_else(|| denied(Denied::NotAddressed))?;
        let seen = match record.mark_shown(&row.id).await {
            Ok(()) => record.mark_seen_by(&row.id, &person).await,
            Err(fault) => Err(fault),
        };
        if let Err(fault) = seen {
            tracing::warn!(%fault, "that a question was seen in Slack could not be noted");
        }
        Ok(Arc::new(summary))
    }

    async fn fill(
        &self,
        who: &SlackUser,
        question: &str,
        version: u64,
        answers: Answers,
        comment: Option<String>,
    ) -> Result<Done, ActionRefusal> {
        let actable = self.actable(who, question, "fill").await?;
        self.check_page(&actable.row)?;
        let team = actable.row.team.as_deref();
        let act = match team.map(|team| team.quorum().state()) {
            // Without fields, there are no answers of others.
            Some(QuorumState::Filled { digest, .. }) => TeamAct::Confirm { digest: *digest },
            _ => TeamAct::Fill {
                answers: Some(&answers),
                version: u32::try_from(version).unwrap_or(u32::MAX),
            },
        };
        self.act(&actable, act, comment.as_deref()).await
    }

    async fn decline(
        &self,
        who: &SlackUser,
        question: &str,
        version: u64,
        reason: Option<String>,
    ) -> Result<Done, ActionRefusal> {
        let actable = self.actable(who, question, "decline").await?;
        self.check_page(&actable.row)?;
        let quorum = actable.row.team.as_deref().map(Team::quorum);
        let has_changed = quorum.is_some_and(|quorum| {
            *quorum.state() == QuorumState::Open && u64::from(quorum.version()) != version
        });
        if has_changed {
            return Err(denied(Denied::Changed));
        }
        let note = reason.as_deref();
        self.act(&actable, TeamAct::Decline { note }, None).await
    }

    /// Logs a refused request, at most once per minute, because anyone can send one.
    fn refused(&self, reason: &'static str) {
        let now = self.record().now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = told.is_some_and(|at| now.as_millis() < at.as_millis() + QUIET);
        if is_quiet {
            tracing::debug!(reason, "a request to the address for Slack was refused");
        } else {
            *told = Some(now);
            tracing::warn!(reason, "a request to the address for Slack was refused");
        }
    }
}

/// Returns a person in the file for the table of roles. Claims are those of the directory.
fn viewer(person: &str) -> InboxViewer {
    InboxViewer::Person(Arc::new(SignedIn {
        person: person.to_owned(),
        name: person.to_owned(),
        mail: None,
        claims: Vec::new(),
        claims_at: Timestamp::default(),
        logged_in_at: None,
        session: CHANNEL.to_owned(),
        issuer: String::new(),
        subject: String::new(),
    }))
}

fn denied(why: Denied) -> ActionRefusal {
    ActionRefusal {
        code: why.word(),
        words: sentence(why),
    }
}

fn failed(fault: &RecordError) -> ActionRefusal {
    tracing::error!(%fault, "an act in Slack could not be written");
    ActionRefusal {
        code: "not-saved",
        words: "This could not be saved now. Nothing was lost; try again, or use the inbox."
            .to_owned(),
    }
}
