//! Telling open pages that something has changed.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;

use super::desk::{Desk, Found, QuestionId, Wanted};
use super::router::{self, Rooms, desk_failed};

/// The time that a page waits before it connects again.
const AGAIN: Duration = Duration::from_secs(2);

/// The interval at which a silent connection is kept alive.
const ALIVE: Duration = Duration::from_secs(20);

/// An event each time the desk changes. It says that something has changed, never what.
pub(super) async fn events<D: Desk>(State(rooms): State<Rooms<D>>) -> Response {
    let mut changes = rooms.desk.changes();
    changes.mark_changed();
    let events = stream::unfold(changes, |mut changes| async move {
        changes.changed().await.ok()?;
        let count = *changes.borrow_and_update();
        let event = Event::default()
            .event("change")
            .data(count.to_string())
            .retry(AGAIN);
        Some((Ok::<_, Infallible>(event), changes))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(ALIVE))
        .into_response()
}

/// Returns how many questions wait.
pub(super) async fn state<D: Desk>(State(rooms): State<Rooms<D>>) -> Response {
    match rooms
        .desk
        .list(&Wanted {
            text: String::new(),
            most: 0,
        })
        .await
    {
        Ok(docket) => router::json(StatusCode::OK, &json!({"pending": docket.pending_total})),
        Err(fault) => desk_failed(&rooms.site, &fault),
    }
}

/// Returns whether a question still waits, and how many do.
pub(super) async fn question_state<D: Desk>(rooms: &Rooms<D>, id: String) -> Response {
    let found = match QuestionId::new(id) {
        Some(id) => rooms.desk.find(&id).await,
        None => Ok(None),
    };
    let docket = rooms
        .desk
        .list(&Wanted {
            text: String::new(),
            most: 0,
        })
        .await;
    match (found, docket) {
        (Ok(found), Ok(docket)) => {
            let open = matches!(found, Some(Found::Open { .. }));
            router::json(
                StatusCode::OK,
                &json!({"open": open, "pending": docket.pending_total}),
            )
        }
        (Err(fault), _) | (_, Err(fault)) => desk_failed(&rooms.site, &fault),
    }
}
