//! A caller as one gateway tells it to another: the facts of its proof, never the proof.

use data_encoding::BASE64;
use http::HeaderValue;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::principal::Principal;
use serde::{Deserialize, Serialize};

use super::caller::{ProofKind, ProvenCaller};

/// A caller, as it is sent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentCaller {
    kind: SentKind,
    /// The name of an unauthenticated caller; the subject, or the id of the key, of any other.
    id: String,
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    mail: String,
    #[serde(default)]
    claims: Vec<String>,
    #[serde(default)]
    client: String,
    /// Milliseconds since 1970.
    #[serde(default)]
    expires_at: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SentKind {
    Unverified,
    Subject,
    Key,
}

/// The beginning of the name of an unauthenticated caller with credentials, and the length of the rest.
const HASHED: &str = "caller-";
const HASH: usize = 32;

/// Returns a caller as a header tells it; `None` for one that no other gateway can have, such as the user of this machine.
pub(crate) fn to_header(caller: &ProvenCaller) -> Option<HeaderValue> {
    let (kind, id) = match caller.kind() {
        ProofKind::Unverified => (SentKind::Unverified, caller.binding()),
        ProofKind::Subject => (SentKind::Subject, caller.subject()),
        ProofKind::Key => (SentKind::Key, caller.subject()),
        ProofKind::Local => return None,
    };
    let sent = SentCaller {
        kind,
        id: id.to_owned(),
        issuer: caller.issuer().to_owned(),
        name: caller.name.clone(),
        mail: caller.mail.clone(),
        claims: caller.claims.clone(),
        client: caller.client.clone(),
        expires_at: caller.expires_at.map(Timestamp::as_millis),
    };
    let text = serde_json::to_vec(&sent).ok()?;
    let mut value = HeaderValue::from_str(&BASE64.encode(&text)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads a caller from a header; `None` if it tells none. `logs_in` is the issuer at which people log in here.
pub(crate) fn from_header(value: &HeaderValue, logs_in: Option<&str>) -> Option<ProvenCaller> {
    let text = BASE64.decode(value.as_bytes()).ok()?;
    let sent: SentCaller = serde_json::from_slice(&text).ok()?;
    let mut caller = match sent.kind {
        SentKind::Unverified => {
            let is_hash = |rest: &str| {
                rest.len() == HASH && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
            };
            let is_known = sent.id == Principal::Anonymous.to_string()
                || sent.id.strip_prefix(HASHED).is_some_and(is_hash);
            is_known.then(|| ProvenCaller::unverified(sent.id))?
        }
        SentKind::Subject if sent.issuer.is_empty() || sent.id.is_empty() => return None,
        SentKind::Subject => ProvenCaller::of_subject(&sent.issuer, &sent.id, logs_in),
        SentKind::Key if sent.id.is_empty() => return None,
        SentKind::Key => ProvenCaller::of_key_id(&sent.id),
    };
    caller.name = sent.name;
    caller.mail = sent.mail;
    caller.claims = sent.claims;
    caller.client = sent.client;
    caller.expires_at = sent.expires_at.map(Timestamp::from_millis);
    Some(caller)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(json: &str) -> HeaderValue {
        HeaderValue::from_str(&BASE64.encode(json.as_bytes())).unwrap()
    }

    #[test]
    fn a_caller_comes_back_out_of_its_header() {
        let mut subject = ProvenCaller::of_subject("https://id.example", "ada\"\u{e9}", None);
        subject.mail = "ada@example.com".to_owned();
        subject.claims = vec!["ops".to_owned(), "dev".to_owned()];
        subject.expires_at = Some(Timestamp::from_millis(7));
        for caller in [
            subject,
            ProvenCaller::unverified("anonymous".to_owned()),
            ProvenCaller::unverified(format!("caller-{}", "0a".repeat(16))),
            ProvenCaller::of_key_id("0a1b"),
        ] {
            let header = to_header(&caller).unwrap();
            assert!(header.is_sensitive());
            assert!(from_header(&header, None) == Some(caller));
        }
        assert!(to_header(&ProvenCaller::local()).is_none());
    }

    #[test]
    fn no_other_text_is_a_caller() {
        for wrong in [
            "",
            "null",
            "{}",
            "[]",
            r#"{"kind":"subject"}"#,
            r#"{"kind":"local","id":"root"}"#,
            r#"{"kind":"unverified","id":"local"}"#,
            r#"{"kind":"unverified","id":"key-0a1b"}"#,
            r#"{"kind":"unverified","id":"[\"https://id\",\"ada\"]"}"#,
            r#"{"kind":"unverified","id":"caller-1"}"#,
            r#"{"kind":"unverified","id":"caller-zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"}"#,
            r#"{"kind":"subject","id":"ada"}"#,
            r#"{"kind":"subject","id":"","issuer":"https://id"}"#,
            r#"{"kind":"key","id":""}"#,
            r#"{"kind":"key","id":7}"#,
        ] {
            assert!(from_header(&header(wrong), None).is_none(), "{wrong}");
        }
        let known = r#"{"kind":"key","id":"0a1b","later":1}"#;
        assert!(from_header(&header(known), None).is_some());
        for plain in [known, "", "=", "e30", "????"] {
            let plain = HeaderValue::from_str(plain).unwrap();
            assert!(from_header(&plain, None).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_header_stops_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let _any = from_header(&value, None);
            }
            let encoded = BASE64.encode(&bytes);
            let _any = from_header(&HeaderValue::from_str(&encoded).unwrap(), None);
        }
    }
}
