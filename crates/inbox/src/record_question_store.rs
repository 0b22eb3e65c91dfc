//! The record as a question store for the pages of `forms`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::answer::{Draft, Outcome};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::question::ParsedBody;
use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_forms::view::{CallView, QuestionView};
use mcp_elicit_forms::web::Viewer as _;
use mcp_elicit_forms::web::{
    DraftResult, Ended, ListFilter, ListView, QuestionId, QuestionList, QuestionStore,
    QuestionStoreError, QuestionSummary, StoredQuestion, SubmitResult, TeamAct, TeamResult,
    TeamView,
};
use mcp_elicit_policy::access::{self, Action};
use mcp_elicit_policy::quorum::Denied;
use mcp_elicit_record::audit::{Actor, Event};
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::{Filter, ListKeys, Page, Row};
use mcp_elicit_record::{Durability, Record, RecordError, Verdict};
use tokio::sync::watch;

use super::api_tokens::ApiTokens;
use super::drafts::Drafts;
use super::list_turns::ListTurns;
use super::login::RuleCheck;
use super::login::directory::{Directory, DirectoryNow, Sight};
use super::team_view;
use super::viewer::Viewer;

mod row_parts;

pub(crate) use row_parts::client;
use row_parts::{ended, has_named_caller, origin, outline, waiting_note, with_call};

/// The number of rows read for a list. If more wait, half of them are those asked first and half those asked last, so
/// that one caller's many questions hide no new one.
const MAX_ROWS_READ: usize = 10_000;

/// The number of rows of a list that are processed before the thread does other work.
const ROWS_AT_ONCE: usize = 32;

/// The words before the name of an API key, for a page.
const KEY_HOLDER: &str = "the holder of the API key ";

/// The arguments of a call in a list, if those of the record cannot be opened.
const UNREADABLE_ARGUMENTS: &str =
    "the arguments cannot be read: they are damaged, or were sealed with another key";

/// Returns the text in place of arguments of this length, which were too long to be stored.
fn left_out(bytes: usize) -> String {
    format!(
        "({bytes} bytes of arguments, too long to be shown here; the operator's setting `argument-bytes` is the limit)"
    )
}

/// The form for a question of which a list shows only the message.
const NO_FIELDS: &str = r#"{"type":"object","properties":{}}"#;

/// The questions of one record.
pub struct RecordQuestionStore {
    record: Arc<Record>,
    /// The people, if several log in.
    people: Option<People>,
    /// The keys of callers, which are shown by their names.
    key_names: Option<Arc<ApiTokens>>,
    /// The check that the rule of a question is unchanged, if there are rules.
    is_asked_by: Option<RuleCheck>,
    turns: ListTurns,
}

/// The people of an inbox, and their drafts.
struct People {
    directory: Arc<Directory>,
    drafts: Mutex<Drafts>,
}

impl People {
    /// Returns the drafts; a panic elsewhere cannot have left them inconsistent in a way that matters.
    fn drafts(&self) -> MutexGuard<'_, Drafts> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stored question for a person, with the check of its answer.
pub struct Readable {
    /// The view for frontends.
    pub question: QuestionView,
    /// The question.
    pub request: ElicitRequest,
}

impl Readable {
    /// Returns `true` if its form asks for a credential for certain.
    pub fn asks_for_credential(&self) -> bool {
        let warnings = mcp_elicit_forms::view::warnings(&self.question);
        warnings.iter().any(|warning| warning.asks_for_credential)
    }
}

impl RecordQuestionStore {
    /// Creates a store over this record.
    pub fn new(record: Arc<Record>) -> Self {
        Self {
            record,
            people: None,
            key_names: None,
            is_asked_by: None,
            turns: ListTurns::default(),
        }
    }

    /// Returns the store with a check for changed rules, which a question's note reports.
    #[must_use]
    pub fn checking_rules(self, check: RuleCheck) -> Self {
        let is_asked_by = Some(check);
        Self {
            is_asked_by,
            ..self
        }
    }

