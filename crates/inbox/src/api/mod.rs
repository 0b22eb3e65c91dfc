//! The inbox as a JSON API: for programs at the inbox's address, where every request carries the token and requests
//! from pages of other origins or under other host names are rejected; and for `mcp-elicit inbox` at the state folder's
//! socket. [`model`] has the bodies of its requests and responses.

pub mod export;
pub mod model;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, Path, Query, Request as HttpRequest, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use futures::{Stream, StreamExt as _, stream};
use mcp_elicit_core::answer::{Outcome, check_asked, judge};
use mcp_elicit_core::digest;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::question::{MAX_REASON, reason_line};
use mcp_elicit_core::text::without_mark;
use mcp_elicit_core::wire::{Action, CallDefect, ElicitRequest};
use mcp_elicit_forms::web::{EventStreams, QuestionId, Site, Viewer as _};
use mcp_elicit_record::clock::now;
use mcp_elicit_record::store::{Filter, ListQuery, Matching, Page, Row};
use mcp_elicit_record::team::RetainedCall;
use mcp_elicit_record::{Durability, Record, RecordError, Verdict};
use serde::Deserialize;
use serde_json::Value;

use subtle::ConstantTimeEq as _;

use model::{
    AnswerRequest, AnswerResponse, ApiProblem, AuditLink, AuditLinks, CandidateCall, ClientName,
    FieldViolation, FormAdjustment, LeftOutArgument, ListRequest, ListedQuestion, ListedQuestions,
    ListedTool, MovedFromClient, ProblemReason, RetainedValues, WholeQuestion,
};

use super::api_tokens::{ApiTokens, BearerError, Scope, TokenRejection, bearer};
use super::login::directory::Sight;
use super::record_question_store::{self, Readable, RecordQuestionStore};
use super::state_folder::{RequiredPresence, StateFolder};
use super::viewer::InboxViewer;

/// The description of the API.
const OPENAPI: &str = include_str!("../openapi.json");
/// The most questions on one page of a list.
const MOST: usize = 1_000;
/// The default number of questions on one page.
const USUAL: usize = 100;

/// The path of the audit, for which a token needs a separate scope.
const AUDIT: &str = "/audit";

/// The actor of a command's actions.
pub const ON_COMMAND_LINE: &str = "on the command line";

/// The access of a request, and the name under which its answer is recorded.
#[derive(Clone)]
pub enum RequestAccess {
    /// Programs with the state folder's token, at the address of the site.
    Token(Box<Site>),
    /// Commands of the state folder's owner, checked by the system. Links of questions start with this address, if
    /// there is one.
    Owner(Option<String>),
}

impl RequestAccess {
    /// Returns the responder, in words for a person.
    fn by(&self) -> &'static str {
        match self {
            Self::Token(_) => "over the API",
            Self::Owner(_) => ON_COMMAND_LINE,
        }
    }

    /// Returns the page of a question.
    fn link(&self, id: &str) -> Option<String> {
        let id = QuestionId::new(id)?;
        match self {
            Self::Token(site) => Some(site.deep_link(&id)),
            Self::Owner(base) => Some(format!("{}/q/{id}", base.as_deref()?.trim_end_matches('/'))),
        }
    }
}

#[derive(Clone)]
struct ApiState {
    record: Arc<Record>,
    questions: Arc<RecordQuestionStore>,
    state: StateFolder,
    access: RequestAccess,
    tokens: Arc<ApiTokens>,
    streams: EventStreams,
}

/// Returns the API's routes, to be nested under `/api`.
pub fn router(
    record: Arc<Record>,
    questions: Arc<RecordQuestionStore>,
    state: StateFolder,
    access: RequestAccess,
) -> Router {
    let state = ApiState {
        record,
        questions,
        tokens: Arc::new(state.api_tokens()),
        state,
        access,
        streams: EventStreams::default(),
    };
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/questions", get(list))
        .route("/questions/{id}", get(show))
        .route("/questions/{id}/answer", axum::routing::post(answer))
        .route("/events", get(events))
        .route(AUDIT, get(audit))
        .fallback(nowhere)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(state.clone(), guard))
        .layer(map_response(no_store))
        .with_state(state)
}

