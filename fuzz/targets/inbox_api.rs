//! Any request to the inbox's API: answered as JSON, with a status of its document, and never by a failure of ours.
#![no_main]

use std::sync::LazyLock;

use axum::body::Body;
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_inbox::sample;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
});

/// Paths that the rest of the input goes to; `ID` is the id of the question that waits.
const PATHS: [&str; 6] = [
    "/questions/ID/answer",
    "/questions/ID",
    "/questions",
    "/openapi.json",
    "/questions?",
    "/",
];

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let method = ["GET", "POST", "HEAD", "DELETE"][usize::from(choice >> 6)];
    let path = PATHS[usize::from(choice & 0x3f) % PATHS.len()];
    RUNTIME.block_on(async {
        let folder = StateFolder::at(std::path::Path::new("/nonexistent"));
        let (api, id) = sample::api(&folder).await.expect("a record in memory");
        let mut path = path.replace("ID", &id);
        if path.ends_with(['?', '/']) {
            path.push_str(&String::from_utf8_lossy(rest));
        }
        let request = axum::http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(rest.to_vec()));
        let Ok(request) = request else { return };
        let Ok(response) = api.oneshot(request).await;
        let status = response.status().as_u16();
        assert!(
            [200, 400, 404, 405, 409, 413, 422].contains(&status),
            "{status} is not documented"
        );
        let is_stream = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind == "text/event-stream");
        if method != "HEAD" && !is_stream {
            let body = response.into_body().collect().await.expect("a body");
            serde_json::from_slice::<serde_json::Value>(&body.to_bytes()).expect("JSON");
        }
    });
});
