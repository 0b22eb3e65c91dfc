//! Lists of options: `enum`, `const`, and alternatives that are constants.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::ChoiceOption;
use super::super::defect::DefectCode;
use super::flat::Flat;
use super::{AdjustmentKind, LenientReader, SchemaLocation, UnreadablePart};
use crate::json::Json;

/// The most comparisons of two lists of options.
const COMPARED: usize = 1_000_000;

/// An option before its values are made distinct.
pub(super) struct OptionDraft {
    value: Box<str>,
    title: Option<Box<str>>,
    /// The number or boolean that is sent, if it is not a string.
    pub(super) typed: Option<Value>,
    /// The spelling of a number that is sent, if it is another one than that of `typed`.
    spelling: Option<Box<str>>,
}

impl OptionDraft {
    pub(super) fn from_option(option: &ChoiceOption) -> Self {
        OptionDraft {
            value: option.value.clone(),
            title: option.title.clone(),
            typed: option.typed.clone(),
            spelling: option.spelling.clone(),
        }
    }

    /// Returns the option for a constant; `None` for one that cannot be shown.
    fn from_constant(constant: &Json<'_>, title: Option<&str>) -> Option<Self> {
        let mut spelling = None;
        let (value, typed) = match constant {
            Json::Text(text) => (text.as_ref().into(), None),
            Json::Number(number, written) => {
                spelling = written.filter(|written| *written != number.to_string());
                let digits = spelling.filter(|text| !text.contains(['.', 'e', 'E']));
                let value = match digits {
                    Some(digits) => digits.into(),
                    None => crate::number::text(number).into(),
                };
                (value, Some(Value::Number(number.clone())))
            }
            Json::Boolean(flag) => (flag.to_string().into(), Some(Value::Bool(*flag))),
            Json::Null | Json::List(_) | Json::Object(_) => return None,
        };
        Some(OptionDraft {
            value,
            title: title.map(Into::into),
            typed,
            spelling: spelling.map(Into::into),
        })
    }
}

/// Returns each option once, and `true` if one was left out. A string that is spelled like a number or a boolean in the
/// same list is told apart by quotation marks.
pub(super) fn distinct(options: Vec<OptionDraft>) -> (Vec<ChoiceOption>, bool) {
    let mut seen = HashSet::with_capacity(options.len());
    let mut kept: Vec<ChoiceOption> = Vec::with_capacity(options.len());
    let mut dropped = false;
    let typed: HashSet<Box<str>> = options
        .iter()
        .filter(|option| option.typed.is_some())
        .map(|option| option.value.clone())
        .collect();
    for option in options {
        let is_doubtful = option.typed.is_none() && typed.contains(&option.value);
        if !seen.insert((option.typed.is_some(), option.value.clone())) {
            dropped = true;
            continue;
        }
        let option = if is_doubtful {
            let quoted = Value::from(&*option.value);
            // The text is sent as it is, whatever its value in the list.
            ChoiceOption {
                value: quoted.to_string().into(),
                title: option.title,
                typed: Some(quoted),
                spelling: None,
            }
        } else {
            ChoiceOption {
                value: option.value,
                title: option.title,
                typed: option.typed,
                spelling: option.spelling,
            }
        };
        kept.push(option);
    }
    (kept, dropped)
}

/// Returns `true` if two options are different numbers that are the same as floating-point numbers.
fn has_indistinct(options: &[OptionDraft]) -> bool {
    if options.iter().all(|option| option.spelling.is_none()) {
        return false;
    }
    let mut seen: HashMap<u64, &str> = HashMap::new();
    options.iter().any(|option| {
        let number = option.typed.as_ref().and_then(Value::as_f64);
        number.is_some_and(|number| {
            let known = *seen.entry(number.to_bits()).or_insert(&option.value);
            known != &*option.value
        })
    })
}

