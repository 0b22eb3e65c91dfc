//! Reading of one rule's plan: the people, the times, and later notifications.

use std::collections::BTreeSet;
use std::num::NonZeroU8;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::keys::{self, UNKNOWN_SIZE};
use super::rule_reader::RuleReader;
use super::{AskedPeople, DEFAULT_CLAIM, DEFAULT_DEADLINE, OnTimeout, Plan, Reveal};
use crate::document::{DocumentReader, SpannedValue, duration_text, key_start};
use crate::people::Addressee;
use crate::schedule::Escalation;

/// The most people who must confirm.
pub(super) const MAX_NEED: u8 = 20;

impl RuleReader<'_> {
    pub(super) fn plan<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        table: &DeTable<'t>,
    ) -> Option<Plan> {
        let ask = self.ask(reader, table.get("ask")?);
        let deadline = table
            .get("deadline")
            .and_then(|value| reader.duration(value, "deadline"));
        let open_for = deadline.unwrap_or(DEFAULT_DEADLINE);
        // A rule whose `ask` is wrong is read to its end, so that all its mistakes are named at once.
        let remind = remind(reader, table, open_for);
        let escalate = self.escalate(reader, table, ask.as_ref(), open_for);
        let on_timeout = choice(
            reader,
            table,
            "on-timeout",
            &[
                ("error", OnTimeout::Error),
                ("hand-back", OnTimeout::HandBack),
            ],
        );
        let reveals = [
            ("minimal", Reveal::Minimal),
            ("question", Reveal::Question),
            ("arguments", Reveal::Arguments),
        ];
        let reveal = choice(reader, table, "reveal", &reveals);
        let claim = claim(reader, table);
        let delegate_to = self.delegate_to(reader, table);
        let ask = ask?;
        self.may_log_in(
            reader,
            &ask,
            &escalate,
            &delegate_to,
            table["ask"].span().start,
        );
        Some(Plan {
            ask,
            deadline,
            remind,
            escalate,
            on_timeout: on_timeout.unwrap_or_default(),
            claim,
            delegate_to,
            reauth: table
                .get("reauth")
                .and_then(|value| reader.duration(value, "reauth")),
            reveal: reveal.unwrap_or_default(),
            reasons: keys::reasons(reader, table),
            explain: keys::explain(reader, table),
            link: keys::link(reader, table),
            keep_arguments: keys::keep_arguments(reader, table),
        })
    }

    /// Reads the steps of `escalate`: each is after the one before it, and asks someone who is not asked yet.
    fn escalate<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        table: &DeTable<'t>,
        ask: Option<&AskedPeople>,
        open_for: Duration,
    ) -> Vec<Escalation> {
        let mut escalate: Vec<Escalation> = Vec::new();
        let items = table
            .get("escalate")
            .and_then(|value| reader.list(value, "escalate"));
        for item in items.unwrap_or_default() {
            let at = item.span().start;
            let Some(step) = self.escalation(reader, item) else {
                continue;
            };
            before_deadline(reader, at, "escalate", step.after, open_for);
            if escalate.last().is_some_and(|last| last.after >= step.after) {
                reader.defect(
                    at,
                    "escalation-order",
                    "this step is not after the one before it",
                    "put the steps in their order",
                );
            }
            if let Some(ask) = ask {
                let mut asked = ask.to.clone();
                asked.extend(escalate.iter().map(|step| step.to.clone()));
                self.adds_someone(reader, &asked, &step.to, at);
            }
            escalate.push(step);
        }
        escalate
    }

    /// Reads one step of `escalate`.
    fn escalation<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        item: &SpannedValue<'t>,
    ) -> Option<Escalation> {
        let step = reader.table(item, "escalate")?;
        reader.known_keys(step, "a step of `escalate`", &["after", "to"]);
        let after = step
            .get("after")
            .and_then(|value| reader.duration(value, "after"));
        let to = step
            .get("to")
            .and_then(|value| self.people.addressee(reader, value, "to"));
        for key in ["after", "to"] {
            if !step.contains_key(key) {
                let help = "write { after = \"15m\", to = { group = \"NAME\" } }";
                reader.defect(
                    item.span().start,
                    "missing-key",
                    format!("a step of `escalate` needs `{key}`"),
                    help,
                );
            }
        }
        Some(Escalation {
            after: after?,
            to: to?,
        })
    }

    fn delegate_to<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        table: &DeTable<'t>,
    ) -> Vec<Addressee> {
        let items = table
            .get("delegate-to")
            .and_then(|value| reader.list(value, "delegate-to"));
        let mut delegate_to = Vec::new();
        for item in items.unwrap_or_default() {
            delegate_to.extend(self.people.addressee(reader, item, "delegate-to"));
        }
        delegate_to
    }

    /// Rejects a step that asks only people who are already asked.
    fn adds_someone(
        &self,
        reader: &mut DocumentReader<'_>,
        asked: &[Addressee],
        to: &Addressee,
        at: usize,
    ) {
        let to_all = std::slice::from_ref(to);
        let (known, _) = self.people.reach(asked);
        let (added, _) = self.people.reach(to_all);
        // A person added by a claim is already asked if the same claim does.
        let (claims, added_claims) = (self.people.claims_of(asked), self.people.claims_of(to_all));
        let is_known =
            *to != Addressee::Caller && added.is_subset(&known) && added_claims.is_subset(&claims);
        if asked.contains(to) || is_known {
            let message = format!("this step adds no one: `{to}` is asked already");
            reader.defect(
                at,
                "escalation-repeats",
                message,
                "escalate to another person, or remove the step",
            );
        }
    }

    /// Rejects a plan of which too few people may log in. People added by a claim are unknown here.
    fn may_log_in(
        &self,
        reader: &mut DocumentReader<'_>,
        ask: &AskedPeople,
        escalate: &[Escalation],
        delegate_to: &[Addressee],
        at: usize,
    ) {
        let Some(allow) = &self.allow else {
            return;
        };
        let mut to = ask.to.clone();
        to.extend(escalate.iter().map(|step| step.to.clone()));
        let (asked, is_asked_open) = self.people.reach(&to);
        let (allowed, is_allowed_open) = self.people.reach(allow);
        if is_asked_open || is_allowed_open {
            return;
        }
        let all = AskedPeople {
            to: to.clone(),
            ..ask.clone()
        };
        let can: BTreeSet<&str> = asked.intersection(&allowed).copied().collect();
        let can = self.counting(&all, &can);
        let may_hand_on = can > 0 && !delegate_to.is_empty();
        if can < usize::from(ask.need.get()) && !may_hand_on {
            let message = format!(
                "{} must agree, and {can} of those who are asked may log in",
                ask.need
            );
            let help = "`allow` of [login] names who may: add them there, or ask others";
            reader.defect(at, "no-addressee", message, help);
        }
    }

    fn ask<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        value: &SpannedValue<'t>,
    ) -> Option<AskedPeople> {
        let at = value.span().start;
        if let DeValue::String(text) = value.get_ref() {
            if text.as_ref() == "caller" {
                return Some(AskedPeople::caller());
            }
            let help = "write ask = \"caller\", { person = \"NAME\" }, { group = \"NAME\" } or { any = [..] }";
            reader.defect(at, "no-addressee", "`ask` names no one", help);
            return None;
        }
        let table = reader.table(value, "ask")?;
        reader.known_keys(
            table,
            "`ask`",
            &["person", "group", "any", "each", "need", "not-caller"],
        );
        let not_caller = table
            .get("not-caller")
            .is_some_and(|value| reader.truth(value, "not-caller") == Some(true));
        let other = ["person", "group", "any"]
            .into_iter()
            .find(|key| table.contains_key(*key));
        if let (Some(each), None) = (table.get("each"), other) {
            return self.each(reader, table, each, not_caller);
        }
        let before = reader.defects.len();
        let to = self.addressees(reader, table, at, "`ask`")?;
        let need = match table.get("need") {
            Some(value) => reader.count(value, "need", MAX_NEED)?,
            None => 1,
        };
        if reader.defects.len() > before {
            return None;
        }
        let (people, is_open) = self.people.reach(&to);
        let enough = people.len().saturating_sub(usize::from(not_caller));
        if !is_open && usize::from(need) > enough {
            let can = if not_caller {
                ", and the caller may be one of them"
            } else {
                ""
            };
            let at = if table.contains_key("need") {
                key_start(table, "need")
            } else {
                at
            };
            let message = format!("{need} must agree, and {} can{can}", people.len());
            reader.defect(at, "no-addressee", message, "name more people");
        } else if is_open && usize::from(need) > enough {
            let at = if table.contains_key("need") {
                key_start(table, "need")
            } else {
                at
            };
            reader.warning(at, "unknown-size", UNKNOWN_SIZE, "");
        }
        Some(AskedPeople {
            to,
            each: Vec::new(),
            need: NonZeroU8::new(need)?,
            not_caller,
            is_any: table.contains_key("any"),
        })
    }

    /// Reads `each`: parts that must all be filled.
    fn each<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        table: &DeTable<'t>,
        each: &SpannedValue<'t>,
        not_caller: bool,
    ) -> Option<AskedPeople> {
        let before = reader.defects.len();
        if table.contains_key("need") {
            reader.defect(
                key_start(table, "need"),
                "no-effect",
                "with `each`, every part has its own `need`",
                "write it in the parts, as in { group = \"NAME\", need = 2 }",
            );
        }
        let parts = self.parts(reader, each);
        let need: u32 = parts.iter().map(|part| u32::from(part.need.get())).sum();
        if need > u32::from(MAX_NEED) {
            let message =
                format!("the parts need {need} people; at most {MAX_NEED} can be asked to agree");
            reader.defect(each.span().start, "too-large", message, "lower `need`");
        }
        if reader.defects.len() > before {
            return None;
        }
        let mut to: Vec<Addressee> = Vec::new();
        for addressee in parts.iter().flat_map(|part| &part.to) {
            if !to.contains(addressee) {
                to.push(addressee.clone());
            }
        }
        let ask = AskedPeople {
            to,
            each: parts,
            need: NonZeroU8::new(u8::try_from(need).ok()?)?,
            not_caller,
            is_any: false,
        };
        self.can_fill(reader, &ask, each.span().start);
        (reader.defects.len() == before).then_some(ask)
    }

    /// Reads the people of `ask`, or of one of its parts.
    pub(super) fn addressees<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        table: &DeTable<'t>,
        at: usize,
        inside: &str,
    ) -> Option<Vec<Addressee>> {
        let mut to = Vec::new();
        let keys = ["person", "group", "any", "each"];
        let named = keys.iter().filter(|key| table.contains_key(**key)).count();
        if named != 1 {
            let many = if named == 0 { "no one" } else { "two things" };
            let help = match inside {
                "`ask`" => "write one of `person`, `group`, `any` and `each`",
                _ => "write one of `person`, `group` and `any`",
            };
            reader.defect(at, "no-addressee", format!("{inside} names {many}"), help);
            return None;
        }
        let before = reader.defects.len();
        if let Some(any) = table.get("any") {
            let items = reader.list(any, "any").unwrap_or_default();
            for item in items {
                to.extend(self.people.addressee(reader, item, "any"));
            }
        }
        for (key, make) in [
            ("person", Addressee::Person as fn(String) -> Addressee),
            ("group", Addressee::Group),
        ] {
            if let Some(value) = table.get(key)
                && let Some(name) = reader.text(value, key)
            {
                to.extend(
                    self.people
                        .check(reader, make(name.to_owned()), value.span().start),
                );
            }
        }
        if reader.defects.len() > before {
            return None;
        }
        if to.is_empty() {
            reader.defect(
                at,
                "no-addressee",
                "`any` names no one",
                "add a person or a group",
            );
            return None;
        }
        Some(to)
    }
}

