//! Requests without redirects. An address from outside may only be in public networks: the IP addresses are checked
//! after resolution, and the connection uses one of the checked ones.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::fault::chain;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use url::{Host, Url};

use crate::channel::{ChannelError, NotSentReason};

/// The longest reply that is read, in bytes.
const REPLY_LIMIT: usize = 1024 * 1024;

/// The networks that requests may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Networks {
    /// Public ones, over https.
    Public,
    /// Any, as the operator's configuration says; http only on this machine.
    Any,
}

/// An HTTP client that cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP")]
pub struct ChannelHttpError(#[from] reqwest::Error);

/// A client for the requests of channels.
#[derive(Clone)]
pub struct ChannelHttp {
    client: reqwest::Client,
    networks: Networks,
}

impl fmt::Debug for ChannelHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelHttp")
            .field("networks", &self.networks)
            .finish_non_exhaustive()
    }
}

/// A reply, read in full.
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

impl ChannelHttp {
    /// Creates a client whose requests end after `limit`.
    pub fn new(networks: Networks, limit: Duration) -> Result<Self, ChannelHttpError> {
        // A provider that is already installed stays.
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .user_agent(concat!("mcp-elicit/", env!("CARGO_PKG_VERSION")))
            // A redirect would lead to an unchecked address.
            .redirect(reqwest::redirect::Policy::none())
            // Through a proxy, the connection would not use the checked address.
            .no_proxy()
            .timeout(limit);
        let builder = match networks {
            Networks::Public => builder.dns_resolver(Arc::new(PublicResolver)),
            Networks::Any => builder,
        };
        Ok(Self {
            client: builder.build()?,
            networks,
        })
    }

    /// Checks the scheme and a literal IP address. Names are checked when they are resolved.
    pub fn check(&self, url: &Url) -> Result<(), ChannelError> {
        let refuse = |why| Err(ChannelError::Permanent(why));
        let (is_public, is_loopback) = match url.host() {
            None => return refuse(NotSentReason::Address),
            Some(Host::Ipv4(ip)) => (is_public(IpAddr::V4(ip)), ip.is_loopback()),
            Some(Host::Ipv6(ip)) => (is_public(IpAddr::V6(ip)), ip.is_loopback()),
            Some(Host::Domain(name)) => {
                // The dot of the root may end a name, without which it is the same one.
                let rooted = name.strip_suffix('.').unwrap_or(name);
                let is_local = rooted == "localhost" || rooted.ends_with(".localhost");
                (!is_local, name == "localhost")
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(NotSentReason::Address);
        }
        match (self.networks, url.scheme()) {
            (Networks::Public, "https") if is_public => Ok(()),
            (Networks::Public, "https") => refuse(NotSentReason::PrivateAddress),
            (Networks::Any, "https") => Ok(()),
            (Networks::Any, "http") if is_loopback => Ok(()),
            _ => refuse(NotSentReason::Address),
        }
    }

    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<HttpReply, ChannelError> {
        self.check(url)?;
        let request = self.client.post(url.clone()).headers(headers).body(body);
        self.run(request).await
    }

    pub(crate) async fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<HttpReply, ChannelError> {
        self.check(url)?;
        self.run(self.client.get(url.clone()).headers(headers))
            .await
    }

    async fn run(&self, request: reqwest::RequestBuilder) -> Result<HttpReply, ChannelError> {
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        let after = response.headers().get(RETRY_AFTER);
        let retry_after = after
            .and_then(|after| after.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            if body.len() + chunk.len() > REPLY_LIMIT {
                return Err(ChannelError::retry(NotSentReason::Reply));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(HttpReply {
            status: response.status().as_u16(),
            retry_after,
            body,
        })
    }
}

/// Returns the error for a status that is not a success. `408`, `429` and those from 500 may be temporary.
pub(crate) fn refused(reply: &HttpReply) -> ChannelError {
    let after = reply.retry_after;
    match reply.status {
        429 => ChannelError::Retry {
            after,
            why: NotSentReason::TooMany,
        },
        status @ (408 | 500..) => ChannelError::Retry {
            after,
            why: NotSentReason::Refused(status),
        },
        status => ChannelError::Permanent(NotSentReason::Refused(status)),
    }
}

fn failed(error: &reqwest::Error) -> ChannelError {
    if chain(error).any(<dyn Error>::is::<PrivateAddress>) {
        return ChannelError::Permanent(NotSentReason::PrivateAddress);
    }
    ChannelError::retry(if is_of_tls(error) {
        NotSentReason::Tls
    } else if error.is_timeout() {
        NotSentReason::TimedOut
    } else {
        NotSentReason::Unreachable
    })
}

/// Returns `true` if TLS failed, at any depth in the error's sources.
pub(crate) fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|cause| {
        let inner = cause.downcast_ref::<std::io::Error>();
        let inner = inner.and_then(std::io::Error::get_ref);
        cause.is::<rustls::Error>()
            || inner.is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>)
    })
}

/// A resolver that rejects names with an address that is not public.
struct PublicResolver;

#[derive(Debug, thiserror::Error)]
#[error("the address is not public")]
struct PrivateAddress;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            if found.iter().any(|at| !is_public(at.ip())) {
                return Err(PrivateAddress.into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

/// Returns `true` for an address of the public internet (IANA special-purpose registries).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        (0 | 10 | 127 | 224.., ..)
        | (169, 254, _)
        | (192, 168, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => true,
        (100, b, _) => (64..128).contains(&b),
        (172, b, _) => (16..32).contains(&b),
        _ => false,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // IPv4 addresses in mapped, translated (NAT64) and tunnelled (6to4) form.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        // Documentation, benchmarks, ORCHID, Teredo.
        [0x2001, 0..0x200 | 0xdb8, ..] => false,
        // Global unicast.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_told_from_others() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        let limit = Duration::from_secs(1);
        let public = ChannelHttp::new(Networks::Public, limit).unwrap();
        let any = ChannelHttp::new(Networks::Any, limit).unwrap();
        let check = |http: &ChannelHttp, url: &str| http.check(&url.parse().unwrap()).is_ok();
        for (url, of_public, of_any) in [
            ("https://push.example.com/x", true, true),
            ("https://push.example.com:8443/x", true, true),
            ("http://push.example.com/x", false, false),
            ("https://127.0.0.1/x", false, true),
            ("https://2130706433/x", false, true),
            ("https://[::1]/x", false, true),
            ("https://localhost/x", false, true),
            ("https://a.localhost/x", false, true),
            ("https://localhost./x", false, true),
            ("https://a.localhost./x", false, true),
            ("http://localhost./x", false, false),
            ("http://127.0.0.1:9/x", false, true),
            ("http://10.0.0.1/x", false, false),
            ("https://user:secret@push.example.com/", false, false),
            ("ftp://push.example.com/", false, false),
            ("data:text/plain,x", false, false),
        ] {
            assert_eq!(
                (check(&public, url), check(&any, url)),
                (of_public, of_any),
                "{url}"
            );
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused_when_it_is_resolved() {
        let http = ChannelHttp::new(Networks::Public, Duration::from_secs(20)).unwrap();
        let sent = http.run(http.client.post("https://localhost:9/x")).await;
        assert_eq!(
            sent.err(),
            Some(ChannelError::Permanent(NotSentReason::PrivateAddress))
        );
    }
}
