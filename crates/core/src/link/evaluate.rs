//! The warnings about a link, part by part.

use url::Url;

use super::host::{Host, NetworkReach};
use super::warning::LinkWarning;
use super::{LinkPolicy, query};
use crate::secrecy::words::is_invisible;

/// Returns every warning about a link, the gravest first.
pub(super) fn warnings(
    sent: &str,
    url: &Url,
    host: &Host,
    policy: &LinkPolicy,
) -> Vec<LinkWarning> {
    let mut warnings = Vec::new();
    if !url.username().is_empty() || url.password().is_some() {
        warnings.push(LinkWarning::UserInfo);
    }
    about_host(sent, host, &mut warnings);
    if has_invisible(sent) {
        warnings.push(LinkWarning::Invisible);
    }
    about_reach(url, host, &mut warnings);
    let carried = query::carried(url, host);
    warnings.extend(
        carried
            .credentials
            .into_iter()
            .map(|location| LinkWarning::CredentialInUrl { location }),
    );
    warnings.extend(
        carried
            .personal
            .into_iter()
            .map(|location| LinkWarning::PersonalDataInUrl { location }),
    );
    warnings.extend(
        carried
            .nested
            .into_iter()
            .map(|(parameter, host)| LinkWarning::NestedUrl { parameter, host }),
    );
    if url.as_str().len() >= policy.long_bytes {
        warnings.push(LinkWarning::VeryLong {
            bytes: url.as_str().len(),
        });
    }
    warnings.sort_by_key(|caution| std::cmp::Reverse(caution.level()));
    warnings
}

fn about_host(sent: &str, host: &Host, warnings: &mut Vec<LinkWarning>) {
    let ascii = || host.ascii().to_owned();
    if let Some(name) = host.confusable_with() {
        warnings.push(LinkWarning::LooksLike {
            name,
            ascii: ascii(),
        });
    }
    if host.mixes_scripts() {
        warnings.push(LinkWarning::MixedScripts { ascii: ascii() });
    }
    if let Some(pretended) = host.pretended_domain() {
        let real = host.registrable().unwrap_or(host.ascii()).to_owned();
        warnings.push(LinkWarning::PretendedDomain { pretended, real });
    }
    if host.is_international() {
        warnings.push(LinkWarning::International {
            unicode: host.unicode().to_owned(),
            ascii: ascii(),
        });
    }
    if host.is_v4() && host_as_sent(sent) != Some(host.ascii()) {
        warnings.push(LinkWarning::DisguisedAddress { address: ascii() });
    } else if host.is_address() {
        warnings.push(LinkWarning::Address { address: ascii() });
    }
}

fn about_reach(url: &Url, host: &Host, warnings: &mut Vec<LinkWarning>) {
    let reach = host.reach();
    match reach {
        NetworkReach::Loopback => warnings.push(LinkWarning::Loopback),
        NetworkReach::Private => warnings.push(LinkWarning::PrivateNetwork {
            host: host.ascii().to_owned(),
        }),
        NetworkReach::Public => about_suffix(host, warnings),
    }
    if reach != NetworkReach::Loopback {
        if url.scheme() == "http" {
            warnings.push(LinkWarning::PlainHttp);
        }
        if let Some(port) = url.port() {
            warnings.push(LinkWarning::OddPort { port });
        }
    }
}

fn about_suffix(host: &Host, warnings: &mut Vec<LinkWarning>) {
    if host.is_address() {
        return;
    }
    if host.suffix().is_none() {
        let ending = host
            .unicode()
            .trim_end_matches('.')
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_owned();
        warnings.push(LinkWarning::UnknownSuffix { ending });
    } else if host.registrable().is_none() {
        warnings.push(LinkWarning::BareSuffix);
    } else if let Some(suffix) = host.shared_suffix() {
        warnings.push(LinkWarning::SharedHost {
            suffix: suffix.to_owned(),
        });
    }
}

/// Returns the host as it was written, before the parser normalized it.
fn host_as_sent(sent: &str) -> Option<&str> {
    let (_, rest) = sent.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host_and_port = authority.rsplit('@').next()?;
    host_and_port.split(':').next()
}

fn has_invisible(sent: &str) -> bool {
    let decoded = percent_encoding::percent_decode_str(sent).decode_utf8_lossy();
    sent.chars().chain(decoded.chars()).any(is_invisible)
}

