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
    DraftResult, Ended, ListFilter, ListView, MemberAct, QuestionId, QuestionList, QuestionStore,
    QuestionStoreError, QuestionSummary, StoredQuestion, SubmitResult, TeamResult, TeamView,
};
use mcp_elicit_policy::access::{self, AccessAction};
use mcp_elicit_policy::quorum::Denied;
use mcp_elicit_record::audit::{Actor, Event};
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::{Filter, ListKeys, ListQuery, Matching, Page, Row, SearchWord};
use mcp_elicit_record::{Durability, Record, RecordError, Verdict};
use tokio::sync::watch;

use super::api_tokens::ApiTokens;
use super::drafts::Drafts;
use super::list_turns::ListTurns;
use super::login::RuleCheck;
use super::login::directory::{Directory, DirectoryNow, Sight};
use super::team_view;
use super::viewer::InboxViewer;

mod row_parts;

pub(crate) use row_parts::client;
use row_parts::{ended, has_named_caller, origin, outline, waiting_note, with_call};

/// The most rows read for a list of which the viewer sees a part.
const MAX_ROWS_READ: usize = 10_000;

/// The most rows that are counted for a viewer who sees a part of them, because each is compared with people and rules.
const MAX_COUNTED: usize = 1_000;

/// The most rows of a list that are read at once.
const MAX_ROWS_AT_ONCE: usize = 500;

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

/// The most bytes of sealed arguments that a list opens.
const MOST_LISTED: usize = 32 * 1024;

/// The form for a question of which a list shows only the message.
const NO_FIELDS: &str = r#"{"type":"object","properties":{}}"#;

/// The most people whose names a word of a search may stand for.
const MOST_CALLED: usize = 20;

/// The questions of one record.
pub struct RecordQuestionStore {
    record: Arc<Record>,
    /// The people, if several log in.
    people: Option<InboxPeople>,
    /// The keys of callers, which are shown by their names.
    key_names: Option<Arc<ApiTokens>>,
    /// The check that the rule of a question is unchanged, if there are rules.
    is_asked_by: Option<RuleCheck>,
    turns: ListTurns,
}

/// The people of an inbox, and their drafts.
struct InboxPeople {
    directory: Arc<Directory>,
    drafts: Mutex<Drafts>,
}

impl InboxPeople {
    /// Returns the drafts; a panic elsewhere cannot have left them inconsistent in a way that matters.
    fn drafts(&self) -> MutexGuard<'_, Drafts> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list's reader, and the selection of its rows.
struct ListReader<'v> {
    viewer: &'v InboxViewer,
    /// The people and roles, if several log in.
    now: Option<DirectoryNow>,
    keys: Option<ListKeys>,
    view: ListView,
    text: &'v str,
    matching: Matching,
}

