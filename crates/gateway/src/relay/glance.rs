//! One look at a frame: where its top-level members stand, without reading what is in them.
//!
//! This is all that a frame without elicitation costs. It jumps over strings and values, so a megabyte of text is
//! passed at the speed of `memchr`. What it cannot place it reports as unsound, and the caller then takes no decision
//! on the frame: a frame that this reader and a peer could read differently must not be trusted to be harmless.

use std::ops::Range;

/// Where the members of a JSON-RPC frame stand, as byte ranges into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The id with its quotes, if it is a string.
    pub id: Option<Range<usize>>,
    /// The method without its quotes.
    pub method: Option<Range<usize>>,
    /// The value of `params`.
    pub params: Option<Range<usize>>,
    /// The value of `_meta` in `params`, the first of that name.
    pub meta: Option<Range<usize>>,
    /// The value of `result`.
    pub result: Option<Range<usize>>,
    /// The value of `error`.
    pub error: Option<Range<usize>>,
}

/// What a frame is by its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `method` and `id`.
    Request,
    /// `method` without `id`.
    Notification,
    /// `id` with `result` or `error`.
    Response,
}

impl Glance {
    /// Looks at a frame. `None` when it is not one JSON object with each of these members at most once, spelled
    /// without escapes.
    pub fn at(frame: &[u8]) -> Option<Self> {
        let mut glance = Self::default();
        let mut meta = None;
        let end = each_key(frame, 0, |key, at| {
            let place = match key {
                b"id" => &mut glance.id,
                b"method" => &mut glance.method,
                b"params" => &mut glance.params,
                b"result" => &mut glance.result,
                b"error" => &mut glance.error,
                // An escaped key may spell any of these.
                _ if key.contains(&b'\\') => return None,
                _ => return skip_value(frame, at),
            };
            let end = match key {
                b"params" => skip_params(frame, at, &mut meta)?,
                _ => skip_value(frame, at)?,
            };
            place.replace(at..end).is_none().then_some(end)
        })?;
        glance.meta = meta;
        if let Some(method) = &mut glance.method {
            if frame[method.start] != b'"' || frame[method.clone()].contains(&b'\\') {
                return None;
            }
            *method = method.start + 1..method.end - 1;
        }
        (skip_space(frame, end) == frame.len()).then_some(glance)
    }

    /// What the frame is, `None` when its members do not make a message.
    pub fn shape(&self) -> Option<Shape> {
        match (
            &self.method,
            &self.id,
            self.result.is_some() || self.error.is_some(),
        ) {
            (Some(_), Some(_), false) => Some(Shape::Request),
            (Some(_), None, false) => Some(Shape::Notification),
            (None, Some(_), true) => Some(Shape::Response),
            _ => None,
        }
    }
}

/// The value of the first member of the object in `range` with this name (which has no characters that JSON escapes).
///
/// `None` when there is none, when its key is written with escapes, or when the text is no object.
pub fn member(frame: &[u8], range: &Range<usize>, name: &str) -> Option<Range<usize>> {
    let mut found = None;
    // What stands behind it was looked at with the frame.
    let _stopped = each_member(&frame[..range.end], range.start, |key, value| {
        if key == name.as_bytes() {
            found = Some(value);
        }
        found.is_none()
    });
    found
}

/// What an object says of a member cannot be told: the name stands in it twice, a key may spell it with escapes, or the
/// text is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear;

/// The value of the only member of the object in `range` with this name; `None` when it certainly has none. For what is
/// decided by the member: two readers of what is unclear could see different values.
pub fn sole_member(
    frame: &[u8],
    range: &Range<usize>,
    name: &str,
) -> Result<Option<Range<usize>>, Unclear> {
    let mut found = None;
    let end = each_member(&frame[..range.end], range.start, |key, value| {
        let once = key != name.as_bytes() || found.replace(value).is_none();
        once && !key.contains(&b'\\')
    });
    end.map(|_| found).ok_or(Unclear)
}

/// Calls `each` with every key (without quotes, as written) and the range of its value; stops when it says `false`.
/// Gives the position behind the closing brace.
fn each_member(
    text: &[u8],
    from: usize,
    mut each: impl FnMut(&[u8], Range<usize>) -> bool,
) -> Option<usize> {
    each_key(text, from, |key, at| {
        let end = skip_value(text, at)?;
        each(key, at..end).then_some(end)
    })
}

/// The position behind the `params` that start at `at`, as [`skip_value`] gives it; their `_meta` is found on the way.
fn skip_params(text: &[u8], at: usize, meta: &mut Option<Range<usize>>) -> Option<usize> {
    let walked = each_member(text, at, |key, value| {
        if key == b"_meta" && meta.is_none() {
            *meta = Some(value);
        }
        true
    });
    walked.or_else(|| {
        *meta = None;
        skip_value(text, at)
    })
}

