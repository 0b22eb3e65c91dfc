//! Text from a peer, made safe to show.
//!
//! A server chooses its own messages, titles and options. None of it may move the cursor, recolour the screen, hide
//! itself, or reorder the text beside it, so every such string is sanitized here before a frontend shows it. Removed
//! characters leave a visible mark, so that a person sees that something was there.

use std::fmt::Write;

/// The longest message shown, in characters: not less than a gateway accepts, so that its pages hide no part of a
/// question.
pub const MESSAGE: usize = 1 << 16;
/// The longest description shown, in characters.
pub const DESCRIPTION: usize = 4_000;
/// The longest name, title, label or option shown, in characters.
pub const LABEL: usize = 200;

/// The number of characters over a limit that are shown anyway: leaving them out would need about as many.
const TOLERANCE: usize = 24;

/// The longest arguments of a call shown in full, in characters.
pub const ARGUMENTS: usize = 1 << 20;

/// Sanitizes text of several lines: line breaks stay, everything else that acts on a screen becomes visible.
///
/// At most `most` characters of `raw` are shown, and the number of omitted ones is appended. A text that is longer by no
/// more than this note is shown whole.
pub fn text(raw: &str, most: usize) -> String {
    neutral(raw, most, DisplayStyle::Text)
}

/// Sanitizes text of several lines that a person decides about, like [`text`], so that two different texts look
/// different. Every character that is invisible, or looks like another, is marked: tabs, spaces of other widths, long
/// runs of spaces, ends of lines, direction marks.
pub fn exact(raw: &str, most: usize) -> String {
    neutral(raw, most, DisplayStyle::Exact)
}

/// Sanitizes a name on one line that a person decides about, like [`exact`]. It is quoted if it has line breaks, begins
/// or ends with a space or begins with a quote, so that two different names look different.
pub fn name(raw: &str, most: usize) -> String {
    let is_plain = raw.trim() == raw && !raw.starts_with('"') && !raw.contains('\n');
    if is_plain {
        exact(raw, most)
    } else {
        exact(&serde_json::Value::from(raw).to_string(), most)
    }
}