/// Adds headers against caching and content sniffing.
async fn no_store(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// The token of the state folder with which a request arrived.
#[derive(Clone)]
struct InboxToken(Arc<str>);

async fn guard(State(state): State<ApiState>, mut request: HttpRequest, next: Next) -> Response {
    let RequestAccess::Token(site) = &state.access else {
        let owner = InboxViewer::owner(state.access.by());
        request.extensions_mut().insert(owner);
        return next.run(request).await;
    };
    let headers = request.headers();
    if !site.is_for_us(headers) {
        return problem(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong-host",
            "this address was reached under another name",
        );
    }
    if headers.contains_key(header::ORIGIN) && !site.is_from_us(headers) {
        return problem(
            StatusCode::FORBIDDEN,
            "wrong-origin",
            "requests from other pages are refused",
        );
    }
    let token = match bearer(headers) {
        Ok(token) => Some(token),
        Err(BearerError::Missing) => None,
        Err(ambiguous @ BearerError::Ambiguous) => {
            let refused = problem(
                StatusCode::BAD_REQUEST,
                "two-tokens",
                &ambiguous.to_string(),
            );
            return challenged(refused, "Bearer error=\"invalid_request\"");
        }
    };
    // Read each time, so that a rotated token no longer works.
    let known = state.state.known_token();
    let is_known = |token: &str| {
        known
            .as_ref()
            .is_ok_and(|known| known.as_bytes().ct_eq(token.as_bytes()).into())
    };
    if token.is_some_and(is_known) {
        let by = state.access.by().into();
        let viewer = InboxViewer::Token { by, id: None };
        let own = token.unwrap_or_default().into();
        request.extensions_mut().insert(viewer);
        request.extensions_mut().insert(InboxToken(own));
        return next.run(request).await;
    }
    let scope = if request.uri().path() == AUDIT {
        Scope::Audit
    } else if request.method().is_safe() {
        Scope::List
    } else {
        Scope::Answer
    };
    let made = token.map(|token| state.tokens.check(token, scope, now()));
    match made {
        Some(Ok(token)) => {
            let by = format!("{}, token {}", state.access.by(), token.id).into();
            let id = Some(token.id.into());
            request
                .extensions_mut()
                .insert(InboxViewer::Token { by, id });
            next.run(request).await
        }
        Some(Err(rejection @ TokenRejection::Scope(scope))) => {
            let refused = problem(StatusCode::FORBIDDEN, "no-scope", &rejection.to_string());
            let scope = scope.as_str();
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
            challenged(refused, &challenge)
        }
        Some(Err(rejection @ (TokenRejection::Expired | TokenRejection::Revoked))) => {
            let refused = problem(StatusCode::UNAUTHORIZED, "no-token", &rejection.to_string());
            challenged(refused, INVALID_TOKEN)
        }
        Some(Err(rejection @ TokenRejection::Unreadable)) => problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "unreachable",
            &rejection.to_string(),
        ),
        Some(Err(TokenRejection::Unknown)) => challenged(no_token(), INVALID_TOKEN),
        None => challenged(no_token(), "Bearer"),
    }
}

/// The challenge for an invalid token.
const INVALID_TOKEN: &str = "Bearer error=\"invalid_token\"";

fn no_token() -> Response {
    problem(
        StatusCode::UNAUTHORIZED,
        "no-token",
        "send `Authorization: Bearer` with the inbox's token, or with one that `mcp-elicit tokens make` made",
    )
}

