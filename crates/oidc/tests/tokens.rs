//! Access tokens of a hostile issuer, each rejected for its reason.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's")]

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_oidc::{AccessTokenError, Provider, TokenVerifier};
use mcp_elicit_testkit::issuer::TestIssuer;
use serde_json::{Value, json};

const RESOURCE: &str = "https://mcp.example.com/mcp/deploy";
/// Seconds since 1970.
const NOW: u64 = 1_800_000_000;

fn now() -> Timestamp {
    Timestamp::from_epoch(Duration::from_secs(NOW))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_epoch(Duration::from_secs(NOW + seconds))
}

fn verifier(issuer: &TestIssuer) -> TokenVerifier {
    let provider = Provider::issuer(issuer.url(), "gateway").unwrap();
    TokenVerifier::new(provider.secret("gateway-secret")).requires(["mcp"])
}

fn claims(issuer: &TestIssuer) -> Value {
    json!({
        "iss": issuer.url(), "aud": RESOURCE, "sub": "ada", "exp": NOW + 300, "iat": NOW, "scope": "openid mcp",
    })
}

/// Returns the claims with one changed; `null` removes it.
fn with(issuer: &TestIssuer, name: &str, value: Value) -> Value {
    let mut claims = claims(issuer);
    let members = claims.as_object_mut().unwrap();
    if value.is_null() {
        members.remove(name);
    } else {
        members.insert(name.to_owned(), value);
    }
    claims
}

async fn verify(verifier: &TokenVerifier, token: &str) -> Result<String, AccessTokenError> {
    let token = verifier
        .verify(token, &["https://other", RESOURCE], now())
        .await?;
    Ok(token.subject().to_string())
}

#[tokio::test]
async fn a_token_of_the_issuer_for_the_resource_names_its_subject() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let expected = format!("{}#ada", issuer.url());
    for good in [
        claims(&issuer),
        with(&issuer, "aud", json!(["https://a", RESOURCE])),
        with(&issuer, "scope", json!(["mcp"])),
        with(&issuer, "exp", json!(NOW - 59)),
        with(&issuer, "nbf", json!(NOW + 60)),
        with(&issuer, "exp", json!(1_800_000_300.5)),
    ] {
        let token = issuer.sign(&good);
        assert_eq!(
            verify(&verifier, &token).await,
            Ok(expected.clone()),
            "{good}"
        );
    }
    let kid = issuer.kid();
    for header in [
        json!({"alg": "EdDSA", "kid": kid}),
        json!({"alg": "EdDSA"}),
        json!({"alg": "EdDSA", "typ": "JWT"}),
        json!({"alg": "EdDSA", "typ": "application/AT+jwt", "kid": kid}),
    ] {
        let token = issuer.sign_under(&header, &claims(&issuer));
        assert_eq!(
            verify(&verifier, &token).await,
            Ok(expected.clone()),
            "{header}"
        );
    }
    assert_eq!(issuer.key_requests(), 1, "keys are kept");
}

