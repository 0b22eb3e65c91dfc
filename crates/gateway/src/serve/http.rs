//! The gateway's own HTTP server: every configured server under its path, beside what operators look at.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use super::admission::Admission;
use super::children::Children;
use super::connections::{self, Bounds};
use super::listen::Front;
use super::stop;
use crate::config::Config;
use crate::office::{Office, StartFault};

#[derive(Clone)]
struct Rooms {
    admission: Admission,
    office: Office,
    fronts: Arc<Vec<Arc<Front>>>,
    stopping: Arc<AtomicBool>,
}

/// Serves HTTP clients until the operator stops the gateway; held calls are handed back first.
///
/// Boxed: what runs in it is compiled here, however quickly the program that calls it is built.
pub fn serve(
    office: Office,
    config: &Config,
    listener: TcpListener,
) -> BoxFuture<'_, Result<(), StartFault>> {
    Box::pin(serve_until_stopped(office, config, listener))
}

async fn serve_until_stopped(
    office: Office,
    config: &Config,
    listener: TcpListener,
) -> Result<(), StartFault> {
    let at = listener.local_addr();
    let local = at.as_ref().is_ok_and(|at| at.ip().is_loopback());
    if let Ok(at) = at
        && !local
        && !config.insecure
    {
        return Err(StartFault::OpenToNetwork { at });
    }
    let (app, rooms) = routes(office, config, local);
    let stopping = rooms.clone();
    let closing = rooms.office.clone();
    let stop = async move {
        stop::signal().await;
        stopping.stopping.store(true, Ordering::Relaxed);
        for front in stopping.fronts.iter() {
            front.drain();
            front.stop();
        }
        stopping.office.stop_asking().await;
        // What was said to whoever waited is on its way out.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let end = move || stopping.fronts.iter().for_each(|front| front.end_all());
        if let Err(error) = tokio::task::spawn_blocking(end).await {
            tracing::error!(%error, "the sessions could not be ended");
        }
        closing.close().await;
    };
    connections::serve(listener, app, Bounds::default(), stop).await;
    Ok(())
}

/// Returns the routes of every server, and what operators look at; `local` when the address is a loopback one. Runs in a tokio
/// runtime.
pub fn router(office: Office, config: &Config, local: bool) -> Router {
    routes(office, config, local).0
}

fn routes(office: Office, config: &Config, local: bool) -> (Router, Rooms) {
    let admission = Admission::new(local, config.allow_origins.clone());
    let children = Arc::new(Children::default());
    let mut fronts = Vec::new();
    let mut app = Router::new();
    for server in &config.servers {
        let front = Front::new(
            office.clone(),
            server.clone(),
            config.max_frame,
            admission.clone(),
            children.clone(),
        );
        let path = format!("/mcp/{}", server.settings.server);
        app = app.nest(&path, front.router());
        if config.servers.len() == 1 {
            app = app.nest("/mcp", front.router());
        }
        fronts.push(front);
    }
    let rooms = Rooms {
        admission,
        office,
        fronts: Arc::new(fronts),
        stopping: Arc::default(),
    };
    let own = Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(rooms.clone());
    (app.merge(own), rooms)
}

impl Rooms {
    /// Returns what is said to a page elsewhere that reaches this machine under a name of its own.
    fn refuses(&self, headers: &HeaderMap) -> Option<Response> {
        let refused = !self.admission.admits_host(headers);
        refused.then(|| {
            let why = "this address was reached from elsewhere\n";
            (StatusCode::FORBIDDEN, why).into_response()
        })
    }
}

async fn ready(State(rooms): State<Rooms>, headers: HeaderMap) -> Response {
    if let Some(refused) = rooms.refuses(&headers) {
        return refused;
    }
    if rooms.stopping.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    match rooms.office.book.store().waiting().await {
        Ok(_) => "ready\n".into_response(),
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the record cannot be reached\n",
        )
            .into_response(),
    }
}

async fn metrics(State(rooms): State<Rooms>, headers: HeaderMap) -> Response {
    if let Some(refused) = rooms.refuses(&headers) {
        return refused;
    }
    let counts = rooms.office.book.counts();
    let number = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let (mut sessions, mut calls, mut open) = (0, 0, 0);
    for front in rooms.fronts.iter() {
        let (more_sessions, more_calls, more_open) = front.open();
        sessions += more_sessions;
        calls += more_calls;
        open += more_open;
    }
    let lines = [
        (
            "mcp_elicit_questions_asked_total",
            "counter",
            number(&counts.asked),
        ),
        (
            "mcp_elicit_questions_found_again_total",
            "counter",
            number(&counts.found),
        ),
        ("mcp_elicit_answers_total", "counter", number(&counts.acted)),
        (
            "mcp_elicit_answers_delivered_total",
            "counter",
            number(&counts.delivered),
        ),
        (
            "mcp_elicit_questions_ended_without_action_total",
            "counter",
            number(&counts.ended),
        ),
        ("mcp_elicit_sessions", "gauge", sessions as u64),
        ("mcp_elicit_calls", "gauge", calls as u64),
        ("mcp_elicit_questions_open", "gauge", open as u64),
    ];
    let mut text = String::new();
    for (name, kind, value) in &lines {
        let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
    }
    ([("content-type", "text/plain; version=0.0.4")], text).into_response()
}
