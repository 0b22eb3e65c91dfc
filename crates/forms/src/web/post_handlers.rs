//! Handlers of a person's actions: save, check, step, review, accept, decline, cancel.
//!
//! Every action is a POST of one of our own forms, and ends in a redirect, so that reloading repeats nothing.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use mcp_elicit_core::answer::{Answers, Draft, DraftValue, Outcome};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::question::{MAX_REASON, reason_line};
use serde_json::{Map, Value, json};

use super::form_decode::{self, Posted, key};
use super::get_handlers::shell;
use super::notices::RefusedText;
use super::page::ButtonLinks;
use super::question_store::{
    DraftResult, QuestionId, QuestionStore, QuestionStoreError, StoredQuestion, SubmitResult,
};
use super::router::{self, PagesState, go, page, posted, store_failed};
use super::site::{MacPurpose, Site, form_bytes};
use super::stepper::{Direction, stepped};
use super::streams::LoginCheck;
use super::team::{MemberAct, TeamResult};
use super::viewer::Viewer;
use super::yes_no::only_field;
use super::{notices, page_model};
use crate::view::{Control, FieldView, QuestionBody, QuestionView, warnings};

/// Handles a button of a question, or a save by our script.
pub(super) async fn act<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    Extension(viewer): Extension<D::Viewer>,
    login: Option<Extension<LoginCheck>>,
    Path((id, act)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let site = &*app.site;
    let posted = match posted(site, headers.get(header::CONTENT_TYPE), body).await {
        Ok(posted) => posted,
        Err(response) => return response,
    };
    // The login may have ended while the form was being sent.
    if login.is_some_and(|Extension(login)| !login.is_live()) {
        return page(StatusCode::UNAUTHORIZED, &notices::no_session(site, None));
    }
    let Some(id) = QuestionId::new(id) else {
        return unknown(site, &viewer);
    };
    let token = posted.get("csrf").unwrap_or_default();
    if !site.verifies(
        MacPurpose::Form,
        &form_bytes(viewer.session(), id.as_str()),
        token,
    ) {
        let line = "The form was not made here for this question. Nothing was done; open the question again.";
        return page(
            StatusCode::FORBIDDEN,
            &notices::refused(site, "Refused", line),
        );
    }
    let (question, draft) = match app.store.find(&viewer, &id).await {
        Err(error) => return store_failed(site, &error),
        Ok(None | Some(StoredQuestion::Outline(_) | StoredQuestion::NoLonger(_))) => {
            let refused = app.store.refuse(&viewer, &id, &act).await;
            return match refused {
                Ok(Some(why)) => no_longer(site, &viewer, &why, &act),
                Ok(None) => unknown(site, &viewer),
                Err(error) => store_failed(site, &error),
            };
        }
        Ok(Some(StoredQuestion::Ended(_))) => return over(site, &id, &act),
        Ok(Some(StoredQuestion::Open { question, .. })) if question.is_over((site.clock)()) => {
            return over(site, &id, &act);
        }
        Ok(Some(StoredQuestion::Open {
            question, draft, ..
        })) => (question, draft),
    };
    let press = Press {
        app: &app,
        viewer,
        id,
        question,
        draft,
        posted,
    };
    let done = match act.as_str() {
        "live" => press.live().await,
        "step" => press.step().await,
        "review" => press.review().await,
        "accept" => press.accept().await,
        "decline" | "cancel" => press.leave(&act).await,
        "confirm" | "claim" | "takeover" | "delegate" | "comment" => {
            press.among_several(&act).await
        }
        "always" if app.store.offers_from_now_on(&press.id) => press.leave(&act).await,
        _ => Ok(unknown(site, &press.viewer)),
    };
    done.unwrap_or_else(|error| store_failed(site, &error))
}

fn unknown(site: &Site, viewer: &impl Viewer) -> Response {
    page(
        StatusCode::NOT_FOUND,
        &notices::unknown(shell(site, viewer, 0)),
    )
}

/// Returns the page of a question that is no longer the viewer's.
fn no_longer(site: &Site, viewer: &impl Viewer, why: &str, act: &str) -> Response {
    if act == "live" {
        return router::json(StatusCode::CONFLICT, &json!({"open": false}));
    }
    let mut refused = notices::no_longer(shell(site, viewer, 0), why);
    refused.lines.push("Nothing was done.".to_owned());
    page(StatusCode::FORBIDDEN, &refused)
}

