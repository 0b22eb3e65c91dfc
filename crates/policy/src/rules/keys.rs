//! Reading of the keys that decide nothing about who is asked: explanations, the reach of reasons, kept arguments; and
//! of the parts of `each`.

use std::collections::BTreeSet;
use std::num::NonZeroU8;
use std::time::Duration;

use mcp_elicit_core::link::Link;
use toml::de::DeTable;

use super::plan_reader::{MAX_NEED, choice};
use super::rule_reader::RuleReader;
use super::{AskedPeople, ReasonsReach};
use crate::document::{DocumentReader, SpannedValue, key_start};
use crate::parts::{MAX_PARTS, Part, most_counted};
use crate::people::Addressee;

/// The default time for which arguments are kept.
const KEEP_ARGUMENTS: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Reads `explain`: one line for those who are asked.
pub(super) fn explain<'t>(reader: &mut DocumentReader<'t>, table: &DeTable<'t>) -> Option<String> {
    let value = table.get("explain")?;
    let text = reader.text(value, "explain")?;
    let is_plain = !text.trim().is_empty() && text.len() <= 500 && !text.contains(char::is_control);
    if !is_plain {
        reader.defect(
            value.span().start,
            "invalid-text",
            "`explain` is one line of at most 500 bytes",
            "it is shown to those who are asked; longer text belongs on the page that `link` names",
        );
    }
    is_plain.then(|| text.to_owned())
}

/// Reads `link`: the address of a page, which people may open.
pub(super) fn link<'t>(reader: &mut DocumentReader<'t>, table: &DeTable<'t>) -> Option<String> {
    let value = table.get("link")?;
    let text = reader.text(value, "link")?;
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    let is_right = is_web && text.len() <= 1_000 && Link::parse(text).is_ok();
    if !is_right {
        reader.defect(
            value.span().start,
            "invalid-link",
            "`link` is not an http or https URL of at most 1,000 bytes",
            "write the whole address of a page, such as https://wiki.example.com/runbook",
        );
    }
    is_right.then(|| text.to_owned())
}

/// Reads `reasons`: the places that reasons and comments on decisions reach.
pub(super) fn reasons<'t>(reader: &mut DocumentReader<'t>, table: &DeTable<'t>) -> ReasonsReach {
    let Some(value) = table.get("reasons") else {
        return ReasonsReach::default();
    };
    let mut reach = ReasonsReach {
        caller: false,
        audit: false,
    };
    for (place, at) in reader.texts(value, "reasons") {
        match place.as_str() {
            "caller" => reach.caller = true,
            "audit" => reach.audit = true,
            other => {
                let message = format!("`reasons` cannot go to `{}`", other.escape_debug());
                let help = "write a list of `caller` and `audit`; the history of the question has them in any case";
                reader.defect(at, "unknown-choice", message, help);
            }
        }
    }
    reach
}

/// Reads `keep` and `keep-for`: the time for which arguments are kept after the end.
pub(super) fn keep_arguments<'t>(
    reader: &mut DocumentReader<'t>,
    table: &DeTable<'t>,
) -> Option<Duration> {
    let time = table
        .get("keep-for")
        .map(|value| reader.duration(value, "keep-for"));
    let keep = choice(reader, table, "keep", &[("arguments", ())]);
    if time.is_some() && !table.contains_key("keep") {
        reader.defect(
            key_start(table, "keep-for"),
            "no-effect",
            "`keep-for` has no effect without `keep`",
            "add keep = \"arguments\", or take `keep-for` out",
        );
    }
    keep?;
    time.unwrap_or(Some(KEEP_ARGUMENTS))
}

