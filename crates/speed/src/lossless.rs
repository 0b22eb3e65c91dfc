//! Checks that numbers, characters, ids and unknown fields pass both ways unchanged.

use std::io;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The call, with a string as its id, and values that careless readers change.
pub(crate) const CALL: &str = "{\"jsonrpc\":\"2.0\",\"id\":\"call-7\",\"method\":\"tools/call\",\"params\":{\"name\":\"mirror\",\"arguments\":{\"big\":12345678901234567890,\"whole\":1.0,\"tiny\":1e-7,\"line\":\"a\u{2028}b\",\"none\":null},\"x-new\":{\"rate\":2.50}}}";
/// Its id.
pub(crate) const ID: &str = "\"call-7\"";

#[derive(Deserialize)]
struct RateResponse<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: RateResult<'a>,
}

#[derive(Deserialize)]
struct RateResult<'a> {
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<Structured<'a>>,
    #[serde(borrow, default, rename = "x-new")]
    new: Option<Rate<'a>>,
}

#[derive(Deserialize)]
struct Structured<'a> {
    #[serde(borrow, default)]
    seen: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow, default, rename = "x-new")]
    new: Option<Rate<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    big: Option<&'a RawValue>,
    #[serde(borrow, default)]
    whole: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tiny: Option<&'a RawValue>,
    #[serde(default)]
    line: Option<String>,
    // `null` would read as absent.
    #[serde(borrow, default, deserialize_with = "some")]
    none: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Rate<'a> {
    #[serde(borrow)]
    rate: &'a RawValue,
}

fn some<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    reader: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    Deserialize::deserialize(reader).map(Some)
}

/// Returns descriptions of the values that were lost or changed on the way; empty if there are none.
pub(crate) fn lost(response: &[u8]) -> io::Result<Vec<&'static str>> {
    let response: RateResponse<'_> = serde_json::from_slice(response)?;
    let params = response.result.structured.and_then(|found| found.seen);
    let (arguments, new) = params.map_or((None, None), |params| (params.arguments, params.new));
    let same =
        |found: Option<&RawValue>, wanted: &str| found.is_some_and(|raw| raw.get() == wanted);
    let rate =
        |found: Option<Rate<'_>>, wanted: &str| found.is_some_and(|new| new.rate.get() == wanted);
    let argument = |of: fn(&Arguments<'_>) -> bool| arguments.as_ref().is_some_and(of);
    let checks = [
        ("string id", same(Some(response.id), ID)),
        (
            "12345678901234567890",
            argument(|all| {
                all.big
                    .is_some_and(|raw| raw.get() == "12345678901234567890")
            }),
        ),
        (
            "1.0",
            argument(|all| all.whole.is_some_and(|raw| raw.get() == "1.0")),
        ),
        (
            "1e-7",
            argument(|all| all.tiny.is_some_and(|raw| raw.get() == "1e-7")),
        ),
        (
            "U+2028",
            argument(|all| all.line.as_deref() == Some("a\u{2028}b")),
        ),
        (
            "null",
            argument(|all| all.none.is_some_and(|raw| raw.get() == "null")),
        ),
        ("unknown param", rate(new, "2.50")),
        ("unknown result field", rate(response.result.new, "1e-7")),
    ];
    Ok(checks
        .into_iter()
        .filter(|(_, kept)| !kept)
        .map(|(name, _)| name)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_is_named() {
        let good = "{\"id\":\"call-7\",\"result\":{\"structuredContent\":{\"seen\":{\"arguments\":{\"big\":12345678901234567890,\"whole\":1.0,\"tiny\":1e-7,\"line\":\"a\\u2028b\",\"none\":null},\"x-new\":{\"rate\":2.50}}},\"x-new\":{\"rate\":1e-7}}}";
        assert!(lost(good.as_bytes()).unwrap().is_empty());
        let bad = good
            .replace("1.0", "1")
            .replace("12345678901234567890", "12345678901234567000")
            .replace("\"call-7\"", "7");
        assert_eq!(
            lost(bad.as_bytes()).unwrap(),
            ["string id", "12345678901234567890", "1.0"]
        );
        assert_eq!(lost(b"{\"id\":\"call-7\",\"result\":{}}").unwrap().len(), 7);
    }
}