#[tokio::test]
async fn each_claim_that_is_wrong_is_refused() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let long = "s".repeat(256);
    for (name, value) in [
        ("iss", json!("https://evil.example")),
        ("iss", json!(format!("{}/", issuer.url()))),
        ("iss", Value::Null),
        ("aud", json!("https://mcp.example.com/mcp")),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("aud", json!({"0": RESOURCE})),
        ("sub", Value::Null),
        ("sub", json!("")),
        ("sub", json!(" ")),
        ("sub", json!("\u{2003}\u{a0}")),
        (
            "cnf",
            json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
        ),
        (
            "cnf",
            json!({"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}),
        ),
        ("sub", json!(1)),
        ("sub", json!(long)),
        ("sub", json!("a\u{7}b")),
        ("exp", Value::Null),
        ("exp", json!("never")),
        ("exp", json!(-1)),
        ("exp", json!(1e300)),
        ("nbf", json!(NOW + 61)),
        ("iat", json!(NOW + 3600)),
        ("at_hash", json!("h")),
        ("typ", json!("ID")),
        ("token_use", json!("id")),
    ] {
        let token = issuer.sign(&with(&issuer, name, value.clone()));
        let refused = verify(&verifier, &token).await;
        assert!(
            matches!(refused, Err(AccessTokenError::Invalid(_))),
            "{name} {value}: {refused:?}"
        );
    }
    let token = issuer.sign(&with(&issuer, "exp", json!(NOW - 61)));
    assert_eq!(
        verify(&verifier, &token).await,
        Err(AccessTokenError::Expired)
    );
    for scopes in [json!("openid mcp2"), Value::Null, json!("MCP")] {
        let token = issuer.sign(&with(&issuer, "scope", scopes));
        assert_eq!(
            verify(&verifier, &token).await,
            Err(AccessTokenError::Scope)
        );
    }
}

/// Keycloak put the `nonce` of the sign-in into access tokens.
#[tokio::test]
async fn a_nonce_makes_no_id_token_of_a_token_for_the_resource() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let with_nonce = |changes: Value| {
        let mut claims = with(&issuer, "nonce", json!("n"));
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    };
    for good in [
        json!({}),
        json!({"azp": "app", "typ": "Bearer"}),
        json!({"aud": ["account", RESOURCE], "client_id": "app"}),
    ] {
        let token = issuer.sign(&with_nonce(good.clone()));
        assert!(verify(&verifier, &token).await.is_ok(), "{good}");
    }
    let said = json!({"alg": "EdDSA", "typ": "at+jwt"});
    let token = issuer.sign_under(&said, &with_nonce(json!({"azp": RESOURCE})));
    assert!(verify(&verifier, &token).await.is_ok());
    for id_token in [
        // For the client that requested it, as an ID token is.
        json!({"azp": RESOURCE}),
        json!({"typ": "ID"}),
        json!({"at_hash": "h"}),
        json!({"aud": "account", "typ": "Bearer"}),
    ] {
        let said = json!({"alg": "EdDSA", "typ": "JWT"});
        let token = issuer.sign_under(&said, &with_nonce(id_token.clone()));
        let refused = verify(&verifier, &token).await;
        assert!(
            matches!(refused, Err(AccessTokenError::Invalid(_))),
            "{id_token}: {refused:?}"
        );
    }
}

/// Amazon Cognito's access tokens have no audience.
#[tokio::test]
async fn a_token_without_an_audience_is_taken_from_a_configured_client_only() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let check = async |changes: Value| {
        let mut claims = with(&issuer, "aud", Value::Null);
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let token = issuer.sign(&claims);
        verifier
            .verify(&token, &["app-client"], now())
            .await
            .map(|token| token.subject().to_string())
    };
    for client in ["app-client", "gateway"] {
        let taken = check(json!({"token_use": "access", "client_id": client})).await;
        assert_eq!(taken, Ok(format!("{}#ada", issuer.url())));
    }
    for refused in [
        json!({"token_use": "access", "client_id": "other"}),
        json!({"token_use": "access", "client_id": ""}),
        json!({"token_use": "access"}),
        json!({"token_use": "id", "client_id": "app-client"}),
        json!({"client_id": "app-client"}),
        json!({"token_use": "access", "client_id": "app-client", "aud": []}),
        json!({"token_use": "access", "client_id": "app-client", "aud": "other"}),
    ] {
        let token = check(refused.clone()).await;
        assert!(
            matches!(token, Err(AccessTokenError::Invalid(_))),
            "{refused}: {token:?}"
        );
    }
}

