//! The record as the pages of `forms` see it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use mcp_elicit_core::answer::{Draft, Outcome};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Phase;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::question::ParsedBody;
use mcp_elicit_core::wire::{ElicitRequest, Mode};
use mcp_elicit_forms::view::{CallView, Origin, QuestionView};
use mcp_elicit_forms::web::Viewer as _;
use mcp_elicit_forms::web::{
    DraftResult, Ended, Ending, ListFilter, ListView, QuestionId, QuestionList, QuestionStore,
    QuestionStoreError, QuestionSummary, StoredQuestion, SubmitResult, TeamAct, TeamResult,
    TeamView,
};
use mcp_elicit_policy::access::{self, Action};
use mcp_elicit_policy::quorum::Denied;
use mcp_elicit_record::audit::Event;
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::{Filter, ListKeys, Page, Row};
use mcp_elicit_record::{Durability, Record, RecordError, Verdict};
use serde_json::Value;
use tokio::sync::watch;

use super::api_tokens::ApiTokens;
use super::drafts::Drafts;
use super::list_turns::ListTurns;
use super::login::RuleCheck;
use super::login::directory::{Directory, DirectoryNow, Sight};
use super::team_view;
use super::viewer::Viewer;

/// The number of rows that are read for a list. Of more that wait, those that were asked first and those that were asked last, half of each: one
/// caller's many hide no question that is new.
const MAX_ROWS_READ: usize = 10_000;

/// The number of rows that a list looks at before other work of the thread goes on.
const ROWS_AT_ONCE: usize = 32;

/// The words before the name of an API key, for a page.
const KEY_HOLDER: &str = "the holder of the API key ";

/// The arguments of a call in a list, where those of the record cannot be opened.
const UNREADABLE_ARGUMENTS: &str =
    "the arguments cannot be read: they are damaged, or were sealed with another key";

/// The form of a question of which a list shows the message only.
const NO_FIELDS: &str = r#"{"type":"object","properties":{}}"#;

/// The questions of one record.
pub struct RecordQuestionStore {
    record: Arc<Record>,
    /// The people, if several log in.
    people: Option<People>,
    /// The keys of callers, by whose names these are shown.
    key_names: Option<Arc<ApiTokens>>,
    /// The check whether the rule of a question is still the same, where rules ask.
    is_asked_by: Option<RuleCheck>,
    turns: ListTurns,
}

/// The people of an inbox, and what they have typed.
struct People {
    directory: Arc<Directory>,
    drafts: Mutex<Drafts>,
}

impl People {
    /// The drafts; a panic elsewhere cannot have left them half changed in a way that matters.
    fn drafts(&self) -> MutexGuard<'_, Drafts> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stored question as a person sees it, and what checks the answer to it.
pub struct Readable {
    /// The question as a frontend shows it.
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

    /// The same, where a question says that its rule is another one now.
    #[must_use]
    pub fn checking_rules(self, check: RuleCheck) -> Self {
        let is_asked_by = Some(check);
        Self {
            is_asked_by,
            ..self
        }
    }