/// Returns the page of a question that ended before this action.
fn over(site: &Site, id: &QuestionId, act: &str) -> Response {
    if act == "live" {
        return router::json(StatusCode::CONFLICT, &json!({"open": false}));
    }
    go(&format!(
        "{}?late",
        ButtonLinks::of(&site.base, id.as_str()).here
    ))
}

/// Returns a tag of the reviewed answers, so that nothing else is sent.
pub(super) fn seen(site: &Site, id: &QuestionId, answers: &Answers) -> String {
    site.tag(MacPurpose::Seen, &shown_bytes(id, answers))
}

fn shown_bytes(id: &QuestionId, answers: &Answers) -> Vec<u8> {
    format!("{id}\0{}", answers.to_value()).into_bytes()
}

/// One submitted form, with its context.
struct Press<'a, D: QuestionStore> {
    app: &'a PagesState<D>,
    /// The person who submitted it.
    viewer: D::Viewer,
    id: QuestionId,
    question: Arc<QuestionView>,
    draft: Option<Draft>,
    posted: Posted,
}

impl<D: QuestionStore> Press<'_, D> {
    fn site(&self) -> &Site {
        &self.app.site
    }

    fn here(&self, more: &str) -> Response {
        go(&format!(
            "{}{more}",
            ButtonLinks::of(&self.site().base, self.id.as_str()).here
        ))
    }

    /// Returns the form, and its fields as they are shown.
    fn form(&self) -> Option<(&Form, Vec<FieldView>)> {
        let form = self.question.as_form()?;
        Some((form, FieldView::of_form(form)))
    }

    /// Stores the draft. Returns the page for a person who may not answer, whose draft is not stored.
    async fn keep(&self, draft: Draft) -> Result<Option<Response>, QuestionStoreError> {
        let kept = self.app.store.keep(&self.viewer, &self.id, draft).await?;
        Ok(match kept {
            DraftResult::Done => None,
            DraftResult::Refused(why) => Some(self.refused(&why, RefusedText::None)),
        })
    }

    /// Stores the draft, and returns the form's check of it.
    async fn live(&self) -> Result<Response, QuestionStoreError> {
        let Some((form, views)) = self.form() else {
            return Ok(unknown(self.site(), &self.viewer));
        };
        let draft = self.posted.draft(&views);
        let wrong = form_decode::answers(form, &views, &draft)
            .err()
            .unwrap_or_default();
        let kept = self.app.store.keep(&self.viewer, &self.id, draft).await?;
        if let DraftResult::Refused(why) = kept {
            let refused = json!({"open": true, "refused": why});
            return Ok(router::json(StatusCode::CONFLICT, &refused));
        }
        let mut by_key: Map<String, Value> = Map::new();
        for (index, message) in wrong {
            let messages = by_key.entry(key(index)).or_insert_with(|| json!([]));
            if let Some(messages) = messages.as_array_mut() {
                messages.push(message.into());
            }
        }
        Ok(router::json(
            StatusCode::OK,
            &json!({"open": true, "wrong": by_key}),
        ))
    }

    /// Steps a number by one, for browsers that do not run our script.
    async fn step(&self) -> Result<Response, QuestionStoreError> {
        let Some((_, views)) = self.form() else {
            return Ok(unknown(self.site(), &self.viewer));
        };
        let mut draft = self.posted.draft(&views);
        let pressed = self
            .posted
            .get("step")
            .and_then(|pressed| pressed.split_once(':'));
        let field = pressed.and_then(|(key, direction)| {
            Some((
                views.get(key.strip_prefix('f')?.parse::<usize>().ok()?)?,
                direction,
            ))
        });
        if let Some((view, direction)) = field
            && let Control::Number {
                minimum,
                maximum,
                step,
                ..
            } = &view.control
        {
            let text =
                |number: &Option<_>| number.as_ref().map(ToString::to_string).unwrap_or_default();
            let direction = if direction == "up" {
                Direction::Up
            } else {
                Direction::Down
            };
            let now = match draft.get(&view.name) {
                DraftValue::Text(now) => now.as_str(),
                DraftValue::Nothing | DraftValue::Picked(_) | DraftValue::Flag(_) => "",
            };
            if let Some(next) = stepped(now, &text(step), &text(minimum), &text(maximum), direction)
            {
                draft.set(&view.name, DraftValue::Text(next));
            }
        }
        let at = pressed.map_or("", |(key, _)| key);
        if let Some(refused) = self.keep(draft).await? {
            return Ok(refused);
        }
        Ok(
            self.here(&if at.bytes().all(|b| b.is_ascii_alphanumeric()) {
                format!("#{at}-field")
            } else {
                String::new()
            }),
        )
    }

    /// Stores the draft; continues to the review if it is valid, else back to the form.
    async fn review(&self) -> Result<Response, QuestionStoreError> {
        let Some((form, views)) = self.form() else {
            return Ok(unknown(self.site(), &self.viewer));
        };
        let draft = self.posted.draft(&views);
        let right = form_decode::answers(form, &views, &draft).is_ok();
        if let Some(refused) = self.keep(draft).await? {
            return Ok(refused);
        }
        Ok(self.here(if right { "/review" } else { "?check" }))
    }

    /// Sends the reviewed answers, confirms, or agrees to a link.
    async fn accept(&self) -> Result<Response, QuestionStoreError> {
        let (form, views) = match self.question.ask() {
            QuestionBody::Url(_) => return self.submit(Outcome::Visit).await,
            QuestionBody::Form(form) => (form, FieldView::of_form(form)),
        };
        if let Some(answered) = self.pressed_yes_or_no(form, &views).await? {
            return Ok(answered);
        }
        let allowed = self.posted.get("allow") == Some("yes");
        let unsure = !allowed
            && warnings(&self.question)
                .iter()
                .any(|warning| warning.asks_for_credential);
        let draft = page_model::draft_of(&views, self.draft.clone());
        let Ok(answers) = form_decode::answers(form, &views, &draft) else {
            return Ok(self.here("?check"));
        };
        if views.is_empty() {
            return if unsure {
                Ok(self.here("?allow"))
            } else {
                self.submit(Outcome::Accept(answers)).await
            };
        }
        let shown = self.posted.get("seen").unwrap_or_default();
        if !self
            .site()
            .verifies(MacPurpose::Seen, &shown_bytes(&self.id, &answers), shown)
        {
            return Ok(self.here("/review?changed"));
        }
        if unsure {
            return Ok(self.here("/review?allow"));
        }
        self.submit(Outcome::Accept(answers)).await
    }

    /// Sends the answer of one of the two buttons of a form that asks for one yes or no. `None` if the press is not
    /// the whole answer: it is of another form, others must agree to it, or a warning must be confirmed first.
    async fn pressed_yes_or_no(
        &self,
        form: &Form,
        views: &[FieldView],
    ) -> Result<Option<Response>, QuestionStoreError> {
        let is_press = only_field(views).is_some()
            && self.posted.get(&key(0)).is_some()
            && self.posted.get("seen").is_none();
        let is_warned = warnings(&self.question)
            .iter()
            .any(|warning| warning.asks_for_credential);
        if !is_press || is_warned {
            return Ok(None);
        }
        let team = self.app.store.team(&self.viewer, &self.id).await?;
        let needs_more = team.is_some_and(|team| {
            team.is_approval || team.others_needed > 0 || team.entered.is_some()
        });
        if needs_more {
            return Ok(None);
        }
        let draft = self.posted.draft(views);
        if let Ok(answers) = form_decode::answers(form, views, &draft) {
            return self.submit(Outcome::Accept(answers)).await.map(Some);
        }
        let refused = self.keep(draft).await?;
        Ok(Some(refused.unwrap_or_else(|| self.here("?check"))))
    }

    /// Declines or cancels. Dropping a draft, or declining a form that several people must confirm, needs a
    /// confirmation.
    async fn leave(&self, act: &str) -> Result<Response, QuestionStoreError> {
        if self.posted.get("drop") != Some("yes") {
            let draft = self.filled_in();
            let asks_again = draft.is_some() || self.asks_for_a_reason(act).await?;
            if let Some(draft) = draft
                && let Some(refused) = self.keep(draft).await?
            {
                return Ok(refused);
            }
            if asks_again {
                return Ok(self.here(&format!("?leave={act}")));
            }
        }
        if act == "always" {
            self.app.store.decline_from_now_on(&self.id).await?;
        }
        self.submit(if act == "cancel" {
            Outcome::Cancel
        } else {
            Outcome::Decline
        })
        .await
    }

    /// Returns `true` if it is a form that several people are asked: declining it asks for a reason, and if it ends the
    /// question for others, leaving is confirmed.
    async fn asks_for_a_reason(&self, act: &str) -> Result<bool, QuestionStoreError> {
        if self.question.as_form().is_none() {
            return Ok(false);
        }
        let team = self.app.store.team(&self.viewer, &self.id).await?;
        let takes_reason = act == "decline" && self.app.store.takes_reasons();
        Ok(team.is_some_and(|team| team.may_act && (takes_reason || team.others_needed > 0)))
    }

    /// Returns the text of this control that came with the action, `reason` or `comment`; the page if it is too long.
    fn reason(&self, control: &str) -> Result<Option<String>, Box<Response>> {
        // Of the dialog and of the page, one is filled in.
        let mut written = self.posted.all(control).map(str::trim);
        let Some(text) = written.find(|text| !text.is_empty()) else {
            return Ok(None);
        };
        match reason_line(text) {
            Some(line) => Ok(Some(line)),
            None => Err(Box::new(self.refused(
                &format!("The text is too long: {MAX_REASON} characters at most."),
                RefusedText::Back(text.to_owned()),
            ))),
        }
    }

    /// Returns the draft, if it differs from the form's defaults.
    fn filled_in(&self) -> Option<Draft> {
        let (_, views) = self.form()?;
        // The review has no fields; its answers were stored.
        let draft = if self.posted.get("seen").is_some() {
            self.draft.clone()?
        } else if only_field(&views).is_some() && self.posted.get(&key(0)).is_none() {
            // Of two buttons, neither was pressed.
            return None;
        } else {
            self.posted.draft(&views)
        };
        form_decode::is_filled_in(&views, &draft).then_some(draft)
    }

    /// Handles the actions of a team member other than answering.
    async fn among_several(&self, act: &str) -> Result<Response, QuestionStoreError> {
        let text = |name: &str| self.posted.get(name).unwrap_or_default().to_owned();
        let word = act;
        let act = match act {
            "confirm" => MemberAct::Confirm {
                digest: text("digest"),
                comment: match self.reason("comment") {
                    Ok(comment) => comment,
                    Err(too_long) => return Ok(*too_long),
                },
            },
            "claim" => MemberAct::Claim,
            "takeover" => MemberAct::TakeOver,
            "delegate" => MemberAct::Delegate {
                to: text("to"),
                note: text("note"),
            },
            _ => MemberAct::Comment { text: text("text") },
        };
        let words = match &act {
            MemberAct::Confirm { .. } | MemberAct::Claim | MemberAct::TakeOver => RefusedText::None,
            MemberAct::Delegate { note: text, .. } | MemberAct::Comment { text } => {
                RefusedText::Back(text.clone())
            }
        };
        let done = self.app.store.act(&self.viewer, &self.id, act).await?;
        Ok(match done {
            TeamResult::Done => self.here(&format!("?did={word}")),
            TeamResult::Refused(why) => self.refused(&why, words),
            TeamResult::LoginTooOld => self.log_in_again(),
            TeamResult::Gone => unknown(self.site(), &self.viewer),
        })
    }

    /// Returns the page of a refused action.
    fn refused(&self, why: &str, words: RefusedText) -> Response {
        let shell = shell(self.site(), &self.viewer, 0);
        let here = ButtonLinks::of(&self.site().base, self.id.as_str()).here;
        page(
            StatusCode::CONFLICT,
            &notices::act_refused(shell, why, &here, words),
        )
    }

    /// Sends the person to log in again, and back to the question.
    fn log_in_again(&self) -> Response {
        let base = &self.site().base;
        go(&format!("{base}/login?fresh=1&next=/q/{}", self.id))
    }

    /// Submits the outcome; the first one wins.
    async fn submit(&self, outcome: Outcome) -> Result<Response, QuestionStoreError> {
        let version = self
            .posted
            .get("version")
            .and_then(|text| text.parse().ok());
        let version = version.unwrap_or_default();
        let control = match outcome {
            Outcome::Decline => "reason",
            Outcome::Accept(_) | Outcome::Visit | Outcome::Cancel => "comment",
        };
        let reason = match self.reason(control) {
            Ok(reason) => reason,
            Err(too_long) => return Ok(*too_long),
        };
        Ok(
            match self
                .app
                .store
                .submit_with_reason(&self.viewer, &self.id, outcome, version, reason)
                .await?
            {
                SubmitResult::Won => self.here(""),
                SubmitResult::Waits => self.here("?did=fill"),
                SubmitResult::Late(_) => self.here("?late"),
                SubmitResult::Gone => unknown(self.site(), &self.viewer),
                SubmitResult::Refused(why) => self.refused(&why, RefusedText::Kept),
                SubmitResult::LoginTooOld => self.log_in_again(),
            },
        )
    }
}