#[cfg(test)]
mod tests {
    use super::super::{Link, WarningLevel};
    use super::*;

    fn codes(text: &str) -> Vec<&'static str> {
        Link::parse(text)
            .expect(text)
            .warnings()
            .iter()
            .map(LinkWarning::code)
            .collect()
    }

    #[test]
    fn an_honest_link_has_no_caution() {
        for text in [
            "https://mcp.example.com/ui/set_api_key",
            "https://accounts.google.com/o/oauth2/v2/auth?client_id=x&redirect_uri=https%3A%2F%2Faccounts.google.com%2Fcb",
            "https://example.com:443/",
            "HTTPS://Example.COM",
        ] {
            assert_eq!(codes(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn every_caution_is_raised_by_what_it_is_about() {
        for (text, expected) in [
            ("https://user@example.com/", vec!["userinfo"]),
            ("https://google.com:x@example.com/", vec!["userinfo"]),
            (
                "https://раураl.com/",
                vec!["looks-like", "mixed-scripts", "international-name"],
            ),
            (
                "https://аррӏе.com/",
                vec!["looks-like", "international-name"],
            ),
            (
                "https://xn--80ak6aa92e.com/",
                vec!["looks-like", "international-name"],
            ),
            ("https://müller.de/", vec!["international-name"]),
            ("https://paypal.com.evil.net/", vec!["pretended-domain"]),
            ("https://2130706433/", vec!["disguised-address", "loopback"]),
            ("https://0x7f.1/", vec!["disguised-address", "loopback"]),
            (
                "https://0300.0250.1.1/",
                vec!["disguised-address", "private-network"],
            ),
            ("https://134744072/", vec!["disguised-address"]),
            ("https://8.8.8.8/", vec!["ip-address"]),
            ("https://[2001:db8::1]/", vec!["ip-address"]),
            (
                "https://[::ffff:10.0.0.1]/",
                vec!["ip-address", "private-network"],
            ),
            (
                "https://example.com/%E2%80%AEfdp",
                vec!["invisible-characters"],
            ),
            ("https://exa\u{ad}mple.com/", vec!["invisible-characters"]),
            ("https://example.com/?token=x", vec!["credential-in-url"]),
            ("https://example.com/?email=x", vec!["personal-data-in-url"]),
            ("http://example.com/", vec!["plain-http"]),
            ("http://localhost:3000/cb", vec!["loopback"]),
            ("http://127.0.0.1:3000/cb", vec!["ip-address", "loopback"]),
            ("https://intranet/", vec!["private-network"]),
            (
                "http://10.0.0.1/",
                vec!["ip-address", "private-network", "plain-http"],
            ),
            ("https://example.nosuchtld/", vec!["unknown-suffix"]),
            ("https://co.uk/", vec!["bare-suffix"]),
            ("https://me.github.io/", vec!["shared-host"]),
            ("https://example.com:8443/", vec!["odd-port"]),
            (
                "https://example.com/?u=https://example.org/",
                vec!["nested-url"],
            ),
            ("https://example.com/?u=https://user@/", vec!["nested-url"]),
        ] {
            assert_eq!(codes(text), expected, "{text}");
        }
        assert_eq!(
            codes(&format!("https://example.com/{}", "a".repeat(2_000))),
            ["very-long"]
        );
    }

    #[test]
    fn the_gravest_comes_first() {
        let link = Link::parse("http://user@example.com:81/?u=https://x.example/&token=1")
            .expect("a link");
        let levels: Vec<WarningLevel> = link.warnings().iter().map(LinkWarning::level).collect();
        assert!(levels.is_sorted_by(|a, b| a >= b), "{levels:?}");
        assert_eq!(levels.first(), Some(&WarningLevel::Danger));
    }

    #[test]
    fn every_sentence_is_one_line_and_says_no_value() {
        let text = "http://ann:hunter2@paypal.com.раураl.com:81/?token=hunter2&email=hunter2&u=https://x.example/hunter2";
        let link = Link::parse(text).expect("a link");
        assert!(link.warnings().len() >= 8);
        for caution in link.warnings() {
            let sentence = caution.to_string();
            assert!(
                sentence.ends_with('.') && sentence.lines().count() == 1,
                "{sentence}"
            );
            assert!(!sentence.contains("hunter2"), "{sentence}");
        }
    }
}
