//! Text from a peer, made harmless to look at.
//!
//! A server chooses its own messages, titles and options. Nothing of what it sends may move the cursor,
//! recolour the screen, hide itself, or reorder what stands next to it, so every such string passes here
//! before a frontend shows it. What is removed stays visible: a person should see that something was there.

use std::fmt::Write;

/// Longest message shown, in characters.
pub const MESSAGE: usize = 32_000;
/// Longest description shown, in characters.
pub const DESCRIPTION: usize = 4_000;
/// Longest name, title, label or option shown, in characters.
pub const LABEL: usize = 200;

/// Longest arguments of a call shown in full, in characters.
pub const ARGUMENTS: usize = 1 << 20;

/// Text of several lines: line breaks stay, everything else that acts on a screen becomes visible.
///
/// At most `most` characters of `raw` are shown; what is left out is counted at the end.
pub fn text(raw: &str, most: usize) -> String {
    neutral(raw, most, true)
}

/// Text of one line: line breaks become spaces, and the rest is as in [`text`].
pub fn line(raw: &str, most: usize) -> String {
    let shown = neutral(raw, most, false);
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// JSON text for a terminal: characters that act on a screen are spelled as JSON escapes, so that it stays the same
/// JSON. Line breaks stay.
pub fn json(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        let acts = c.is_control()
            || hides_or_reorders(c)
            || matches!(
                c,
                '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}' | '\u{2029}'
            );
        if acts && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}"); // writing to a String cannot fail
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn neutral(raw: &str, most: usize, breaks: bool) -> String {
    let mut out = String::with_capacity(raw.len().min(most));
    let mut chars = raw.chars().peekable();
    let mut before = None;
    let mut taken = 0;
    while taken < most {
        let Some(c) = chars.next() else { return out };
        taken += 1;
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{b}' | '\u{c}' => {
                out.push(if breaks { '\n' } else { ' ' });
            }
            '\t' => out.push_str(if breaks { "    " } else { " " }),
            // Joiners belong to emoji and to many scripts; between Latin letters they only hide.
            '\u{200c}' | '\u{200d}'
                if joins(before) && chars.peek().copied().is_some_and(|next| joins(Some(next))) =>
            {
                out.push(c);
            }
            // Direction marks are ordinary in right-to-left text and cannot reorder what is around it.
            '\u{200e}' | '\u{200f}' | '\u{61c}' => {}
            _ => push_visible(&mut out, c),
        }
        before = Some(c);
    }
    let rest = chars.count();
    if rest > 0 {
        out.push_str("… (");
        out.push_str(&rest.to_string());
        out.push_str(" more characters)");
    }
    out
}

fn joins(c: Option<char>) -> bool {
    c.is_some_and(|c| !c.is_ascii())
}

fn push_visible(out: &mut String, c: char) {
    match c {
        // The Unicode pictures of control characters: ␛ for escape, ␇ for bell, and so on.
        '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
        '\u{7f}' => out.push('␡'),
        _ if hides_or_reorders(c) => {
            out.push_str("‹U+");
            let _ = write!(out, "{:04X}", u32::from(c)); // writing to a String cannot fail
            out.push('›');
        }
        _ => out.push(c),
    }
}

/// Characters that are not seen, or that change how their neighbours are seen.
fn hides_or_reorders(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'             // C1 controls, which some terminals obey
        | '\u{ad}'                      // soft hyphen
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // fillers
        | '\u{180e}'
        | '\u{200b}'..='\u{200d}'       // zero width
        | '\u{202a}'..='\u{202e}'       // embeddings and overrides
        | '\u{2060}'..='\u{206f}'       // invisible operators, isolates, deprecated controls
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'       // interlinear annotation
        | '\u{e0000}'..='\u{e007f}'     // tags
        | '\u{e0100}'..='\u{e01ef}'     // variation selectors that carry hidden data
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_controls_are_seen_and_not_obeyed() {
        assert_eq!(text("a\u{1b}[2Jb\u{7}", MESSAGE), "a␛[2Jb␇");
        assert_eq!(text("\u{9b}31m", MESSAGE), "‹U+009B›31m");
    }

    #[test]
    fn overrides_are_seen_and_not_obeyed() {
        assert_eq!(line("gpj\u{202e}exe", LABEL), "gpj‹U+202E›exe");
        assert_eq!(line("a\u{2066}b\u{200b}c", LABEL), "a‹U+2066›b‹U+200B›c");
    }

    #[test]
    fn joiners_stay_where_scripts_need_them() {
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(line(family, LABEL), family);
        assert_eq!(line("pay\u{200d}pal", LABEL), "pay‹U+200D›pal");
    }

    #[test]
    fn breaks_stay_in_text_and_leave_lines() {
        assert_eq!(text("a\r\nb\rc\u{2028}d", MESSAGE), "a\nb\nc\nd");
        assert_eq!(line("a\r\n  b\tc", LABEL), "a b c");
    }

    #[test]
    fn json_stays_the_same_and_acts_on_nothing() {
        let value = serde_json::json!({"a": "\u{9b}31m\u{202e}x\u{e0041}\u{7f}", "b": "日本\n"});
        let shown = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(
            shown.contains(r"\u009b31m\u202ex\udb40\udc41\u007f"),
            "{shown}"
        );
        assert!(shown.contains("日本"));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        assert_eq!(text("abcdef", 4), "abcd… (2 more characters)");
        assert_eq!(text("abcd", 4), "abcd");
    }
}