    /// Returns the rule of the question where a call made now would not be asked about by the same one.
    fn changed_rule<'r>(&self, row: &'r Row) -> Option<&'r str> {
        let (check, team) = (self.is_asked_by.as_ref()?, row.team.as_deref()?);
        (!check(&team.rule, &team.rule_digest)).then_some(&team.rule)
    }

    /// The same, where callers with these keys are shown by their names.
    #[must_use]
    pub fn naming_keys(self, keys: Arc<ApiTokens>) -> Self {
        let key_names = Some(keys);
        Self { key_names, ..self }
    }

    /// The same for people who log in: each sees and answers what roles and addressing allow.
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

    /// Returns people and roles as they are now; `None` where the inbox is one person's.
    pub fn people_now(&self) -> Option<DirectoryNow> {
        self.people.as_ref().map(|people| people.directory.now())
    }

    /// Returns the part of the row that the viewer may see.
    pub fn sight(&self, viewer: &Viewer, row: &Row) -> Sight {
        self.people_now()
            .map_or(Sight::Whole, |now| now.of(row).sight(viewer, row))
    }

    /// Returns `true` if the viewer may act on the question, as far as roles go.
    pub fn may_act(&self, viewer: &Viewer, row: &Row) -> bool {
        self.people_now()
            .is_none_or(|now| now.of(row).may_act(viewer, row))
    }

    /// The row, if the viewer may see something of it.
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

    /// The rows of which the viewer may see something: those under the person's own keys, or all; and `true` if there are more.
    async fn rows_of(
        &self,
        viewer: &Viewer,
        now: &DirectoryNow,
        which: Filter,
        filter: &ListFilter,
    ) -> Result<(Vec<Row>, bool), QuestionStoreError> {
        let keys = now.list_keys(viewer);
        // Those that wait are counted, so all are read; of those that ended, as many as are shown.
        let is_counted = which == Filter::Open;
        let is_searched = !filter.text.is_empty() || filter.view != ListView::All;
        let most = if is_counted || is_searched || keys.is_none() {
            MAX_ROWS_READ
        } else {
            filter.most
        };
        self.rows_under(keys.as_ref(), which, most).await
    }

    /// The rows of a list, under these keys or all; and `true` if more wait than a list looks at. Of more that wait than `most`, those that
    /// were asked first and those that were asked last.
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
        // Some may have ended meanwhile, so that the two halves meet.
        let known: HashSet<String> = rows.iter().map(|row| row.id.clone()).collect();
        let latest = latest.into_iter().rev();
        rows.extend(latest.filter(|row| !known.contains(&row.id)));
        Ok((rows, most >= MAX_ROWS_READ))
    }

    /// The lists of a viewer who sees a part of the questions.
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

    /// The row as a person sees it; `None` when it cannot be read any more.
    ///
    /// # Errors
    /// When the arguments of its call cannot be opened: nobody answers without seeing them.
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

    /// Writes into the audit that a form was accepted although it asks for a credential, where it was.
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
        // Where a rule asks, the caller is seldom the reader.
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
                // Of several calls of one tool, those who decide about them tell one from another.
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

    /// Returns on whose behalf the call was made, in words: a person of the file by the name that others read, a key by its own.
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

    /// Returns the same for a list.
    fn caller_in_short(&self, row: &Row) -> String {
        let words = self.caller_in_words(row);
        let key = words.strip_prefix(KEY_HOLDER);
        key.map_or(words.clone(), |name| format!("API key {name}"))
    }

    /// Returns how the question ended; `None` while it waits.
    fn ended(row: &Row, now: Option<&DirectoryNow>) -> Option<Ended> {
        let ended = ended(row)?;
        let in_words = |by: String| match now {
            Some(now) if by.starts_with("person:") => {
                format!("by {}", team_view::history::actors(now, Some(&by)))
            }
            Some(_) => by,
            // People of a rule, read by the owner after the login was taken out of the file.
            None => by.replace("person:", "by "),
        };
        Some(Ended {
            by: ended.by.map(in_words),
            ..ended
        })
    }

    /// Returns what the viewer has typed so far.
    fn draft(&self, viewer: &Viewer, id: &str) -> Option<Draft> {
        match (&self.people, viewer.person()) {
            (Some(people), Some(person)) => people.drafts().get(id, &person.person),
            _ => self.record.draft(id),
        }
    }

    /// Drops what people have typed on a question that has ended.
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

    /// Returns whether the words may stand in what a list shows of the row, its id or its rule: a look at its text, since reading a form
    /// takes longer. Marks that a list leaves out, and characters that JSON spells otherwise, are not looked at.
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

/// Returns `true` for a question of a rule in the call of somebody who has proven who they are.
fn has_named_caller(row: &Row) -> bool {
    let principal = Principal::parse(&row.body.principal);
    let is_named = matches!(
        principal,
        Some(Principal::Key(_) | Principal::Subject { .. })
    );
    row.team
        .as_ref()
        .is_some_and(|team| is_named || team.caller.person.is_some())
}

/// The summary without the words of the message and the arguments.
fn outline(summary: QuestionSummary) -> QuestionSummary {
    QuestionSummary {
        excerpt: "addressed to others".to_owned(),
        arguments: None,
        ..summary
    }
}

