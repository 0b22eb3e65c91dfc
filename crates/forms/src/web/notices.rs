//! The pages with a single notice.

use std::time::{Duration, SystemTime};

use super::page::{ClosePart, NoticeLink, NoticePage, Shell};
use super::page_model::without_session;
use super::question_store::{EndKind, Ended, QuestionSummary};
use super::site::Site;
use crate::theme::Tone;
use crate::view::sanitize;

/// Builds a notice without links.
fn notice(shell: Shell, tone: Tone, head: &str, line: &str) -> NoticePage {
    let acts = if shell.inside {
        vec![NoticeLink {
            href: format!("{}/", shell.base),
            label: "Questions for you".to_owned(),
        }]
    } else {
        Vec::new()
    };
    NoticePage {
        shell,
        tone,
        head: head.to_owned(),
        lines: vec![line.to_owned()],
        acts,
        close: None,
        forward: None,
        enter: None,
        desktop_next: None,
        history: Vec::new(),
        comments: Vec::new(),
    }
}

/// Builds the page about the end of a question. `late` if the reader has just tried to answer it.
pub(super) fn ended(
    shell: Shell,
    summary: &QuestionSummary,
    late: bool,
    next: Option<&QuestionSummary>,
    note: Option<String>,
    is_approval: bool,
    now: SystemTime,
) -> NoticePage {
    let Some(end) = &summary.ended else {
        return expired(shell, &summary.server, late);
    };
    let (tone, head, line) = words(end, &summary.server);
    let head = match &end.how {
        EndKind::Answered if is_approval => "Approved",
        _ => head,
    };
    // The store's note is more precise about the delivery of the answer.
    let line = note.unwrap_or(line);
    let mut page = notice(shell, tone, head, &line);
    if let Some(call) = &summary.call {
        page.lines
            .insert(0, format!("{call} on {}", summary.server));
    }
    if late {
        page.tone = Tone::Warn;
        page.lines.insert(
            0,
            "You were not the first: what you just did was not used.".to_owned(),
        );
    }
    if let Some(by) = &end.by {
        let done = match &end.how {
            EndKind::Answered | EndKind::Declined | EndKind::Cancelled => head,
            _ => "Ended",
        };
        let by = sanitize::line(without_session(by), sanitize::LABEL);
        let stop = if by.ends_with('.') { "" } else { "." };
        page.lines.push(format!("{done} {by}{stop}"));
    }
    if let Some(next) = next {
        let act = NoticeLink {
            href: format!("{}/q/{}", page.shell.base, next.id),
            label: format!("Next question, from {}", next.server),
        };
        page.acts.insert(0, act);
    } else {
        let since = now.duration_since(end.at).unwrap_or_default();
        page.close = Some(ClosePart {
            server: summary.server.clone(),
            is_early: since < NEXT_QUESTION,
        });
    }
    page
}

/// The time after an answer in which its server usually asks the next question, if it has one.
const NEXT_QUESTION: Duration = Duration::from_secs(5);

/// The text that a person typed for a refused action.
pub(super) enum RefusedText {
    /// The action has no text.
    None,
    /// The form keeps the text.
    Kept,
    /// The page returns the text.
    Back(String),
}

/// Builds the page for a refused action.
pub(super) fn act_refused(shell: Shell, why: &str, here: &str, words: RefusedText) -> NoticePage {
    let mut page = notice(shell, Tone::Warn, "Not done", why);
    match words {
        RefusedText::None => {}
        RefusedText::Kept => page
            .lines
            .push("Nothing was sent, and what you typed is kept.".to_owned()),
        RefusedText::Back(text) if text.trim().is_empty() => {}
        RefusedText::Back(text) => {
            page.lines.push("You wrote:".to_owned());
            page.lines.push(sanitize::text(&text, sanitize::ARGUMENTS));
        }
    }
    let back = NoticeLink {
        href: here.to_owned(),
        label: "Back to the question".to_owned(),
    };
    page.acts.insert(0, back);
    page
}

/// Builds the page of a question whose content the reader may not see.
pub(super) fn outline(shell: Shell, summary: &QuestionSummary) -> NoticePage {
    let line = "This question is not addressed to you: you see that it exists, and no more.";
    let mut page = notice(shell, Tone::Locked, "A question for others", line);
    let call = summary.call.as_deref().map(|call| format!(" for {call}"));
    let call = call.unwrap_or_default();
    let state = match &summary.ended {
        None => "It waits for an answer.".to_owned(),
        Some(ended) => words(ended, &summary.server).2,
    };
    page.lines.push(format!("{} asks{call}.", summary.server));
    page.lines.push(state);
    if let Some(arguments) = &summary.arguments {
        let arguments = sanitize::text(arguments, sanitize::ARGUMENTS);
        page.lines.push(format!("Kept for auditors: {arguments}"));
    }
    page
}

/// Builds the page of a question that is no longer the reader's.
pub(super) fn no_longer(shell: Shell, why: &str) -> NoticePage {
    notice(shell, Tone::Locked, "Not for you any more", why)
}

fn words(end: &Ended, server: &str) -> (Tone, &'static str, String) {
    match &end.how {
        EndKind::Answered => (
            Tone::Good,
            "Answered",
            format!("The answer was handed to {server}."),
        ),
        EndKind::Visited => (
            Tone::Good,
            "Done",
            format!("{server} was told that you agreed to open the page, and goes on."),
        ),
        EndKind::Declined => (Tone::Bad, "Declined", format!("{server} was told no.")),
        EndKind::Cancelled => (
            Tone::Plain,
            "Cancelled",
            format!("{server} was told that no choice was made."),
        ),
        EndKind::TimedOut => (
            Tone::Warn,
            "Too late",
            format!("Nobody answered {server} in time. Nothing was sent."),
        ),
        EndKind::Withdrawn(why) => (
            Tone::Plain,
            "Withdrawn",
            format!(
                "{server} needs no answer any more: {}. Nothing was sent.",
                sanitize::line(why, sanitize::LABEL)
            ),
        ),
        EndKind::Failed(why) => (
            Tone::Bad,
            "Something went wrong",
            format!(
                "The question of {server} could not be brought to its end: {}.",
                sanitize::line(why, sanitize::LABEL)
            ),
        ),
    }
}

