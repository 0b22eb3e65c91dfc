//! The texts of mails. Texts of a server or a caller are escaped, and are in no header.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use crate::notice::Notice;
use crate::revealed::{Revealed, Template};

const FOOTER: &str =
    "The link opens the inbox, where you sign in. Replies to this mail are not read.";

/// One message, ready to be written as text or HTML.
pub(super) struct MailContent {
    subject: String,
    opening: String,
    message: Option<String>,
    facts: Vec<(&'static str, String)>,
    arguments: Vec<(String, String)>,
    link: String,
}

impl MailContent {
    pub(super) fn new(notice: &Notice, template: Option<&Template>, zone: &TimeZone) -> Self {
        let revealed = Revealed::new(notice);
        let ending = revealed.ending(zone);
        let template = template.filter(|_| notice.event.asks_to_act() && ending.is_none());
        let opening = match template {
            Some(template) => template.render(&revealed, zone),
            None => revealed.opening(),
        };
        let facts = [
            ("Ended", ending),
            ("Server", Some(revealed.server())),
            ("Tool", revealed.tool()),
            ("Caller", revealed.caller()),
            ("Rule", revealed.rule()),
            ("Deadline", revealed.deadline(zone)),
            ("Address asked to open", revealed.address()),
        ];
        let facts = facts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .chain(revealed.plan_facts());
        Self {
            subject: revealed.subject(zone),
            opening,
            message: revealed.message(),
            facts: facts.collect(),
            arguments: revealed.arguments(),
            link: notice.summary.link.clone(),
        }
    }

    pub(super) fn subject(&self) -> String {
        self.subject.clone()
    }

    pub(super) fn text(&self) -> String {
        let mut out = format!("{}\n\n", self.opening);
        if let Some(message) = &self.message {
            let quoted = message.lines().map(|line| format!("> {line}\n"));
            out.extend(quoted);
            out.push('\n');
        }
        for (name, value) in &self.facts {
            let _ = writeln!(out, "{name}: {value}"); // writing to a String cannot fail
        }
        if !self.arguments.is_empty() {
            out.push_str("\nArguments:\n");
        }
        for (name, value) in &self.arguments {
            let value = value.replace('\n', "\n    ");
            let _ = writeln!(out, "  {name}: {value}");
        }
        let _ = write!(out, "\n{}\n\n{FOOTER}\n", self.link);
        out
    }

    pub(super) fn html(&self) -> String {
        let mut body = format!("<p>{}</p>", escape(&self.opening));
        if let Some(message) = &self.message {
            let _ = write!(
                body,
                "<blockquote style=\"margin:0 0 1em;padding-left:.8em;border-left:3px solid #888;white-space:pre-wrap\">{}</blockquote>",
                escape(message)
            );
        }
        let facts = self.facts.iter();
        let facts = facts.map(|(name, value)| (*name, value.as_str()));
        body.push_str(&table(facts));
        if !self.arguments.is_empty() {
            body.push_str("<p>Arguments:</p>");
            let arguments = self.arguments.iter();
            let arguments = arguments.map(|(name, value)| (name.as_str(), value.as_str()));
            body.push_str(&table(arguments));
        }
        let link = escape(&self.link);
        let _ = write!(body, "<p><a href=\"{link}\">Open the question</a></p>");
        page(&body)
    }
}

fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let rows = rows.map(|(name, value)| {
        format!(
            "<tr><th style=\"text-align:left;vertical-align:top;padding-right:1em\">{}</th><td style=\"white-space:pre-wrap\">{}</td></tr>",
            escape(name),
            escape(value)
        )
    });
    format!("<table>{}</table>", rows.collect::<String>())
}

fn page(body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"></head><body style=\"font-family:sans-serif\">{body}<p><small>{FOOTER}</small></p></body></html>"
    )
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

pub(super) fn digest_subject(count: usize) -> String {
    match count {
        1 => "[gateway] 1 question".to_owned(),
        count => format!("[gateway] {count} questions"),
    }
}