    /// Returns the rule of the question if it would not ask about a call made now.
    fn changed_rule<'r>(&self, row: &'r Row) -> Option<&'r str> {
        let (check, team) = (self.is_asked_by.as_ref()?, row.team.as_deref()?);
        (!check(&team.rule, &team.rule_digest)).then_some(&team.rule)
    }

    /// Returns the store with the names of callers' keys.
    #[must_use]
    pub fn naming_keys(self, keys: Arc<ApiTokens>) -> Self {
        let key_names = Some(keys);
        Self { key_names, ..self }
    }

    /// Returns the store for people who log in: each sees and answers what roles and addressing allow.
    #[must_use]
    pub fn for_people(self, directory: Arc<Directory>) -> Self {
        Self {
            people: Some(People {
                directory,
                drafts: Mutex::default(),
            }),
            ..self
        }
    }

    /// Returns a snapshot of people and roles; `None` if the inbox belongs to one person.
    pub fn people_now(&self) -> Option<DirectoryNow> {
        self.people.as_ref().map(|people| people.directory.now())
    }

    /// Returns the part of the row that the viewer may see.
    pub fn sight(&self, viewer: &Viewer, row: &Row) -> Sight {
        self.people_now()
            .map_or(Sight::Whole, |now| now.of(row).sight(viewer, row))
    }

    /// Returns `true` if the viewer may act on the question, according to roles.
    pub fn may_act(&self, viewer: &Viewer, row: &Row) -> bool {
        self.people_now()
            .is_none_or(|now| now.of(row).may_act(viewer, row))
    }

    /// Returns the row, if the viewer may see any of it.
    async fn row(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
    ) -> Result<Option<(Row, Sight)>, QuestionStoreError> {
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        let row = row.map(|row| {
            let sight = self.sight(viewer, &row);
            (row, sight)
        });
        Ok(row.filter(|(_, sight)| *sight > Sight::Nothing))
    }

    /// Returns the rows of which the viewer may see any part: those under the person's own keys, or all; and `true` if
    /// there are more.
    async fn rows_of(
        &self,
        viewer: &Viewer,
        now: &DirectoryNow,
        which: Filter,
        filter: &ListFilter,
    ) -> Result<(Vec<Row>, bool), QuestionStoreError> {
        let keys = now.list_keys(viewer);
        // Waiting ones are counted, so all are read; of ended ones, only those that are shown.
        let is_counted = which == Filter::Open;
        let is_searched = !filter.text.is_empty() || filter.view != ListView::All;
        let most = if is_counted || is_searched || keys.is_none() {
            MAX_ROWS_READ
        } else {
            filter.most
        };
        self.rows_under(keys.as_ref(), which, most).await
    }

    /// Returns the rows of a list, under these keys or all; and `true` if more wait than a list reads. If more wait
    /// than `most`, those asked first and those asked last.
    async fn rows_under(
        &self,
        keys: Option<&ListKeys>,
        which: Filter,
        most: usize,
    ) -> Result<(Vec<Row>, bool), QuestionStoreError> {
        let read = async |which: Filter, most: usize| {
            let rows = match keys {
                Some(keys) => self.record.list_under(which, keys.clone(), most).await,
                None => self.record.list(which, Page::first(most)).await,
            };
            rows.map_err(fault)
        };
        if which != Filter::Open || most == 0 {
            return Ok((read(which, most).await?, false));
        }
        let mut rows = read(which, most + 1).await?;
        if rows.len() <= most {
            return Ok((rows, false));
        }
        rows.truncate(most.div_ceil(2));
        let latest = read(Filter::OpenLatest, most / 2).await?;
        // Some may have ended meanwhile, so that the two halves overlap.
        let known: HashSet<String> = rows.iter().map(|row| row.id.clone()).collect();
        let latest = latest.into_iter().rev();
        rows.extend(latest.filter(|row| !known.contains(&row.id)));
        Ok((rows, most >= MAX_ROWS_READ))
    }

    /// Returns the lists of a viewer who sees a part of the questions.
    async fn list_for(
        &self,
        viewer: &Viewer,
        now: &DirectoryNow,
        filter: &ListFilter,
    ) -> Result<QuestionList, QuestionStoreError> {
        let role = now.role(viewer);
        let mut list = QuestionList {
            has_others: access::may(role, Action::ListAll).is_ok(),
            ..QuestionList::default()
        };
        for which in [Filter::Open, Filter::Ended] {
            let (rows, is_cut) = self.rows_of(viewer, now, which, filter).await?;
            list.is_cut |= is_cut;
            let mut in_view = Vec::new();
            for (index, row) in rows.iter().enumerate() {
                if index.is_multiple_of(ROWS_AT_ONCE) {
                    tokio::task::yield_now().await;
                }
                let people = now.of(row);
                let sight = people.sight(viewer, row);
                if sight == Sight::Nothing {
                    continue;
                }
                if which == Filter::Open && people.is_waiting_for(viewer, row) {
                    list.pending_total += 1;
                }
                let is_mine = || {
                    viewer
                        .person()
                        .is_some_and(|person| people.is_mine(&person.person, row))
                };
                let is_in_view = match filter.view {
                    ListView::All => true,
                    ListView::Mine => is_mine(),
                    ListView::Groups => people.standing(viewer, row).is_addressed && !is_mine(),
                };
                if !is_in_view {
                    continue;
                }
                if which == Filter::Open {
                    list.pending_in_view += 1;
                }
                in_view.push((row, sight));
            }
            let found = first_and_last(&in_view, which, filter.most, |(row, sight)| {
                let summary = self.summary(row, Some(now)).map(|summary| match sight {
                    Sight::Outline => outline(summary),
                    Sight::Nothing | Sight::Question | Sight::Whole => summary,
                });
                summary.filter(|summary| summary.matches(&filter.text))
            });
            let found = found.await;
            if which == Filter::Open {
                list.pending = found;
            } else {
                list.recent = found;
            }
        }
        Ok(list)
    }

    /// Returns the row's view for a person; `None` if it can no longer be read.
    ///
    /// # Errors
    /// If the arguments of its call cannot be opened, because no one may answer without seeing them.
    pub fn readable(&self, row: &Row) -> Result<Option<Readable>, RecordError> {
        let Some(parsed) = self.record.parsed(row) else {
            return Ok(None);
        };
        let request = parsed.request.clone();
        let origin = origin(row);
        let message = parsed.request.message().to_owned();
        let question = match &parsed.body {
            ParsedBody::Form(form) => QuestionView::form(origin, message, Form::clone(form)),
            ParsedBody::Link(link) => QuestionView::url(origin, message, Link::clone(link)),
        };
        let question = question.on_behalf_of(self.caller_in_words(row));
        let question = match client(row) {
            Some((name, version)) => question.through(&name, version.as_deref()),
            None => question,
        };
        let question = with_call(question, self.call(row)?, row);
        Ok(Some(Readable { question, request }))
    }

    /// Audits that a form was accepted although it asks for a credential, if so.
    pub(super) async fn note_credentials_allowed(&self, row: &Row, outcome: &Outcome, by: &str) {
        let asks_for_a_credential = matches!(outcome, Outcome::Accept(_))
            && self
                .readable(row)
                .ok()
                .flatten()
                .is_some_and(|readable| readable.asks_for_credential());
        if !asks_for_a_credential {
            return;
        }
        let noted = self
            .record
            .audit_event(Event::CredentialAllowed, Some(&row.id), Some(by));
        if let Err(fault) = noted.await {
            tracing::error!(%fault, "an answer to a form that asks for a credential is not in the audit");
        }
    }

    fn call(&self, row: &Row) -> Result<Option<CallView>, RecordError> {
        let Some(kind) = row.body.kind else {
            return Ok(None);
        };
        let mut candidates = self.record.candidates(row)?.into_iter().map(|one| {
            let call = CallView::new(one.kind, one.target);
            match one.arguments {
                Some(arguments) => call.with_json(arguments),
                None => call,
            }
        });
        if let Some(likeliest) = candidates.next() {
            return Ok(Some(likeliest.or_one_of_calls(candidates.collect())));
        }
        let Some(target) = row.body.target.clone() else {
            return Ok(None);
        };
        let call = CallView::new(kind, target).or_one_of(row.body.others.clone());
        if let Some(bytes) = row.body.arguments_left_out {
            return Ok(Some(call.with_json(left_out(bytes))));
        }
        Ok(Some(match self.record.arguments(row)? {
            Some(arguments) => call.with_json(arguments),
            None => call,
        }))
    }

    fn summary(&self, row: &Row, now: Option<&DirectoryNow>) -> Option<QuestionSummary> {
        let id = QuestionId::new(row.id.clone())?;
        // A list reads the beginning of the message and no form.
        let message = row.body.message.clone();
        let question = QuestionView::form(origin(row), message, Form::parse(NO_FIELDS).ok()?);
        let call = self.call(row).unwrap_or_else(|_| {
            let target = row.body.target.clone().unwrap_or_default();
            Some(CallView::new(row.body.kind?, target).with_json(UNREADABLE_ARGUMENTS))
        });
        let question = with_call(question, call, row);
        // If a rule asks, the caller is rarely the reader.
        let question = if has_named_caller(row) {
            question.on_behalf_of(self.caller_in_short(row))
        } else {
            question
        };
        let summary =
            QuestionSummary::from_question(id, &question, system_time(row.lifecycle.asked_at()));
        let summary = match &row.team {
            Some(team) => {
                let summary = summary.by_rule(&team.rule).for_approval(team.is_approval);
                // Distinguishes several calls of one tool for the people who decide.
                match question.call() {
                    Some(call) => summary.with_arguments(call),
                    None => summary,
                }
            }
            None => summary,
        };
        Some(match Self::ended(row, now) {
            Some(ended) => summary.ended(ended),
            None => summary,
        })
    }

    /// Returns the caller of the call in words: a person in the file by the name for readers, a key by its own name.
    pub(super) fn caller_in_words(&self, row: &Row) -> String {
        let now = self.people_now();
        let person = row
            .team
            .as_ref()
            .and_then(|team| team.caller.person.as_deref());
        if let (Some(now), Some(person)) = (now, person) {
            return now.display_name(person);
        }
        let name = row.body.principal.as_str();
        match Principal::parse(name) {
            Some(Principal::Local) => "the user of this computer".to_owned(),
            Some(Principal::Anonymous) => "a client that has not said who it is".to_owned(),
            Some(Principal::Key(id)) => {
                let keys = self.key_names.as_ref();
                let name = keys.map_or_else(|| id.to_owned(), |keys| keys.in_words(id));
                format!("{KEY_HOLDER}{name}")
            }
            Some(Principal::Subject { issuer, subject }) => format!("{subject} ({issuer})"),
            None => match name.strip_prefix("bearer-") {
                Some(token) => format!("the holder of the token {token}"),
                None => name.to_owned(),
            },
        }
    }

    /// Returns the same in short, for a list.
    fn caller_in_short(&self, row: &Row) -> String {
        let words = self.caller_in_words(row);
        let key = words.strip_prefix(KEY_HOLDER);
        key.map_or(words.clone(), |name| format!("API key {name}"))
    }

    /// Returns the question's end; `None` while it waits.
    fn ended(row: &Row, now: Option<&DirectoryNow>) -> Option<Ended> {
        let ended = ended(row)?;
        let in_words = |by: String| match (Actor::read(&by), now) {
            (by @ Actor::People(_), Some(now)) => {
                format!("by {}", team_view::history::actors(now, Some(&by)))
            }
            // People of a rule, read by the owner after the login was removed from the file.
            (Actor::People(people), None) => {
                let by: Vec<_> = people.iter().map(|person| format!("by {person}")).collect();
                by.join(", ")
            }
            (Actor::Group(_) | Actor::SlackUser(_) | Actor::Other(_), _) => by,
        };
        Some(Ended {
            by: ended.by.map(in_words),
            ..ended
        })
    }

    /// Returns the viewer's draft.
    fn draft(&self, viewer: &Viewer, id: &str) -> Option<Draft> {
        match (&self.people, viewer.person()) {
            (Some(people), Some(person)) => people.drafts().get(id, &person.person),
            _ => self.record.draft(id),
        }
    }

    /// Drops the drafts of a question that has ended.
    fn drop_drafts(&self, id: &QuestionId) {
        if let Some(people) = &self.people {
            people.drafts().forget(id.as_str());
        }
    }

    async fn summaries(
        &self,
        which: Filter,
        filter: &ListFilter,
    ) -> Result<(Vec<QuestionSummary>, bool), QuestionStoreError> {
        let most = if filter.text.is_empty() {
            filter.most
        } else {
            MAX_ROWS_READ
        };
        let (rows, is_cut) = self.rows_under(None, which, most).await?;
        let found = first_and_last(&rows, which, filter.most, |row| {
            let may_match = self.may_match(row, &filter.text);
            let summary = may_match.then(|| self.summary(row, None)).flatten();
            summary.filter(|summary| summary.matches(&filter.text))
        });
        Ok((found.await, is_cut))
    }

    /// Returns `true` if the words may occur in the listed parts of the row, its id or its rule. It checks the raw
    /// text, since parsing a form takes longer, and ignores markup that a list omits, and characters that JSON escapes.
    fn may_match(&self, row: &Row, words: &str) -> bool {
        let plain = |text: &str| {
            text.chars()
                .filter(|letter| letter.is_alphanumeric())
                .flat_map(char::to_lowercase)
                .collect::<String>()
        };
        if words.is_empty() {
            return true;
        }
        let caller = has_named_caller(row).then(|| self.caller_in_short(row));
        let known = [
            row.body.target.as_deref(),
            caller.as_deref(),
            row.team.as_ref().map(|team| team.rule.as_str()),
            row.lifecycle.ended_by().map(|_| "by"),
            row.lifecycle.ended_by(),
        ];
        let all = [row.id.as_str(), &row.body.server, &row.body.message];
        let all = all.into_iter().chain(known.into_iter().flatten());
        let text = plain(&all.collect::<Vec<_>>().join(" "));
        words
            .split_whitespace()
            .all(|word| text.contains(&plain(word)))
    }
}

