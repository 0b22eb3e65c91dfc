//! Retries of rounds of 2026-07-28 at another gateway than the one that asked: before a server over stdio, of which each
//! gateway has processes of its own that cannot read the state of another, and before one that pushes its questions.

use std::path::Path;
use std::thread;

use mcp_elicit_testkit::postgres::PostgresServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::replica::{Deployment, Desk, LOOK, LOOKS};
use super::rounds_client::make_call;
use crate::children::no_python;
use crate::http::PATIENCE;
use crate::raw::text;

/// A server of the rounds era. It asks for a value in each call, and adds each that it gets to a file.
const SERVER: &str = "
import json, os, sys
own = os.urandom(8).hex()
for line in sys.stdin:
    frame = json.loads(line)
    method, number, params = frame.get('method'), frame.get('id'), frame.get('params') or {}
    if method == 'server/discover':
        out = {'resultType': 'complete', 'supportedVersions': ['2026-07-28'], 'capabilities': {'tools': {}}, 'ttlMs': 0,
            'cacheScope': 'private', '_meta': {'io.modelcontextprotocol/serverInfo': {'name': 'asks', 'version': '1'}}}
    elif method == 'tools/call':
        call, state = params['arguments']['n'], params.get('requestState')
        if state is None:
            form = {'type': 'object', 'properties': {'value': {'type': 'string'}}, 'required': ['value']}
            asked = {'mode': 'form', 'message': f'Value for {call}?', 'requestedSchema': form}
            out = {'resultType': 'input_required', 'requestState': f'{own} {call}',
                'inputRequests': {'value': {'method': 'elicitation/create', 'params': asked}}}
        elif state != f'{own} {call}':
            error = {'code': -32602, 'message': 'Invalid requestState'}
            print(json.dumps({'jsonrpc': '2.0', 'id': number, 'error': error}), flush=True)
            continue
        else:
            value = params['inputResponses']['value']['content']['value']
            with open(sys.argv[1], 'a') as told:
                told.write(json.dumps([call, value]) + chr(10))
            out = {'resultType': 'complete', 'content': [{'type': 'text', 'text': value}]}
    elif number is None:
        continue
    else:
        error = {'code': -32601, 'message': 'no such method'}
        print(json.dumps({'jsonrpc': '2.0', 'id': number, 'error': error}), flush=True)
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': number, 'result': out}), flush=True)
";

/// A server of the pushed era, which asks as the other does.
const PUSHING: &str = "
import json, sys
def send(frame):
    print(json.dumps({'jsonrpc': '2.0', **frame}), flush=True)
waiting = {}
for line in sys.stdin:
    frame = json.loads(line)
    method, number, params = frame.get('method'), frame.get('id'), frame.get('params') or {}
    if method == 'initialize':
        send({'id': number, 'result': {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}},
            'serverInfo': {'name': 'pushes', 'version': '1'}}})
    elif method == 'tools/call':
        call = params['arguments']['n']
        waiting[f'q{number}'] = (number, call)
        form = {'type': 'object', 'properties': {'value': {'type': 'string'}}, 'required': ['value']}
        asked = {'mode': 'form', 'message': f'Value for {call}?', 'requestedSchema': form}
        send({'id': f'q{number}', 'method': 'elicitation/create', 'params': asked})
    elif method is None and number in waiting:
        made, call = waiting.pop(number)
        value = (frame.get('result') or {}).get('content', {}).get('value', 'nothing')
        with open(sys.argv[1], 'a') as told:
            told.write(json.dumps([call, value]) + chr(10))
        send({'id': made, 'result': {'content': [{'type': 'text', 'text': value}]}})
    elif number is not None:
        send({'id': number, 'error': {'code': -32601, 'message': 'no such method'}})
";

/// Returns a deployment before this program, whose processes write what they get to the file `got` in the folder. Returns
/// `None` where PostgreSQL or Python is missing.
fn before(program: &str) -> Option<(Deployment, TempDir)> {
    let server = PostgresServer::shared()?;
    if no_python() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("got");
    let program = ["python3", "-c", program, file.to_str().unwrap()];
    let deployment = Deployment::new(&server.database().address, "", 3_600);
    Some((deployment.before_program(&program), folder))
}