impl RuleReader<'_> {
    /// Reads the parts of `each`.
    pub(super) fn parts<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        value: &SpannedValue<'t>,
    ) -> Vec<Part> {
        let items = reader.list(value, "each").unwrap_or_default();
        let mut parts: Vec<Part> = Vec::new();
        for item in items {
            let Some(table) = reader.table(item, "each") else {
                continue;
            };
            let at = item.span().start;
            reader.known_keys(
                table,
                "a part of `each`",
                &["person", "group", "any", "need"],
            );
            let Some(to) = self.addressees(reader, table, at, "a part of `each`") else {
                continue;
            };
            let need = match table.get("need") {
                Some(value) => reader.count(value, "need", MAX_NEED),
                None => Some(1),
            };
            let Some(need) = need.and_then(NonZeroU8::new) else {
                continue;
            };
            if parts.iter().any(|part| part.to == to) {
                reader.defect(
                    at,
                    "repeated-part",
                    "this part asks the same people as one before it",
                    "raise `need` of that part instead",
                );
            }
            parts.push(Part { to, need });
        }
        if items.len() < 2 || items.len() > MAX_PARTS {
            reader.defect(
                value.span().start,
                "no-addressee",
                format!("`each` has 2 to {MAX_PARTS} parts"),
                "for one group write { group = \"NAME\", need = N }",
            );
        }
        parts
    }

    /// Rejects parts that cannot all be filled by the people in the file, and warns if a claim decides about it.
    pub(super) fn can_fill(&self, reader: &mut DocumentReader<'_>, ask: &AskedPeople, at: usize) {
        let mut is_known = true;
        for part in &ask.each {
            let (people, is_open) = self.people.reach(&part.to);
            is_known &= !is_open;
            if !is_open && people.len() < usize::from(part.need.get()) {
                let names: Vec<String> = part.to.iter().map(ToString::to_string).collect();
                let message = format!(
                    "{} of {} must agree, and {} can",
                    part.need,
                    names.join(", "),
                    people.len()
                );
                reader.defect(at, "no-addressee", message, "name more people");
                return;
            }
        }
        let (people, _) = self.people.reach(&ask.to);
        let need = usize::from(ask.need.get());
        let enough = |except: Option<&str>| {
            let mut others = people.clone();
            if let Some(except) = except {
                others.remove(except);
            }
            self.counting(ask, &others) >= need
        };
        if enough(None) {
            // The caller may be any one of them.
            let missed = people.iter().find(|person| !enough(Some(person)));
            if let Some(person) = missed.filter(|_| ask.not_caller) {
                if is_known {
                    let message = format!(
                        "{need} must agree, each for one part, which is not possible for a call of {person}, who cannot answer it"
                    );
                    reader.defect(at, "no-addressee", message, "name more people");
                } else {
                    reader.warning(at, "unknown-size", UNKNOWN_SIZE, "");
                }
            }
        } else if is_known {
            let message = format!(
                "{need} must agree, each for one part, and at most {} can: the same people are in several parts",
                self.counting(ask, &people)
            );
            reader.defect(at, "no-addressee", message, "name more people");
        } else {
            reader.warning(at, "unknown-size", UNKNOWN_SIZE, "");
        }
    }

    /// Returns the number of these people who can confirm: with parts, each for one part.
    pub(super) fn counting(&self, ask: &AskedPeople, people: &BTreeSet<&str>) -> usize {
        if ask.each.is_empty() {
            return people.len();
        }
        let of_plan = |to: &Addressee| ask.each.iter().any(|part| part.to.contains(to));
        let added: Vec<Addressee> = ask.to.iter().filter(|to| !of_plan(to)).cloned().collect();
        let (added, _) = self.people.reach(&added);
        let reached: Vec<_> = ask
            .each
            .iter()
            .map(|part| self.people.reach(&part.to).0)
            .collect();
        let may_fill = |person: &&str| {
            let parts = reached.iter().enumerate();
            let parts = parts.filter(|(_, part)| added.contains(person) || part.contains(person));
            parts.map(|(index, _)| index).collect::<Vec<_>>()
        };
        let people: Vec<_> = people.iter().map(may_fill).collect();
        most_counted(&ask.each, &people)
    }
}

/// The warning that a claim decides about the size of a group.
pub(super) const UNKNOWN_SIZE: &str =
    "a claim decides who is asked, so it is unknown whether they are enough";