/// Returns `read` applied to at most `most` rows, in order: of waiting ones, the half asked first and the half asked
/// last, and of others the first. Reads no more rows than necessary.
async fn first_and_last<R, S>(
    rows: &[R],
    which: Filter,
    most: usize,
    mut read: impl FnMut(&R) -> Option<S>,
) -> Vec<S> {
    let first = match which {
        Filter::Open => most.div_ceil(2),
        _ => most,
    };
    let (mut found, mut last) = (Vec::new(), Vec::new());
    let mut left = rows.iter();
    while found.len() < first {
        if left.len().is_multiple_of(ROWS_AT_ONCE) {
            tokio::task::yield_now().await;
        }
        let Some(row) = left.next() else {
            return found;
        };
        found.extend(read(row));
    }
    while found.len() + last.len() < most {
        if left.len().is_multiple_of(ROWS_AT_ONCE) {
            tokio::task::yield_now().await;
        }
        let Some(row) = left.next_back() else {
            break;
        };
        last.extend(read(row));
    }
    found.extend(last.into_iter().rev());
    found
}

fn fault(fault: RecordError) -> QuestionStoreError {
    match fault {
        RecordError::Open(_) => QuestionStoreError::Sealed(Box::new(fault)),
        RecordError::Store(_)
        | RecordError::Encryption(_)
        | RecordError::NotWritten
        | RecordError::DeliveryNotWritten { .. }
        | RecordError::Contended
        | RecordError::TooManyOpen { .. }
        | RecordError::TooLarge(_) => QuestionStoreError::Unreachable(Box::new(fault)),
    }
}

