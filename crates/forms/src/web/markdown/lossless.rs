//! The check that the structure of a message can be shown without a loss.
//!
//! Whoever reads a page must read what whoever reads the message elsewhere does. So Markdown is laid out only if nothing but
//! marks without a meaning of their own vanishes; any other message is shown as it was sent.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Tag};

/// The words after a fence that only say how the code is to be coloured.
const LANGUAGES: [&str; 39] = [
    "bash",
    "c",
    "console",
    "cpp",
    "css",
    "csv",
    "diff",
    "dockerfile",
    "go",
    "html",
    "http",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "jsonc",
    "jsx",
    "log",
    "markdown",
    "md",
    "php",
    "powershell",
    "py",
    "python",
    "ruby",
    "rs",
    "rust",
    "sh",
    "shell",
    "sql",
    "text",
    "toml",
    "ts",
    "tsx",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// The characters that vanish where they are marks.
const MARKS: &str = "#>-+*_`[]()<=~!.\n\r\t ";

/// Returns `true` if the events of a message, with their places in it, show all of it.
pub(super) fn is_lossless(text: &str, events: &[(Event<'_>, Range<usize>)]) -> bool {
    let mut check = LosslessCheck {
        text,
        is_shown: vec![false; text.len()],
    };
    let keeps = |(event, place): &(Event<'_>, Range<usize>)| check.take(event, place.clone());
    if !events.iter().all(keeps) || hides_a_number(text, events) {
        return false;
    }
    let mut rest = text.char_indices();
    rest.all(|(at, c)| check.is_shown[at] || MARKS.contains(c))
}

/// Returns the marker of an entry of a numbered list, as it is written: `0.` or `9)`; `None` for any other entry.
pub(super) fn number_of(entry: &str) -> Option<&str> {
    let digits = entry.bytes().take_while(u8::is_ascii_digit).count();
    let is_marker = digits > 0 && matches!(entry.as_bytes().get(digits), Some(b'.' | b')'));
    is_marker.then(|| &entry[..=digits])
}

/// Returns `true` if an entry of a numbered list begins with something else than words, beside which its number is shown.
fn hides_a_number(text: &str, events: &[(Event<'_>, Range<usize>)]) -> bool {
    events.iter().enumerate().any(|(at, (event, place))| {
        let is_numbered =
            matches!(event, Event::Start(Tag::Item)) && number_of(&text[place.clone()]).is_some();
        let mut rest = events[at + 1..].iter().map(|(event, _)| event);
        let mut first = rest.next();
        if matches!(first, Some(Event::Start(Tag::Paragraph))) {
            first = rest.next();
        }
        let begins_with_words = matches!(
            first,
            Some(Event::Text(_) | Event::Code(_) | Event::Start(Tag::Strong))
        );
        is_numbered && !begins_with_words
    })
}

struct LosslessCheck<'t> {
    text: &'t str,
    /// By byte.
    is_shown: Vec<bool>,
}

impl LosslessCheck<'_> {
    fn take(&mut self, event: &Event<'_>, place: Range<usize>) -> bool {
        let written = &self.text[place.clone()];
        match event {
            Event::Text(shown) | Event::Html(shown) | Event::InlineHtml(shown) => {
                self.shows(place);
                written == &**shown
            }
            Event::Code(shown) => {
                let before = self.text[..place.start].chars().next_back();
                let after = self.text[place.end..].chars().next();
                let joins = [before, after].into_iter().flatten();
                let is_apart = !joins.into_iter().any(char::is_alphanumeric);
                self.shows(place);
                is_apart && !written.contains(['\n', '\r']) && letters(written).eq(letters(shown))
            }
            Event::Start(tag) => self.begins(tag, place),
            Event::End(_) | Event::SoftBreak | Event::HardBreak | Event::Rule => true,
            Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_) => false,
        }
    }

    fn begins(&mut self, tag: &Tag<'_>, place: Range<usize>) -> bool {
        let written = &self.text[place.clone()];
        match tag {
            Tag::Paragraph
            | Tag::List(_)
            | Tag::HtmlBlock
            | Tag::CodeBlock(CodeBlockKind::Indented) => true,
            Tag::Heading { .. } if written.trim_start().starts_with('#') => {
                !is_amount(written, '#')
            }
            // A short line below a text may be one of its signs.
            Tag::Heading { .. } => {
                let line = written.trim_end().lines().next_back();
                line.is_some_and(|line| line.trim().len() > 2)
            }
            Tag::BlockQuote(_) => !is_amount(written, '>'),
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => self.hides(info, place),
            Tag::Item => match number_of(written) {
                Some(marker) => {
                    self.shows(place.start..place.start + marker.len());
                    true
                }
                None => !['-', '+', '*'].iter().any(|mark| is_amount(written, *mark)),
            },
            // Single stars and low lines may be parts of patterns and names.
            Tag::Strong => written.starts_with("**") && self.is_stressed(&place),
            Tag::Link { link_type, .. } => {
                matches!(link_type, LinkType::Autolink | LinkType::Email)
            }
            _ => false,
        }
    }

    fn shows(&mut self, place: Range<usize>) {
        self.is_shown[place].fill(true);
    }

    /// Lets the word after a fence vanish, if it is the name of a language.
    fn hides(&mut self, info: &str, place: Range<usize>) -> bool {
        let is_language = info.is_empty() || LANGUAGES.contains(&info);
        if let Some(at) = self.text[place.clone()].find(info) {
            self.shows(place.start + at..place.start + at + info.len());
        }
        is_language
    }

    /// Returns `true` if the marks are around words, and not within a path, a name or a pattern.
    fn is_stressed(&self, place: &Range<usize>) -> bool {
        let before = self.text[..place.start].chars().next_back();
        let mut after = self.text[place.end..].chars();
        let is_before = before.is_none_or(|c| c.is_whitespace() || "*_([\"'“‘«:—–".contains(c));
        let is_after = match after.next() {
            None => true,
            Some(c) if c.is_whitespace() || "*_".contains(c) => true,
            Some(c) => {
                ".,:;!?)]\"'”’»—–".contains(c) && !after.next().is_some_and(char::is_alphanumeric)
            }
        };
        let within = self.text[place.clone()].get(2..place.len().saturating_sub(2));
        let within = within.unwrap_or_default();
        let is_word = |c: Option<char>, marks: &str| {
            c.is_some_and(|c| c.is_alphanumeric() || "*_`[]\"'".contains(c) || marks.contains(c))
        };
        is_before
            && is_after
            && is_word(within.chars().next(), "(<“‘«¿¡$€£")
            && is_word(within.chars().next_back(), ".,:;!?)>%”’»$€£…")
    }
}

/// Returns the letters of code, without the white space, which is shown as one space, and the marks around it.
fn letters(code: &str) -> impl Iterator<Item = char> {
    code.chars().filter(|c| !c.is_whitespace() && *c != '`')
}

/// Returns `true` for a line such as `- 500` or `> 5`, whose first character means more than a mark.
fn is_amount(line: &str, mark: char) -> bool {
    let Some(rest) = line.trim_start().strip_prefix(mark) else {
        return false;
    };
    let rest = rest.trim_start_matches(mark);
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "*_`(~".contains(c));
    rest.starts_with(|c: char| c.is_numeric() || "$€£¥.".contains(c))
}
