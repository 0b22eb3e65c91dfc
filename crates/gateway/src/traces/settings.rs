//! The collector and the sampling: the setting `traces` of the file, and the variables of OpenTelemetry's specification.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::context::SpanContext;

/// The path of traces at a collector.
const PATH: &str = "v1/traces";
/// The bounds of times in variables, in milliseconds.
const MILLIS: std::ops::RangeInclusive<u64> = 1..=600_000;

/// The settings of traces.
#[derive(Debug)]
pub(super) struct TraceSettings {
    /// The address that spans are sent to.
    pub(super) endpoint: Url,
    /// Headers for the collector, such as credentials.
    pub(super) headers: HeaderMap,
    /// The longest time of one request to the collector.
    pub(super) timeout: Duration,
    /// The longest time that a span waits for others.
    pub(super) delay: Duration,
    /// The attributes of the gateway.
    pub(super) resource: Vec<(String, String)>,
    /// The decision which traces are recorded.
    pub(super) sampler: Sampler,
}

impl TraceSettings {
    /// Reads the settings; `None` if no collector is configured, or traces are switched off. `configured` is the address in
    /// the file. A variable with an invalid value is reported, and ignored.
    pub(super) fn read(
        configured: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let variable = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let of_traces = |name: &str| {
            let specific = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
            variable(&specific).or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let is_off = variable("OTEL_SDK_DISABLED").is_some_and(|value| is_true(&value))
            || variable("OTEL_TRACES_EXPORTER").as_deref() == Some("none");
        if is_off {
            return None;
        }
        let endpoint = if let Some(address) = configured {
            endpoint_at(address)
        } else {
            let of_traces_only = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
            let of_all = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
            let endpoint = match (of_traces_only, of_all) {
                (Some(whole), _) => http_url(&whole),
                (None, Some(address)) => endpoint_at(&address),
                (None, None) => return None,
            };
            if of_traces("PROTOCOL").is_some_and(|protocol| protocol != "http/protobuf") {
                tracing::warn!(
                    "no traces are sent: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf"
                );
                return None;
            }
            endpoint
        };
        let Some(endpoint) = endpoint else {
            tracing::warn!("no traces are sent: the collector's address must begin with http://");
            return None;
        };
        let millis = |name: &str, value: Option<String>, usual: u64| {
            let read = value.map(|value| value.parse().ok().filter(|time| MILLIS.contains(time)));
            if read == Some(None) {
                tracing::warn!(name, "a variable is ignored: it must be milliseconds");
            }
            Duration::from_millis(read.flatten().unwrap_or(usual))
        };
        Some(Self {
            endpoint,
            headers: of_traces("HEADERS").map_or_else(HeaderMap::new, |text| headers(&text)),
            timeout: millis("OTEL_EXPORTER_OTLP_TIMEOUT", of_traces("TIMEOUT"), 10_000),
            delay: millis(
                "OTEL_BSP_SCHEDULE_DELAY",
                variable("OTEL_BSP_SCHEDULE_DELAY"),
                5_000,
            ),
            resource: resource(
                variable("OTEL_RESOURCE_ATTRIBUTES").as_deref(),
                variable("OTEL_SERVICE_NAME"),
            ),
            sampler: Sampler::read(
                variable("OTEL_TRACES_SAMPLER").as_deref(),
                variable("OTEL_TRACES_SAMPLER_ARG").as_deref(),
            ),
        })
    }
}

fn is_true(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

fn http_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https");
    (is_http && url.has_host()).then_some(url)
}

/// Returns the address of traces at the collector of this address.
fn endpoint_at(address: &str) -> Option<Url> {
    let mut url = http_url(address)?;
    let path = format!("{}/{PATH}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Some(url)
}

/// Reads pairs of the form `name=value,name=value`, with escapes in percent.
fn pairs(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.split(',').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim(), value.into_owned()))
    })
}

fn headers(text: &str) -> HeaderMap {
    let read = |(name, value): (&str, String)| {
        let name = name.parse::<HeaderName>().ok()?;
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    pairs(text).filter_map(read).collect()
}

fn resource(attributes: Option<&str>, service: Option<String>) -> Vec<(String, String)> {
    const SERVICE: &str = "service.name";
    let mut all: Vec<_> = attributes
        .into_iter()
        .flat_map(pairs)
        .map(|(name, value)| (name.to_owned(), value))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    if let Some(service) = service {
        all.retain(|(name, _)| name != SERVICE);
        all.push((SERVICE.to_owned(), service));
    } else if !all.iter().any(|(name, _)| name == SERVICE) {
        all.push((SERVICE.to_owned(), "mcp-elicit".to_owned()));
    }
    all
}

/// The decision which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampler {
    /// `true` if the decision of the client counts, if it made one.
    follows_parent: bool,
    /// Of 2⁶³ traces, those that are recorded.
    share: u64,
}

/// All traces.
const ALL: u64 = 1 << 63;

