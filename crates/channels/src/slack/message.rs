//! The message that asks, and its state after the end.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use mcp_elicit_core::form::{Form, Kind};
use mcp_elicit_core::link::Link;
use mcp_elicit_core::view::sanitize;
use mcp_elicit_policy::rules::Reveal;
use serde_json::{Value, json};

use super::modal;
use super::text::{HEADER, OPTION, cut, escape, length, plain, sections};
use crate::notice::{ChannelSummary, Notice};
use crate::revealed::{Revealed, all_arguments};

/// The longest sentence about the end, in characters, with the reason in full. Slack takes 3,000.
const LONGEST_ENDING: usize = 2_900;

/// The most blocks of a message.
const BLOCKS: usize = 50;
/// The gateway's own buttons.
const OWN_BUTTONS: [&str; 6] = [
    "Approve",
    "Confirm",
    "Decline",
    "Open in the inbox",
    "Review",
    "Review to approve",
];
/// The longest label of a button that Slack shows whole.
const SHOWN_LABEL: usize = 30;
/// The longest opening.
const OPENING: usize = 500;
/// The longest fact, and the longest text beside the blocks.
const FACT: usize = 300;
/// The most options that are buttons.
const BUTTONS: usize = 5;

/// A message for `chat.postMessage` and `chat.update`.
pub(super) struct SlackMessage {
    pub(super) text: String,
    pub(super) blocks: Vec<Value>,
}

/// The way in which people answer from a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// Each choice is a button: its label, and the word that [`chosen`](super::interact) reads.
    Buttons(Vec<(String, String)>),
    /// A button opens a modal.
    Review,
    /// Only the link to the page.
    Page,
}

/// The ways to answer that the app supports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offers {
    /// `true` if clicks reach the gateway.
    pub(super) acts: bool,
    /// `true` if searches do.
    pub(super) options_url: bool,
}

/// Returns the way to answer. Buttons are used only beside everything that the decision is about; `is_whole` is set if
/// the message shows it uncut.
pub(super) fn offer(
    summary: &ChannelSummary,
    reveal: Reveal,
    offers: Offers,
    is_whole: bool,
) -> Offer {
    let form = match &summary.form {
        Some(form) if offers.acts && reveal != Reveal::Minimal && !summary.needs_page => form,
        _ => return Offer::Page,
    };
    // A `no` beside an editable argument could be read as a "no" to the call.
    let is_plain = !summary.is_approval || form.fields().is_empty();
    let shows_arguments = reveal == Reveal::Arguments || all_arguments(summary).is_empty();
    if is_plain
        && shows_arguments
        && is_whole
        && let Some(buttons) = buttons(summary, form)
    {
        return Offer::Buttons(buttons);
    }
    if modal::is_possible(summary, offers.options_url) {
        Offer::Review
    } else {
        Offer::Page
    }
}

