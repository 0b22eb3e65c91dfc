//! A server's message as paragraphs, lists and code.
//!
//! Servers write Markdown. It is shown with its structure, and without anything to click: HTML is plain text. A message of
//! which anything would be lost so, or that has links, is shown [as it was sent](lossless).

mod lossless;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::view::sanitize;

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkdownSpan {
    /// Plain text.
    Plain(String),
    /// Important text.
    Strong(String),
    /// Code.
    Code(String),
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// `true` if it belongs to a list within a list.
    pub deep: bool,
    /// Its mark.
    pub mark: ListMark,
    /// Its text.
    pub spans: Vec<MarkdownSpan>,
}

/// The mark before an entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListMark {
    /// A bullet.
    Bullet,
    /// A number as it was written, such as `0.` or `9)`, which a person may have to enter.
    Number(String),
    /// None: the entry goes on after something else.
    None,
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// A paragraph.
    Paragraph(Vec<MarkdownSpan>),
    /// A heading of the message, which is not a heading of the page.
    Heading(Vec<MarkdownSpan>),
    /// A quotation.
    Quote(Vec<MarkdownSpan>),
    /// A block of code.
    Code(String),
    /// A list.
    List(Vec<Item>),
    /// A horizontal line.
    Rule,
}

/// A message, ready to be laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkdownMessage {
    /// Its blocks, top to bottom.
    pub blocks: Vec<Block>,
    /// `true` if it is so long that only its beginning is shown until the reader opens it.
    pub long: bool,
}

/// The number of characters, or lines, above which only the beginning of a message is shown at first.
const LONG: (usize, usize) = (1_800, 24);

/// The longest first line, in characters, that becomes the title of a page.
const TITLE: usize = 300;

impl MarkdownMessage {
    /// Parses `text`. The parser's output, with character references such as `&#x202e;` decoded, is made safe to show.
    pub(super) fn read(text: &str) -> Self {
        let events: Vec<_> = Parser::new_ext(text, Options::empty())
            .into_offset_iter()
            .collect();
        let blocks = if lossless::is_lossless(text, &events) {
            let mut reader = MarkdownReader::default();
            for (event, place) in events {
                reader.take(event, &text[place]);
            }
            reader.close();
            reader.blocks
        } else {
            as_sent(text)
        };
        let long = text.chars().count() > LONG.0 || text.lines().count() > LONG.1;
        Self { blocks, long }
    }

    /// Takes the first line out of a message that begins with a paragraph or a heading, as the title of its page. Empty
    /// if the message begins otherwise, or if its first line is too long for a title.
    pub(super) fn take_title(&mut self) -> Vec<MarkdownSpan> {
        let Some(Block::Paragraph(spans) | Block::Heading(spans)) = self.blocks.first_mut() else {
            return Vec::new();
        };
        let (title, rest) = split_line(std::mem::take(spans));
        if joined(&title).chars().count() > TITLE || joined(&title).trim().is_empty() {
            *spans = title;
            spans.extend(rest);
            return Vec::new();
        }
        if rest.is_empty() {
            self.blocks.remove(0);
        } else {
            *spans = rest;
        }
        title
    }

    /// Returns the text alone, on one line.
    pub(super) fn words(&self) -> String {
        let mut words = Vec::new();
        for block in &self.blocks {
            match block {
                Block::Paragraph(spans) | Block::Heading(spans) | Block::Quote(spans) => {
                    words.push(joined(spans));
                }
                Block::Code(code) => words.push(code.clone()),
                Block::List(items) => {
                    words.extend(items.iter().map(Item::words));
                }
                Block::Rule => {}
            }
        }
        words
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns text from the parser, made safe to show. Its length is limited by that of the message.
fn harmless(text: &str) -> String {
    sanitize::text(text, usize::MAX)
}

/// Returns the paragraphs of a message without any structure.
fn as_sent(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            lines.push(line.trim_end());
        } else if !lines.is_empty() {
            let text = harmless(&lines.join("\n"));
            blocks.push(Block::Paragraph(vec![MarkdownSpan::Plain(text)]));
            lines.clear();
        }
    }
    blocks
}

