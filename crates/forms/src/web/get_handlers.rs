//! Handlers of pages: the queue, a question, its review and its end.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use mcp_elicit_core::answer::Draft;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::question::quoted;

use super::form_decode::{self, FieldErrors};
use super::markdown::MarkdownMessage;
use super::page::{
    AskedParts, ButtonLinks, Leaving, NoticeLink, NoticePage, PageStep, Problem, QuestionPage,
    QueuePage, ReviewPage, Shell, TeamPart, ViewLink, VisitPage,
};
use super::phrases::{self, Phrases};
use super::question_store::{
    ListFilter, ListView, QuestionId, QuestionList, QuestionStore, QuestionStoreError,
    QuestionSummary, StoredQuestion,
};
use super::router::{PagesState, go, page, store_failed};
use super::site::{MacPurpose, Site, form_bytes};
use super::viewer::Viewer;
use super::yes_no::YesNoPart;
use super::{notices, page_model};
use crate::view::date_time::zone_here;
use crate::view::{FieldView, QuestionBody, QuestionView, sanitize, warnings};

/// The number of waiting and of ended questions by which the queue page grows.
const ROWS: usize = 200;
/// The most questions on the queue page; the others are found by search.
const MOST_ROWS: usize = 2_000;

/// The heading of a question with warnings.
const CARE_FORM: &str = "Be careful with this form";
const CARE_LINK: &str = "Be careful with this address";

/// Shows the queue page.
pub(super) async fn queue<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    Extension(viewer): Extension<D::Viewer>,
    RawQuery(query): RawQuery,
) -> Response {
    let site = &app.site;
    let find = asked_for(query.as_deref(), "find").unwrap_or_default();
    let find: String = find.trim().chars().take(200).collect();
    let view = asked_for(query.as_deref(), "view");
    let view = ListView::from_name(view.as_deref().unwrap_or_default());
    let most = asked_for(query.as_deref(), "rows").and_then(|rows| rows.parse().ok());
    let most = most.unwrap_or(ROWS).clamp(ROWS, MOST_ROWS);
    let filter = ListFilter {
        text: find.clone(),
        view,
        // One more than is shown tells whether there are more.
        most: most + 1,
    };
    match app.store.list(&viewer, &filter).await {
        Err(error) => store_failed(site, &error),
        Ok(mut list) => {
            let longer = longer(site, view, &find, most, &list);
            if list.pending.len() > most {
                // From the half that was asked first, which has one more.
                list.pending.remove(most / 2);
            }
            list.recent.truncate(most);
            let now = (site.clock)();
            let rows = |summaries: &[QuestionSummary]| {
                summaries
                    .iter()
                    .map(|summary| page_model::row(summary, &site.base, now))
                    .collect()
            };
            let more = if find.is_empty() {
                list.pending_in_view.saturating_sub(list.pending.len())
            } else {
                0
            };
            page(
                StatusCode::OK,
                &QueuePage {
                    shell: shell(site, &viewer, list.pending_total),
                    head: head(view, list.has_others),
                    nothing: nothing(view, list.has_others),
                    whole: address(site, view, ""),
                    view: Some(view.name()).filter(|_| view != ListView::All),
                    views: views(site, &viewer, view, &find),
                    find,
                    more,
                    is_cut: list.is_cut,
                    longer,
                    pending: rows(&list.pending),
                    recent: rows(&list.recent),
                },
            )
        }
    }
}

pub(super) fn shell(site: &Site, viewer: &impl Viewer, pending: usize) -> Shell {
    Shell {
        base: site.base.clone(),
        inside: true,
        pending,
        name: viewer
            .name()
            .map(|name| sanitize::line(name, sanitize::LABEL)),
    }
}

/// Returns the views to choose from, on a site of several people.
fn views(site: &Site, viewer: &impl Viewer, current: ListView, find: &str) -> Vec<ViewLink> {
    if viewer.name().is_none() {
        return Vec::new();
    }
    let link = |view: ListView| ViewLink {
        href: address(site, view, find),
        label: view.label(),
        is_current: view == current,
    };
    ListView::EVERY.into_iter().map(link).collect()
}