impl QuestionStore for RecordQuestionStore {
    type Viewer = Viewer;

    async fn list(
        &self,
        viewer: &Viewer,
        filter: &ListFilter,
    ) -> Result<QuestionList, QuestionStoreError> {
        let _turn = self.turns.take(viewer.by().into()).await;
        if let Some(now) = self.people_now() {
            return self.list_for(viewer, &now, filter).await;
        }
        let waiting = self.record.store().waiting().await;
        let waiting = waiting.map_err(|error| fault(error.into()))?;
        let (pending, is_cut) = self.summaries(Filter::Open, filter).await?;
        let (recent, _) = self.summaries(Filter::Ended, filter).await?;
        Ok(QuestionList {
            pending,
            pending_total: waiting,
            pending_in_view: waiting,
            is_cut,
            has_others: false,
            recent,
        })
    }

    async fn find(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
    ) -> Result<Option<StoredQuestion>, QuestionStoreError> {
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let sight = self.sight(viewer, &row);
        let now = self.people_now();
        if sight == Sight::Nothing {
            let why = now.and_then(|now| team_view::why_no_longer(&now, viewer, &row));
            return Ok(why.map(|why| StoredQuestion::NoLonger(team_view::sentence(why))));
        }
        if sight == Sight::Outline {
            let mut summary = self.summary(&row, now.as_ref()).map(outline);
            let is_auditor = now.is_some_and(|now| now.role(viewer).is_auditor);
            if let (true, Some(summary), Some(reader)) = (is_auditor, &mut summary, viewer.person())
            {
                let kept = self
                    .record
                    .read_retained_call(&row, &reader.actor().to_string())
                    .await;
                let kept = kept.map_err(fault)?;
                summary.arguments = kept
                    .map(|kept| kept.in_words())
                    .or(summary.arguments.take());
            }
            return Ok(summary.map(StoredQuestion::Outline));
        }
        if row.lifecycle.is_open()
            && let Some(readable) = self.readable(&row).map_err(fault)?
        {
            return Ok(Some(StoredQuestion::Open {
                question: Arc::new(readable.question),
                asked: system_time(row.lifecycle.asked_at()),
                draft: self.draft(viewer, &row.id),
            }));
        }
        Ok(self.summary(&row, now.as_ref()).map(StoredQuestion::Ended))
    }