fn remind<'t>(
    reader: &mut DocumentReader<'t>,
    table: &DeTable<'t>,
    open_for: Duration,
) -> Vec<Duration> {
    let items = table
        .get("remind")
        .and_then(|value| reader.list(value, "remind"));
    let mut remind = Vec::new();
    for item in items.unwrap_or_default() {
        if let Some(after) = reader.duration(item, "remind") {
            before_deadline(reader, item.span().start, "remind", after, open_for);
            remind.push(after);
        }
    }
    remind
}

/// Returns the time for which a claim lasts; `None` if the rule has no claims.
fn claim<'t>(reader: &mut DocumentReader<'t>, table: &DeTable<'t>) -> Option<Duration> {
    let Some(value) = table.get("claim") else {
        return Some(DEFAULT_CLAIM);
    };
    match value.get_ref().as_str() {
        Some("off") => None,
        _ => reader.duration(value, "claim"),
    }
}

/// Rejects a step that would happen when the question has ended.
fn before_deadline(
    reader: &mut DocumentReader<'_>,
    at: usize,
    name: &str,
    after: Duration,
    open_for: Duration,
) {
    if after >= open_for {
        let message = format!(
            "`{name}` after {} comes too late: the deadline is {}",
            duration_text(after),
            duration_text(open_for)
        );
        reader.defect(
            at,
            "after-deadline",
            message,
            "make it shorter, or the deadline longer",
        );
    }
}

/// Returns the value of `key`, which must be one of these choices.
pub(super) fn choice<'t, T: Copy>(
    reader: &mut DocumentReader<'t>,
    table: &DeTable<'t>,
    key: &str,
    choices: &[(&str, T)],
) -> Option<T> {
    let value = table.get(key)?;
    let text = reader.text(value, key)?;
    let found = choices.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let message = format!("`{key}` cannot be `{}`", text.escape_debug());
        reader.defect(
            value.span().start,
            "unknown-choice",
            message,
            format!("write one of {}", names.join(", ")),
        );
    }
    found.map(|(_, choice)| *choice)
}