/// Returns the address of a view, with the search text.
fn address(site: &Site, view: ListView, find: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    if view != ListView::All {
        query.append_pair("view", view.name());
    }
    if !find.is_empty() {
        query.append_pair("find", find);
    }
    let query = query.finish();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}/{mark}{query}", site.base)
}

/// Returns the address of a longer page, at the first question that it adds; `None` if the page shows all, or as many
/// as it can.
fn longer(
    site: &Site,
    view: ListView,
    find: &str,
    most: usize,
    list: &QuestionList,
) -> Option<String> {
    // Waiting questions are added between the first and the last.
    let lists = [
        ("waiting", &list.pending, most / 2 + 1),
        ("recent", &list.recent, most + 1),
    ];
    let (heading, _, next) = lists.into_iter().find(|(_, rows, _)| rows.len() > most)?;
    if most >= MOST_ROWS {
        return None;
    }
    let shorter = address(site, view, find);
    let mark = if shorter.contains('?') { '&' } else { '?' };
    let rows = most + ROWS;
    Some(format!("{shorter}{mark}rows={rows}#{heading}-{next}"))
}

/// Returns the heading of a view. Auditors and administrators see questions of others.
const fn head(view: ListView, has_others: bool) -> &'static str {
    match view {
        ListView::All if has_others => "All questions",
        ListView::All => "Questions for you",
        ListView::Mine => "Questions for you in person",
        ListView::Groups => "Questions for your groups",
    }
}

/// Returns the text of a view without waiting questions.
const fn nothing(view: ListView, has_others: bool) -> &'static str {
    match view {
        ListView::All if has_others => {
            "Questions to anybody appear here, those to others without their contents."
        }
        ListView::All => "When a server needs to know something, it appears here.",
        ListView::Mine => "Questions that are addressed to you by name appear here.",
        ListView::Groups => "Questions that are addressed to a group of yours appear here.",
    }
}

/// Returns the value of `name` in the query of an address.
fn asked_for(query: Option<&str>, name: &str) -> Option<String> {
    url::form_urlencoded::parse(query?.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// A waiting question, with the data for each of its pages.
struct OpenedQuestion<'a> {
    site: &'a Site,
    shell: Shell,
    /// The session that forms are bound to.
    session: Option<String>,
    note: Option<String>,
    id: QuestionId,
    question: Arc<QuestionView>,
    asked: SystemTime,
    now: SystemTime,
    always: bool,
    team: Option<TeamPart>,
    takes_reasons: bool,
}

impl OpenedQuestion<'_> {
    fn shell(&self) -> Shell {
        self.shell.clone()
    }

    fn links(&self) -> ButtonLinks {
        ButtonLinks::of(&self.site.base, self.id.as_str())
    }

    /// Returns the parts that all its pages show.
    fn asked(&self) -> AskedParts {
        let is_approval = self.team.as_ref().is_some_and(|team| team.is_approval);
        let (verb, care) = match self.question.ask() {
            QuestionBody::Form(_) => (Phrases::of(is_approval).verb, CARE_FORM),
            QuestionBody::Url(_) => ("asks you to visit a page", CARE_LINK),
        };
        let warnings = warnings(&self.question);
        let mut message = MarkdownMessage::read(&self.question.message());
        let title = if is_approval {
            Vec::new()
        } else {
            message.take_title()
        };
        AskedParts {
            asker: page_model::asker(&self.question, self.asked, self.now, self.team.as_ref()),
            verb,
            left: page_model::left(self.question.deadline(), self.now),
            title,
            message,
            care,
            note: self.note.clone(),
            must_allow: warnings.iter().any(|warning| warning.asks_for_credential),
            warnings: warnings.into_iter().map(|warning| warning.text).collect(),
            links: self.links(),
            csrf: self.site.tag(
                MacPurpose::Form,
                &form_bytes(self.session.as_deref(), self.id.as_str()),
            ),
            always: self.always,
            team: self.team.clone(),
            takes_reasons: self.takes_reasons,
            step: match self.question.as_form() {
                Some(form) if form.fields().is_empty() => PageStep::Plain,
                Some(_) | None => PageStep::Answer,
            },
        }
    }

    fn form_page(&self, form: &Form, saved: Option<Draft>, query: Option<&str>) -> QuestionPage {
        let has = |name| asked_for(query, name).is_some();
        let (check, unsure) = (has("check"), has("allow"));
        let views: Vec<_> = FieldView::of_form(form);
        let typed = saved.is_some();
        let draft = page_model::draft_of(&views, saved);
        let wrong = if check {
            form_decode::answers(form, &views, &draft)
                .err()
                .unwrap_or_default()
        } else {
            FieldErrors::new()
        };
        let zone = if self.site.loopback {
            zone_here()
        } else {
            String::new()
        };
        let mut problems = page_model::problems(&views, &wrong);
        if unsure {
            problems.push(Problem {
                anchor: "allow".to_owned(),
                label: "The warning".to_owned(),
                message: "read it and tick the box first".to_owned(),
            });
        }
        let asked = self.asked();
        let is_approval = asked.is_approval();
        let leave = asked_for(query, "leave").filter(|_| typed || asked.team.is_some());
        let leaving: Option<Leaving> = leave.and_then(|act| {
            let mut leavings = asked.leavings().into_iter();
            leavings.find(|leaving| leaving.act == act)
        });
        let asks_plainly = leaving.is_none() && problems.is_empty();
        let yes_no = YesNoPart::of(&views, &asked).filter(|_| asks_plainly);
        QuestionPage {
            shell: self.shell(),
            yes_no,
            asked,
            typed,
            leaving,
            problems,
            fields: page_model::fields(&views, &draft, &wrong, &zone, is_approval),
            zones: page_model::zones(&views),
        }
    }

    fn visit_page(&self, link: &Link) -> VisitPage {
        VisitPage {
            shell: self.shell(),
            asked: self.asked(),
            host: page_model::host(link),
        }
    }
}