#[tokio::test]
async fn a_signature_that_is_not_the_issuers_is_refused() {
    let (issuer, other) = (TestIssuer::start(), TestIssuer::start());
    other.rotate();
    let verifier = verifier(&issuer);
    let good = claims(&issuer);
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let kid = issuer.kid();
    let unsigned = format!("{}.{}.", part(&json!({"alg": "none"})), part(&good));
    let token = issuer.sign(&good);
    let (signed, _) = token.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let (_, signature) = token.rsplit_once('.').unwrap();
    let forged = with(&issuer, "sub", json!("admin"));
    let refused = [
        unsigned,
        format!("{signed}."),
        format!("{header}.{}.{signature}", part(&forged)),
        // Another issuer's key, under the name of the right one.
        other.sign_under(&json!({"alg": "EdDSA", "kid": kid}), &good),
        other.sign_under(&json!({"alg": "EdDSA"}), &good),
        // The public key taken for a shared secret, and other names for no signature.
        issuer.sign_under(&json!({"alg": "HS256", "kid": kid}), &good),
        issuer.sign_under(&json!({"alg": "None", "kid": kid}), &good),
        issuer.sign_under(&json!({"alg": "none", "kid": kid}), &good),
        issuer.sign_under(&json!({"alg": "RS256", "kid": kid}), &good),
        issuer.sign_under(&json!({"alg": "EdDSA", "kid": kid, "crit": ["exp"]}), &good),
        issuer.sign_under(
            &json!({"alg": "EdDSA", "kid": kid, "crit": null}),
            &json!({"iss": 1}),
        ),
        issuer.sign_under(
            &json!({"alg": "EdDSA", "kid": kid, "typ": "logout+jwt"}),
            &good,
        ),
        issuer.sign_under(&json!({"alg": "EdDSA", "kid": 1}), &good),
        // A key that comes with the token is not trusted.
        other.sign_under(
            &json!({"alg": "EdDSA", "jku": other.url(), "kid": "key-1"}),
            &good,
        ),
        String::new(),
        "a.b".to_owned(),
        "a.b.c".to_owned(),
        "mek_000000000000_00".to_owned(),
        format!("{token}."),
        format!("{token}{}", "A".repeat(9_000)),
    ];
    for token in refused {
        let refused = verify(&verifier, &token).await;
        assert!(
            matches!(refused, Err(AccessTokenError::Invalid(_))),
            "{token}: {refused:?}"
        );
    }
    assert!(verify(&verifier, &token).await.is_ok());
    assert_eq!(
        issuer.key_requests(),
        1,
        "tokens of strangers make nobody fetch keys again"
    );
}

#[tokio::test]
async fn a_new_key_is_found_once_for_all_and_an_old_one_ends() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let check = async |token: &str, seconds: u64| {
        let checked = verifier.verify(token, &[RESOURCE], at(seconds)).await;
        checked.map(|_| ())
    };
    let before = issuer.sign(&claims(&issuer));
    assert_eq!(check(&before, 0).await, Ok(()));
    issuer.rotate();
    let after = issuer.sign(&claims(&issuer));
    // The issuer was asked a moment ago: requests of an unknown client cannot make it be asked without end.
    assert!(matches!(
        check(&after, 10).await,
        Err(AccessTokenError::Invalid(_))
    ));
    let many = (0..20).map(|_| check(&after, 31));
    let all = futures::future::join_all(many).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(issuer.key_requests(), 2);
    assert!(matches!(
        check(&before, 32).await,
        Err(AccessTokenError::Invalid(_))
    ));
    assert_eq!(issuer.key_requests(), 2);
}