impl<'j, 'a> LenientReader<'j, 'a> {
    /// Reads `enum` or a `const`. `None` if there are no options.
    pub(super) fn options(
        &mut self,
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
        nullable: &mut bool,
    ) -> Result<Option<Vec<OptionDraft>>, UnreadablePart> {
        let is_list = flat.text("type") == Some("array");
        match (flat.get("enum"), flat.get("const")) {
            (Some(Json::List(values)), _) if !is_list => {
                let at = place.child("enum");
                let titles = self.titles(flat, values.len(), place);
                let entries = values.iter().enumerate();
                let entries = entries.map(|(i, value)| (value, titles.get(i).copied().flatten()));
                let entries: Vec<_> = entries.collect();
                self.drafts(&entries, &at, nullable)
            }
            (Some(other), _) if !is_list => {
                let why = format!("`enum` is {} and is ignored", other.kind());
                self.adjust(AdjustmentKind::KeywordIgnored, &place.child("enum"), why);
                Ok(None)
            }
            // The only value of a typed field is a rule of that type.
            (None, Some(constant)) if !is_list && !flat.has(&["type"]) => {
                let at = place.child("const");
                self.drafts(&[(constant, None)], &at, nullable)
            }
            _ => Ok(None),
        }
    }

    /// Reads alternatives that are all constants or lists of constants.
    pub(super) fn constants(
        &mut self,
        parts: &[Flat<'j, 'a>],
        outer: &Flat<'j, 'a>,
        at: &SchemaLocation,
        nullable: &mut bool,
    ) -> Result<Option<Vec<OptionDraft>>, UnreadablePart> {
        let mut entries = Vec::new();
        for part in parts {
            match (part.get("const"), part.get("enum")) {
                (Some(constant), _) => {
                    let title = part.text("title").or_else(|| part.text("description"));
                    entries.push((constant, title));
                }
                (None, Some(Json::List(values))) => match values.as_slice() {
                    [only] => entries.push((only, part.text("title"))),
                    values => entries.extend(values.iter().map(|value| (value, None))),
                },
                (None, _) => return Ok(None),
            }
        }
        // Options that stand beside the alternatives limit them.
        if let Some(Json::List(allowed)) = outer.get("enum")
            && allowed.len().saturating_mul(entries.len()) < COMPARED
        {
            let limited: Vec<_> = entries
                .iter()
                .filter(|(value, _)| allowed.iter().any(|one| super::flat::same(one, value)))
                .copied()
                .collect();
            if !limited.is_empty() {
                entries = limited;
            }
        }
        self.drafts(&entries, at, nullable)
    }

    fn drafts(
        &mut self,
        entries: &[(&'j Json<'a>, Option<&'j str>)],
        at: &SchemaLocation,
        nullable: &mut bool,
    ) -> Result<Option<Vec<OptionDraft>>, UnreadablePart> {
        if entries.len() > self.limits.options {
            let why = format!(
                "{} options; a field may have {} at most",
                entries.len(),
                self.limits.options
            );
            return Err(self.defect(at, DefectCode::TooManyOptions, why));
        }
        self.spend(entries.len(), at)?;
        let mut drafts = Vec::with_capacity(entries.len());
        let mut hidden = false;
        for (value, title) in entries {
            match OptionDraft::from_constant(value, *title) {
                Some(draft) => drafts.push(draft),
                None if matches!(value, Json::Null) => *nullable = true,
                None => hidden = true,
            }
        }
        if has_indistinct(&drafts) {
            let why = "two options are numbers that differ only beyond the digits that are kept, so an answer could mean either";
            return Err(self.defect(at, DefectCode::OptionShape, why));
        }
        if hidden {
            let why = "an option that is a list or an object cannot be shown and is left out";
            self.adjust(AdjustmentKind::OptionDropped, at, why);
        }
        if drafts.is_empty() {
            if hidden {
                let why = "none of the options can be shown, since they are lists or objects";
                return Err(self.defect(at, DefectCode::OptionShape, why));
            }
            let why = "the server's list of options is empty and is not checked";
            self.adjust(AdjustmentKind::NoOptions, at, why);
            return Ok(None);
        }
        if drafts.len() < entries.len() {
            let why = "null is not shown among the options";
            self.adjust(AdjustmentKind::OptionDropped, at, why);
        }
        Ok(Some(drafts))
    }

    /// Returns the titles of `enumNames`; empty if they do not name the options.
    fn titles(
        &mut self,
        flat: &Flat<'j, 'a>,
        options: usize,
        place: &SchemaLocation,
    ) -> Vec<Option<&'j str>> {
        let Some(names) = flat.get("enumNames") else {
            return Vec::new();
        };
        match names {
            Json::List(names) if names.len() == options => {
                names.iter().map(Json::as_text).collect()
            }
            _ => {
                let why = "`enumNames` does not name each option and is ignored";
                self.adjust(AdjustmentKind::NamesIgnored, &place.child("enumNames"), why);
                Vec::new()
            }
        }
    }
}
