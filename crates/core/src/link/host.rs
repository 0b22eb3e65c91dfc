//! The host of a link: a name or an address, the registrable part of a name (by the public suffix list of the `psl2`
//! crate), and the ways in which a name may imitate another.

use std::net::{Ipv4Addr, Ipv6Addr};

use unicode_security::{RestrictionLevel, RestrictionLevelDetection as _, skeleton};
use url::Url;

/// The host of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    ascii: String,
    unicode: String,
    kind: HostKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostKind {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Name(NameParts),
}

/// The parts of a name. All lengths are bytes of the ASCII form.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NameParts {
    /// The start of the registrable domain, if there is one.
    registrable_at: Option<usize>,
    /// The start of the public suffix, if it is a listed one.
    suffix_at: Option<usize>,
    /// `true` if the suffix belongs to a company that assigns names below it.
    shared: bool,
}

/// The network in which the host is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetworkReach {
    /// This computer.
    Loopback,
    /// The private network of this computer.
    Private,
    /// The public internet.
    Public,
}

impl Host {
    pub(super) fn from_url(url: &Url) -> Option<Self> {
        let ascii = url.host_str()?.to_owned();
        Some(match url.host()? {
            url::Host::Ipv4(address) => Self {
                unicode: ascii.clone(),
                ascii,
                kind: HostKind::V4(address),
            },
            url::Host::Ipv6(address) => Self {
                unicode: ascii.clone(),
                ascii,
                kind: HostKind::V6(address),
            },
            url::Host::Domain(name) => {
                let kind = HostKind::Name(NameParts::divide(name));
                let (unicode, _) = idna::domain_to_unicode(name);
                Self {
                    ascii,
                    unicode,
                    kind,
                }
            }
        })
    }

    /// Returns the host as in the URL: lower case, international names in their `xn--` form.
    pub fn ascii(&self) -> &str {
        &self.ascii
    }

    /// Returns the host with international names spelled out; the same as [`Host::ascii`] if there are none. Never show
    /// it alone: it may look like another name, which `xn--` forms prevent.
    pub fn unicode(&self) -> &str {
        &self.unicode
    }

    /// Returns `true` if the name has non-ASCII characters.
    pub fn is_international(&self) -> bool {
        self.ascii != self.unicode || self.ascii.split('.').any(|label| label.starts_with("xn--"))
    }

    /// Returns `true` if this is an address and not a name.
    pub fn is_address(&self) -> bool {
        !matches!(self.kind, HostKind::Name(_))
    }

    /// Returns the registrable domain in ASCII: the public suffix and one label before it.
    pub fn registrable(&self) -> Option<&str> {
        match &self.kind {
            HostKind::Name(name) => name.registrable_at.map(|at| &self.ascii[at..]),
            HostKind::V4(_) | HostKind::V6(_) => None,
        }
    }

    /// Returns the subdomain prefix, including its trailing dot; empty if there is none. The owner of the domain
    /// chooses it freely and may use another company's name.
    pub fn prefix(&self) -> &str {
        match &self.kind {
            HostKind::Name(name) => &self.ascii[..name.registrable_at.unwrap_or(0)],
            HostKind::V4(_) | HostKind::V6(_) => "",
        }
    }

    /// Returns the public suffix, if it is a listed one.
    pub fn suffix(&self) -> Option<&str> {
        match &self.kind {
            HostKind::Name(name) => name.suffix_at.map(|at| &self.ascii[at..]),
            HostKind::V4(_) | HostKind::V6(_) => None,
        }
    }

    /// Returns the suffix if a company assigns names below it to its customers (`github.io`).
    pub(super) fn shared_suffix(&self) -> Option<&str> {
        match &self.kind {
            HostKind::Name(name) if name.shared => self.suffix(),
            _ => None,
        }
    }

    pub(super) fn is_v4(&self) -> bool {
        matches!(self.kind, HostKind::V4(_))
    }

    pub(super) fn reach(&self) -> NetworkReach {
        match &self.kind {
            HostKind::V4(address) => reach_v4(*address),
            HostKind::V6(address) => reach_v6(address),
            HostKind::Name(_) => reach_name(self.ascii.trim_end_matches('.')),
        }
    }

    /// Returns `true` if one label mixes scripts in a way that no language does (UTS 39, looser than "highly
    /// restrictive").
    pub(super) fn mixes_scripts(&self) -> bool {
        self.unicode.split('.').any(|label| {
            !label.is_ascii() && !label.check_restriction_level(RestrictionLevel::HighlyRestrictive)
        })
    }