    async fn note(&self, id: &QuestionId) -> Result<Option<String>, QuestionStoreError> {
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        Ok(row.and_then(|row| waiting_note(&self.record, &row, self.changed_rule(&row))))
    }

    async fn shown(&self, viewer: &Viewer, id: &QuestionId) -> Result<(), QuestionStoreError> {
        match self.row(viewer, id).await? {
            Some((row, Sight::Question | Sight::Whole)) if self.may_act(viewer, &row) => {}
            _ => return Ok(()),
        }
        self.record.mark_shown(id.as_str()).await.map_err(fault)?;
        match viewer.person() {
            Some(person) => self
                .record
                .mark_seen_by(id.as_str(), &person.person)
                .await
                .map_err(fault),
            None => Ok(()),
        }
    }

    async fn keep(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
        draft: Draft,
    ) -> Result<DraftResult, QuestionStoreError> {
        let (Some(people), Some(person)) = (&self.people, viewer.person()) else {
            self.record.keep_draft(id.as_str(), draft);
            return Ok(DraftResult::Done);
        };
        let row = self.row(viewer, id).await?;
        let Some((row, _)) = row.filter(|(row, _)| row.lifecycle.is_open()) else {
            return Ok(DraftResult::Refused(team_view::sentence(Denied::Ended)));
        };
        let now = people.directory.now();
        let admitted = match row.team.as_deref() {
            Some(team) => team.quorum().admits(&person.person, &now.of(&row)),
            None => Ok(()),
        };
        if let Err(denied) = admitted {
            return Ok(DraftResult::Refused(team_view::sentence(denied)));
        }
        if !self.may_act(viewer, &row) {
            return Ok(DraftResult::Refused(team_view::sentence(
                Denied::NotAddressed,
            )));
        }
        people.drafts().keep(id.as_str(), &person.person, draft);
        Ok(DraftResult::Done)
    }

