//! Notifications of open pages about changes.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;

use super::question_store::{ListFilter, ListView, QuestionId, QuestionStore, StoredQuestion};
use super::router::{self, PagesState, store_failed};
use super::streams::{LOOK_AGAIN, LoginCheck};
use super::viewer::Viewer as _;

/// The time after which a page reconnects.
const AGAIN: Duration = Duration::from_secs(2);

/// The interval at which a silent connection is kept alive.
const ALIVE: Duration = Duration::from_secs(20);

/// Sends an event each time the store changes. An event says that something has changed, and not what. The stream ends
/// with the login of its request, and when its viewer has too many.
pub(super) async fn events<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    Extension(viewer): Extension<D::Viewer>,
    login: Option<Extension<LoginCheck>>,
) -> Response {
    let mut changes = app.store.changes();
    changes.mark_changed();
    let own = app.streams.open(&viewer.holder());
    let is_live = move || {
        let login = login.as_ref();
        login.is_none_or(|Extension(login)| login.is_live())
    };
    let parts = (changes, own, is_live);
    let events = stream::unfold(parts, |(mut changes, own, is_live)| async move {
        loop {
            tokio::select! {
                biased;
                () = own.ended() => return None,
                waited = changes.changed() => {
                    waited.ok()?;
                    break;
                }
                () = tokio::time::sleep(LOOK_AGAIN) => {
                    if !is_live() {
                        return None;
                    }
                }
            }
        }
        if !is_live() {
            return None;
        }
        let count = *changes.borrow_and_update();
        let change = Event::default()
            .event("change")
            .data(count.to_string())
            .retry(AGAIN);
        Some((Ok::<_, Infallible>(change), (changes, own, is_live)))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(ALIVE))
        .into_response()
}

/// Returns the number of waiting questions.
pub(super) async fn state<D: QuestionStore>(
    State(app): State<PagesState<D>>,
    Extension(viewer): Extension<D::Viewer>,
) -> Response {
    match app
        .store
        .list(
            &viewer,
            &ListFilter {
                text: String::new(),
                view: ListView::All,
                most: 0,
            },
        )
        .await
    {
        Ok(list) => router::json(StatusCode::OK, &json!({"pending": list.pending_total})),
        Err(error) => store_failed(&app.site, &error),
    }
}

/// Returns the state of a question (`true` while it waits) and the number of waiting questions.
pub(super) async fn question_state<D: QuestionStore>(
    app: &PagesState<D>,
    viewer: &D::Viewer,
    id: String,
) -> Response {
    let found = match QuestionId::new(id) {
        Some(id) => app.store.find(viewer, &id).await,
        None => Ok(None),
    };
    let list = app
        .store
        .list(
            viewer,
            &ListFilter {
                text: String::new(),
                view: ListView::All,
                most: 0,
            },
        )
        .await;
    match (found, list) {
        (Ok(found), Ok(list)) => {
            let open = matches!(found, Some(StoredQuestion::Open { .. }));
            router::json(
                StatusCode::OK,
                &json!({"open": open, "pending": list.pending_total}),
            )
        }
        (Err(error), _) | (_, Err(error)) => store_failed(&app.site, &error),
    }
}