/// Returns buttons for a form that is a confirmation: one boolean or one choice of few.
fn buttons(summary: &ChannelSummary, form: &Form) -> Option<Vec<(String, String)>> {
    let own = |label: &str, word: &str| (label.to_owned(), word.to_owned());
    match form.fields() {
        [] if summary.is_approval => Some(vec![own("Approve", "ok")]),
        [] => Some(vec![own("Confirm", "ok")]),
        [field] => match field.kind() {
            Kind::Boolean(_) => Some(vec![own("Yes", "yes"), own("No", "no")]),
            Kind::Choice(choice) if choice.options.len() <= BUTTONS => {
                let labels = choice.options.iter().enumerate();
                let labels = labels.map(|(index, option)| {
                    let label = modal::shown(option.label());
                    let fits = !label.is_empty() && length(&label) <= SHOWN_LABEL;
                    fits.then(|| (label, index.to_string()))
                });
                let labels: Vec<_> = labels.collect::<Option<_>>()?;
                are_distinct(&labels).then_some(labels)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns `true` if no label of a server looks like a button of the gateway, or like another of its own.
fn are_distinct(labels: &[(String, String)]) -> bool {
    let letters = |label: &str| -> String {
        let letters = label.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let mut seen: HashSet<String> = OWN_BUTTONS.iter().map(|label| letters(label)).collect();
    labels.iter().all(|(label, _)| {
        let letters = letters(label);
        // A label of signs alone is compared as it is.
        seen.insert(if letters.is_empty() {
            label.clone()
        } else {
            letters
        })
    })
}

/// Returns the message of a notice.
pub(super) fn message(notice: &Notice, offers: Offers, zone: &TimeZone) -> SlackMessage {
    let summary = &*notice.summary;
    let revealed = Revealed::new(notice);
    let subject = revealed.subject(zone);
    let subject = subject.strip_prefix("[gateway] ").unwrap_or(&subject);
    let opening = revealed.opening();
    let mut top = vec![
        json!({"type": "header", "text": plain(subject, HEADER)}),
        json!({"type": "section", "text": plain(&opening, OPENING), "expand": true}),
    ];
    let mut is_whole = !revealed.is_cut() && length(&opening) <= OPENING;
    let mut facts = Vec::new();
    for (name, value, is_decided_on) in [
        ("Tool", revealed.tool(), true),
        ("Caller", revealed.caller(), true),
        ("Asked", revealed.group(), false),
        ("Rule", revealed.rule(), false),
    ] {
        let Some(value) = value else { continue };
        let fact = format!("{name}: {value}");
        is_whole &= !is_decided_on || length(&fact) <= FACT;
        facts.push(plain(&fact, FACT));
    }
    if !facts.is_empty() {
        top.push(json!({"type": "context", "elements": facts}));
    }
    // The text of the notification, which a phone shows instead of the blocks.
    let mut short = subject.to_owned();
    for (before, value) in [
        (" · ", revealed.tool()),
        (" · called by ", revealed.caller()),
    ] {
        if let Some(value) = value {
            short.extend([before, &*value]);
        }
    }
    let text = escape(&cut(&short, FACT));
    if let Some(ending) = revealed.ending(zone) {
        top.push(
            json!({"type": "section", "text": plain(&ending, LONGEST_ENDING), "expand": true}),
        );
        top.extend(
            revealed
                .good_for()
                .map_or_else(Vec::new, |text| sections(&text)),
        );
        top.push(actions(&[open(summary)]));
        return SlackMessage { text, blocks: top };
    }
    let message = revealed.message().map(|text| sections(&text));
    let mut blocks = top;
    blocks.extend(message.unwrap_or_default());
    blocks.extend(address(&revealed, summary));
    for (label, text) in revealed.plan_facts() {
        blocks.extend(sections(&format!("{label}: {text}")));
    }
    let asked = asked(summary);
    let arguments = modal::arguments(&revealed.arguments());
    is_whole &= blocks.len() + asked.len() + arguments.len() < BLOCKS;
    let offer = offer(summary, notice.reveal, offers, is_whole);
    if matches!(offer, Offer::Buttons(_)) {
        blocks.extend(asked);
    }
    blocks.extend(arguments);
    if blocks.len() >= BLOCKS {
        blocks.truncate(BLOCKS - 2);
        let more = plain("The rest is on the page of the question.", 100);
        blocks.push(json!({"type": "context", "elements": [more]}));
    }
    blocks.push(actions(&elements(summary, offer)));
    SlackMessage { text, blocks }
}

/// Notifies everyone in the channel. A message that has all its blocks already loses its heading, which is the text of
/// the notification, too.
pub(super) fn add_mention(blocks: &mut Vec<Value>) {
    let everyone = json!({"type": "section", "text": {"type": "mrkdwn", "text": "<!channel>"}});
    if blocks.len() >= BLOCKS {
        blocks[0] = everyone;
    } else {
        blocks.insert(1.min(blocks.len()), everyone);
    }
}

/// Returns sections with the texts of a form that buttons answer: its own, and those of its only field.
fn asked(summary: &ChannelSummary) -> Vec<Value> {
    let mut blocks = modal::form_texts(summary);
    if let Some([field]) = summary.form.as_deref().map(Form::fields) {
        let label = format!("Field: {}", sanitize::line(field.label(), usize::MAX));
        let description = field.description().unwrap_or_default().trim();
        let description = sanitize::text(description, usize::MAX);
        blocks.extend(sections(format!("{label}\n{description}").trim_end()));
    }
    blocks
}

/// Returns the address of a question in url mode, with its warnings. It is never a link.
fn address(revealed: &Revealed<'_>, summary: &ChannelSummary) -> Vec<Value> {
    let Some(address) = revealed.address() else {
        return Vec::new();
    };
    let mut blocks = sections(&format!("The server asks to open this address:\n{address}"));
    let link = summary.address.as_deref().map(Link::parse);
    if let Some(Ok(link)) = link {
        let warnings = link.distinct_warnings();
        let warnings: Vec<_> = warnings.map(|warning| format!("• {warning}")).collect();
        blocks.extend(sections(&warnings.join("\n")));
    }
    blocks
}

fn actions(elements: &[Value]) -> Value {
    json!({"type": "actions", "elements": elements})
}

fn open(summary: &ChannelSummary) -> Value {
    json!({"type": "button", "action_id": "open", "text": plain("Open in the inbox", OPTION), "url": summary.link})
}

fn elements(summary: &ChannelSummary, offer: Offer) -> Vec<Value> {
    let value = |word: &str| format!("{}:{}:{word}", summary.question, summary.version);
    let button = |id: &str, label: &str, word: &str| json!({"type": "button", "action_id": id, "text": plain(label, OPTION), "value": value(word)});
    let mut elements = Vec::new();
    match offer {
        Offer::Page => {}
        Offer::Review if summary.is_approval => {
            elements.push(button("review", "Review to approve", "-"));
        }
        Offer::Review => elements.push(button("review", "Review", "-")),
        Offer::Buttons(buttons) => {
            let buttons = buttons.iter().enumerate();
            elements.extend(
                buttons
                    .map(|(index, (label, word))| button(&format!("choose:{index}"), label, word)),
            );
            let mut decline = button("decline", "Decline", "-");
            decline["style"] = json!("danger");
            elements.push(decline);
        }
    }
    elements.push(open(summary));
    elements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::tests::{approved, assert_says_what_became_of_it, notice, summary};
    use crate::notice::{EndSummary, QuestionEvent};

    const OFFERS: Offers = Offers {
        acts: true,
        options_url: false,
    };

    fn offered(properties: &str, reveal: Reveal) -> Offer {
        offer(&summary(properties), reveal, OFFERS, true)
    }

    #[test]
    fn the_last_message_says_what_became_of_the_call() {
        let message = message(&approved(), OFFERS, &TimeZone::UTC);
        let text = message.blocks.iter().map(ToString::to_string);
        assert_says_what_became_of_it(&text.collect::<String>());
    }

    #[test]
    fn a_message_that_has_ended_has_the_reason_in_full() {
        let why = "x".repeat(mcp_elicit_core::question::MAX_REASON);
        let mut ended = summary("{}");
        ended.ending = Some(EndSummary {
            event: QuestionEvent::Declined,
            by: Some("Cy".to_owned()),
            at: ended.asked_at,
            why: vec![why.clone()],
        });
        let ended = notice(ended, QuestionEvent::Declined, Reveal::Question);
        let message = message(&ended, OFFERS, &TimeZone::UTC);
        let text = message.blocks.iter().map(ToString::to_string);
        let text: String = text.collect();
        assert!(text.contains("Declined by Cy at 10:00 UTC. Why:"), "{text}");
        assert!(text.contains(&why), "{text}");
    }

    #[test]
    fn cautions_about_an_address_that_say_the_same_are_one() {
        let address = "https://раураl.com/";
        let link = Link::parse(address).unwrap();
        let mut asked = summary("{}");
        asked.form = None;
        asked.address = Some(address.to_owned());
        let asked = notice(asked, QuestionEvent::Asked, Reveal::Arguments);
        let message = message(&asked, OFFERS, &TimeZone::UTC);
        let text = message.blocks.iter().map(ToString::to_string);
        let text: String = text.collect();
        let shown = link.distinct_warnings().count();
        assert!(shown < link.warnings().len());
        assert_eq!(text.matches('•').count(), shown, "{text}");
        assert!(text.contains("The host looks like paypal.com"), "{text}");
    }

    #[test]
    fn buttons_decide_only_beside_everything() {
        let boolean = r#"{"go":{"type":"boolean"}}"#;
        assert_eq!(offered(boolean, Reveal::Minimal), Offer::Page);
        assert_eq!(offered(boolean, Reveal::Question), Offer::Review);
        assert!(
            matches!(offered(boolean, Reveal::Arguments), Offer::Buttons(buttons) if buttons.len() == 2)
        );
        assert!(
            matches!(offered("{}", Reveal::Arguments), Offer::Buttons(buttons) if buttons.len() == 1)
        );
        let approval = |properties: &str| ChannelSummary {
            is_approval: true,
            ..summary(properties)
        };
        let offered_for =
            |properties| offer(&approval(properties), Reveal::Arguments, OFFERS, true);
        assert!(matches!(offered_for("{}"), Offer::Buttons(buttons) if buttons[0].0 == "Approve"));
        assert_eq!(offered_for(boolean), Offer::Review);
        let five = r#"{"c":{"type":"string","enum":["a","b","c","d","e"]}}"#;
        assert!(
            matches!(offered(five, Reveal::Arguments), Offer::Buttons(buttons) if buttons.len() == 5)
        );
        for names in [
            r#"["Decline","Go","No"]"#,
            r#"["OPEN in the inbox!","Go","No"]"#,
            r#"["Go","go","No"]"#,
        ] {
            let alike =
                format!(r#"{{"c":{{"type":"string","enum":["a","b","c"],"enumNames":{names}}}}}"#);
            assert_eq!(offered(&alike, Reveal::Arguments), Offer::Review, "{names}");
        }
        let six = r#"{"c":{"type":"string","enum":["a","b","c","d","e","f"]}}"#;
        assert_eq!(offered(six, Reveal::Arguments), Offer::Review);
        let none = Offers {
            acts: false,
            ..OFFERS
        };
        let linked = offer(&summary(boolean), Reveal::Arguments, none, true);
        assert_eq!(linked, Offer::Page);
        let two = r#"{"a":{"type":"boolean"},"b":{"type":"boolean"}}"#;
        assert_eq!(offered(two, Reveal::Arguments), Offer::Review);
        let mut page = summary(boolean);
        page.needs_page = true;
        assert_eq!(offer(&page, Reveal::Arguments, OFFERS, true), Offer::Page);
        let mut bare = summary(boolean);
        for none in [None, Some("{}".to_owned())] {
            bare.arguments = none;
            assert!(matches!(
                offer(&bare, Reveal::Question, OFFERS, true),
                Offer::Buttons(_)
            ));
        }
    }

    /// Returns the ids of the buttons of a message, and its texts.
    fn shown(summary: ChannelSummary) -> (Vec<String>, String) {
        let notice = notice(summary, QuestionEvent::Asked, Reveal::Arguments);
        let blocks = message(&notice, OFFERS, &TimeZone::UTC).blocks;
        let ids = blocks.last().unwrap()["elements"].as_array().unwrap();
        let ids = ids.iter().map(|element| element["action_id"].as_str());
        let texts = blocks
            .iter()
            .filter_map(|block| block["text"]["text"].as_str());
        (
            ids.map(|id| id.unwrap().to_owned()).collect(),
            texts.collect::<Vec<_>>().join("\n"),
        )
    }

    #[test]
    fn no_button_decides_beside_a_name_or_a_text_that_is_cut() {
        let approval = || ChannelSummary {
            is_approval: true,
            ..summary("{}")
        };
        assert_eq!(shown(approval()).0, ["choose:0", "decline", "open"]);
        let uri = format!("file:///srv/{}/../../etc/shadow", "readme/".repeat(40));
        let changes: [fn(&mut ChannelSummary, String); 4] = [
            |summary, text| summary.server = text,
            |summary, text| summary.tool = Some(text),
            |summary, text| summary.caller.name = text,
            |summary, text| summary.message = text.repeat(15),
        ];
        for change in changes {
            let mut long = approval();
            change(&mut long, uri.clone());
            assert_eq!(shown(long).0, ["review", "open"]);
            let mut longer = approval();
            change(&mut longer, "x".repeat(300_000));
            assert_eq!(shown(longer).0, ["open"]);
        }
        // Few characters, each of which is escaped.
        let mut hidden = approval();
        hidden.tool = Some("\u{202e}".repeat(100));
        assert_eq!(shown(hidden).0, ["review", "open"]);
    }

    #[test]
    fn what_a_button_answers_is_beside_it() {
        let mut question = summary(
            r#"{"go":{"type":"boolean","title":"Skip it and delete all older ones","description":"cannot be\n undone"}}"#,
        );
        question.form_texts = vec!["Backups".to_owned(), "Of the whole cluster".to_owned()];
        let (ids, texts) = shown(question);
        assert_eq!(ids, ["choose:0", "choose:1", "decline", "open"]);
        let places = [
            "Backups",
            "Of the whole cluster",
            "Field: Skip it and delete all older ones\ncannot be\n undone",
            "Arguments\n",
        ]
        .map(|text| texts.find(text).unwrap());
        assert!(places.is_sorted(), "{texts}");
        let (ids, texts) = shown(summary(
            r#"{"go":{"type":"string","title":"Database to wipe","enum":["staging","production"]}}"#,
        ));
        assert_eq!(ids.len(), 4);
        assert!(texts.contains("Field: Database to wipe"), "{texts}");
        // Too long for the message, the modal, or both.
        let titled = |length: usize| {
            let title = "t".repeat(length);
            summary(&json!({"go": {"type": "boolean", "title": title}}).to_string())
        };
        assert_eq!(shown(titled(150_000)).0, ["open"]);
        let mut described = summary(r#"{"go":{"type":"boolean"}}"#);
        described.form_texts = vec!["d".repeat(150_000)];
        assert_eq!(shown(described).0, ["review", "open"]);
        // Slack shows about 30 characters of a button.
        let label = "staging, after all of production";
        let choice = json!({"c": {"type": "string", "enum": [label, "none"]}});
        assert_eq!(shown(summary(&choice.to_string())).0, ["review", "open"]);
    }

    #[test]
    fn long_arguments_leave_room_for_the_link_and_take_the_buttons() {
        let mut long = summary(r#"{"go":{"type":"boolean"}}"#);
        long.arguments = Some(json!({"a": "x".repeat(400_000)}).to_string());
        let message = message(
            &notice(long, QuestionEvent::Asked, Reveal::Arguments),
            OFFERS,
            &TimeZone::UTC,
        );
        assert_eq!(message.blocks.len(), BLOCKS);
        let last = &message.blocks[BLOCKS - 1]["elements"];
        assert_eq!(last.as_array().unwrap().len(), 1, "{last}");
        assert_eq!(last[0]["action_id"], "open");
    }

    #[test]
    fn no_argument_passes_for_another() {
        let mut forged = summary("{}");
        forged.arguments = Some(
            json!({"name": "prod", "why": "weekly\nname: old", "": "name: older", "name: oldest": 1})
                .to_string(),
        );
        let message = message(
            &notice(forged, QuestionEvent::Asked, Reveal::Arguments),
            OFFERS,
            &TimeZone::UTC,
        );
        let texts = message
            .blocks
            .iter()
            .filter_map(|block| block["text"]["text"].as_str());
        let named = texts
            .flat_map(str::lines)
            .filter(|line| line.starts_with("name: "));
        assert_eq!(named.collect::<Vec<_>>(), ["name: prod"]);
    }

    #[test]
    fn no_text_of_a_server_is_markup() {
        let mut hostile = summary("{}");
        hostile.message = "<!channel> *bold* <https://evil.example|x>".to_owned();
        hostile.server = "a<!here>&".to_owned();
        let message = message(
            &notice(hostile, QuestionEvent::Asked, Reveal::Arguments),
            OFFERS,
            &TimeZone::UTC,
        );
        assert!(!message.text.contains('<'), "{}", message.text);
        let blocks = Value::from(message.blocks).to_string();
        assert!(!blocks.contains("mrkdwn"), "{blocks}");
    }

    #[test]
    fn links_that_a_server_asks_to_open_are_no_links() {
        let mut visit = summary("{}");
        visit.form = None;
        visit.address = Some("http://xn--pple-43d.example/login?user=a".to_owned());
        let message = message(
            &notice(visit, QuestionEvent::Asked, Reveal::Question),
            OFFERS,
            &TimeZone::UTC,
        );
        let blocks = Value::from(message.blocks);
        let text = blocks.to_string();
        assert_eq!(text.matches("\"url\":").count(), 1, "{text}");
        assert!(
            text.contains("xn--pple-43d.example") && text.contains('•'),
            "{text}"
        );
    }
}