/// Builds the notice for a question whose deadline has passed before the store has ended it.
pub(super) fn expired(shell: Shell, server: &str, late: bool) -> NoticePage {
    let line = format!("The time to answer {server} ran out. Nothing was sent.");
    let mut page = notice(shell, Tone::Warn, "Too late", &line);
    if late {
        page.lines
            .insert(0, "What you just did came after the end.".to_owned());
    }
    page
}

/// Builds the notice for an unknown question or another person's, which look the same.
pub(super) fn unknown(shell: Shell) -> NoticePage {
    notice(
        shell,
        Tone::Plain,
        "Not here",
        "There is no such question, or it is so old that its end was forgotten.",
    )
}

/// Builds the notice for an address without a page.
pub(super) fn no_page(shell: Shell) -> NoticePage {
    notice(shell, Tone::Plain, "Not here", "There is no such page.")
}

/// Builds the notice for a missing file.
pub(super) fn no_asset(site: &Site) -> NoticePage {
    let mut page = notice(
        outside(site),
        Tone::Plain,
        "Not here",
        "There is no such file.",
    );
    page.acts.push(questions(site));
    page
}

/// Builds the notice for a method that the address does not accept, such as opening the target of a form.
pub(super) fn other_method(site: &Site) -> NoticePage {
    let line = "Nothing was done: this address takes no such request. Open the inbox, and use the links and buttons of its pages.";
    let mut page = notice(outside(site), Tone::Plain, "Not like this", line);
    page.acts.push(questions(site));
    page
}

/// Returns the link to the list, for a page without a session.
fn questions(site: &Site) -> NoticeLink {
    NoticeLink {
        href: format!("{}/", site.prefix),
        label: "Open the inbox".to_owned(),
    }
}

/// Builds the page for a browser without a session. `meant` is the page to which a browser with a session is sent, if
/// any.
pub(super) fn no_session(site: &Site, meant: Option<&str>) -> NoticePage {
    let (head, line) = if site.logins {
        ("Log in", "This browser is not logged in.")
    } else {
        ("Sign in", "This browser is not signed in.")
    };
    let mut page = notice(outside(site), Tone::Locked, head, line);
    page.lines.push(site.sign_in.clone());
    page.enter = meant.map(str::to_owned);
    if site.desktop.is_some() {
        page.desktop_next = Some(meant.unwrap_or("/").to_owned());
    }
    page
}

/// Builds the notice for a login link that is used or has expired.
pub(super) fn spent_link(site: &Site, meant: &str) -> NoticePage {
    let line = "This link is invalid or has expired: each signs one browser in, once.";
    let mut page = notice(outside(site), Tone::Locked, "Sign in", line);
    page.lines.push(site.sign_in.clone());
    page.enter = Some(meant.to_owned());
    page.desktop_next = site.desktop.is_some().then(|| meant.to_owned());
    page
}

/// Builds the notice after the request for a page in the browser of this machine, with the way back to `meant`.
pub(super) fn desktop_page(site: &Site, head: &str, line: &str, meant: &str) -> NoticePage {
    let mut page = notice(outside(site), Tone::Locked, head, line);
    page.lines
        .push("In a terminal of that computer, `mcp-elicit inbox open` does the same.".to_owned());
    page.acts.push(NoticeLink {
        href: format!("{}{meant}", site.prefix),
        label: "Back".to_owned(),
    });
    page
}

/// Returns the frame of a page without a session, which reveals no other addresses.
fn outside(site: &Site) -> Shell {
    Shell {
        base: site.prefix.clone(),
        inside: false,
        pending: 0,
        name: None,
    }
}

/// Builds the redirect after a login that another page started, because the cookie is sent only from here on.
pub(super) fn forward(site: &Site, next: String) -> NoticePage {
    let mut page = notice(outside(site), Tone::Good, "Signed in", "One moment.");
    page.acts.push(NoticeLink {
        href: next.clone(),
        label: "Go on".to_owned(),
    });
    page.forward = Some(next);
    page
}

/// Builds the notice for a request under another host's name. It names the site's public address, which is not a
/// secret.
pub(super) fn other_name(site: &Site) -> NoticePage {
    let line = "This address was reached under a name that is not its own. Whoever runs it gives it the name (`inbox-url` of a \
        gateway), and has a proxy pass `Host` on.";
    let mut page = refused(site, "Wrong address", line);
    if !site.loopback {
        let address = site.address();
        page.lines.push(format!("Its address is {address}"));
        page.acts.push(NoticeLink {
            href: address,
            label: "Open it there".to_owned(),
        });
    }
    page
}

/// Builds the notice for a rejected request, with the reason.
pub(super) fn refused(site: &Site, head: &str, line: &str) -> NoticePage {
    notice(outside(site), Tone::Bad, head, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_under_another_name_is_told_the_public_address_only() {
        let public = other_name(&Site::public("https://inbox.example.org").unwrap());
        assert_eq!(public.acts[0].href, "https://inbox.example.org/");
        let line = "Its address is https://inbox.example.org/";
        assert_eq!(public.lines[1], line);
        let local = other_name(&Site::loopback("127.0.0.1:7878".parse().unwrap()).unwrap());
        assert!(local.acts.is_empty() && local.lines.len() == 1);
    }
}