    fn takes_reasons(&self) -> bool {
        true
    }

    async fn submit(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
        outcome: Outcome,
        version: u32,
    ) -> Result<SubmitResult, QuestionStoreError> {
        self.submit_with_reason(viewer, id, outcome, version, None)
            .await
    }

    async fn submit_with_reason(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
        outcome: Outcome,
        version: u32,
        reason: Option<String>,
    ) -> Result<SubmitResult, QuestionStoreError> {
        let by = viewer.by();
        let row = match self.row(viewer, id).await? {
            Some((row, _)) if self.may_act(viewer, &row) => Some(row),
            // Trying to answer reveals no more than reading.
            _ => {
                let act = match outcome {
                    Outcome::Accept(_) | Outcome::Visit => "accept",
                    Outcome::Decline => "decline",
                    Outcome::Cancel => "cancel",
                };
                let refused = self.refuse(viewer, id, act).await?;
                return Ok(refused.map_or(SubmitResult::Gone, SubmitResult::Refused));
            }
        };
        let of_a_rule = row.as_ref().filter(|row| row.team.is_some());
        if let (Some(now), Some(row)) = (self.people_now(), of_a_rule) {
            let reason = reason.as_deref();
            let submitted =
                team_view::submit(&self.record, &now, viewer, row, &outcome, version, reason);
            let submitted = submitted.await.map_err(fault)?;
            if submitted == SubmitResult::Won {
                self.drop_drafts(id);
            }
            if matches!(submitted, SubmitResult::Won | SubmitResult::Waits) {
                self.note_credentials_allowed(row, &outcome, &by).await;
            }
            return Ok(submitted);
        }
        match self
            .record
            .submit_with_reason(
                id.as_str(),
                &outcome,
                reason.as_deref(),
                &by,
                Durability::WithDelivery,
            )
            .await
            .map_err(fault)?
        {
            Verdict::Won => {
                self.drop_drafts(id);
                if let Some(row) = row {
                    self.note_credentials_allowed(&row, &outcome, &by).await;
                }
                Ok(SubmitResult::Won)
            }
            Verdict::Gone => Ok(SubmitResult::Gone),
            Verdict::Late(row) => Ok(Self::ended(&row, self.people_now().as_ref())
                .map_or(SubmitResult::Gone, SubmitResult::Late)),
        }
    }