/// Returns a question for one of its pages, or the page that says why there is none.
async fn open<'a, D: QuestionStore>(
    app: &'a PagesState<D>,
    viewer: &D::Viewer,
    id: String,
    late: bool,
) -> Result<(OpenedQuestion<'a>, Option<Draft>), Response> {
    let site = &*app.site;
    let failed = |error: QuestionStoreError| store_failed(site, &error);
    let QuestionList {
        pending,
        pending_total,
        ..
    } = app
        .store
        .list(
            viewer,
            &ListFilter {
                text: String::new(),
                view: ListView::All,
                // Two of those that were asked first, and one more.
                most: 3,
            },
        )
        .await
        .map_err(failed)?;
    let unknown = || {
        page(
            StatusCode::NOT_FOUND,
            &notices::unknown(shell(site, viewer, pending_total)),
        )
    };
    let id = QuestionId::new(id).ok_or_else(unknown)?;
    match app.store.find(viewer, &id).await.map_err(failed)? {
        None => Err(unknown()),
        Some(StoredQuestion::Ended(summary)) => {
            let next = pending.iter().find(|next| next.id != id);
            let shell = shell(site, viewer, pending_total);
            let ended = ended_page(app, viewer, &id, shell, &summary, next, late).await;
            Err(page(StatusCode::OK, &ended.map_err(failed)?))
        }
        Some(StoredQuestion::Outline(summary)) => Err(page(
            StatusCode::OK,
            &notices::outline(shell(site, viewer, pending_total), &summary),
        )),
        Some(StoredQuestion::NoLonger(why)) => Err(page(
            StatusCode::FORBIDDEN,
            &notices::no_longer(shell(site, viewer, pending_total), &why),
        )),
        Some(StoredQuestion::Open {
            question,
            asked,
            draft,
        }) => {
            let now = (site.clock)();
            if question.is_over(now) {
                let server = question.origin().server();
                return Err(page(
                    StatusCode::OK,
                    &notices::expired(shell(site, viewer, pending_total), &server, late),
                ));
            }
            app.store.shown(viewer, &id).await.map_err(failed)?;
            let always = app.store.offers_from_now_on(&id);
            let note = app.store.note(&id).await.map_err(failed)?;
            let team = app.store.team(viewer, &id).await.map_err(failed)?;
            let team = team.map(|team| page_model::team(&question, team, now));
            Ok((
                OpenedQuestion {
                    site,
                    shell: shell(site, viewer, pending_total),
                    session: viewer.session().map(str::to_owned),
                    note,
                    id,
                    question,
                    asked,
                    now,
                    always,
                    team,
                    takes_reasons: app.store.takes_reasons(),
                },
                draft,
            ))
        }
    }
}