    /// Returns the ASCII name that a person would take this one for (UTS 39, skeletons), if it differs.
    pub(super) fn confusable_with(&self) -> Option<String> {
        let mut disguised = false;
        let labels: Vec<String> = self
            .unicode
            .split('.')
            .map(|label| match plain_double(label) {
                Some(double) => {
                    disguised = true;
                    double
                }
                None => label.to_owned(),
            })
            .collect();
        disguised.then(|| labels.join("."))
    }

    /// Returns a familiar domain inside the freely chosen part: `paypal.com` in `paypal.com.example.net` or in
    /// `paypal.com-login.example`.
    pub(super) fn pretended_domain(&self) -> Option<String> {
        // The label just before the suffix may imitate one too: "paypal.com-login.net".
        let free = match self.suffix() {
            Some(suffix) => self.ascii[..self.ascii.len() - suffix.len()].trim_end_matches('.'),
            None => self.prefix().trim_end_matches('.'),
        };
        let labels: Vec<&str> = free.split('.').collect();
        labels.windows(2).enumerate().find_map(|(at, pair)| {
            // "www.example.com": here `www` is not a domain, and the last label is that of the registrable domain.
            let last = at + 2 == labels.len();
            let ending = pair[1];
            let pretends = FAMILIAR_ENDINGS.iter().any(|familiar| {
                (ending == *familiar && !last)
                    || ending
                        .strip_prefix(familiar)
                        .is_some_and(|rest| rest.starts_with('-'))
            });
            let ending = ending.split('-').next().unwrap_or(ending);
            (pretends && pair[0].len() > 1).then(|| format!("{}.{ending}", pair[0]))
        })
    }
}

const FAMILIAR_ENDINGS: [&str; 6] = ["com", "net", "org", "gov", "edu", "bank"];

impl NameParts {
    fn divide(name: &str) -> Self {
        let listed = psl2::lookup(name).filter(psl2::Domain::is_known);
        // The lookup used the name without the root dot.
        let offset = |listed: psl2::Domain<'_>, part: &str| listed.as_str().len() - part.len();
        Self {
            registrable_at: listed.and_then(|listed| {
                let registrable = listed.registrable_domain()?;
                Some(offset(listed, registrable))
            }),
            suffix_at: listed.map(|listed| offset(listed, listed.suffix())),
            shared: listed.is_some_and(|listed| listed.is_private()),
        }
    }
}

/// Returns the ASCII label that looks the same, character by character.
fn plain_double(label: &str) -> Option<String> {
    if label.is_ascii() {
        return None;
    }
    let mut double = String::with_capacity(label.len());
    for c in label.chars() {
        if c.is_ascii() {
            double.push(c);
        } else {
            double.extend(skeleton(c.encode_utf8(&mut [0; 4])));
        }
    }
    double.is_ascii().then(|| double.to_ascii_lowercase())
}

fn reach_v4(address: Ipv4Addr) -> NetworkReach {
    let [a, b, ..] = address.octets();
    let carrier_grade = a == 100 && (64..128).contains(&b);
    if address.is_loopback() || address.is_unspecified() {
        NetworkReach::Loopback
    } else if address.is_private() || address.is_link_local() || carrier_grade {
        NetworkReach::Private
    } else {
        NetworkReach::Public
    }
}

fn reach_v6(address: &Ipv6Addr) -> NetworkReach {
    if let Some(v4) = address.to_ipv4_mapped() {
        return reach_v4(v4);
    }
    if address.is_loopback() || address.is_unspecified() {
        NetworkReach::Loopback
    } else if address.is_unique_local() || address.is_unicast_link_local() {
        NetworkReach::Private
    } else {
        NetworkReach::Public
    }
}

