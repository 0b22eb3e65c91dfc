//! Data in a URL beyond its target: credentials, a person's data, another URL. The specification forbids servers to put
//! the first two into a url-mode request ("Safe URL Handling", 1 and 2 for servers).

use std::borrow::Cow;

use url::Url;

use super::host::Host;
use super::sensitive::{
    is_credential_name, is_credential_shaped, is_email_shaped, is_personal_name,
};
use crate::secrecy::words::{is_invisible, words};

/// The most findings of one kind that are reported; more would tell a person nothing new.
const MAX_REPORTED: usize = 5;

/// Findings in the path, query and fragment.
#[derive(Debug, Default)]
pub(super) struct QueryFindings {
    /// The locations of credentials.
    pub(super) credentials: Vec<String>,
    /// The locations of a person's data.
    pub(super) personal: Vec<String>,
    /// The parameters that contain another URL, and its host if readable.
    pub(super) nested: Vec<(String, Option<String>)>,
}

/// Inspects everything after the host.
pub(super) fn carried(url: &Url, host: &Host) -> QueryFindings {
    let mut found = QueryFindings::default();
    let fragment = url.fragment().unwrap_or_default();
    let pre_signed = is_pre_signed(url);
    let pairs = url
        .query_pairs()
        .chain(url::form_urlencoded::parse(fragment.as_bytes()));
    for (name, value) in pairs {
        found.evaluate_pair(&name, &value, host, pre_signed);
    }
    for segment in url.path_segments().into_iter().flatten() {
        let segment = decoded(segment);
        if is_credential_shaped(&segment) {
            put(&mut found.credentials, "the path".to_owned());
        } else if is_email_shaped(&segment) {
            put(&mut found.personal, "the path".to_owned());
        }
    }
    found
}

impl QueryFindings {
    fn evaluate_pair(&mut self, name: &str, value: &str, host: &Host, pre_signed: bool) {
        // A lone word ("?hunter2") is parsed as a name without a value.
        let (value, shown) = if value.is_empty() {
            (name, "the query".to_owned())
        } else {
            (value, shown_name(name))
        };
        let named = value != name;
        let words = words(name);
        let signs =
            pre_signed && matches!(words.last().map(String::as_str), Some("signature" | "sig"));
        if signs || is_credential_shaped(value) || (named && is_credential_name(&words, value)) {
            put(&mut self.credentials, shown);
        } else if is_email_shaped(value) || (named && is_personal_name(&words)) {
            put(&mut self.personal, shown);
        } else if named {
            self.evaluate_nested(shown, value, host);
        }
    }

    fn evaluate_nested(&mut self, name: String, value: &str, host: &Host) {
        let twice = decoded(value);
        let text = if is_absolute(value) { value } else { &twice };
        if !is_absolute(text) || self.nested.len() >= MAX_REPORTED {
            return;
        }
        let text = if text.starts_with("//") {
            format!("https:{text}")
        } else {
            text.to_owned()
        };
        let inner = Url::parse(&text)
            .ok()
            .and_then(|inner| Host::from_url(&inner));
        let same_owner = inner.as_ref().is_some_and(|inner| {
            inner == host
                || (inner.registrable().is_some() && inner.registrable() == host.registrable())
        });
        if !same_owner {
            self.nested
                .push((name, inner.map(|inner| inner.ascii().to_owned())));
        }
    }
}

fn put(sources: &mut Vec<String>, source: String) {
    if sources.len() < MAX_REPORTED && !sources.contains(&source) {
        sources.push(source);
    }
}

/// Returns a parameter's name, short and without characters that could disturb a line of text.
fn shown_name(name: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = name
        .chars()
        .filter(|c| !c.is_control() && !is_invisible(*c))
        .take(LONGEST)
        .collect();
    if shown.len() < name.len() && name.chars().count() > LONGEST {
        shown.push('…');
    }
    shown
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}

fn is_absolute(value: &str) -> bool {
    let lower: String = value.chars().take(8).flat_map(char::to_lowercase).collect();
    lower.starts_with("http://")
        || lower.starts_with("https://")
        || (lower.starts_with("//") && lower.len() > 2)
}