/// Returns the page of an ended question: a team also sees how it ended, and what was said.
async fn ended_page<D: QuestionStore>(
    app: &PagesState<D>,
    viewer: &D::Viewer,
    id: &QuestionId,
    shell: Shell,
    summary: &QuestionSummary,
    next: Option<&QuestionSummary>,
    late: bool,
) -> Result<NoticePage, QuestionStoreError> {
    let site = &*app.site;
    let note = app.store.note(id).await?;
    let team = app.store.team(viewer, id).await?;
    let is_approval = team.as_ref().is_some_and(|team| team.is_approval);
    let now = (site.clock)();
    let mut ended = notices::ended(shell, summary, late, next, note, is_approval, now);
    if let Some(team) = team {
        let reasons = team.reasons.iter();
        let reasons = reasons.map(|why| sanitize::line(why, sanitize::DESCRIPTION));
        let reasons = reasons.map(|why| format!("Why: {}", quoted(&why)));
        if team.good_for.is_some() && team.may_end_grant {
            ended.acts.push(NoticeLink {
                href: format!("{}/grants", site.base),
                label: "Standing approvals".to_owned(),
            });
        }
        ended.lines.extend(reasons.chain(team.good_for));
        ended.history = page_model::history(team.history);
        ended.comments = page_model::comments(team.comments, now);
    }
    Ok(ended)
}

/// Shows the page of a question.
pub(super) async fn question<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    Extension(viewer): Extension<D::Viewer>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let has = |name| asked_for(query.as_deref(), name).is_some();
    let (mut open, draft) = match open(&app, &viewer, id, has("late")).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    if let Some(team) = &mut open.team {
        let act = asked_for(query.as_deref(), "did").unwrap_or_default();
        let did = phrases::did(&act, team.is_approval).map(str::to_owned);
        team.did = match team.handed_on_to.as_deref().filter(|_| act == "delegate") {
            Some(to) => Some(format!("You have handed the question on to {to}.")),
            None => did,
        };
    }
    match open.question.ask() {
        QuestionBody::Form(form) => page(
            StatusCode::OK,
            &open.form_page(form, draft, query.as_deref()),
        ),
        QuestionBody::Url(link) => page(StatusCode::OK, &open.visit_page(link)),
    }
}

/// Shows the answers again before they are sent.
pub(super) async fn review<D: QuestionStore>(
    app: &PagesState<D>,
    viewer: &D::Viewer,
    id: String,
    query: Option<&str>,
) -> Response {
    let (open, draft) = match open(app, viewer, id, false).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let here = open.links().here;
    let Some(form) = open
        .question
        .as_form()
        .filter(|form| !form.fields().is_empty())
    else {
        return go(&here);
    };
    let views: Vec<_> = FieldView::of_form(form);
    let draft = page_model::draft_of(&views, draft);
    let Ok(answers) = form_decode::answers(form, &views, &draft) else {
        return go(&format!("{here}?check"));
    };
    let has = |name| asked_for(query, name).is_some();
    let unsure = if has("changed") {
        Some(
            "What was typed has changed since you reviewed it, perhaps in another tab. Look again, then send.",
        )
    } else if has("allow") {
        Some("Read the warning and tick the box below if you really want to send this.")
    } else {
        None
    };
    let asked = AskedParts {
        step: PageStep::Review,
        ..open.asked()
    };
    page(
        StatusCode::OK,
        &ReviewPage {
            shell: open.shell(),
            rows: page_model::review(form, &views, &draft, asked.words()),
            asked,
            seen: super::post_handlers::seen(open.site, &open.id, &answers),
            unsure,
        },
    )
}