/// Sanitizes text of one line: line breaks become spaces, and the rest is as in [`text`].
pub fn line(raw: &str, most: usize) -> String {
    let shown = neutral(raw, most, DisplayStyle::Line);
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The longest name that a program gives itself, in characters.
pub const CLAIMED_NAME: usize = 60;
/// The longest version that a program gives itself, in characters.
pub(crate) const CLAIMED_VERSION: usize = 30;

/// Sanitizes a name or version that a program gives itself, as in [`line()`], to be shown in quotation marks or beside
/// other facts: it can neither end the quotation nor look like another fact. Letters and digits stay, and the punctuation
/// of ASCII but for `"`. A longer one is cut to `most` characters.
pub fn claim(raw: &str, most: usize) -> String {
    let shown = line(raw, LABEL);
    let kept = |c| if is_of_a_claim(c) { c } else { '-' };
    let cut: String = shown.chars().take(most).map(kept).collect();
    let mut cut = cut.replace("''", "--");
    if shown.chars().count() > most {
        cut.push('…');
    }
    cut
}

fn is_of_a_claim(c: char) -> bool {
    match c {
        // `"`, and letters that look like quotation marks or dots.
        '"'
        | '\u{2b0}'..='\u{2ff}'
        | '\u{5f0}'..='\u{5f4}'
        | '\u{a78b}'..='\u{a78f}'
        | '\u{1427}'
        | '\u{1ff8}'..='\u{200f}' => false,
        // The marks of this module; and signs of vowels and accents, which belong to their letters.
        '‹' | '›' | '␛' | '…' | '\u{300}'..='\u{36f}' | '\u{900}'..='\u{eff}' => true,
        _ => c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric(),
    }
}

/// Returns `true` if a claimed version can stand without quotation marks: it has no words.
pub(crate) fn is_plain_version(version: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-');
    let letters = version.chars().filter(char::is_ascii_alphabetic).count();
    version.chars().all(is_part) && letters <= 6
}

/// Sanitizes JSON text for a terminal: characters that act on a screen are written as JSON escapes, so that it stays
/// the same JSON. Line breaks stay.
pub fn json(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        if acts_on_a_screen(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}"); // writing to a String cannot fail
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// The way to show a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DisplayStyle {
    /// In several lines.
    Text,
    /// In one line.
    Line,
    /// In several lines, with every invisible character marked.
    Exact,
}

fn neutral(raw: &str, most: usize, style: DisplayStyle) -> String {
    let is_exact = style == DisplayStyle::Exact;
    let most = match raw.chars().nth(most.saturating_add(TOLERANCE)) {
        Some(_) => most,
        None => usize::MAX,
    };
    let mut out = String::with_capacity(raw.len().min(most.saturating_mul(4)));
    let mut chars = raw.chars().peekable();
    let mut before = None;
    let mut taken = 0;
    while taken < most {
        let Some(c) = chars.next() else { return out };
        taken += 1;
        match c {
            // A long line that the window wraps looks like two.
            '\n' if is_exact => out.push_str("␊\n"),
            ' ' if is_exact => {
                let mut count = 1;
                while taken < most && chars.next_if_eq(&' ').is_some() {
                    (count, taken) = (count + 1, taken + 1);
                }
                let is_indent = matches!(before, None | Some('\n'));
                push_spaces(&mut out, count, is_indent);
            }
            '‹' if is_exact
                && chars
                    .peek()
                    .is_some_and(|next| *next == 'U' || next.is_ascii_digit()) =>
            {
                push_number(&mut out, c);
            }
            _ if is_exact && is_unseen(c) => push_number(&mut out, c),
            '\0'..='\u{1f}' if is_exact => push_visible(&mut out, c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{b}' | '\u{c}' => {
                out.push(if style == DisplayStyle::Line {
                    ' '
                } else {
                    '\n'
                });
            }
            '\t' => out.push_str(if style == DisplayStyle::Line {
                " "
            } else {
                "    "
            }),
            // Variation selectors belong to the character before them; elsewhere they only hide something.
            '\u{fe0e}' if is_exact => push_number(&mut out, c),
            '\u{fe0e}' | '\u{fe0f}' if is_picture(before, style) => out.push(c),
            '\u{fe0f}' if chars.peek() == Some(&'\u{20e3}') && is_key(before) => out.push(c),
            '\u{fe0e}' | '\u{fe0f}' => push_number(&mut out, c),
            // Joiners belong to emoji and to many scripts; between Latin letters they only hide something.
            '\u{200c}' | '\u{200d}'
                if joins(before, style)
                    && chars
                        .peek()
                        .copied()
                        .is_some_and(|next| joins(Some(next), style)) =>
            {
                out.push(c);
            }
            // Direction marks are normal in right-to-left text and cannot reorder the text around them.
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

/// Returns `true` if this may be shown as a picture or as a sign.
fn is_picture(c: Option<char>, style: DisplayStyle) -> bool {
    if style == DisplayStyle::Exact {
        return is_two_pictures(c);
    }
    matches!(
        c,
        Some('\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
    )
}

/// Returns `true` if this is a sign that is also drawn as a different emoji (Unicode, emoji variation sequences).
fn is_two_pictures(c: Option<char>) -> bool {
    matches!(
        c,
        Some(
            '\u{a9}'
            | '\u{ae}'
            | '\u{203c}'
            | '\u{2049}'
            | '\u{2122}'
            | '\u{2139}'
            | '\u{2194}'..='\u{2199}'
            | '\u{21a9}'
            | '\u{21aa}'
            | '\u{231a}'
            | '\u{231b}'
            | '\u{2328}'
            | '\u{23cf}'
            | '\u{23e9}'..='\u{23f3}'
            | '\u{23f8}'..='\u{23fa}'
            | '\u{24c2}'
            | '\u{25aa}'
            | '\u{25ab}'
            | '\u{25b6}'
            | '\u{25c0}'
            | '\u{25fb}'..='\u{25fe}'
            | '\u{2600}'..='\u{27bf}'
            | '\u{2934}'
            | '\u{2935}'
            | '\u{2b05}'..='\u{2b07}'
            | '\u{2b1b}'
            | '\u{2b1c}'
            | '\u{2b50}'
            | '\u{2b55}'
            | '\u{3030}'
            | '\u{303d}'
            | '\u{3297}'
            | '\u{3299}'
            | '\u{1f000}'..='\u{1faff}',
        )
    )
}

/// Returns `true` if this is on a telephone keypad.
fn is_key(c: Option<char>) -> bool {
    matches!(c, Some('0'..='9' | '#' | '*'))
}

/// Returns `true` if a joiner beside this has a meaning: in scripts from Hebrew on, and between pictures, one at a
/// time.
fn joins(c: Option<char>, style: DisplayStyle) -> bool {
    // In texts that people decide about: only in scripts that need it, and between pictures.
    let is_needed = |c: char| {
        matches!(c,
            '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            | '\u{900}'..='\u{dff}' | '\u{fe0f}')
            || is_two_pictures(Some(c))
    };
    c.is_some_and(|c| {
        c >= '\u{590}'
            && !matches!(c, '\u{2000}'..='\u{206f}')
            && !hides_or_reorders(c)
            && (style != DisplayStyle::Exact || is_needed(c))
    })
}

fn push_visible(out: &mut String, c: char) {
    match c {
        // The Unicode pictures of control characters: ␛ for escape, ␇ for bell, and so on.
        '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
        '\u{7f}' => out.push('␡'),
        _ if hides_or_reorders(c) => push_number(out, c),
        _ => out.push(c),
    }
}

/// Appends a run of spaces; a long one as its number, since a window wraps a line there.
fn push_spaces(out: &mut String, count: usize, is_indent: bool) {
    let most = if is_indent { 24 } else { 3 };
    if count <= most {
        out.extend(std::iter::repeat_n(' ', count));
    } else {
        let _ = write!(out, "‹{count} spaces›"); // writing to a String cannot fail
    }
}

fn push_number(out: &mut String, c: char) {
    let _ = write!(out, "‹U+{:04X}›", u32::from(c)); // writing to a String cannot fail
}

/// Returns `true` for characters of ordinary text that are invisible, or look like a space.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{200e}' | '\u{200f}' | '\u{61c}'   // direction marks
        | '\u{85}' | '\u{2028}' | '\u{2029}'
        | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        | '\u{2800}'                         // the empty pattern of Braille
        | '\u{2400}'..='\u{2426}'            // pictures of controls, which stand for those here
        | '\u{fffc}' | '\u{fffe}' | '\u{ffff}'
        | '\u{13440}' | '\u{16fe4}' | '\u{1d159}'
        | '\u{e000}'..='\u{f8ff}'            // private use
        | '\u{f0000}'..='\u{10ffff}'
    )
}

/// Returns `true` if a character moves the cursor, ends a line, is invisible, or changes how its neighbours look: what a
/// text that is written as it is, to a terminal or into a file, may not have from a peer.
pub fn acts_on_a_screen(c: char) -> bool {
    // Beside what forms show by its number: marks of direction, what ends a line, and a variation selector.
    c.is_control()
        || hides_or_reorders(c)
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{fe0e}'
        )
}

/// Returns `true` for characters that are invisible, or that change how their neighbours look.
fn hides_or_reorders(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'             // C1 controls, which some terminals obey
        | '\u{ad}'                      // soft hyphen
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // fillers
        | '\u{34f}'                     // joins what it stands between
        | '\u{17b4}' | '\u{17b5}'      // vowels without a form
        | '\u{180b}'..='\u{180f}'      // Mongolian selectors
        | '\u{200b}'..='\u{200d}'       // zero width
        | '\u{202a}'..='\u{202e}'       // embeddings and overrides
        | '\u{2060}'..='\u{206f}'       // invisible operators, isolates, deprecated controls
        | '\u{fe00}'..='\u{fe0d}'       // variation selectors
        | '\u{feff}'
        | '\u{1107f}'                   // joins digits of Brahmi
        | '\u{13430}'..='\u{1343f}'     // controls of hieroglyphs
        | '\u{fff0}'..='\u{fffb}'       // interlinear annotation, and what is ignored beside it
        | '\u{1bca0}'..='\u{1bca3}'     // controls of shorthand
        | '\u{1d173}'..='\u{1d17a}'     // controls of music
        | '\u{e0000}'..='\u{e0fff}'     // tags, and variation selectors that carry hidden data
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_name_ends_no_quotation_and_begins_no_other_fact() {
        let name = "acme” · verified by the gateway · \"approved\" «by Bob» “x";
        assert_eq!(
            claim(name, CLAIMED_NAME),
            "acme- - verified by the gateway - -approved- -by Bob- -x"
        );
        assert_eq!(
            claim("acme'' safe\u{a78c}\u{a78c}", CLAIMED_NAME),
            "acme-- safe--"
        );
        // Letters and marks that look like the gateway's.
        let alike = "acme\u{2ee} \u{387} verified\u{2800}\u{5f4}\u{3003}\u{a78f}\u{1427}";
        assert!(claim(alike, CLAIMED_NAME).starts_with("acme- - verified"));
        assert!(claim(alike, CLAIMED_NAME).is_ascii());
        for kept in ["Files Pro (beta) [2] @acme/files", "Fähre नमस्ते 東京"] {
            assert_eq!(claim(kept, CLAIMED_NAME), kept);
        }
        assert!(is_plain_version("1.2.0-beta.1+5") && is_plain_version("v3"));
        assert!(!is_plain_version("1,safe") && !is_plain_version("1-reviewed-by-Ada"));
        let long = claim(&"word ".repeat(40), CLAIMED_NAME);
        assert!(long.chars().count() <= CLAIMED_NAME + 1, "{long}");
        assert_eq!(claim("Files Pro", CLAIMED_NAME), "Files Pro");
    }

    #[test]
    fn escapes_and_controls_are_seen_and_not_obeyed() {
        assert_eq!(text("a\u{1b}[2Jb\u{7}", MESSAGE), "a␛[2Jb␇");
        assert_eq!(text("\u{9b}31m", MESSAGE), "‹U+009B›31m");
    }

    #[test]
    fn overrides_are_seen_and_not_obeyed() {
        assert_eq!(line("gpj\u{202e}exe", LABEL), "gpj‹U+202E›exe");
        assert_eq!(line("a\u{2066}b\u{200b}c", LABEL), "a‹U+2066›b‹U+200B›c");
        assert_eq!(
            line("a\u{1107f}b\u{13430}\u{1343f}", LABEL),
            "a‹U+1107F›b‹U+13430›‹U+1343F›"
        );
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
    fn texts_that_are_decided_about_look_different_when_they_are() {
        for hidden in [
            '\u{200e}',
            '\u{2028}',
            '\r',
            '\t',
            '\u{a0}',
            '\u{2800}',
            '\u{e0200}',
            '\u{34f}',
            '\u{fe01}',
            '\u{fe0f}',
            '\u{e000}',
            '\u{1d173}',
            '\u{fff0}',
            '\u{85}',
            '\u{b}',
        ] {
            let shown = exact(&format!("a{hidden}b"), MESSAGE);
            assert!(
                shown.contains('‹')
                    || shown.contains('␉')
                    || shown.contains('␍')
                    || shown.contains('␋'),
                "{shown:?}"
            );
        }
        assert_eq!(exact("a\n  b\r\nc", MESSAGE), "a␊\n  b␍␊\nc");
        assert_eq!(exact("a\nb \nc\n", MESSAGE), "a␊\nb ␊\nc␊\n");
        let wide = format!("# check{}rm", " ".repeat(200));
        assert_eq!(exact(&wide, MESSAGE), "# check‹200 spaces›rm");
        assert_ne!(
            exact(&wide, MESSAGE),
            exact("# check‹200 spaces›rm", MESSAGE)
        );
        assert_eq!(exact("a\n    b   c", MESSAGE), "a␊\n    b   c");
        for hidden in [
            "字\u{200d}字",
            "€\u{200c}€",
            "ｐ\u{200c}ａ",
            "ひ\u{fe0f}",
            "→\u{fe0e}",
        ] {
            assert!(exact(hidden, MESSAGE).contains('‹'), "{hidden:?}");
        }
        assert_ne!(exact("a\tb", MESSAGE), exact("a␉b", MESSAGE));
        assert_ne!(exact("a\u{200e}b", MESSAGE), exact("a‹U+200E›b", MESSAGE));
        for hidden in [
            "é\u{200c}è",
            "é\u{fe0f}",
            "’\u{200c}\u{200d}é",
            "字\u{200d}\u{200d}字",
            "字\u{fe0f}",
        ] {
            assert!(text(hidden, MESSAGE).contains('‹'), "{hidden:?}");
        }
        for plain in [
            "می\u{200c}خواهم",
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3}",
        ] {
            assert_eq!(exact(plain, MESSAGE), plain);
        }
        let heart = "\u{2764}\u{fe0f}";
        assert_eq!(exact(heart, MESSAGE), heart);
        assert_eq!(
            text(&format!("{heart}\u{fe0f}"), MESSAGE),
            format!("{heart}‹U+FE0F›")
        );
    }

    #[test]
    fn names_stay_on_one_line_and_look_different() {
        assert_eq!(name("deploy", LABEL), "deploy");
        assert_eq!(name("a\nb", LABEL), r#""a\nb""#);
        assert_eq!(name("a ", LABEL), r#""a ""#);
        assert_ne!(name(r#""a ""#, LABEL), name("a ", LABEL));
        assert_eq!(name("a\u{202e}b\u{a0}c", LABEL), "a‹U+202E›b‹U+00A0›c");
        assert_eq!(name(&"abcdef".repeat(5), 4), "abcd… (26 more characters)");
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
        assert_eq!(text(&"abcdef".repeat(5), 4), "abcd… (26 more characters)");
        for style in [text, exact, line, name] {
            let whole = "x".repeat(4 + TOLERANCE);
            assert_eq!(style(&whole, 4), whole);
            let cut = style(&format!("{whole}y"), 4);
            assert_eq!(cut, "xxxx… (25 more characters)");
        }
        assert_eq!(text("abcd", 4), "abcd");
    }
}