/// Returns the line for one question of a digest.
fn entry(notice: &Notice, zone: &TimeZone) -> String {
    let revealed = Revealed::new(notice);
    let subject = revealed.subject(zone);
    let subject = subject.strip_prefix("[gateway] ").unwrap_or(&subject);
    match revealed.tool() {
        Some(tool) => format!("{subject} ({tool})"),
        None => subject.to_owned(),
    }
}

fn left_out(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!("and {more} more in the inbox"),
    }
}

pub(super) fn digest_text(notices: &[Notice], more: usize, zone: &TimeZone) -> String {
    let mut out = String::new();
    for notice in notices {
        let link = &notice.summary.link;
        let _ = write!(out, "{}\n  {link}\n\n", entry(notice, zone)); // cannot fail
    }
    let _ = write!(out, "{}\n\n{FOOTER}\n", left_out(more));
    out
}

pub(super) fn digest_html(notices: &[Notice], more: usize, zone: &TimeZone) -> String {
    let entries = notices.iter().map(|notice| {
        let link = escape(&notice.summary.link);
        let entry = escape(&entry(notice, zone));
        format!("<li><a href=\"{link}\">{entry}</a></li>")
    });
    let entries: String = entries.collect();
    page(&format!("<ul>{entries}</ul><p>{}</p>", left_out(more)))
}

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::rules::Reveal;

    use super::*;
    use crate::notice::QuestionEvent;
    use crate::notice::tests::{approved, assert_says_what_became_of_it, notice, summary};

    #[test]
    fn the_last_message_says_what_became_of_the_call() {
        let content = MailContent::new(&approved(), None, &TimeZone::UTC);
        assert_says_what_became_of_it(&content.text());
        assert!(content.html().contains("again until noon"));
    }

    #[test]
    fn texts_of_servers_are_escaped_and_there_is_one_link() {
        let mut hostile = summary("{}");
        hostile.message =
            "<img src=x onerror=alert(1)>\n> quoted\n<a href=\"https://evil.example\">x</a>"
                .to_owned();
        hostile.caller.name = "\"><script>".to_owned();
        let notice = notice(hostile, QuestionEvent::Asked, Reveal::Arguments);
        let content = MailContent::new(&notice, None, &TimeZone::UTC);
        let html = content.html();
        assert_eq!(html.matches("<a ").count(), 1, "{html}");
        assert_eq!(
            html.matches("href=").count(),
            2,
            "one of them escaped: {html}"
        );
        assert!(
            !html.contains("<img") && !html.contains("<script"),
            "{html}"
        );
        let text = content.text();
        assert!(text.contains("> > quoted"), "{text}");
        assert!(text.contains("environment: production"), "{text}");
        assert_eq!(text.matches("https://ask.example.com").count(), 1, "{text}");
        assert!(content.subject().is_ascii(), "{}", content.subject());
    }

    #[test]
    fn a_template_replaces_the_first_sentence_while_it_asks() {
        let template = Template::parse("{server} needs {group}.").unwrap();
        let text = |event| {
            let notice = notice(summary("{}"), event, Reveal::Question);
            MailContent::new(&notice, Some(&template), &TimeZone::UTC).text()
        };
        assert!(text(QuestionEvent::Asked).starts_with("deploy needs ops.\n"));
        assert!(text(QuestionEvent::Claimed).starts_with("deploy: claimed.\n"));
    }

    #[test]
    fn a_collection_names_what_it_leaves_out() {
        let one = notice(summary("{}"), QuestionEvent::Asked, Reveal::Minimal);
        let text = digest_text(&[one.clone(), one.clone()], 3, &TimeZone::UTC);
        assert_eq!(text.matches("deploy: decision needed").count(), 2, "{text}");
        assert!(text.contains("and 3 more in the inbox"), "{text}");
        let html = digest_html(&[one], 0, &TimeZone::UTC);
        assert!(!html.contains("more in the inbox"), "{html}");
    }
}
