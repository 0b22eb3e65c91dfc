//! A server's message as paragraphs, lists and code.
//!
//! Servers write Markdown. It is shown with its structure, and without anything to click: a link is shown as its text
//! followed by its address, an image as its description and address, HTML as plain text.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::view::sanitize;

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// Plain text.
    Plain(String),
    /// Important text.
    Strong(String),
    /// Stressed text.
    Emphasis(String),
    /// Code.
    Code(String),
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// `true` if it belongs to a list within a list.
    pub deep: bool,
    /// Its text.
    pub spans: Vec<Span>,
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// A paragraph.
    Paragraph(Vec<Span>),
    /// A heading of the message, which is not a heading of the page.
    Heading(Vec<Span>),
    /// A quotation.
    Quote(Vec<Span>),
    /// A block of code.
    Code(String),
    /// A list.
    List {
        /// `true` if it is numbered.
        ordered: bool,
        /// Its entries.
        items: Vec<Item>,
    },
    /// A horizontal line.
    Rule,
}

/// A message, ready to be laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Its blocks, top to bottom.
    pub blocks: Vec<Block>,
    /// `true` if it is so long that only its beginning is shown until the reader opens it.
    pub long: bool,
}

/// The number of characters, or lines, above which only the beginning of a message is shown at first.
const LONG: (usize, usize) = (1_800, 24);

/// The longest first line, in characters, that becomes the title of a page.
const TITLE: usize = 300;

impl Message {
    /// Parses `text`. The parser's output, with character references such as `&#x202e;` decoded, is made safe to show.
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader::default();
        for event in Parser::new_ext(text, Options::empty()) {
            reader.take(event);
        }
        reader.close();
        let long = text.chars().count() > LONG.0 || text.lines().count() > LONG.1;
        Self {
            blocks: reader.blocks,
            long,
        }
    }

    /// Takes the first line out of a message that begins with a paragraph or a heading, as the title of its page. Empty
    /// if the message begins otherwise, or if its first line is too long for a title.
    pub(super) fn take_title(&mut self) -> Vec<Span> {
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
                Block::List { items, .. } => {
                    words.extend(items.iter().map(|item| joined(&item.spans)));
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

/// Splits a paragraph after its first line. The line break itself is in neither part.
fn split_line(spans: Vec<Span>) -> (Vec<Span>, Vec<Span>) {
    let (mut line, mut rest) = (Vec::new(), Vec::new());
    for span in spans {
        match span {
            Span::Plain(text) if rest.is_empty() => match text.split_once('\n') {
                Some((before, after)) => {
                    line.push(Span::Plain(before.trim_end().to_owned()));
                    rest.push(Span::Plain(after.to_owned()));
                }
                None => line.push(Span::Plain(text)),
            },
            span if rest.is_empty() => line.push(span),
            span => rest.push(span),
        }
    }
    (line, rest)
}

fn joined(spans: &[Span]) -> String {
    spans.iter().map(Span::text).collect()
}

/// The data collected from parser events.
#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    spans: Vec<Span>,
    code: Option<String>,
    items: Vec<Item>,
    lists: Vec<bool>,
    strong: usize,
    emphasis: usize,
    quotes: usize,
    /// The addresses of the open links and images.
    addresses: Vec<(String, usize)>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(text) => self.spans.push(Span::Code(harmless(&text))),
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

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::CodeBlock(_) => {
                self.flush();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first.is_some());
            }
            Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::HtmlBlock => {
                if self.lists.is_empty() || matches!(tag, Tag::Item) {
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
            Tag::Emphasis => self.emphasis += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.addresses
                    .push((dest_url.into_string(), self.spans.len()));
            }
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
                if self.lists.len() == 1 {
                    self.close_list();
                }
                self.lists.pop();
            }
            TagEnd::Heading(_) if self.lists.is_empty() => {
                let spans = std::mem::take(&mut self.spans);
                self.blocks.push(Block::Heading(spans));
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock if self.lists.is_empty() => self.flush(),
            TagEnd::Item => self.flush(),
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Emphasis => self.emphasis = self.emphasis.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.address(),
            _ => {}
        }
    }

    /// Shows the target of a link, unless its text already does.
    fn address(&mut self) {
        let Some((address, from)) = self.addresses.pop() else {
            return;
        };
        let said: String = self
            .spans
            .get(from..)
            .unwrap_or_default()
            .iter()
            .map(Span::text)
            .collect();
        if !address.is_empty() && said != address {
            self.text(&format!(" ({address})"));
        }
    }

    fn text(&mut self, text: &str) {
        let text = harmless(text);
        if let Some(code) = &mut self.code {
            code.push_str(&text);
            return;
        }
        let make = if self.strong > 0 {
            Span::Strong
        } else if self.emphasis > 0 {
            Span::Emphasis
        } else {
            // A link's text is kept apart from the preceding text, to compare it with the address.
            let apart = self
                .addresses
                .last()
                .is_some_and(|(_, from)| *from == self.spans.len());
            if let Some(Span::Plain(before)) = self.spans.last_mut().filter(|_| !apart) {
                before.push_str(&text);
                return;
            }
            Span::Plain
        };
        self.spans.push(make(text));
    }

    /// Ends the block being collected.
    fn flush(&mut self) {
        while matches!(self.spans.last(), Some(Span::Plain(text)) if text.trim().is_empty()) {
            self.spans.pop();
        }
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        if !self.lists.is_empty() {
            self.items.push(Item {
                deep: self.lists.len() > 1,
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
            let ordered = self.lists.first().copied().unwrap_or(false);
            self.blocks.push(Block::List { ordered, items });
        }
    }

    fn close(&mut self) {
        if self.lists.is_empty() {
            self.flush();
        } else {
            self.close_list();
        }
    }
}

impl Span {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Strong(text) | Self::Emphasis(text) | Self::Code(text) => {
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<Block> {
        Message::read(text).blocks
    }

    fn plain(text: &str) -> Span {
        Span::Plain(text.to_owned())
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
            let words = Message::read(&text).words();
            assert!(words.contains("‹U+20"), "{words}");
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
        assert_eq!(
            blocks("see [your bank](https://evil.example/)"),
            [Block::Paragraph(vec![
                plain("see "),
                plain("your bank (https://evil.example/)")
            ])]
        );
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
            spans.iter().map(Span::text).collect::<String>().trim_end(),
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
            Message::read("# A\n\n**b** `c`\nd\n\n- e\n- f\n\n```\ng\n```\n---\n> h").words();
        assert_eq!(words, "A b c d e f g h");
    }

    #[test]
    fn lists_and_code_and_emphasis() {
        assert_eq!(
            blocks("# Plan\n\n- **first**\n- second\n  - deeper\n\n```\nrm -rf x\n```\n"),
            [
                Block::Heading(vec![plain("Plan")]),
                Block::List {
                    ordered: false,
                    items: vec![
                        Item {
                            deep: false,
                            spans: vec![Span::Strong("first".into())]
                        },
                        Item {
                            deep: false,
                            spans: vec![plain("second")]
                        },
                        Item {
                            deep: true,
                            spans: vec![plain("deeper")]
                        },
                    ]
                },
                Block::Code("rm -rf x".into()),
            ]
        );
    }

    #[test]
    fn nothing_is_lost_of_a_long_or_broken_message() {
        let long = "word ".repeat(4_000);
        let message = Message::read(&long);
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
