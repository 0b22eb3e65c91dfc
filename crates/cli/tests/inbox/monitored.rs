//! The metrics of a gateway, read by the parser of `prometheus_client`.

use std::process::Command;

use mcp_elicit_testkit::peers;
use serde_json::{Value, json};

use crate::gateway::{Gateway, NO_LIMITS, REVISION};
use crate::http::{post, send};
use crate::raw::{DEMO_SERVER, call, command, initialize};

/// Returns the value of a sample with these labels.
fn value(families: &[Value], name: &str, labels: &Value) -> Option<f64> {
    let mut samples = families
        .iter()
        .flat_map(|family| family["samples"].as_array().unwrap());
    let found = samples.find(|sample| sample["name"] == name && sample["labels"] == *labels);
    found.and_then(|sample| sample["value"].as_f64())
}

#[test]
fn a_parser_of_metrics_reads_what_happened_by_server_and_outcome() {
    let Some(parser) = peers::channel_script("metrics.py") else {
        return;
    };
    let state = tempfile::tempdir().unwrap();
    let name = "deploy-bot";
    let mut more = vec![
        "--listen",
        "127.0.0.1:0",
        "--auth",
        "keys",
        "--hold",
        "0",
        "--max-record",
        "1000000000",
        "--max-open",
        "2",
        "--name",
        name,
    ];
    more.extend(NO_LIMITS);
    let gateway = Gateway::start(state.path(), &more, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let made = command(
        state.path(),
        &["tokens", "make", "ci", "--scope", "call", "--json"],
    );
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let key = made["token"].as_str().unwrap();
    let open = initialize(REVISION, &json!({}));
    let wrong = post(&at, "/mcp", Some("mek_000000000000_00"), None, &open);
    assert_eq!(wrong.status, 401);
    let opened = post(&at, "/mcp", Some(key), None, &open);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    for number in [2, 3] {
        let body = call(number, "deploy", &json!({"n": number}));
        post(&at, "/mcp", Some(key), Some(&session), &body);
    }
    let waiting = gateway.wait_for(2);
    // One more than the record may have open.
    let body = call(4, "deploy", &json!({"n": 4}));
    let refused = post(&at, "/mcp", Some(key), Some(&session), &body).body;
    assert!(
        refused.contains("2 questions of all callers") && refused.contains("max-open"),
        "{refused}"
    );
    let id = waiting[0]["id"].as_str().unwrap();
    assert_eq!(gateway.answer(id, &json!({"action": "decline"})), 200);
    gateway.wait_for(1);
    let read = || {
        let metrics = send(&at, &["GET /metrics HTTP/1.1"], "").unwrap();
        assert_eq!(
            metrics.header("content-type"),
            Some("text/plain; version=0.0.4")
        );
        let parsed = parser.run_with(&metrics.body);
        let families: Vec<Value> = serde_json::from_str(&parsed.stdout)
            .unwrap_or_else(|_| panic!("{}\n{}", parsed.stderr, metrics.body));
        families
    };
    let families = read();
    for family in &families {
        assert!(
            family["help"].as_str().is_some_and(|help| help.len() > 5),
            "{family}"
        );
        assert_ne!(family["type"], "unknown", "{family}");
    }
    let by_server = json!({"server": name});
    let of = |name: &str, labels: &Value| {
        value(&families, name, labels).unwrap_or_else(|| panic!("{name} {labels}: {families:#?}"))
    };
    for (metric, labels, expected) in [
        ("mcp_elicit_open_questions", by_server.clone(), 1.0),
        ("mcp_elicit_asked_total", by_server.clone(), 2.0),
        (
            "mcp_elicit_outcomes_total",
            json!({"server": name, "rule": "", "outcome": "declined"}),
            1.0,
        ),
        ("mcp_elicit_answer_seconds_count", by_server.clone(), 1.0),
        (
            "mcp_elicit_refusals_total",
            json!({"kind": "caller", "reason": "unknown-key"}),
            1.0,
        ),
        (
            "mcp_elicit_deliveries_total",
            json!({"result": "in-doubt"}),
            0.0,
        ),
        ("mcp_elicit_record_up", json!({}), 1.0),
        ("mcp_elicit_record_bytes_max", json!({}), 1_000_000_000.0),
        ("mcp_elicit_open_questions_max", json!({}), 2.0),
        ("mcp_elicit_record_writes_waiting", json!({}), 0.0),
        // The names of the first version.
        ("mcp_elicit_questions_asked_total", json!({}), 2.0),
        ("mcp_elicit_answers_total", json!({}), 1.0),
    ] {
        assert!(
            (of(metric, &labels) - expected).abs() < f64::EPSILON,
            "{metric}: {}",
            of(metric, &labels)
        );
    }
    assert!(of("mcp_elicit_record_bytes", &json!({})) > 4_096.0);
    let steps = of("mcp_elicit_record_write_seconds_count", &json!({}));
    assert!(steps >= 1.0 && of("mcp_elicit_record_writes_total", &json!({})) >= steps);
    assert!(of("mcp_elicit_children", &json!({})) >= 1.0);
    assert!(of("mcp_elicit_oldest_open_seconds", &json!({})) < 600.0);
    let mut last = json!({"server": name});
    last["le"] = "+Inf".into();
    assert!((of("mcp_elicit_answer_seconds_bucket", &last) - 1.0).abs() < f64::EPSILON);
    // Reading counts nothing twice, and the documentation names every metric.
    assert_eq!(
        value(&read(), "mcp_elicit_asked_total", &by_server),
        Some(2.0)
    );
    let documented = include_str!("../../../../docs/operate.md");
    for family in &families {
        let name = family["name"].as_str().unwrap();
        assert!(
            documented.contains(&format!("`{name}")),
            "{name} is not in docs/operate.md"
        );
    }
    // The alerts and the dashboard name metrics that are there.
    let named: Vec<&str> = families
        .iter()
        .map(|family| family["name"].as_str().unwrap())
        .collect();
    for text in [
        include_str!("../../../../deploy/alerts.yml"),
        include_str!("../../../../deploy/grafana.json"),
    ] {
        let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        let metrics: Vec<&str> = words
            .filter(|word| word.starts_with("mcp_elicit_"))
            .collect();
        assert!(metrics.len() > 8, "{metrics:?}");
        for metric in metrics {
            // The parser leaves the ends of counters and histograms out of a family's name.
            let ends = ["", "_total", "_bucket"];
            let is_there = |end| {
                let family = metric.strip_suffix(end);
                family.is_some_and(|family| named.contains(&family))
            };
            let is_known = ends.into_iter().any(is_there) || ELSEWHERE.contains(&metric);
            assert!(is_known, "{metric} is not in {named:?}");
        }
    }
}

/// Metrics that a gateway without channels, or with its record in a file, does not have.
const ELSEWHERE: [&str; 2] = [
    "mcp_elicit_channel_messages_total",
    "mcp_elicit_clock_offset_seconds",
];

#[test]
fn each_alert_fires_on_its_cause_and_none_on_a_gateway_at_work() {
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    let promtool = |arguments: [&str; 3]| {
        let run = Command::new("promtool")
            .args(arguments)
            .current_dir(deploy)
            .output();
        let Ok(run) = run else {
            assert!(std::env::var_os("CI").is_none(), "CI has promtool");
            mcp_elicit_testkit::chromium::report_skipped(
                "no promtool here, ALERTS WERE NOT TESTED",
            );
            return;
        };
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.success(), "{said}{wrong}");
    };
    promtool(["check", "rules", "alerts.yml"]);
    promtool(["test", "rules", "alerts_test.yml"]);
    // Each alert has its place in the documentation.
    let documented = include_str!("../../../../docs/operate.md");
    let alerts = include_str!("../../../../deploy/alerts.yml");
    let names: Vec<&str> = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(names.len() > 5);
    for name in names {
        assert!(documented.contains(&format!("\n### {name}\n")), "{name}");
        let place = format!("#{}", name.to_lowercase());
        assert!(alerts.contains(&place), "{place}");
    }
}