    async fn team(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
    ) -> Result<Option<TeamView>, QuestionStoreError> {
        let (Some(now), Some((row, _))) = (self.people_now(), self.row(viewer, id).await?) else {
            return Ok(None);
        };
        team_view::team_view(&self.record, &now, viewer, &row)
            .await
            .map_err(fault)
    }

    async fn act(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
        act: TeamAct,
    ) -> Result<TeamResult, QuestionStoreError> {
        let (Some(now), Some((row, _))) = (self.people_now(), self.row(viewer, id).await?) else {
            return Ok(TeamResult::Gone);
        };
        team_view::act(&self.record, &now, viewer, &row, &act)
            .await
            .map_err(fault)
    }

    async fn refuse(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
        act: &str,
    ) -> Result<Option<String>, QuestionStoreError> {
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        let (Some(now), Some(row), Some(person)) = (self.people_now(), row, viewer.person()) else {
            return Ok(None);
        };
        let Some(why) = team_view::why_no_longer(&now, viewer, &row) else {
            return Ok(None);
        };
        if let Some(act) = team_view::word_of(act) {
            let by = person.actor();
            let noted = self.record.note_refused(&row, act, &by, why.word(), None);
            noted.await.map_err(fault)?;
        }
        Ok(Some(team_view::sentence(why)))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.record.changes()
    }
}

#[cfg(test)]
mod tests;