/// Returns who asks: by the operator's name first, and what the server says of itself apart from it.
fn origin(row: &Row) -> Origin {
    let origin = match &row.body.address {
        Some(address) => Origin::unnamed(address.clone()),
        None => Origin::new(row.body.server.clone()),
    };
    let origin = origin.connected("through the gateway");
    let info: Option<Value> = row
        .body
        .server_info
        .as_deref()
        .and_then(|info| serde_json::from_str(info).ok());
    let word = |name: &str| {
        info.as_ref()
            .and_then(|info| info.get(name)?.as_str())
            .map(str::to_owned)
    };
    match (word("name"), word("version")) {
        (Some(name), version) => origin.claiming(name, version.unwrap_or_default()),
        (None, _) => origin,
    }
}

/// The client that made the call, by the name and version it gave for itself.
pub fn client(row: &Row) -> Option<(String, Option<String>)> {
    let info: Value = serde_json::from_str(row.body.client_info.as_deref()?).ok()?;
    let word = |name: &str| info.get(name)?.as_str().map(str::to_owned);
    Some((word("name")?, word("version")))
}

fn ended(row: &Row) -> Option<Ended> {
    let exchange = &row.lifecycle;
    let reason = || exchange.reason_in_words().unwrap_or_default().to_owned();
    let url = row.body.mode == Mode::Url;
    let how = match (exchange.phase(), exchange.delivery_reason()) {
        (Phase::Asked | Phase::Shown, _) => return None,
        (Phase::Answered | Phase::Declined | Phase::Cancelled, Some(why)) => Ending::Failed(why),
        (Phase::Answered, None) if url => Ending::Visited,
        (Phase::Answered, None) => Ending::Answered,
        (Phase::Declined, None) => Ending::Declined,
        (Phase::Cancelled, None) => Ending::Cancelled,
        (Phase::TimedOut, _) => Ending::TimedOut,
        (Phase::Withdrawn, _) => Ending::Withdrawn(reason()),
        (Phase::Failed, _) => Ending::Failed(reason()),
    };
    let at = exchange
        .ended_at()
        .map_or(SystemTime::UNIX_EPOCH, system_time);
    Some(Ended {
        how,
        at,
        by: exchange.ended_by().map(str::to_owned),
    })
}

/// Returns what became of a call that waited for approval; `None` for other questions.
fn approval_note(row: &Row) -> Option<String> {
    row.team.as_ref().filter(|team| team.is_approval)?;
    let line = match row.lifecycle.phase() {
        Phase::Answered => "The call was approved.",
        Phase::Declined => "The call was declined: its server never heard of it.",
        Phase::TimedOut => "The call was not approved in time: its server never heard of it.",
        Phase::Asked | Phase::Shown | Phase::Cancelled | Phase::Withdrawn | Phase::Failed => {
            return None;
        }
    };
    Some(line.to_owned())
}

/// Adds the call and the deadline of the row, where it has them.
fn with_call(question: QuestionView, call: Option<CallView>, row: &Row) -> QuestionView {
    let question = match call {
        Some(call) => question.for_call(call),
        None => question,
    };
    match row.lifecycle.deadline() {
        Some(deadline) => question.until(system_time(deadline)),
        None => question,
    }
}

/// Returns what a person should know where no call waits for the question; `None` where one does. `changed_rule` is the rule of the
/// question where it is another one now, so that no later call finds the question.
fn waiting_note(record: &Record, row: &Row, changed_rule: Option<&str>) -> Option<String> {
    let exchange = &row.lifecycle;
    if let Some(line) = approval_note(row) {
        return Some(line);
    }
    if record.is_waited_for(row) {
        return None;
    }
    if exchange.is_open() && !row.can_be_found() {
        return Some(
            "No call waits for this question, and no call can collect its answer, because the call that asked is unknown."
                .to_owned(),
        );
    }
    if let Some(rule) = changed_rule.filter(|_| exchange.is_open()) {
        return Some(format!(
            "No call waits for this question now, and the rule {rule} has changed since: the same call made again is asked about anew. Nobody gets an answer to this one."
        ));
    }
    if exchange.is_open() {
        let kept = minutes(record.answer_retention());
        return Some(format!(
            "No call waits for this question now. A repeated call gets your answer, up to {kept} after you gave it."
        ));
    }
    let until = exchange.valid_until()?.as_millis();
    let left = until
        .checked_sub(record.now().as_millis())
        .filter(|left| *left > 0)?;
    let acted = exchange.phase().action().is_some();
    (acted && exchange.delivered_at().is_none() && exchange.delivery_reason().is_none()).then(|| {
        if !row.can_be_found() {
            return "No call has taken the answer, and none can, because the call that asked is unknown.".to_owned();
        }
        if let Some(rule) = changed_rule {
            return format!("No call has taken the answer, and none gets it: the rule {rule} has changed since, so the same call is asked about anew.");
        }
        let left = minutes(std::time::Duration::from_millis(left));
        format!("No call has taken the answer yet. A repeated call gets it, for {left} from now.")
    })
}