/// Returns `true` for pre-signed URLs of cloud storage, which give access without a login.
fn is_pre_signed(url: &Url) -> bool {
    let mut azure = (false, false);
    url.query_pairs().any(|(name, _)| {
        azure = (azure.0 || name == "sv", azure.1 || name == "sig");
        matches!(
            &*name.to_ascii_lowercase(),
            "x-amz-signature" | "x-goog-signature"
        ) || azure == (true, true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(rest: &str) -> QueryFindings {
        let url = Url::parse(&format!("https://mcp.example.com/{rest}")).expect(rest);
        let host = Host::from_url(&url).expect("a host");
        carried(&url, &host)
    }

    #[test]
    fn credentials_are_seen_by_name_and_by_shape() {
        for rest in [
            "?token=x",
            "?api_key=1",
            "?apiKey=1",
            "?API-KEY=1",
            "?x-api-key=1",
            "?password=x",
            "?client_secret=x",
            "#access_token=abc&token_type=bearer",
            "?id_token=x",
            "?github_token=x",
            "?key=AbCd1234AbCd1234x",
            "?q=ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "?x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_9",
            "login/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_9",
            "?AKIAIOSFODNN7EXAMPLE",
            "f?X-Amz-Algorithm=A&X-Amz-Signature=fe5f80",
            "f?sv=2020-08-04&se=2026&sig=Z%2FRHIX5X",
        ] {
            assert_eq!(look(rest).credentials.len(), 1, "{rest}: {:?}", look(rest));
        }
    }

    #[test]
    fn what_is_only_about_credentials_is_no_alarm() {
        for rest in [
            "?ticket=8f2e&state=af0ifjsldkj&nonce=n-0S6_WzA2Mj",
            "?client_id=s6BhdRkqt3&response_type=code&scope=openid&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "?token_type=bearer",
            "?response_type=id_token%20token",
            "password_reset?token=",
            "?page_token_limit=5",
            "?key=title",
            "?monkey=banana1234567890",
            "?author=somebody",
            "?pass=2",
            "?session=morning",
            "set_api_key",
            "?keyboard=us",
            "?sig=short",
            "?id_token_hint=",
            "#pricing",
        ] {
            let found = look(rest);
            assert!(
                found.credentials.is_empty() && found.personal.is_empty(),
                "{rest}: {found:?}"
            );
        }
    }

    #[test]
    fn a_persons_data_are_seen_by_name_and_by_shape() {
        for rest in [
            "?email=x",
            "?user_email=x",
            "?q=ann%40mail.example",
            "?login_hint=ann@mail.example",
            "?ann@mail.example",
            "u/ann@mail.example/edit",
            "?phone=1",
            "?firstName=Ann",
            "?date_of_birth=2000-01-01",
            "#username=ann",
        ] {
            assert_eq!(look(rest).personal.len(), 1, "{rest}: {:?}", look(rest));
        }
        for rest in [
            "@ann",
            "?filename=x",
            "?hostname=x",
            "?name=deploy",
            "?mail=",
            "?at=10@night",
            "?u=https://x.example/@a.b",
        ] {
            assert!(look(rest).personal.is_empty(), "{rest}: {:?}", look(rest));
        }
    }

    #[test]
    fn another_place_in_the_url_is_named_unless_it_is_the_same_owners() {
        for (rest, name, host) in [
            ("?next=https://evil.example/x", "next", Some("evil.example")),
            (
                "?next=HTTPS%3A%2F%2Fevil.example",
                "next",
                Some("evil.example"),
            ),
            (
                "?next=https%253A%252F%252Fevil.example",
                "next",
                Some("evil.example"),
            ),
            ("?next=//evil.example/x", "next", Some("evil.example")),
            (
                "?redirect_uri=http://localhost:3000/cb",
                "redirect_uri",
                Some("localhost"),
            ),
            ("?next=https://%zz", "next", None),
        ] {
            assert_eq!(
                look(rest).nested,
                [(name.to_owned(), host.map(str::to_owned))],
                "{rest}"
            );
        }
        for rest in [
            "?next=/home",
            "?redirect_uri=https://app.example.com/cb",
            "?next=https://mcp.example.com/",
            "?a=//",
        ] {
            assert!(look(rest).nested.is_empty(), "{rest}: {:?}", look(rest));
        }
    }

    #[test]
    fn what_is_told_is_bounded_and_harmless_to_print() {
        let many: Vec<String> = (0..500)
            .map(|n| format!("a{n}_token=1&b{n}=https://e{n}.example/&c{n}=a@b.cc"))
            .collect();
        let found = look(&format!("?{}", many.join("&")));
        assert_eq!(
            (
                found.credentials.len(),
                found.personal.len(),
                found.nested.len()
            ),
            (MAX_REPORTED, MAX_REPORTED, MAX_REPORTED)
        );
        let found = look(&format!("?{}_token=1", "x%0a".repeat(100)));
        assert_eq!(found.credentials, [format!("{}…", "x".repeat(40))]);
        let found = look("?my%1b%0a%E2%80%AE_token=1");
        assert_eq!(found.credentials, ["my_token"]);
    }
}
