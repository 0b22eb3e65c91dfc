//! A form that asks for a credential, which is not allowed: it is accepted only with an explicit option.

use serde_json::json;

use crate::gateway::Gateway;
use crate::raw::{command, text};

/// A server of the rounds era that asks for a password.
const ASKS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([^,}]*\).*/\1/')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$1"; }
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
    *server/discover*) say '"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"' ;;
    *requestState*) say '"resultType":"complete","content":[{"type":"text","text":"let in"}]' ;;
    *tools/call*) say '"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"Please log in","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}},"required":["password"]}}}}' ;;
  esac
done"#;

#[test]
fn a_credential_is_given_only_by_who_insists() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &[], &["--", "sh", "-c", ASKS]);
    gateway.initialize();
    gateway.call(2, "enter", &json!({}));
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();

    let plain = command(state.path(), &["inbox", "accept", &id, "password=tree"]);
    let said = String::from_utf8(plain.stderr).unwrap();
    assert!(
        !plain.status.success() && said.contains("--allow-credentials"),
        "{said}"
    );
    assert!(!said.contains("tree"), "{said}");
    assert_eq!(gateway.waiting().len(), 1, "it waits on");

    let insisting = [
        "inbox",
        "accept",
        "--allow-credentials",
        &id,
        "password=tree",
    ];
    assert!(command(state.path(), &insisting).status.success());
    assert_eq!(text(&gateway.result(2)), "let in");
    let audit = command(state.path(), &["audit", "--json", "--event", "insisted"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    let events: Vec<serde_json::Value> = audit
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 1, "{audit}");
    let entry = &events[0]["entry"];
    assert_eq!(
        (&entry["id"], &entry["by"]),
        (&json!(id), &json!("on the command line"))
    );
    assert!(!audit.contains("tree"), "{audit}");
}
