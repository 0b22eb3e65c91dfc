//! Pages of other origins in a real Chromium, which call a gateway's servers themselves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use mcp_elicit_testkit::chromium::{Chromium, Setup};
use serde_json::json;

use crate::gateway::{Gateway, REVISION};
use crate::raw::{DEMO_SERVER, initialize};

/// Serves an empty page. Returns its origin.
fn page_elsewhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = BufReader::new(stream);
            let head = stream.by_ref().lines().map_while(Result::ok);
            head.take_while(|line| !line.is_empty()).for_each(drop);
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<!doctype html>";
            let _ = stream.get_mut().write_all(page.as_bytes());
        }
    });
    origin
}

/// A browser reads the responses for a page of an origin that `--allow-origin` names, and for no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_named_origin_calls_a_server_and_another_reads_nothing() {
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let (named, other) = (page_elsewhere(), page_elsewhere());
    let state = tempfile::tempdir().unwrap();
    let more = ["--listen", "127.0.0.1:0", "--allow-origin", &named];
    let gateway = Gateway::start(state.path(), &more, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let open = initialize(REVISION, &json!({})).to_string();
    // A session is opened, used and ended: each takes a preflight request.
    let script = format!(
        "const at = 'http://{at}/mcp', open = {}, said = [];
        const send = (method, headers, body) => fetch(at, {{ method, body, headers: {{ 'Content-Type': 'application/json',
            Accept: 'application/json, text/event-stream', ...headers }} }});
        (async () => {{
            const opened = await send('POST', {{}}, open);
            const session = opened.headers.get('Mcp-Session-Id');
            said.push(opened.status, (await opened.text()).includes('serverInfo'), typeof session);
            const headers = {{ 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '{REVISION}' }};
            const notice = JSON.stringify({{ jsonrpc: '2.0', method: 'notifications/initialized' }});
            said.push((await send('POST', headers, notice)).status);
            said.push((await send('DELETE', headers)).status);
        }})().catch((error) => said.push(error.name)).finally(() => {{ window.said = said; }});",
        json!(open)
    );
    for (origin, expected) in [
        (&named, json!([200, true, "string", 202, 204])),
        (&other, json!(["TypeError"])),
    ] {
        page.open(&format!("{origin}/")).await;
        page.run(&script).await;
        page.until("return window.said !== undefined").await;
        assert_eq!(page.run("return window.said").await, expected, "{origin}");
    }
    page.close().await;
}