#[tokio::test]
async fn the_last_keys_serve_for_a_day_while_the_issuer_is_down() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let long = issuer.sign(&with(&issuer, "exp", json!(NOW + 200_000)));
    let check = async |seconds: u64| {
        let checked = verifier.verify(&long, &[RESOURCE], at(seconds)).await;
        checked.map(|_| ())
    };
    issuer.set_down(true);
    assert!(matches!(
        check(0).await,
        Err(AccessTokenError::Unavailable { .. })
    ));
    assert!(matches!(
        check(1).await,
        Err(AccessTokenError::Unavailable { .. })
    ));
    issuer.set_down(false);
    assert_eq!(check(31).await, Ok(()));
    issuer.set_down(true);
    assert_eq!(check(31 + 3_600).await, Ok(()));
    assert_eq!(check(31 + 23 * 3_600).await, Ok(()));
    let refused = check(31 + 24 * 3_600).await;
    assert!(
        matches!(refused, Err(AccessTokenError::Unavailable { retry_after }) if !retry_after.is_zero())
    );
    // A key that is not in the last set may be valid: the caller is not told to sign in again.
    issuer.rotate();
    let other = issuer.sign(&with(&issuer, "exp", json!(NOW + 200_000)));
    let unknown = verifier.verify(&other, &[RESOURCE], at(31 + 3_700)).await;
    assert!(
        matches!(unknown, Err(AccessTokenError::Unavailable { .. })),
        "{unknown:?}"
    );
    issuer.set_down(false);
    assert!(
        verifier
            .verify(&other, &[RESOURCE], at(31 + 25 * 3_600))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn the_issuer_is_asked_about_a_token_that_only_it_can_read() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let ask = async |token: &str, seconds: u64| {
        let asked = verifier.introspect(token, &[RESOURCE], at(seconds)).await;
        asked.map(|token| token.subject().subject().to_owned())
    };
    let answer =
        json!({"active": true, "sub": "ada", "aud": RESOURCE, "scope": "mcp", "exp": NOW + 300});
    issuer.answer_about("opaque", answer.clone());
    assert_eq!(ask("opaque", 0).await, Ok("ada".to_owned()));
    issuer.set_down(true);
    assert_eq!(
        ask("opaque", 29).await,
        Ok("ada".to_owned()),
        "kept for half a minute"
    );
    assert!(matches!(
        ask("opaque", 30).await,
        Err(AccessTokenError::Unavailable { .. })
    ));
    issuer.set_down(false);
    issuer.answer_about("opaque", json!({"active": false}));
    assert!(matches!(
        ask("opaque", 31).await,
        Err(AccessTokenError::Invalid(_))
    ));
    assert_eq!(verifier.is_active("opaque", at(31)).await, Ok(false));
    // A kept response is no longer valid after the issuer has reported the token's end.
    issuer.answer_about("ended", answer.clone());
    assert_eq!(ask("ended", 40).await, Ok("ada".to_owned()));
    issuer.answer_about("ended", json!({"active": false}));
    assert_eq!(ask("ended", 41).await, Ok("ada".to_owned()));
    assert_eq!(verifier.is_active("ended", at(41)).await, Ok(false));
    assert!(matches!(
        ask("ended", 41).await,
        Err(AccessTokenError::Invalid(_))
    ));
    for (name, value) in [
        ("aud", json!("https://elsewhere")),
        ("iss", json!("https://evil.example")),
        ("sub", json!(null)),
        ("active", json!("true")),
    ] {
        let mut wrong = answer.clone();
        wrong[name] = value;
        issuer.answer_about(name, wrong);
        assert!(
            matches!(ask(name, 0).await, Err(AccessTokenError::Invalid(_))),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_answer_about_a_token_of_another_kind_is_no_access() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let answer = json!({"active": true, "sub": "ada", "aud": RESOURCE, "scope": "mcp"});
    for (claim, value, is_access) in [
        ("typ", "ID", false),
        ("typ", "Refresh", false),
        ("typ", "Offline", false),
        ("typ", "Bearer", true),
        ("token_use", "id", false),
        ("token_use", "refresh_token", false),
        ("token_use", "access_token", true),
        ("token_type", "refresh_token", false),
        ("token_type", "Bearer", true),
        ("at_hash", "h", false),
        ("nonce", "n", true),
    ] {
        let mut answer = answer.clone();
        answer[claim] = json!(value);
        let token = format!("{claim}-{value}");
        issuer.answer_about(&token, answer.clone());
        // The second answer is a cached one, if there is one.
        for _ in 0..2 {
            let asked = verifier.introspect(&token, &[RESOURCE], now()).await;
            assert_eq!(asked.is_ok(), is_access, "{token}: {asked:?}");
        }
        let signed = issuer.sign(&with(&issuer, claim, json!(value)));
        let checked = verifier.verify(&signed, &[RESOURCE], now()).await;
        assert_eq!(checked.is_ok(), is_access, "{token}: {checked:?}");
    }
    // An ID token is for the client that requested it.
    for (token_type, is_access) in [(json!(null), false), (json!("Bearer"), true)] {
        let mut answer = answer.clone();
        answer["nonce"] = json!("n");
        answer["azp"] = json!(RESOURCE);
        answer["token_type"] = token_type;
        let token = format!("for a client {is_access}");
        issuer.answer_about(&token, answer);
        let asked = verifier.introspect(&token, &[RESOURCE], now()).await;
        assert_eq!(asked.is_ok(), is_access, "{asked:?}");
    }
}

#[tokio::test]
async fn tokens_that_the_issuer_does_not_know_are_asked_about_so_often() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let ask = async |token: &str, seconds: u64| {
        let asked = verifier.introspect(token, &[RESOURCE], at(seconds)).await;
        asked.map(|token| token.subject().subject().to_owned())
    };
    let answer = json!({"active": true, "sub": "ada", "aud": RESOURCE, "scope": "mcp"});
    issuer.answer_about("good", answer.clone());
    assert_eq!(ask("good", 0).await, Ok("ada".to_owned()));
    assert!(matches!(
        ask("late", 0).await,
        Err(AccessTokenError::Invalid(_))
    ));
    issuer.answer_about("late", answer.clone());
    assert!(matches!(
        ask("late", 9).await,
        Err(AccessTokenError::Invalid(_))
    ));
    assert_eq!(ask("late", 10).await, Ok("ada".to_owned()));
    // Many in the same second are refused without a question, and what was active before is asked about.
    let mut refused = 0;
    for number in 0..100 {
        match ask(&format!("unknown-{number}"), 40).await {
            Err(AccessTokenError::Unavailable { retry_after }) => {
                assert_eq!(retry_after.as_secs(), 1);
                refused += 1;
            }
            other => assert!(matches!(other, Err(AccessTokenError::Invalid(_)))),
        }
    }
    assert_eq!(refused, 70);
    assert_eq!(ask("good", 40).await, Ok("ada".to_owned()));
    issuer.answer_about("new", answer.clone());
    assert!(matches!(
        ask("new", 40).await,
        Err(AccessTokenError::Unavailable { .. })
    ));
    assert_eq!(ask("new", 41).await, Ok("ada".to_owned()));
    // An answer of any length is no reason to keep it.
    let mut long = answer;
    long["groups"] = json!("g".repeat(65 * 1024));
    issuer.answer_about("long", long);
    assert!(matches!(
        ask("long", 41).await,
        Err(AccessTokenError::Invalid(_))
    ));
}

#[tokio::test]
async fn a_token_is_exchanged_as_this_client() {
    let issuer = TestIssuer::start();
    let provider = Provider::issuer(issuer.url(), "gate way").unwrap();
    let provider = provider.secret("s:e%c");
    let scopes = ["run".to_owned(), "read".to_owned()];
    let exchanged = provider.exchange_token("callers", "https://deploy.example", &scopes, now());
    let exchanged = exchanged.await.unwrap();
    assert_eq!(exchanged.reveal(), "exchanged-1");
    assert!(!format!("{exchanged:?}").contains("exchanged-1"));
    let forms = issuer.exchanges();
    let has = |name: &str, value: &str| assert_eq!(forms[0][name], value, "{name}");
    has("subject_token", "callers");
    has("resource", "https://deploy.example");
    has("scope", "run read");
    has(
        "grant_type",
        "urn:ietf:params:oauth:grant-type:token-exchange",
    );
    has("authorization", "Basic Z2F0ZSt3YXk6cyUzQWUlMjVj");
    issuer.set_down(true);
    let refused = provider.exchange_token("callers", "https://deploy.example", &[], now());
    assert!(refused.await.is_err());
}

#[tokio::test]
async fn a_logout_token_ends_a_session_of_this_client() {
    let issuer = TestIssuer::start();
    let verifier = verifier(&issuer);
    let good = json!({
        "iss": issuer.url(), "aud": "gateway", "iat": NOW, "exp": NOW + 60, "jti": "1", "sid": "s-1", "sub": "ada",
        "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
    });
    let sign = |claims: &Value| {
        issuer.sign_under(
            &json!({"alg": "EdDSA", "typ": "logout+jwt", "kid": issuer.kid()}),
            claims,
        )
    };
    let token = verifier.verify_logout(&sign(&good), now()).await.unwrap();
    assert_eq!(
        (token.sid.as_deref(), token.jti.as_str()),
        (Some("s-1"), "1")
    );
    assert_eq!(token.subject.unwrap().subject(), "ada");
    let wrong = [
        ("aud", json!("another")),
        ("iss", json!("https://evil.example")),
        ("iat", json!(NOW - 181)),
        ("iat", Value::Null),
        ("exp", json!(NOW - 61)),
        ("events", json!({})),
        ("events", Value::Null),
        ("nonce", json!("n")),
        ("jti", Value::Null),
        ("sub", json!(5)),
    ];
    for (name, value) in wrong {
        let mut claims = good.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
        let refused = verifier.verify_logout(&sign(&claims), now()).await;
        assert!(refused.is_err(), "{name} {value}");
    }
    // An access token is not a logout token.
    let access = issuer.sign(&good);
    assert!(verifier.verify_logout(&access, now()).await.is_err());
}