/// Calls `skip` with every key (without quotes, as written) and the position of its value, for the position behind that;
/// stops where there is none. Gives the position behind the closing brace.
fn each_key(
    text: &[u8],
    from: usize,
    mut skip: impl FnMut(&[u8], usize) -> Option<usize>,
) -> Option<usize> {
    let mut at = skip_space(text, from);
    if text.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(text, at + 1);
    if text.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        let key_end = skip_string(text, at)?;
        let key = &text[at + 1..key_end - 1];
        at = skip_space(text, key_end);
        if text.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(text, at + 1);
        at = skip_space(text, skip(key, at)?);
        match text.get(at)? {
            b',' => at = skip_space(text, at + 1),
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The position behind the string that starts at `at`.
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The position behind the value that starts at `at`. Brackets are counted, not matched by kind: the peer parses.
fn skip_value(text: &[u8], mut at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => return skip_string(text, at),
        b'{' | b'[' => {}
        _ => {
            let start = at;
            while !matches!(
                text.get(at),
                None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
            ) {
                at += 1;
            }
            return (at > start).then_some(at);
        }
    }
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => {
                at = skip_string(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part<'a>(frame: &'a str, range: Option<&Range<usize>>) -> &'a str {
        &frame[range.unwrap().clone()]
    }

    #[test]
    fn members_are_found_wherever_they_stand() {
        let frame =
            r#" { "result" : {"a":[1,{"id":"no"}],"s":"}\"{"} , "jsonrpc":"2.0", "id" : "x,1" } "#;
        let glance = Glance::at(frame.as_bytes()).unwrap();
        assert_eq!(glance.shape(), Some(Shape::Response));
        assert_eq!(part(frame, glance.id.as_ref()), r#""x,1""#);
        assert_eq!(
            part(frame, glance.result.as_ref()),
            r#"{"a":[1,{"id":"no"}],"s":"}\"{"}"#
        );
        let inner = member(frame.as_bytes(), glance.result.as_ref().unwrap(), "s");
        assert_eq!(part(frame, inner.as_ref()), r#""}\"{""#);
    }

    #[test]
    fn a_request_gives_its_method_without_quotes() {
        let frame = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#;
        let glance = Glance::at(frame.as_bytes()).unwrap();
        assert_eq!(part(frame, glance.method.as_ref()), "tools/call");
        assert_eq!(part(frame, glance.id.as_ref()), "7");
        assert_eq!(glance.shape(), Some(Shape::Request));
        assert_eq!(glance.meta, None);
    }

    #[test]
    fn meta_is_found_in_params_and_nowhere_else() {
        let frame = r#"{"id":7,"method":"m","_meta":0,"params":{"a":{"_meta":1},"_meta" : {"x":2},"_meta":3}}"#;
        let glance = Glance::at(frame.as_bytes()).unwrap();
        assert_eq!(part(frame, glance.meta.as_ref()), r#"{"x":2}"#);
        let params = glance.params.unwrap();
        assert_eq!(member(frame.as_bytes(), &params, "_meta"), glance.meta);
        for odd in [r#""_meta""#, r#"["_meta",1]"#, r#"{"_meta":1]"#] {
            let frame = format!(r#"{{"id":7,"method":"m","params":{odd}}}"#);
            let glance = Glance::at(frame.as_bytes()).unwrap();
            assert_eq!(
                (part(&frame, glance.params.as_ref()), glance.meta),
                (odd, None)
            );
        }
    }

    #[test]
    fn what_two_readers_could_see_differently_is_unsound() {
        for frame in [
            r#"{"method":"a","method":"b"}"#,
            r#"{"m\u0065thod":"b"}"#,
            r#"{"method":"elicit\u0061tion/create","id":1}"#,
            r#"{"method":"a"} {"method":"b"}"#,
            r#"[{"method":"a"}]"#,
            r#"{"method":"a""#,
            r#"{"method""#,
            r#"{"a":"\"#,
            "",
            "{",
            "null",
        ] {
            assert_eq!(Glance::at(frame.as_bytes()), None, "{frame}");
        }
    }

    #[test]
    fn a_member_that_decides_must_stand_once_and_plainly() {
        let sole = |object: &str| {
            let found = sole_member(object.as_bytes(), &(0..object.len()), "kind");
            found.map(|range| range.map(|range| object[range].to_owned()))
        };
        assert_eq!(
            sole(r#"{"a":{"kind":0},"kind":1}"#),
            Ok(Some("1".to_owned()))
        );
        assert_eq!(sole(r#"{"a":{"k\u0069nd":0}}"#), Ok(None));
        for unclear in [r#"{"kind":1,"kind":2}"#, r#"{"k\u0069nd":1}"#, "[1]", "1"] {
            assert_eq!(sole(unclear), Err(Unclear), "{unclear}");
        }
    }

    proptest::proptest! {
        #[test]
        fn it_never_panics_and_agrees_with_a_parser(text in ".{0,60}", bytes in proptest::collection::vec(0_u8..=255, 0..60)) {
            let _ = Glance::at(&bytes);
            let frame = serde_json::json!({"jsonrpc": "2.0", "x": [text, {"y": text}], "id": text, "result": {"k": text}}).to_string();
            let glance = Glance::at(frame.as_bytes()).unwrap();
            let id: String = serde_json::from_str(&frame[glance.id.unwrap()]).unwrap();
            proptest::prop_assert_eq!(&id, &text);
            let value = member(frame.as_bytes(), &glance.result.unwrap(), "k").unwrap();
            let value: String = serde_json::from_str(&frame[value]).unwrap();
            proptest::prop_assert_eq!(value, text);
        }
    }
}
