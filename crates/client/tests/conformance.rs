//! The official conformance suite, client side: every scenario of the supported revisions, played by
//! `examples/conformance_client`.
//!
//! Reports a skip if the suite cannot run. The results are in docs/conformance.md.

#[path = "../examples/conformance_client/client.rs"]
mod client;

use mcp_elicit_testkit::peers::conformance::{self, ScenarioVerdict};

/// The client that the suite starts: this test program again. The suite adds its URL.
#[test]
#[ignore = "started by the other tests"]
fn played() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime
        .block_on(client::play())
        .expect("the scenario is played");
}

fn plays(scenarios: &[(&str, &[&str])]) {
    plays_as(conformance::of_client, scenarios);
}

/// A function that runs one scenario of the suite, by command, name and revision.
type Run = fn(&str, &str, &str) -> Option<ScenarioVerdict>;

fn plays_as(run: Run, scenarios: &[(&str, &[&str])]) {
    let program = std::env::current_exe().expect("a test program");
    let command = format!("{} --exact played --ignored --nocapture", program.display());
    let mut wrong = Vec::new();
    for (revision, names) in scenarios {
        for name in *names {
            let Some(verdict) = run(&command, name, revision) else {
                return;
            };
            // Some scenarios only report observations; the suite's own verdict counts for those too.
            let passed = verdict.failed.is_empty() && verdict.said.contains("OVERALL: PASSED");
            if !passed {
                wrong.push(format!("{revision} {verdict}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_touches_elicitation_passes() {
    plays(&[
        ("2025-11-25", &["elicitation-sep1034-client-defaults"]),
        (
            "2026-07-28",
            &["sep-2322-client-request-state", "request-metadata"],
        ),
    ]);
}

#[test]
fn the_rest_of_the_protocol_passes() {
    plays(&[
        ("2025-06-18", &["initialize", "tools_call"]),
        (
            "2025-11-25",
            &[
                "initialize",
                "tools_call",
                "sse-retry",
                "json-schema-2020-12-preservation",
            ],
        ),
        (
            "2026-07-28",
            &[
                "tools_call",
                "http-standard-headers",
                "http-custom-headers",
                "http-invalid-tool-headers",
                "json-schema-ref-no-deref",
                "json-schema-2020-12-preservation",
            ],
        ),
    ]);
}

#[test]
fn servers_behind_oauth_are_reached() {
    plays(&[
        (
            "2025-03-26",
            &[
                "auth/2025-03-26-oauth-metadata-backcompat",
                "auth/2025-03-26-oauth-endpoint-fallback",
            ],
        ),
        ("2025-11-25", &OAUTH),
        ("2026-07-28", &OAUTH),
        (
            "2026-07-28",
            &[
                "auth/resource-mismatch",
                "auth/offline-access-scope",
                "auth/offline-access-not-supported",
                "auth/authorization-server-migration",
                "auth/iss-supported",
                "auth/iss-not-advertised",
                "auth/iss-supported-missing",
                "auth/iss-wrong-issuer",
                "auth/iss-unexpected",
                "auth/iss-normalized",
                "auth/metadata-issuer-mismatch",
            ],
        ),
    ]);
}

/// An extension without a person: the client authorizes itself, by a secret or a signature.
#[test]
fn servers_that_let_a_machine_in_are_reached() {
    let scenarios = [
        "auth/client-credentials-basic",
        "auth/client-credentials-jwt",
    ];
    plays_as(conformance::of_client_beyond, &[("2026-07-28", &scenarios)]);
}

/// The OAuth scenarios of both revisions.
const OAUTH: [&str; 14] = [
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
];
