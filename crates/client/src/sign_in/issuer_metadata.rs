//! The metadata that an authorization server publishes at its own well-known addresses (RFC 8414, section 3; OpenID Connect
//! Discovery 1.0, section 4). Metadata that were read elsewhere may name an issuer that never published them.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::transport::auth::AuthorizationMetadata;

use super::{SignInError, is_same_issuer};

/// The longest document that is read, in bytes, and the most redirects within the origin: those of rmcp's discovery.
const LONGEST: usize = 1024 * 1024;
const MOST_REDIRECTS: usize = 10;

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Returns the metadata that the issuer of these publishes itself, if they have the same endpoints. `server` is the URL of
/// the server whose discovery found them: it decides which networks may be reached.
pub(super) async fn published(
    server: &str,
    found: &AuthorizationMetadata,
) -> Result<AuthorizationMetadata, SignInError> {
    let Some(issuer) = found.issuer.clone() else {
        return Err(SignInError::NoIssuer);
    };
    let unreadable = |source| SignInError::IssuerUnreadable {
        issuer: issuer.clone(),
        source,
    };
    let networks = MetadataNetworks::of(server);
    let identifier = Url::parse(&issuer).map_err(|error| unreadable(error.into()))?;
    networks.check(&identifier).map_err(unreadable)?;
    let client = client(networks).map_err(|error| unreadable(error.into()))?;
    let mut failure = None;
    let mut is_other = false;
    for address in well_known(&identifier) {
        match read(&client, address).await {
            Ok(Some(own)) if is_issued_by(&own, &issuer) => {
                if has_same_endpoints(&own, found) {
                    return Ok(own);
                }
                is_other = true;
            }
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(source) if !is_other => Err(unreadable(source)),
        _ => Err(SignInError::NotItsMetadata { issuer }),
    }
}

fn is_issued_by(metadata: &AuthorizationMetadata, issuer: &str) -> bool {
    let named = metadata.issuer.as_ref();
    named.is_some_and(|named| is_same_issuer(named, issuer))
}

fn has_same_endpoints(one: &AuthorizationMetadata, other: &AuthorizationMetadata) -> bool {
    one.authorization_endpoint == other.authorization_endpoint
        && one.token_endpoint == other.token_endpoint
        && one.registration_endpoint == other.registration_endpoint
}

/// Returns the addresses at which the metadata of an issuer may be: the well-known part before its path and after it, and
/// at last that of the whole host, which some servers with a path use. All are of its own origin.
fn well_known(issuer: &Url) -> Vec<Url> {
    let at = |path: &str| {
        let mut address = issuer.clone();
        address.set_query(None);
        address.set_fragment(None);
        address.set_path(path);
        address
    };
    let path = issuer.path().trim_matches('/');
    if path.is_empty() {
        return vec![at(OAUTH), at(OPENID)];
    }
    vec![
        at(&format!("{OAUTH}/{path}")),
        at(&format!("{OPENID}/{path}")),
        at(&format!("/{path}{OPENID}")),
        at(&format!("/{path}{OAUTH}")),
        at(OAUTH),
    ]
}

/// Returns a client that reaches these networks, and follows redirects within an origin only.
fn client(networks: MetadataNetworks) -> reqwest::Result<reqwest::Client> {
    let redirects = reqwest::redirect::Policy::custom(|attempt| {
        let from = attempt.previous().last().map(Url::origin);
        let is_within = from.is_some_and(|from| from == attempt.url().origin());
        if is_within && attempt.previous().len() <= MOST_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    crate::tls::client()
        .redirect(redirects)
        .dns_resolver(Arc::new(networks))
        .build()
}

/// Returns the metadata at an address, if there are any.
async fn read(
    client: &reqwest::Client,
    address: Url,
) -> Result<Option<AuthorizationMetadata>, BoxError> {
    let sent = client.get(address).send().await;
    let mut response = sent.map_err(reqwest::Error::without_url)?;
    if response.status() != ::http::StatusCode::OK {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(reqwest::Error::without_url)?
    {
        if body.len().saturating_add(chunk.len()) > LONGEST {
            return Err(format!("a document is longer than {LONGEST} bytes").into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(serde_json::from_slice(&body).ok())
}

type BoxError = Box<dyn Error + Send + Sync>;

/// The networks that may be reached for the metadata of an issuer: the public one, and this machine or private ones only if
/// the server's own URL is an address there. These are the rules of rmcp's discovery.
#[derive(Debug, Clone)]
struct MetadataNetworks {
    own: Network,
    /// The hosts of proxies, which resolve the other names.
    proxies: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    Public,
    Private,
    Machine,
    /// Link-local (with the metadata service of a cloud), multicast and reserved addresses.
    Reserved,
}

impl MetadataNetworks {
    fn of(server: &str) -> Self {
        let url = Url::parse(server).ok();
        let proxies = PROXIES.iter().filter_map(|name| {
            let proxy = std::env::var(name).ok()?;
            let with_scheme = || format!("http://{proxy}");
            let url = if proxy.contains("://") {
                Url::parse(&proxy)
            } else {
                Url::parse(&with_scheme())
            };
            url.ok()?.host_str().map(plain)
        });
        Self {
            own: url
                .as_ref()
                .and_then(named_network)
                .unwrap_or(Network::Public),
            proxies: proxies.collect(),
        }
    }

    fn allow(&self, network: Network) -> bool {
        match network {
            Network::Public => true,
            Network::Private | Network::Machine => network == self.own,
            Network::Reserved => false,
        }
    }

    /// Checks a host that is an address; names are checked when they are resolved.
    fn check(&self, url: &Url) -> Result<(), BoxError> {
        match named_network(url) {
            Some(network) if !self.allow(network) => Err(NOT_ALLOWED.into()),
            Some(_) | None => Ok(()),
        }
    }
}

const PROXIES: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

const NOT_ALLOWED: &str = "its address is in a network that this server may not name";

impl Resolve for MetadataNetworks {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_proxy = this.proxies.contains(&plain(name.as_str()));
            let may_reach = |at: &SocketAddr| is_proxy || this.allow(network_of(at.ip()));
            let allowed: Vec<SocketAddr> = found.filter(may_reach).collect();
            if allowed.is_empty() {
                return Err(io::Error::other(NOT_ALLOWED).into());
            }
            let addresses: Addrs = Box::new(allowed.into_iter());
            Ok(addresses)
        })
    }
}

/// Returns a host as it is compared.
fn plain(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns the network of a host that is an address, or a name of this machine.
fn named_network(url: &Url) -> Option<Network> {
    let host = plain(url.host_str()?);
    if let Ok(address) = host.trim_matches(['[', ']']).parse() {
        return Some(network_of(address));
    }
    (host == "localhost" || host.ends_with(".localhost")).then_some(Network::Machine)
}

fn network_of(address: IpAddr) -> Network {
    match address {
        IpAddr::V4(address) => network_of_v4(address),
        IpAddr::V6(address) => network_of_v6(address),
    }
}

fn network_of_v4(address: Ipv4Addr) -> Network {
    match address.octets() {
        [127, ..] => Network::Machine,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Network::Private,
        [0 | 224.., ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Network::Reserved,
        _ => Network::Public,
    }
}

fn network_of_v6(address: Ipv6Addr) -> Network {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        network_of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Network::Machine,
        // IPv4 addresses in mapped, compatible, translated (NAT64) and tunnelled (6to4) form.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] => Network::Private,
        [0x2001, 0 | 0xdb8, ..] => Network::Reserved,
        [0x2000..=0x3fff, ..] => Network::Public,
        _ => Network::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_an_issuer_are_of_its_origin() {
        let paths = |issuer: &str| {
            let issuer = Url::parse(issuer).expect("an issuer");
            let all = well_known(&issuer);
            assert!(
                all.iter()
                    .all(|address| address.origin() == issuer.origin())
            );
            let paths = all.iter().map(|address| address.path().to_owned());
            paths.collect::<Vec<_>>()
        };
        assert_eq!(paths("https://v.example"), [OAUTH, OPENID]);
        assert_eq!(paths("https://v.example/"), [OAUTH, OPENID]);
        let of_path = [
            "/.well-known/oauth-authorization-server/a/b",
            "/.well-known/openid-configuration/a/b",
            "/a/b/.well-known/openid-configuration",
            "/a/b/.well-known/oauth-authorization-server",
            "/.well-known/oauth-authorization-server",
        ];
        assert_eq!(paths("https://v.example/a/b"), of_path);
        assert_eq!(paths("https://v.example/a/b/?x#y"), of_path);
    }

    #[test]
    fn a_public_server_names_no_issuer_of_this_machine_or_a_private_network() {
        let allows = |server: &str, issuer: &str| {
            let issuer = Url::parse(issuer).expect("an issuer");
            MetadataNetworks::of(server).check(&issuer).is_ok()
        };
        let inner = [
            "http://127.0.0.1:9/",
            "http://localhost:9/",
            "https://x.localhost./",
            "https://10.0.0.9/",
            "https://[::1]/",
            "https://[fd12::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://100.64.0.1/",
        ];
        for issuer in inner {
            assert!(!allows("https://s.example/mcp", issuer), "{issuer}");
            assert!(!allows("https://8.8.8.8/mcp", issuer), "{issuer}");
        }
        for server in [
            "https://s.example/",
            "http://127.0.0.1/",
            "https://10.0.0.1/",
        ] {
            for issuer in [
                "https://169.254.169.254/",
                "https://0.0.0.0/",
                "https://[fe80::1]/",
                "https://[ff02::1]/",
            ] {
                assert!(!allows(server, issuer), "{server} {issuer}");
            }
            assert!(allows(server, "https://v.example/"), "{server}");
            assert!(allows(server, "https://1.1.1.1/"), "{server}");
        }
        assert!(allows("http://127.0.0.1:1/mcp", "http://localhost:2"));
        assert!(allows("https://10.0.0.1/mcp", "https://192.168.0.9"));
        assert!(!allows("https://10.0.0.1/mcp", "https://127.0.0.1"));
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_resolved_only_for_a_server_there() {
        let resolves = async |server: &str| {
            let name = "localhost".parse().expect("a name");
            MetadataNetworks::of(server).resolve(name).await.is_ok()
        };
        assert!(resolves("http://127.0.0.1:1/mcp").await);
        assert!(!resolves("https://s.example/mcp").await);
    }
}