/// Adds the challenge (RFC 6750, section 3).
fn challenged(mut response: Response, challenge: &str) -> Response {
    if let Ok(challenge) = HeaderValue::from_str(challenge) {
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

fn problem(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(reason(code, message))).into_response()
}

/// Returns a refusal of this code, without details.
fn reason(code: &str, message: &str) -> ApiProblem {
    ApiProblem {
        error: ProblemReason {
            code: code.to_owned(),
            message: message.to_owned(),
        },
        violations: None,
        question: None,
    }
}

fn broken(fault: &RecordError) -> Response {
    tracing::error!(%fault, "the record failed");
    if let RecordError::Open(why) = fault {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        return problem(status, "cannot-be-decrypted", &why.to_string());
    }
    let message = if let RecordError::NotWritten = fault {
        "the answer could not be saved, so it does not count, and the question stays open; answer again when the gateway can write its record (is its disk full?)"
    } else {
        "the record cannot be reached"
    };
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    problem(status, "record-failed", message)
}

async fn nowhere() -> Response {
    problem(
        StatusCode::NOT_FOUND,
        "no-such-place",
        "see /api/openapi.json",
    )
}

async fn method_not_allowed() -> Response {
    problem(
        StatusCode::METHOD_NOT_ALLOWED,
        "no-such-method",
        "see /api/openapi.json",
    )
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

async fn list(
    State(state): State<ApiState>,
    Extension(viewer): Extension<InboxViewer>,
    query: Result<Query<ListRequest>, QueryRejection>,
) -> Response {
    let Ok(Query(query)) = query else {
        return problem(
            StatusCode::BAD_REQUEST,
            "not-a-list",
            "ask with `ended`, `most`, `after`, `find`, `server`, `kind`, `mode`, `target` and `principal` only",
        );
    };
    if query.most == Some(0) {
        return problem(
            StatusCode::BAD_REQUEST,
            "not-a-list",
            &format!("`most` is from 1 to {MOST}"),
        );
    }
    let which = if query.ended {
        Filter::Ended
    } else {
        Filter::Open
    };
    let most = query.most.unwrap_or(USUAL).clamp(1, MOST);
    // One more than is returned shows whether there is more.
    let page = Page {
        after: query.after,
        most: most + 1,
    };
    let find = query.find.unwrap_or_default();
    let matching = Matching {
        server: query.server,
        mode: query.mode,
        kind: query.kind,
        target: query.target,
        principal: query.principal,
        words: state.questions.words(&find),
    };
    let selected = ListQuery::new(which, page).matching(matching);
    let found = async {
        let rows = state.record.list_by(selected).await?;
        let waiting = state.record.store().waiting().await?;
        Ok::<_, RecordError>((rows, waiting))
    };
    match found.await {
        Ok((rows, waiting)) => {
            let more = rows.len() > most;
            let rows = &rows[..rows.len().min(most)];
            let next = rows.last().filter(|_| more).map(|row| row.id.clone());
            let questions = rows
                .iter()
                .filter(|row| state.questions.shows_words(&viewer, row, &find))
                .filter_map(|row| state.summary_for(&viewer, row))
                .collect();
            Json(ListedQuestions {
                questions,
                next,
                waiting,
            })
            .into_response()
        }
        Err(fault) => broken(&fault),
    }
}

async fn show(
    State(state): State<ApiState>,
    Extension(viewer): Extension<InboxViewer>,
    method: Method,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(id)) = id else {
        return no_question();
    };
    match state.record.find(&id).await {
        Ok(Some(row)) => {
            match state.questions.sight(&viewer, &row) {
                Sight::Nothing => return no_question(),
                Sight::Outline => return Json(state.outline(&row)).into_response(),
                Sight::Question | Sight::Whole => {}
            }
            // Reading by a program does not count as showing the question.
            let may_answer = state.still_permits(&viewer, Scope::Answer)
                && state.questions.may_act(&viewer, &row);
            if method != Method::HEAD
                && may_answer
                && row.lifecycle.is_open()
                && let Err(fault) = state.record.mark_shown(&id).await
            {
                return broken(&fault);
            }
            let kept = match &viewer {
                InboxViewer::Owner { by } => state.record.read_retained_call(&row, by).await,
                InboxViewer::Person(_) | InboxViewer::Token { .. } => Ok(None),
            };
            let whole = kept.and_then(|kept| state.whole(&row, kept.as_ref()));
            match whole {
                Ok(whole) => Json(whole).into_response(),
                Err(fault) => broken(&fault),
            }
        }
        Ok(None) => no_question(),
        Err(fault) => broken(&fault),
    }
}

fn no_question() -> Response {
    problem(
        StatusCode::NOT_FOUND,
        "no-such-question",
        "there is no question of this id",
    )
}

/// An answer in a body of the type application/json.
struct AnswerBody(AnswerRequest);

/// The reason why a body is no answer.
enum AnswerRejection {
    /// It is not JSON of this form.
    Json(JsonRejection),
    /// An object in it has a member twice: two readers could see two answers.
    Duplicate,
}

impl From<JsonRejection> for AnswerRejection {
    fn from(rejection: JsonRejection) -> Self {
        Self::Json(rejection)
    }
}

impl IntoResponse for AnswerRejection {
    fn into_response(self) -> Response {
        match self {
            Self::Duplicate => problem(
                StatusCode::BAD_REQUEST,
                "duplicate-member",
                "an object in the answer has a member twice; write each once",
            ),
            Self::Json(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                problem(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "too-large",
                    "an answer has two megabytes at most",
                )
            }
            Self::Json(_) => problem(
                StatusCode::BAD_REQUEST,
                "not-an-answer",
                "send {\"action\": \"accept\", \"content\": {…}} as application/json",
            ),
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for AnswerBody {
    type Rejection = AnswerRejection;

    async fn from_request(request: HttpRequest, state: &S) -> Result<Self, AnswerRejection> {
        let (parts, body) = request.into_parts();
        let typed = HttpRequest::from_parts(parts.clone(), Body::empty());
        // The type is checked first, as for every JSON; its rejection says so.
        if let Err(rejection @ JsonRejection::MissingJsonContentType(_)) =
            Json::<AnswerRequest>::from_request(typed, state).await
        {
            return Err(rejection.into());
        }
        let body = HttpRequest::from_parts(parts, body);
        let body = Bytes::from_request(body, state).await;
        let body = body.map_err(JsonRejection::from)?;
        let text = without_mark(&body);
        let is_duplicate = |text| digest::canonical(text) == Err(CallDefect::Duplicate);
        if std::str::from_utf8(text).is_ok_and(is_duplicate) {
            return Err(AnswerRejection::Duplicate);
        }
        let Json(answer) = Json::from_bytes(text)?;
        Ok(Self(answer))
    }
}

async fn answer(
    State(state): State<ApiState>,
    Extension(viewer): Extension<InboxViewer>,
    token: Option<Extension<InboxToken>>,
    id: Result<Path<String>, PathRejection>,
    answer: Result<AnswerBody, AnswerRejection>,
) -> Response {
    let Ok(Path(id)) = id else {
        return no_question();
    };
    let answer = match answer {
        Ok(AnswerBody(answer)) => answer,
        Err(rejection) => return rejection.into_response(),
    };
    // The body may have been slow, and the token may have been revoked meanwhile.
    let is_current = state.is_current(token.as_ref().map(|Extension(token)| token));
    if !is_current || !state.still_permits(&viewer, Scope::Answer) {
        let message = TokenRejection::Revoked.to_string();
        let refused = problem(StatusCode::UNAUTHORIZED, "no-token", &message);
        return challenged(refused, INVALID_TOKEN);
    }
    let by = viewer.by();
    if let Some(refusal) = state.refuses_answers() {
        return refusal;
    }
    let row = match state.record.find(&id).await {
        Ok(Some(row)) => row,
        Ok(None) => return no_question(),
        Err(fault) => return broken(&fault),
    };
    match state.questions.sight(&viewer, &row) {
        Sight::Nothing => return no_question(),
        Sight::Outline | Sight::Question | Sight::Whole => {}
    }
    if let Some(team) = row.team.as_ref().filter(|_| viewer.person().is_none()) {
        let message = format!(
            "the rule `{}` asks people for this question: each answers it on the inbox's pages, under their own name",
            team.rule
        );
        return problem(StatusCode::FORBIDDEN, "asks-people", &message);
    }
    if !state.questions.may_act(&viewer, &row) {
        return problem(
            StatusCode::FORBIDDEN,
            "not-addressed",
            "the question is not addressed to you",
        );
    }
    let outcome = match state.checked(&row, &answer) {
        Ok(outcome) => outcome,
        Err(refusal) => return *refusal,
    };
    let why = match reason_of(&answer) {
        Ok(reason) => reason,
        Err(refusal) => return *refusal,
    };
    let waited_for = state.record.is_waited_for(&row);
    let submitted = state.record.submit_with_reason(
        &id,
        &outcome,
        why.as_deref(),
        &by,
        Durability::WithDelivery,
    );
    match submitted.await {
        Ok(Verdict::Won) => {
            state
                .questions
                .note_credentials_allowed(&row, &outcome, &by)
                .await;
            let phase = mcp_elicit_core::lifecycle::Phase::from_action(answer.action);
            Json(AnswerResponse {
                id,
                phase,
                waited_for,
                found_again: row.can_be_found(),
            })
            .into_response()
        }
        Ok(Verdict::Late(row)) => {
            let message = format!("the question is {} already", row.lifecycle.phase());
            let problem = ApiProblem {
                question: Some(Box::new(state.summary(&row))),
                ..reason("too-late", &message)
            };
            (StatusCode::CONFLICT, Json(problem)).into_response()
        }
        Ok(Verdict::Gone) => no_question(),
        Err(fault) => broken(&fault),
    }
}

/// Returns the reason of a decline on one line, or the refusal of one that no decline has.
fn reason_of(answer: &AnswerRequest) -> Result<Option<String>, Box<Response>> {
    let refused = |message: &str| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Box::new(problem(status, "not-a-reason", message))
    };
    let Some(text) = &answer.reason else {
        return Ok(None);
    };
    if answer.action != Action::Decline {
        return Err(refused("only a decline has a `reason`: leave it out"));
    }
    let line = reason_line(text);
    line.map(Some).ok_or_else(|| {
        refused(&format!(
            "`reason` is a text of 1 to {MAX_REASON} characters: shorten it, or leave it out"
        ))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    from: Option<u64>,
    most: Option<usize>,
}

/// Returns the links of the audit, in order.
async fn audit(
    State(state): State<ApiState>,
    query: Result<Query<AuditQuery>, QueryRejection>,
) -> Response {
    let query = query.ok().map(|Query(query)| query);
    let Some(query) = query.filter(|query| query.most != Some(0)) else {
        let message = format!("ask with `from` and `most` only; `most` is from 1 to {MOST}");
        return problem(StatusCode::BAD_REQUEST, "not-a-list", &message);
    };
    let most = query.most.unwrap_or(USUAL).clamp(1, MOST);
    let from = query.from.unwrap_or(1);
    // One more than is returned shows whether there is more.
    let links = state.record.store().audit(from, most + 1).await;
    match links.map_err(RecordError::from) {
        Ok(links) => {
            let next = links.get(most).map(|link| link.number);
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
            let links = links.iter().take(most);
            let links = links.map(|link| AuditLink {
                number: link.number,
                hash: link.hash.clone(),
                entry: json(&link.entry),
            });
            let links = links.collect();
            Json(AuditLinks { links, next }).into_response()
        }
        Err(fault) => broken(&fault),
    }
}

/// Sends one event for each change, and one at the start.
async fn events(
    State(state): State<ApiState>,
    Extension(viewer): Extension<InboxViewer>,
    token: Option<Extension<InboxToken>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = state.record.changes();
    let own = state.streams.open(&viewer.holder());
    let token = token.map(|Extension(token)| token);
    let by = (state, viewer, own, token);
    let later = stream::unfold((changes, by), |(mut changes, by)| async move {
        tokio::select! {
            biased;
            // The oldest stream ends if a program has too many.
            () = by.2.ended() => return None,
            waited = changes.changed() => waited.ok()?,
        }
        let count = *changes.borrow_and_update();
        // A stream ends with its token.
        let is_valid = by.0.still_permits(&by.1, Scope::List) && by.0.is_current(by.3.as_ref());
        is_valid.then_some((count, (changes, by)))
    });
    let events = stream::once(async { 0 })
        .chain(later)
        .map(|count| Ok(Event::default().event("changed").data(count.to_string())));
    Sse::new(events).keep_alive(KeepAlive::default())
}

impl ApiState {
    /// Returns `true` unless the viewer's token was revoked or has expired since the request arrived.
    fn still_permits(&self, viewer: &InboxViewer, scope: Scope) -> bool {
        match viewer {
            InboxViewer::Token { id: Some(id), .. } => self.tokens.is_valid(id, scope, now()),
            InboxViewer::Token { id: None, .. }
            | InboxViewer::Owner { .. }
            | InboxViewer::Person(_) => true,
        }
    }

    /// Returns `true` unless the token of the state folder was replaced since the request arrived with it.
    fn is_current(&self, token: Option<&InboxToken>) -> bool {
        token.is_none_or(|InboxToken(token)| {
            let known = self.state.known_token();
            known.is_ok_and(|known| known.as_bytes().ct_eq(token.as_bytes()).into())
        })
    }

    /// Returns the refusal of any answer, if only pages may answer.
    fn refuses_answers(&self) -> Option<Response> {
        match self.state.presence() {
            Ok(RequiredPresence::Any) => None,
            Ok(RequiredPresence::Page) => Some(problem(
                StatusCode::FORBIDDEN,
                "pages-only",
                "here only a person at a page of the inbox may answer",
            )),
            Err(error) => {
                tracing::error!(%error, "who may answer cannot be read");
                Some(problem(
                    StatusCode::FORBIDDEN,
                    "pages-only",
                    "who may answer cannot be read, so only pages may",
                ))
            }
        }
    }

    /// Returns the person's outcome, with the content of an accepted form checked.
    fn checked(&self, row: &Row, answer: &AnswerRequest) -> Result<Outcome, Box<Response>> {
        let readable = self.questions.readable(row);
        let readable = readable.map_err(|fault| Box::new(broken(&fault)))?;
        let (Some(parsed), Some(readable)) = (self.record.parsed(row), readable) else {
            return Err(Box::new(no_question()));
        };
        let form = parsed.form();
        if form.is_some()
            && answer.action == Action::Accept
            && !answer.allow_credentials
            && readable.asks_for_credential()
        {
            return Err(Box::new(problem(
                StatusCode::UNPROCESSABLE_ENTITY,
                "asks-for-a-credential",
                "the form asks for a credential, which no form may; it is accepted only with `allowCredentials`",
            )));
        }
        let content = Value::Object(answer.content.clone().unwrap_or_default());
        let outcome = match (form, answer.action) {
            // A value that the form does not ask for would be lost.
            (Some(form), Action::Accept) => check_asked(form, content).map(Outcome::Accept),
            (form, action) => judge(form, action, content),
        };
        outcome.map_err(|violations| {
            let violations = violations.iter().map(|broken| FieldViolation {
                field: broken.field().to_owned(),
                rule: broken.rule().code().to_owned(),
                message: broken.message().clone(),
            });
            let problem = ApiProblem {
                violations: Some(violations.collect()),
                ..reason("does-not-fit", "the content does not fit the form")
            };
            Box::new((StatusCode::UNPROCESSABLE_ENTITY, Json(problem)).into_response())
        })
    }

    /// Returns the listed summary of a question for this viewer; `None` if they may not know of it.
    fn summary_for(&self, viewer: &InboxViewer, row: &Row) -> Option<ListedQuestion> {
        match self.questions.sight(viewer, row) {
            Sight::Nothing => None,
            Sight::Outline => Some(self.outline(row)),
            Sight::Question | Sight::Whole => Some(self.summary(row)),
        }
    }

    /// Returns the visible part of a question that is addressed to others, without content.
    fn outline(&self, row: &Row) -> ListedQuestion {
        ListedQuestion {
            message: None,
            others: None,
            fields: Some(row.body.fields.clone()),
            ..self.summary(row)
        }
    }

    /// Returns the listed summary of a question.
    fn summary(&self, row: &Row) -> ListedQuestion {
        let exchange = &row.lifecycle;
        let text = |text: Option<&str>| text.map(str::to_owned);
        let client = record_question_store::client(row);
        ListedQuestion {
            id: row.id.clone(),
            phase: exchange.phase(),
            server: row.body.server.clone(),
            server_address: row.body.address.clone(),
            principal: row.body.principal.clone(),
            on_behalf_of: Some(self.questions.caller_in_words(row)),
            client: client.map(|(name, version)| ClientName { name, version }),
            kind: row.body.kind,
            target: row.body.target.clone(),
            others: Some(row.body.others.clone()),
            mode: row.body.mode,
            message: Some(row.body.message.clone()),
            fields: None,
            asked_at: exchange.asked_at(),
            until: exchange.deadline(),
            ended_at: exchange.ended_at(),
            by: text(exchange.ended_by()),
            reason: text(exchange.reason()),
            delivered_at: exchange.delivered_at(),
            delivery: exchange.delivery(),
            delivery_reason: exchange.delivery_reason(),
            valid_until: exchange.valid_until(),
            waited_for: exchange.is_open() && self.record.is_waited_for(row),
            found_again: row.can_be_found(),
            asked_in_client: row.is_at_client(),
            moved_from_client: exchange.moved().map(|moved| MovedFromClient {
                at: moved.at,
                why: moved.why.as_str().to_owned(),
                words: moved.why.to_string(),
            }),
            link: self.access.link(&row.id),
            rule: row.team.as_ref().map(|team| team.rule.clone()),
            approval: row.team.as_ref().is_some_and(|team| team.is_approval),
        }
    }

    /// Returns a question in full, without answers, with the values that a rule keeps for auditors if the reader may see
    /// them.
    fn whole(&self, row: &Row, kept: Option<&RetainedCall>) -> Result<WholeQuestion, RecordError> {
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
        let json_or_null = |text: Option<&str>| text.map_or(Value::Null, json);
        let arguments = self.record.arguments(row)?;
        let candidates = self.record.candidates(row)?;
        let readable = self.questions.readable(row)?;
        let tool = row.team.as_deref().and_then(|team| team.tool.as_deref());
        let mut whole = WholeQuestion {
            question: ListedQuestion {
                fields: Some(row.body.fields.clone()),
                ..self.summary(row)
            },
            cautions: row.body.cautions.clone(),
            unchecked: row.body.unchecked.clone(),
            server_info: json_or_null(row.body.server_info.as_deref()),
            client_info: json_or_null(row.body.client_info.as_deref()),
            arguments: json_or_null(arguments.as_deref()),
            arguments_text: arguments,
            kept_for_auditors: kept.map(|kept| RetainedValues {
                arguments: json(&kept.arguments),
                answers: kept.answers.as_deref().map(json),
                until: kept.until,
            }),
            tool: tool.map(|tool| ListedTool {
                description: tool.description.clone(),
                hints: tool.hints().into_iter().map(str::to_owned).collect(),
                left_out: tool
                    .absent
                    .iter()
                    .map(|one| LeftOutArgument {
                        name: one.name.clone(),
                        default_text: one.default.clone(),
                    })
                    .collect(),
                more_left_out: tool.more_absent,
            }),
            arguments_left_out: row.body.arguments_left_out,
            candidates: candidates
                .into_iter()
                .map(|one| CandidateCall {
                    kind: one.kind,
                    target: one.target,
                    arguments_text: one.arguments,
                })
                .collect(),
            asks_for_credential: readable.as_ref().is_some_and(Readable::asks_for_credential),
            requested_schema: None,
            adjustments: None,
            url: None,
        };
        match readable.map(|readable| readable.request) {
            Some(ElicitRequest::Form { message, schema }) => {
                whole.question.message = Some(message);
                whole.requested_schema = Some(json(schema.get()));
                whole.adjustments = Some(adjustments(schema.get()));
            }
            Some(ElicitRequest::Url { message, url, .. }) => {
                whole.question.message = Some(message);
                whole.url = Some(url);
            }
            None => {}
        }
        Ok(whole)
    }
}

/// Returns the differences between an illegal schema and the form that is shown; empty for a legal one.
fn adjustments(schema: &str) -> Vec<FormAdjustment> {
    let form = Form::parse_leniently(schema).ok();
    let all = form.iter().flat_map(Form::adjustments);
    all.map(|one| FormAdjustment {
        kind: one.kind.as_str().to_owned(),
        pointer: one.pointer.clone(),
        field: one.field.clone(),
        message: one.message.clone(),
        not_checked: one.kind.matters_to_a_person(),
    })
    .collect()
}