impl Sampler {
    fn read(name: Option<&str>, argument: Option<&str>) -> Self {
        let name = name.unwrap_or("parentbased_always_on");
        let (follows_parent, of_roots) = match name.strip_prefix("parentbased_") {
            Some(of_roots) => (true, of_roots),
            None => (false, name),
        };
        let share = match of_roots {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => share_of(argument),
            _ => {
                tracing::warn!("OTEL_TRACES_SAMPLER is ignored: it has an unknown name");
                return Self::read(None, None);
            }
        };
        Self {
            follows_parent,
            share,
        }
    }

    /// Returns `true` if a trace is recorded, given the client's decision if there is one.
    pub(super) fn samples(self, of_parent: Option<bool>, context: SpanContext) -> bool {
        let decided = of_parent.filter(|_| self.follows_parent);
        decided.unwrap_or_else(|| {
            let id = context.trace_id();
            let low = id[8..]
                .iter()
                .fold(0, |all, byte| (all << 8) | u64::from(*byte));
            low >> 1 < self.share
        })
    }
}

/// Returns the share of traces of a number from 0 to 1; all if it is not one.
fn share_of(argument: Option<&str>) -> u64 {
    let Some(argument) = argument else {
        return ALL;
    };
    match argument.parse::<f64>() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of at most 2⁶³"
        )]
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => (ratio * ALL as f64) as u64,
        _ => {
            tracing::warn!("OTEL_TRACES_SAMPLER_ARG is ignored: it must be a number from 0 to 1");
            ALL
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(configured: Option<&str>, variables: &[(&str, &str)]) -> Option<TraceSettings> {
        TraceSettings::read(configured, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_sent_unless_a_collector_is_configured() {
        let at = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        assert!(read(None, &[]).is_none());
        assert!(read(None, &[("OTEL_SERVICE_NAME", "gate")]).is_none());
        assert!(read(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "  ")]).is_none());
        assert!(read(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318")]).is_none());
        for off in [
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ] {
            assert!(read(None, &[at, off]).is_none(), "{off:?}");
        }
        assert!(read(None, &[at]).is_some());
        assert!(read(Some("http://d"), &[("OTEL_SDK_DISABLED", "TRUE")]).is_none());
    }

    #[test]
    fn the_address_is_that_of_the_file_or_of_traces_or_of_all_signals() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/x");
        for (configured, variables, expected) in [
            (None, &[all][..], "http://c:4318/base/v1/traces"),
            (None, &[all, own], "http://t:1/x"),
            (Some("https://d"), &[all, own], "https://d/v1/traces"),
        ] {
            let read = read(configured, variables).unwrap();
            assert_eq!(read.endpoint.as_str(), expected);
        }
    }

    #[test]
    fn headers_times_and_attributes_are_those_of_the_environment() {
        let read = read(
            Some("http://c:4318"),
            &[
                (
                    "OTEL_EXPORTER_OTLP_HEADERS",
                    "authorization=Bearer%20a, x = b,,wrong name=1",
                ),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
                ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
                (
                    "OTEL_RESOURCE_ATTRIBUTES",
                    "service.name=a,region=eu%2Fwest",
                ),
                ("OTEL_SERVICE_NAME", "gate"),
            ],
        );
        let read = read.unwrap();
        assert_eq!(read.headers["authorization"], "Bearer a");
        assert!(read.headers["authorization"].is_sensitive());
        assert_eq!(
            (read.headers.len(), &read.headers["x"]),
            (2, &HeaderValue::from_static("b"))
        );
        assert_eq!(read.timeout, Duration::from_millis(250));
        assert_eq!(read.delay, Duration::from_secs(5));
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read.resource,
            [text("region", "eu/west"), text("service.name", "gate")]
        );
        assert_eq!(resource(None, None), [text("service.name", "mcp-elicit")]);
    }

    #[test]
    fn the_decision_of_the_client_counts_unless_the_sampler_ignores_it() {
        let low = "00-0af7651916cd43dd0000000000000001-b7ad6b7169203331-00";
        let high = "00-0af7651916cd43ddffffffffffffffff-b7ad6b7169203331-00";
        let [low, high] = [low, high].map(|text| SpanContext::read(text).unwrap().0);
        for (name, argument, expected) in [
            // Of a new trace with a low and a high id; of a client that records, and of one that does not.
            (None, None, [true, true, true, false]),
            (
                Some("parentbased_always_off"),
                None,
                [false, false, true, false],
            ),
            (Some("always_on"), None, [true, true, true, true]),
            (Some("always_off"), None, [false; 4]),
            (
                Some("parentbased_traceidratio"),
                Some("0.5"),
                [true, false, true, false],
            ),
            (Some("traceidratio"), Some("0"), [false; 4]),
            (Some("traceidratio"), Some("2"), [true; 4]),
            (Some("jaeger_remote"), None, [true, true, true, false]),
        ] {
            let sampler = Sampler::read(name, argument);
            let found = [
                sampler.samples(None, low),
                sampler.samples(None, high),
                sampler.samples(Some(true), low),
                sampler.samples(Some(false), low),
            ];
            assert_eq!(found, expected, "{name:?} {argument:?}");
        }
    }
}