/// A span in whole minutes, rounded up.
fn minutes(span: std::time::Duration) -> String {
    match span.as_secs().div_ceil(60) {
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}

/// Returns what `read` makes of at most `most` rows, in their order: of those that wait, the half that was asked first and the half that was
/// asked last, and of others the first. No more rows are read than are needed.
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
    QuestionStoreError(Box::new(fault))
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
            let summary = self.summary(&row, now.as_ref()).map(outline);
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

    async fn submit(
        &self,
        viewer: &Viewer,
        id: &QuestionId,
        outcome: Outcome,
        version: u32,
    ) -> Result<SubmitResult, QuestionStoreError> {
        let by = viewer.by();
        let row = match self.row(viewer, id).await? {
            Some((row, _)) if self.may_act(viewer, &row) => Some(row),
            // Nobody learns more by trying to answer than by looking.
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
            let submitted =
                team_view::submit(&self.record, &now, viewer, row, &outcome, version).await;
            let submitted = submitted.map_err(fault)?;
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
            .submit(id.as_str(), &outcome, &by, Durability::WithDelivery)
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
            let by = format!("person:{}", person.person);
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
mod tests {
    use mcp_elicit_core::lifecycle::Timestamp;

    use super::*;
    use crate::sample;
    use mcp_elicit_record::store::Memory;
    use mcp_elicit_record::{Keys, LockFile};

    #[tokio::test]
    async fn of_many_that_wait_a_list_has_the_first_and_the_last() {
        let rows: Vec<u32> = (0..100).collect();
        let even = |row: &u32| row.is_multiple_of(2).then_some(*row);
        let open = async |most: usize| first_and_last(&rows, Filter::Open, most, even).await;
        assert_eq!(open(5).await, [0, 2, 4, 96, 98]);
        assert_eq!(open(2).await, [0, 98]);
        assert_eq!(open(1).await, [0]);
        assert!(open(0).await.is_empty());
        let all = open(50).await;
        assert_eq!(all, open(51).await);
        assert!(all.len() == 50 && all.is_sorted());
        let ended = first_and_last(&rows, Filter::Ended, 3, even).await;
        assert_eq!(ended, [0, 2, 4]);
    }

    #[tokio::test]
    async fn an_answer_is_promised_to_a_later_call_only_where_one_can_find_it() {
        let store = Arc::new(Memory::default());
        let record = || {
            let keys = Keys::random().unwrap();
            let lease = LockFile::unshared().unwrap();
            let record = Record::new(store.clone(), keys, lease, || Timestamp::from_millis(1_000));
            Arc::new(record)
        };
        let first = record();
        let sure = sample::raised(&first, Vec::new()).await.unwrap();
        let other = vec!["plan".to_owned()];
        let unsure = sample::raised(&first, other).await.unwrap();
        // The gateway whose calls asked has ended.
        first.flush().await.unwrap();
        let second = record();
        let note = async |id: &str, changed_rule: Option<&str>| {
            let row = second.find(id).await.unwrap().unwrap();
            waiting_note(&second, &row, changed_rule).unwrap_or_default()
        };
        assert!(
            note(&sure, None)
                .await
                .contains("repeated call gets your answer")
        );
        let said = note(&sure, Some("deploys")).await;
        assert!(
            said.contains("the rule deploys has changed") && said.contains("anew"),
            "{said}"
        );
        assert!(!said.contains("gets your answer"), "{said}");
        let said = note(&unsure, None).await;
        assert!(said.contains("no call can collect its answer"), "{said}");
        for id in [&sure, &unsure] {
            let won = second
                .submit(id, &Outcome::Decline, "a test", Durability::WithDelivery)
                .await;
            assert_eq!(won.unwrap(), Verdict::Won);
        }
        assert!(note(&sure, None).await.contains("repeated call gets it"));
        assert!(note(&sure, Some("deploys")).await.contains("none gets it"));
        let said = note(&unsure, None).await;
        assert!(!said.contains("made again"), "{said}");
    }
}