impl ListReader<'_> {
    /// Returns `true` if the row is in the view.
    fn is_in_view(&self, now: &DirectoryNow, row: &Row) -> bool {
        let people = now.of(row);
        let is_mine = || {
            let person = self.viewer.person();
            person.is_some_and(|person| people.is_mine(&person.person, row))
        };
        match self.view {
            ListView::All => true,
            ListView::Mine => is_mine(),
            ListView::Groups => people.standing(self.viewer, row).is_addressed && !is_mine(),
        }
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
            people: Some(InboxPeople {
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
    pub fn sight(&self, viewer: &InboxViewer, row: &Row) -> Sight {
        self.people_now()
            .map_or(Sight::Whole, |now| now.of(row).sight(viewer, row))
    }

    /// Returns `true` if the viewer may act on the question, according to roles.
    pub fn may_act(&self, viewer: &InboxViewer, row: &Row) -> bool {
        self.people_now()
            .is_none_or(|now| now.of(row).may_act(viewer, row))
    }

    /// Returns the row, if the viewer may see any of it.
    async fn row(
        &self,
        viewer: &InboxViewer,
        id: &QuestionId,
    ) -> Result<Option<(Row, Sight)>, QuestionStoreError> {
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        let row = row.map(|row| {
            let sight = self.sight(viewer, &row);
            (row, sight)
        });
        Ok(row.filter(|(_, sight)| *sight > Sight::Nothing))
    }

    /// Returns the words of a search, with the keys of callers and the people that they name.
    pub(crate) fn words(&self, text: &str) -> Vec<SearchWord> {
        let mut words = SearchWord::all_in(text);
        if let Some(now) = self.people_now().filter(|_| !words.is_empty()) {
            let with_people = words.into_iter().map(|word| {
                let people = now.people_called(word.text(), MOST_CALLED);
                let people: Vec<String> = people.into_iter().map(str::to_owned).collect();
                word.or_people(people.iter().map(String::as_str))
            });
            words = with_people.collect();
        }
        let keys = self.key_names.as_ref().filter(|_| !words.is_empty());
        let Some(keys) = keys.and_then(|keys| keys.list().ok()) else {
            return words;
        };
        let with_keys = words.into_iter().map(|word| {
            let named = keys.iter().filter(|key| {
                let name = key.name.to_lowercase();
                name.contains(word.text())
            });
            let ids: Vec<&str> = named.map(|key| key.id.as_str()).collect();
            word.or_keys(ids)
        });
        with_keys.collect()
    }

    /// Returns `true` if the words occur in what the viewer may see of a row that the store has found: it has looked in
    /// all of it.
    pub(crate) fn shows_words(&self, viewer: &InboxViewer, row: &Row, text: &str) -> bool {
        if text.is_empty() || self.sight(viewer, row) != Sight::Outline {
            return true;
        }
        let summary = self.summary(row, self.people_now().as_ref());
        summary.is_some_and(|summary| outline(summary).matches(text))
    }

    /// Returns the first `most` questions of a list that the viewer may see and that the filter admits, and `true` if no
    /// question of the list may be missing.
    ///
    /// The store's search does not look in arguments, which are sealed. People see those of their approvals in the list:
    /// among the first [`MAX_COUNTED`] rows, they are found by them too.
    async fn first(
        &self,
        reader: &ListReader<'_>,
        filter: Filter,
        most: usize,
    ) -> Result<(Vec<QuestionSummary>, bool), QuestionStoreError> {
        let has_arguments = reader.now.is_some() && !reader.text.is_empty();
        let mut opens_arguments = has_arguments;
        let mut found = Vec::new();
        let rows_at_once = most.clamp(ROWS_AT_ONCE, MAX_ROWS_AT_ONCE);
        let (mut page, mut read) = (Page::first(rows_at_once), 0);
        while found.len() < most && read < MAX_ROWS_READ {
            let matching = if opens_arguments {
                Matching::default()
            } else {
                reader.matching.clone()
            };
            let query = ListQuery::new(filter, page)
                .under(reader.keys.clone())
                .matching(matching);
            let rows = self.record.list_by(query).await.map_err(fault)?;
            for (index, row) in rows.iter().enumerate() {
                if index.is_multiple_of(ROWS_AT_ONCE) {
                    tokio::task::yield_now().await;
                }
                if found.len() < most {
                    found.extend(self.summary_for(reader, row, opens_arguments));
                }
            }
            read += rows.len();
            match rows.last() {
                Some(last) if rows.len() == rows_at_once => {
                    page = Page::after(last.id.clone(), rows_at_once);
                }
                _ => return Ok((found, opens_arguments == has_arguments)),
            }
            opens_arguments &= read < MAX_COUNTED;
        }
        Ok((found, false))
    }

    /// Returns the summary of a row, if the reader may see it and the filter admits it. A search of the store has
    /// looked in its text, or it `is_new` to the search.
    fn summary_for(
        &self,
        reader: &ListReader<'_>,
        row: &Row,
        is_new: bool,
    ) -> Option<QuestionSummary> {
        let Some(now) = &reader.now else {
            return self.summary(row, None);
        };
        let sight = now.of(row).sight(reader.viewer, row);
        if sight == Sight::Nothing || !reader.is_in_view(now, row) {
            return None;
        }
        let summary = self.summary(row, Some(now))?;
        if sight == Sight::Outline {
            // The store has looked in the parts that are not shown, too.
            let shown = outline(summary);
            return shown.matches(reader.text).then_some(shown);
        }
        let is_found = !is_new || reader.matching.admits(row) || summary.matches(reader.text);
        is_found.then_some(summary)
    }

    /// Returns the waiting questions: all, or the half asked first and the half asked last.
    async fn pending(
        &self,
        reader: &ListReader<'_>,
        most: usize,
    ) -> Result<Vec<QuestionSummary>, QuestionStoreError> {
        if most == 0 {
            return Ok(Vec::new());
        }
        // One more shows if these are all.
        let (mut found, is_whole) = self.first(reader, Filter::Open, most + 1).await?;
        if is_whole && found.len() <= most {
            return Ok(found);
        }
        found.truncate(most.div_ceil(2));
        let (latest, _) = self.first(reader, Filter::OpenLatest, most / 2).await?;
        // Some may have ended meanwhile, so that the two halves overlap.
        let known: HashSet<QuestionId> = found.iter().map(|each| each.id.clone()).collect();
        let latest = latest.into_iter().rev();
        found.extend(latest.filter(|each| !known.contains(&each.id)));
        Ok(found)
    }

    /// Counts the questions that wait for a viewer who sees a part of them, and those in the view. Of very many, only
    /// the first are counted.
    async fn count_for(
        &self,
        reader: &ListReader<'_>,
        now: &DirectoryNow,
        list: &mut QuestionList,
    ) -> Result<(), QuestionStoreError> {
        let page = Page::first(MAX_COUNTED + 1);
        let query = ListQuery::new(Filter::Open, page).under(reader.keys.clone());
        let rows = self.record.list_by(query).await.map_err(fault)?;
        list.is_cut = rows.len() > MAX_COUNTED;
        for (index, row) in rows.iter().take(MAX_COUNTED).enumerate() {
            if index.is_multiple_of(ROWS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
            let people = now.of(row);
            if people.sight(reader.viewer, row) == Sight::Nothing {
                continue;
            }
            list.pending_total += usize::from(people.is_waiting_for(reader.viewer, row));
            list.pending_in_view += usize::from(reader.is_in_view(now, row));
        }
        Ok(())
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

    /// Returns the call as a list shows it: with arguments only if a rule asks, and they are not large.
    fn listed_call(&self, row: &Row) -> Option<CallView> {
        let (kind, target) = (row.body.kind?, row.body.target.clone()?);
        let call = CallView::new(kind, target).or_one_of(row.body.others.clone());
        let sealed = row.arguments.as_ref().map_or(0, Vec::len);
        if row.team.is_none() || !row.body.others.is_empty() || sealed == 0 {
            return Some(call);
        }
        if sealed > MOST_LISTED {
            return Some(call.with_json(format!("({sealed} bytes of arguments)")));
        }
        Some(match self.record.arguments(row) {
            Ok(Some(arguments)) => call.with_json(arguments),
            Ok(None) => call,
            Err(_) => call.with_json(UNREADABLE_ARGUMENTS),
        })
    }

    fn summary(&self, row: &Row, now: Option<&DirectoryNow>) -> Option<QuestionSummary> {
        let id = QuestionId::new(row.id.clone())?;
        // A list reads the beginning of the message and no form.
        let message = row.body.message.clone();
        let question = QuestionView::form(origin(row), message, Form::parse(NO_FIELDS).ok()?);
        let question = with_call(question, self.listed_call(row), row);
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
    async fn draft(
        &self,
        viewer: &InboxViewer,
        id: &str,
    ) -> Result<Option<Draft>, QuestionStoreError> {
        let draft = match (&self.people, viewer.person()) {
            (Some(_), Some(person)) if self.record.shares_drafts() => {
                self.record.shared_draft(id, &person.person).await
            }
            (Some(people), Some(person)) => Ok(people.drafts().get(id, &person.person)),
            _ => self.record.draft(id).await,
        };
        draft.map_err(fault)
    }

    /// Drops the drafts of a question that has ended.
    fn drop_drafts(&self, id: &QuestionId) {
        if let Some(people) = &self.people {
            people.drafts().forget(id.as_str());
        }
    }
}

fn fault(fault: RecordError) -> QuestionStoreError {
    match fault {
        RecordError::Open(_) => QuestionStoreError::Sealed(Box::new(fault)),
        RecordError::Store(_)
        | RecordError::Encryption(_)
        | RecordError::NotWritten
        | RecordError::DeliveryNotWritten { .. }
        | RecordError::AskedElsewhere
        | RecordError::Contended
        | RecordError::TooManyOpen { .. }
        | RecordError::TooLarge(_)
        | RecordError::Full(_) => QuestionStoreError::Unreachable(Box::new(fault)),
    }
}

impl QuestionStore for RecordQuestionStore {
    type Viewer = InboxViewer;

    async fn list(
        &self,
        viewer: &InboxViewer,
        filter: &ListFilter,
    ) -> Result<QuestionList, QuestionStoreError> {
        let _turn = self.turns.take(viewer.by().into()).await;
        let now = self.people_now();
        let reader = ListReader {
            viewer,
            keys: now.as_ref().and_then(|now| now.list_keys(viewer)),
            now,
            view: filter.view,
            text: &filter.text,
            matching: Matching {
                words: self.words(&filter.text),
                ..Matching::default()
            },
        };
        let mut list = QuestionList::default();
        if let Some(now) = &reader.now {
            list.has_others = access::may(now.role(viewer), AccessAction::ListAll).is_ok();
            self.count_for(&reader, now, &mut list).await?;
        } else {
            let waiting = self.record.store().waiting().await;
            list.pending_total = waiting.map_err(|error| fault(error.into()))?;
            list.pending_in_view = list.pending_total;
        }
        list.pending = self.pending(&reader, filter.most).await?;
        (list.recent, _) = self.first(&reader, Filter::Ended, filter.most).await?;
        Ok(list)
    }

    async fn find(
        &self,
        viewer: &InboxViewer,
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
                draft: self.draft(viewer, &row.id).await?,
            }));
        }
        Ok(self.summary(&row, now.as_ref()).map(StoredQuestion::Ended))
    }

    async fn note(&self, id: &QuestionId) -> Result<Option<String>, QuestionStoreError> {
        let row = self.record.find(id.as_str()).await.map_err(fault)?;
        Ok(row.and_then(|row| waiting_note(&self.record, &row, self.changed_rule(&row))))
    }

    async fn shown(&self, viewer: &InboxViewer, id: &QuestionId) -> Result<(), QuestionStoreError> {
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
        viewer: &InboxViewer,
        id: &QuestionId,
        draft: Draft,
    ) -> Result<DraftResult, QuestionStoreError> {
        let (Some(people), Some(person)) = (&self.people, viewer.person()) else {
            let kept = self.record.keep_draft(id.as_str(), draft).await;
            return kept.map(|()| DraftResult::Done).map_err(fault);
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
        if self.record.shares_drafts() {
            let kept = self
                .record
                .keep_shared_draft(id.as_str(), &person.person, &draft);
            kept.await.map_err(fault)?;
        } else {
            people.drafts().keep(id.as_str(), &person.person, draft);
        }
        Ok(DraftResult::Done)
    }

    fn takes_reasons(&self) -> bool {
        true
    }

    async fn submit(
        &self,
        viewer: &InboxViewer,
        id: &QuestionId,
        outcome: Outcome,
        version: u32,
    ) -> Result<SubmitResult, QuestionStoreError> {
        self.submit_with_reason(viewer, id, outcome, version, None)
            .await
    }

    async fn submit_with_reason(
        &self,
        viewer: &InboxViewer,
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
        viewer: &InboxViewer,
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
        viewer: &InboxViewer,
        id: &QuestionId,
        act: MemberAct,
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
        viewer: &InboxViewer,
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