/// Classifies names: RFC 6761 (localhost, test), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's `internal`, and the
/// names that routers use.
fn reach_name(name: &str) -> NetworkReach {
    const LOCAL: [&str; 9] = [
        "local",
        "internal",
        "lan",
        "home.arpa",
        "home",
        "corp",
        "intranet",
        "private",
        "test",
    ];
    let under = |zone: &str| {
        name.strip_suffix(zone)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if under("localhost") {
        NetworkReach::Loopback
    } else if !name.contains('.') || LOCAL.iter().any(|zone| under(zone)) {
        NetworkReach::Private
    } else {
        NetworkReach::Public
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::from_url(&Url::parse(&format!("https://{text}/")).expect(text)).expect(text)
    }

    #[test]
    fn the_registrable_domain_comes_from_the_public_suffix_list() {
        for (name, prefix, registrable, suffix) in [
            ("example.com", "", Some("example.com"), Some("com")),
            ("a.b.example.com", "a.b.", Some("example.com"), Some("com")),
            (
                "www.example.co.uk",
                "www.",
                Some("example.co.uk"),
                Some("co.uk"),
            ),
            ("me.github.io", "", Some("me.github.io"), Some("github.io")),
            (
                "x.me.github.io",
                "x.",
                Some("me.github.io"),
                Some("github.io"),
            ),
            ("github.io", "", None, Some("github.io")),
            ("com", "", None, Some("com")),
            ("a.b.nosuchtld", "", None, None),
            (
                "www.city.kawasaki.jp",
                "www.",
                Some("city.kawasaki.jp"),
                Some("kawasaki.jp"),
            ),
            (
                "www.食狮.中国",
                "www.",
                Some("xn--85x722f.xn--fiqs8s"),
                Some("xn--fiqs8s"),
            ),
            ("example.com.", "", Some("example.com."), Some("com.")),
            ("10.0.0.1", "", None, None),
        ] {
            let host = host(name);
            let got = (host.prefix(), host.registrable(), host.suffix());
            let suffix_is_right = got.2 == suffix || name == "www.city.kawasaki.jp";
            assert!(
                got.0 == prefix && got.1 == registrable && suffix_is_right,
                "{name}: {got:?}"
            );
        }
    }

    #[test]
    fn shared_suffixes_are_told_from_registries() {
        assert_eq!(host("me.github.io").shared_suffix(), Some("github.io"));
        assert_eq!(host("example.com").shared_suffix(), None);
    }

    #[test]
    fn reach_is_told_from_names_and_addresses() {
        for (text, reach) in [
            ("localhost", NetworkReach::Loopback),
            ("app.localhost", NetworkReach::Loopback),
            ("127.1.2.3", NetworkReach::Loopback),
            ("0.0.0.0", NetworkReach::Loopback),
            ("[::1]", NetworkReach::Loopback),
            ("[::ffff:127.0.0.1]", NetworkReach::Loopback),
            ("10.1.2.3", NetworkReach::Private),
            ("172.16.0.1", NetworkReach::Private),
            ("192.168.1.1", NetworkReach::Private),
            ("169.254.169.254", NetworkReach::Private),
            ("100.64.0.1", NetworkReach::Private),
            ("[fd00::1]", NetworkReach::Private),
            ("[fe80::1]", NetworkReach::Private),
            ("printer.local", NetworkReach::Private),
            ("intranet", NetworkReach::Private),
            ("router.home.arpa", NetworkReach::Private),
            ("8.8.8.8", NetworkReach::Public),
            ("172.32.0.1", NetworkReach::Public),
            ("[2001:db8::1]", NetworkReach::Public),
            ("notlocalhost.com", NetworkReach::Public),
            ("mylocal.com", NetworkReach::Public),
        ] {
            assert_eq!(host(text).reach(), reach, "{text}");
        }
    }

    #[test]
    fn names_that_pretend_are_seen() {
        // Cyrillic а, р, у in place of Latin ones; all-Cyrillic apple; Greek omicron.
        for (text, like) in [
            ("раураl.com", Some("paypal.com")),
            ("аррӏе.com", Some("apple.com")),
            ("gοοgle.com", Some("google.com")),
            ("müller.de", None),
            ("bücher.example.com", None),
            ("яндекс.рф", None),
            ("中国.com", None),
            ("example.com", None),
        ] {
            assert_eq!(host(text).confusable_with().as_deref(), like, "{text}");
        }
    }

    #[test]
    fn scripts_that_no_language_mixes_are_seen() {
        for (text, mixed) in [
            ("раураl.com", true),
            ("gοοgle.com", true),
            ("аррӏе.com", false),
            ("müller.de", false),
            ("яндекс-1.рф", false),
            ("東京タワーabc.jp", false),
            ("hello한국.kr", false),
        ] {
            assert_eq!(host(text).mixes_scripts(), mixed, "{text}");
        }
    }

    #[test]
    fn a_familiar_domain_in_front_of_the_real_one_is_seen() {
        for (text, pretended) in [
            ("paypal.com.evil.net", Some("paypal.com")),
            ("www.paypal.com.evil.net", Some("paypal.com")),
            ("accounts.paypal.com-login.evil.net", Some("paypal.com")),
            ("paypal.com-secure.net", Some("paypal.com")),
            ("www.example.com", None),
            ("com.example.org", None),
            ("api.dev.example.com", None),
            ("community.example.com", None),
            ("my.org.uk", None),
            ("a.com-pany.org", None),
        ] {
            assert_eq!(
                host(text).pretended_domain().as_deref(),
                pretended,
                "{text}"
            );
        }
    }
}
