//! The scan of JSON text, which skips strings and values without parsing them.

use std::ops::Range;

/// Returns the value of the first member of the object in `range` with this name (which has no characters that JSON
/// escapes).
///
/// `None` if there is none, if its key is written with escapes, or if the text is not an object.
pub(super) fn member(frame: &[u8], range: &Range<usize>, name: &str) -> Option<Range<usize>> {
    let mut found = None;
    // The text after it was checked with the frame.
    let _stopped = each_member(&frame[..range.end], range.start, |key, value| {
        if key == name.as_bytes() {
            found = Some(value);
        }
        found.is_none()
    });
    found
}

/// A member that cannot be read with certainty: its name occurs twice, a key may spell it with escapes, or the text is
/// not an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclear;

/// Returns the value of the only member of the object in `range` with this name; `None` if it certainly has none. For
/// significant members, which two readers could otherwise read differently.
pub(super) fn sole_member(
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

/// Calls `each` with every key (without quotes, as written) and the range of its value, until it returns `false`.
/// Returns the position after the closing brace.
fn each_member<'a>(
    text: &'a [u8],
    from: usize,
    mut each: impl FnMut(&'a [u8], Range<usize>) -> bool,
) -> Option<usize> {
    each_key(text, from, |key, at| {
        let end = skip_value(text, at)?;
        each(key, at..end).then_some(end)
    })
}

/// Calls `skip` with every key (without quotes, as written) and the position of its value; `skip` returns the position
/// after the value, or `None` to stop. Returns the position after the closing brace.
pub(in crate::wire) fn each_key<'a>(
    text: &'a [u8],
    from: usize,
    mut skip: impl FnMut(&'a [u8], usize) -> Option<usize>,
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

/// Calls `skip` with the position of every item of the array that starts at `at`; `skip` returns the position after the
/// item, or `None` to stop. Returns the position after the closing bracket.
pub(in crate::wire) fn each_item(
    text: &[u8],
    at: usize,
    mut skip: impl FnMut(usize) -> Option<usize>,
) -> Option<usize> {
    if text.get(at) != Some(&b'[') {
        return None;
    }
    let mut at = skip_space(text, at + 1);
    if text.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    loop {
        at = skip_space(text, skip(at)?);
        match text.get(at)? {
            b',' => at = skip_space(text, at + 1),
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}

pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Returns the position after the string that starts at `at`.
pub(in crate::wire) fn skip_string(text: &[u8], at: usize) -> Option<usize> {
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

/// Returns the position after the value that starts at `at`. Brackets are counted, not matched by kind: the peer
/// parses.
pub(crate) fn skip_value(text: &[u8], mut at: usize) -> Option<usize> {
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