/// Splits a paragraph after its first line. The line break itself is in neither part.
fn split_line(spans: Vec<MarkdownSpan>) -> (Vec<MarkdownSpan>, Vec<MarkdownSpan>) {
    let (mut line, mut rest) = (Vec::new(), Vec::new());
    for span in spans {
        match span {
            MarkdownSpan::Plain(text) if rest.is_empty() => match text.split_once('\n') {
                Some((before, after)) => {
                    line.push(MarkdownSpan::Plain(before.trim_end().to_owned()));
                    rest.push(MarkdownSpan::Plain(after.to_owned()));
                }
                None => line.push(MarkdownSpan::Plain(text)),
            },
            span if rest.is_empty() => line.push(span),
            span => rest.push(span),
        }
    }
    (line, rest)
}

fn joined(spans: &[MarkdownSpan]) -> String {
    spans.iter().map(MarkdownSpan::text).collect()
}

/// The data collected from parser events.
#[derive(Default)]
struct MarkdownReader {
    blocks: Vec<Block>,
    spans: Vec<MarkdownSpan>,
    code: Option<String>,
    items: Vec<Item>,
    lists: usize,
    /// The mark of the entry that has begun.
    mark: Option<ListMark>,
    strong: usize,
    quotes: usize,
}

impl MarkdownReader {
    /// Takes an event, and the text that it stands for.
    fn take(&mut self, event: Event<'_>, written: &str) {
        match event {
            Event::Start(tag) => self.start(&tag, written),
            Event::End(tag) => self.end(tag),
            Event::Code(text) => self.spans.push(MarkdownSpan::Code(harmless(&text))),
            // HTML is shown as text.
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(&text),
            // A line break in the source is one on the page: messages are written as they are meant to look.
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.close();
                self.blocks.push(Block::Rule);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: &Tag<'_>, written: &str) {
        match tag {
            Tag::CodeBlock(_) => {
                self.flush();
                self.code = Some(String::new());
            }
            Tag::List(_) => {
                self.flush();
                self.lists += 1;
            }
            Tag::Item => {
                self.flush();
                let number = lossless::number_of(written).map(str::to_owned);
                self.mark = Some(number.map_or(ListMark::Bullet, ListMark::Number));
            }
            Tag::Paragraph | Tag::Heading { .. } | Tag::HtmlBlock => {
                if self.lists == 0 {
                    self.flush();
                } else if !self.spans.is_empty() {
                    self.text("\n");
                }
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::Strong => self.strong += 1,
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::CodeBlock => {
                let mut code = self.code.take().unwrap_or_default();
                code.truncate(code.trim_end_matches('\n').len());
                self.close_list();
                self.blocks.push(Block::Code(code));
            }
            TagEnd::List(_) => {
                self.flush();
                if self.lists == 1 {
                    self.close_list();
                }
                self.lists = self.lists.saturating_sub(1);
            }
            TagEnd::Heading(_) if self.lists == 0 => {
                let spans = std::mem::take(&mut self.spans);
                self.blocks.push(Block::Heading(spans));
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock if self.lists == 0 => self.flush(),
            TagEnd::Item => {
                self.flush();
                self.mark = None;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        let text = harmless(text);
        if let Some(code) = &mut self.code {
            code.push_str(&text);
            return;
        }
        let make = if self.strong > 0 {
            MarkdownSpan::Strong
        } else {
            if let Some(MarkdownSpan::Plain(before)) = self.spans.last_mut() {
                before.push_str(&text);
                return;
            }
            MarkdownSpan::Plain
        };
        self.spans.push(make(text));
    }

    /// Ends the block being collected.
    fn flush(&mut self) {
        while matches!(self.spans.last(), Some(MarkdownSpan::Plain(text)) if text.trim().is_empty())
        {
            self.spans.pop();
        }
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        if self.lists > 0 {
            self.items.push(Item {
                deep: self.lists > 1,
                mark: self.mark.take().unwrap_or(ListMark::None),
                spans,
            });
        } else if self.quotes > 0 {
            self.blocks.push(Block::Quote(spans));
        } else {
            self.blocks.push(Block::Paragraph(spans));
        }
    }

    fn close_list(&mut self) {
        self.flush();
        let items = std::mem::take(&mut self.items);
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    fn close(&mut self) {
        if self.lists == 0 {
            self.flush();
        } else {
            self.close_list();
        }
    }
}

impl ListMark {
    /// Returns `true` for a bullet.
    pub(super) fn is_bullet(&self) -> bool {
        *self == Self::Bullet
    }
}

impl Item {
    /// Returns its text with its number.
    fn words(&self) -> String {
        match &self.mark {
            ListMark::Number(number) => format!("{number} {}", joined(&self.spans)),
            ListMark::Bullet | ListMark::None => joined(&self.spans),
        }
    }
}

impl MarkdownSpan {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Strong(text) | Self::Code(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<Block> {
        MarkdownMessage::read(text).blocks
    }

    fn plain(text: &str) -> MarkdownSpan {
        MarkdownSpan::Plain(text.to_owned())
    }

    #[test]
    fn what_the_parser_decodes_is_seen_and_not_obeyed() {
        let disguised = "[pay](https://a.example/&#x202e;moc) &#x202e;a&#x200b;b&#8203; &#27;[2J **&#x2066;** # &#xfeff;";
        let spelled = [
            format!("# {disguised}"),
            format!("- {disguised}"),
            format!("> {disguised}"),
            format!("[{disguised}](https://b.example/&#x200b;)"),
            "![x](<y&#x202e;z>)".to_owned(),
            disguised.to_owned(),
        ];
        for text in spelled {
            let words = MarkdownMessage::read(&text).words();
            assert!(words.contains("&#x"), "as it was sent: {words}");
            let acts = |c: char| {
                c.is_control()
                    || matches!(c, '\u{200b}'..='\u{200d}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            };
            assert!(!words.contains(acts), "{words:?}");
        }
    }

    #[test]
    fn paragraphs_keep_their_line_breaks() {
        assert_eq!(
            blocks("one\ntwo\n\nthree"),
            [
                Block::Paragraph(vec![plain("one\ntwo")]),
                Block::Paragraph(vec![plain("three")])
            ]
        );
    }

    #[test]
    fn a_link_is_its_text_and_its_address() {
        let link = "see [your bank](https://evil.example/)";
        assert_eq!(blocks(link), [Block::Paragraph(vec![plain(link)])]);
        assert_eq!(
            blocks("<https://a.example>"),
            [Block::Paragraph(vec![plain("https://a.example")])]
        );
    }

    #[test]
    fn html_is_text() {
        let Block::Paragraph(spans) = &blocks("<script>alert(1)</script>")[0] else {
            panic!("a paragraph")
        };
        assert_eq!(
            spans
                .iter()
                .map(MarkdownSpan::text)
                .collect::<String>()
                .trim_end(),
            "<script>alert(1)</script>"
        );
        assert_eq!(
            blocks("a <b>b</b>"),
            [Block::Paragraph(vec![plain("a <b>b</b>")])]
        );
    }

    #[test]
    fn the_words_alone_are_one_line() {
        let words =
            MarkdownMessage::read("# A\n\n**b** `c`\nd\n\n- e\n- f\n\n```\ng\n```\n---\n> h")
                .words();
        assert_eq!(words, "A b c d e f g h");
    }

    #[test]
    fn lists_and_code_and_emphasis() {
        assert_eq!(
            blocks("# Plan\n\n- **first**\n- second\n  - deeper\n\n```\nrm -rf x\n```\n"),
            [
                Block::Heading(vec![plain("Plan")]),
                Block::List(vec![
                    item(
                        false,
                        ListMark::Bullet,
                        MarkdownSpan::Strong("first".into())
                    ),
                    item(false, ListMark::Bullet, plain("second")),
                    item(true, ListMark::Bullet, plain("deeper")),
                ]),
                Block::Code("rm -rf x".into()),
            ]
        );
    }

    fn item(deep: bool, mark: ListMark, span: MarkdownSpan) -> Item {
        let spans = vec![span];
        Item { deep, mark, spans }
    }

    #[test]
    fn numbers_stay_as_the_server_wrote_them() {
        let number = |number: &str| ListMark::Number(number.to_owned());
        assert_eq!(
            blocks("Where?\n\n0. production\n1. staging"),
            [
                Block::Paragraph(vec![plain("Where?")]),
                Block::List(vec![
                    item(false, number("0."), plain("production")),
                    item(false, number("1."), plain("staging")),
                ])
            ]
        );
        assert_eq!(
            blocks("10) keep\n    - all\n9) delete"),
            [Block::List(vec![
                item(false, number("10)"), plain("keep")),
                item(true, ListMark::Bullet, plain("all")),
                item(false, number("9)"), plain("delete")),
            ])]
        );
        let around_code = blocks("1. a\n\n   ```\n   b\n   ```\n\n   c\n2. d");
        assert_eq!(
            around_code[2],
            Block::List(vec![
                item(false, ListMark::None, plain("c")),
                item(false, number("2."), plain("d")),
            ])
        );
        let words = MarkdownMessage::read("Where?\n\n0. production\n1. staging").words();
        assert_eq!(words, "Where? 0. production 1. staging");
    }

    #[test]
    fn a_message_of_which_something_would_vanish_is_shown_as_it_was_sent() {
        for text in [
            "Install it?\n\n[By pressing Yes you agree to pay 500 EUR]: https://terms.example/x",
            "[terms](https://x.example \"and conditions\")",
            "[terms][1]\n\n[1]: https://x.example",
            "```and do this too\nls\n```",
            "Run rm -rf /data/*/tmp/* on the server?",
            "Delete __init__.py and __main__.py?",
            "Delete *.txt or a*?",
            "What is 2*3*4, or 2 *3* 4?",
            r"Does ^a\.b\*c$ match?",
            "&lt;b&gt; or &amp;",
            "Your p&#97;ssword, [p]()assword, `pass`word, ![p](<>)assword?",
            "[p]()assword",
            "![p](<>)assword",
            "`pass`word",
            "p[a](a)ssword, [API](API) [key](key), `API\nkey`",
            "0. - production\n1. - staging",
            "0.     production\n1.     staging",
            "2. 1. keep\n1. 2. delete",
            "1.\n2. b",
            "Delete module __init__ now?",
            "Run: cp *src dest*",
            "- **500** EUR",
            "> **100** MB?",
            "5\n=\n5",
            "a\\\nb",
            "- 500 EUR",
            "+ 5\n+ 6",
            "> 5",
            "# 7",
        ] {
            let mut shown = Vec::new();
            for block in blocks(text) {
                let Block::Paragraph(spans) = block else {
                    panic!("{text}: {block:?}")
                };
                shown.push(joined(&spans));
            }
            assert_eq!(shown.join("\n\n"), text);
        }
        for text in [
            "**Careful!** This is not undone.",
            "(**bold**), `code`, ``a ` b``",
            "# Plan #\n\nTitle\n===\n\n- a\n* b\n+ c\n\n---\n\n> quoted\n> on",
            "```json\n{\"a\": 1}\n```\n\n    indented",
            "see <https://b.example> or **this**",
        ] {
            assert_ne!(blocks(text), as_sent(text), "{text}");
        }
    }

    #[test]
    fn nothing_is_lost_of_a_long_or_broken_message() {
        let long = "word ".repeat(4_000);
        let message = MarkdownMessage::read(&long);
        assert!(message.long);
        let Block::Paragraph(spans) = &message.blocks[0] else {
            panic!("a paragraph")
        };
        assert_eq!(
            spans.iter().map(|span| span.text().len()).sum::<usize>(),
            long.trim_end().len()
        );
        for broken in [
            "> ",
            "- ",
            "[a](",
            "**",
            "```\nopen",
            "1. a\n\n   b\n\n2. c",
            "![x](y)",
            "&lt;b&gt;",
        ] {
            assert!(!blocks(&format!("{broken} end")).is_empty(), "{broken}");
        }
    }
}