/// Returns what the processes of the server got: the numbers of calls, and the values.
fn got(file: &Path) -> Vec<(u64, String)> {
    let lines = std::fs::read_to_string(file).unwrap_or_default();
    let read = |line: &str| serde_json::from_str(line).unwrap();
    lines.lines().map(read).collect()
}

/// Returns the members of a retry that accepts with this value.
fn retry(round: &Value, value: &str) -> Value {
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    let requests = round["result"]["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap().clone();
    let answer = json!({"action": "accept", "content": {"value": value}});
    json!({"requestState": round["result"]["requestState"], "inputResponses": {key: answer}})
}

/// Makes a call, and returns the retry of its client, and the id of its question.
fn asked_at(at: &str, desk: &Desk, number: u64) -> (Value, String) {
    let round = make_call(at, number, true, None, PATIENCE).expect("a round");
    let id = desk.question_of(number, true);
    (retry(&round, "of the client"), id)
}

/// Makes a retry, and returns the text of the result.
fn result_at(at: &str, number: u64, retry: &Value) -> String {
    let done = make_call(at, number, true, Some(retry), PATIENCE).expect("a result");
    assert!(done.get("error").is_none(), "{done}");
    text(&done).to_owned()
}

#[test]
fn a_retry_at_another_gateway_brings_the_answer_and_nobody_is_asked_twice() {
    let Some((deployment, folder)) = before(SERVER) else {
        return;
    };
    let file = folder.path().join("got");
    let [mut a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let desk = b.desk();
    // Both gateways go on running. The client answers, or a person has answered before.
    for (number, person, from, to) in [
        (1, None, &a, &b),
        (2, Some(&a), &a, &b),
        (3, Some(&b), &a, &b),
        (4, None, &b, &a),
    ] {
        let (retry, id) = asked_at(&from.serving, &desk, number);
        if let Some(at) = person {
            assert_eq!(at.desk().accept(&id, "of a person"), Some(200));
        }
        let value = person.map_or("of the client", |_| "of a person");
        assert_eq!(result_at(&to.serving, number, &retry), value, "{number}");
        assert!(desk.is_delivered(&id), "{number}: {}", desk.row(&id));
        assert_eq!(desk.waiting(), [], "{number}: it was not asked twice");
        assert_eq!(got(&file).last(), Some(&(number, value.to_owned())));
    }
    // The first gateway has ended.
    let (retry, id) = asked_at(&a.serving, &desk, 5);
    a.kill();
    assert_eq!(result_at(&b.serving, 5, &retry), "of the client");
    assert!(desk.is_delivered(&id), "{}", desk.row(&id));
    assert_eq!(desk.waiting(), []);
    assert_eq!(got(&file).len(), 5, "{:?}", got(&file));
}

/// The first gateway has a call at the server, which waits for the answer.
#[test]
fn a_retry_at_another_gateway_ends_the_call_that_waits_at_the_first() {
    let Some((deployment, folder)) = before(PUSHING) else {
        return;
    };
    let file = folder.path().join("got");
    let [a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let desk = b.desk();
    let (retry, id) = asked_at(&a.serving, &desk, 1);
    assert_eq!(result_at(&b.serving, 1, &retry), "of the client");
    assert!(desk.is_delivered(&id), "{}", desk.row(&id));
    assert_eq!(desk.waiting(), [], "it was not asked twice");
    let all = || got(&file).len() == 2;
    let has_ended = (0..LOOKS).any(|_| {
        thread::sleep(LOOK);
        all()
    });
    assert!(has_ended, "the first process waits: {:?}", got(&file));
    // The same call again is a new one at both.
    for at in [&a, &b] {
        let (retry, again) = asked_at(&at.serving, &desk, 1);
        assert_ne!(again, id);
        assert_eq!(result_at(&at.serving, 1, &retry), "of the client");
        assert_eq!(desk.waiting(), []);
    }
    let mut values: Vec<String> = got(&file).into_iter().map(|(_, value)| value).collect();
    values.sort_unstable();
    assert_eq!(
        values,
        ["nothing", "of the client", "of the client", "of the client"]
    );
}
