//! The kind of a field from its keywords: alternatives, options, lists, single values.

use super::super::defect::DefectCode;
use super::super::parse::constrains;
use super::super::text::clip;
use super::super::{Choice, Choices, Kind, Lines, Union};
use super::flat::Flat;
use super::options::{OptionDraft, distinct};
use super::scalar::ScalarType;
use super::{AdjustmentKind, FieldResult, LenientReader, SchemaLocation, UnreadablePart};
use crate::json::Json;

/// The deepest nesting of alternatives and items.
const DEPTH: usize = 8;

/// The most alternatives of a union.
const ALTERNATIVES: usize = 64;

/// Keywords that say what the value is; the others are rules and annotations.
const SHAPES: [&str; 4] = ["anyOf", "oneOf", "enum", "const"];

impl<'j, 'a> LenientReader<'j, 'a> {
    /// Reads the field or value that these keywords describe.
    pub(super) fn value(
        &mut self,
        mut flat: Flat<'j, 'a>,
        place: &SchemaLocation,
        depth: usize,
    ) -> Result<FieldResult, UnreadablePart> {
        if depth > DEPTH {
            let why = "the alternatives of this field are nested too deep to show";
            return Err(self.defect(place, DefectCode::Nested, why));
        }
        self.spend_bytes(place.pointer.len(), place)?;
        let required = matches!(flat.required.as_slice(), [Json::Boolean(true), ..]);
        let mut nullable = matches!(flat.get("nullable"), Some(Json::Boolean(true)));
        let kinds = self.types(&flat, place, &mut nullable)?;
        if flat.is_null() {
            return Ok(Self::field_with(&flat, None, true, required));
        }
        if let Some(read) = self.alternatives(&mut flat, place, depth)? {
            nullable |= read.nullable;
            self.note_null(nullable, place);
            return Ok(FieldResult {
                nullable,
                required,
                ..read
            });
        }
        let options = self.options(&flat, place, &mut nullable)?;
        self.note_null(nullable, place);
        let kind = if let Some(options) = options {
            self.choice(options, &flat, place)
        } else {
            self.of_types(&kinds, &flat, place, depth)?
        };
        Ok(Self::field_with(&flat, Some(kind), nullable, required))
    }

    fn field_with(
        flat: &Flat<'_, '_>,
        kind: Option<Kind>,
        nullable: bool,
        required: bool,
    ) -> FieldResult {
        FieldResult {
            title: flat.text("title").map(Into::into),
            description: flat.text("description").map(Into::into),
            kind,
            nullable,
            required,
        }
    }

    fn note_null(&mut self, nullable: bool, place: &SchemaLocation) {
        if nullable {
            let why = "null is accepted too, so the field may be left empty";
            self.adjust(AdjustmentKind::NullOption, place, why);
        }
    }

    /// Returns the types without null. Empty if there are none.
    fn types(
        &mut self,
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
        nullable: &mut bool,
    ) -> Result<Vec<&'j str>, UnreadablePart> {
        let names: Vec<&str> = match flat.get("type") {
            None => Vec::new(),
            Some(Json::Text(name)) => vec![name],
            Some(Json::List(names)) if names.len() > ALTERNATIVES => {
                let why = format!("{} types; {ALTERNATIVES} at most", names.len());
                return Err(self.defect(&place.child("type"), DefectCode::TooManyOptions, why));
            }
            Some(Json::List(names)) => names.iter().filter_map(Json::as_text).collect(),
            Some(other) => {
                let why = format!("`type` is {} and is ignored", other.kind());
                self.adjust(AdjustmentKind::KeywordIgnored, &place.child("type"), why);
                Vec::new()
            }
        };
        let is_null = |name: &&str| *name == "null";
        *nullable |= names.iter().any(is_null);
        let mut kinds: Vec<&str> = Vec::new();
        for name in names {
            if name != "null" && !kinds.contains(&name) {
                kinds.push(name);
            }
        }
        Ok(kinds)
    }

    /// Reads `anyOf` or `oneOf`: options, a value or null, or a union. `None` if there is neither.
    fn alternatives(
        &mut self,
        flat: &mut Flat<'j, 'a>,
        place: &SchemaLocation,
        depth: usize,
    ) -> Result<Option<FieldResult>, UnreadablePart> {
        let mut found = None;
        for key in ["oneOf", "anyOf"] {
            match flat.get(key) {
                None => {}
                Some(Json::List(entries)) if !entries.is_empty() && found.is_none() => {
                    found = Some((key, entries));
                }
                Some(Json::List(entries)) if !entries.is_empty() => {
                    let why = format!("the server's rule `{key}` is not checked here");
                    self.adjust(AdjustmentKind::RuleNotEnforced, &place.child(key), why);
                }
                Some(_) => {
                    let why = format!("`{key}` has no alternatives and is ignored");
                    self.adjust(AdjustmentKind::KeywordIgnored, &place.child(key), why);
                }
            }
        }
        let Some((key, entries)) = found else {
            return Ok(None);
        };
        let outer = flat.clone().without(&["anyOf", "oneOf"]);
        let at = place.child(key);
        self.spend(entries.len(), &at)?;
        let (mut parts, mut nullable) = (Vec::with_capacity(entries.len()), false);
        for entry in entries {
            let entry = self.flatten(entry, &at)?;
            if entry.is_null() {
                nullable = true;
            } else {
                parts.push(entry);
            }
        }
        let outer_options = outer.has(&["enum", "const"]);
        let are_options = |parts: &[Flat<'_, '_>]| {
            parts
                .iter()
                .all(|part| part.has(&["const", "enum"]) && !part.has(&["anyOf", "oneOf"]))
        };
        if parts.is_empty() {
            return Ok(Some(Self::field_with(&outer, None, true, false)));
        }
        let is_array = outer.text("type") == Some("array");
        // A single list of options is read as the field itself, with its titles.
        let is_list = parts.len() == 1 && (outer_options || parts[0].get("const").is_none());
        if are_options(&parts) && !is_array && !is_list {
            let options = self.constants(&parts, &outer, &at, &mut nullable)?;
            if let Some(options) = options {
                let typed = options.iter().any(|option| option.typed.is_some());
                if !typed && (key == "anyOf" || outer.text("type") != Some("string")) {
                    let why = "the options are given in a spelling that forms do not have";
                    self.adjust(AdjustmentKind::OptionsSpelling, &at, why);
                }
                let kind = self.choice(options, &outer, place);
                return Ok(Some(Self::field_with(&outer, Some(kind), nullable, false)));
            }
        }
        if outer_options {
            // The options stand beside the alternatives, which then only repeat or limit them.
            let why = format!("the server's rule `{key}` is not checked here");
            self.adjust(AdjustmentKind::RuleNotEnforced, &at, why);
            *flat = outer;
            return Ok(None);
        }
        let read = self.union(&parts, &outer, place, &at, depth)?;
        Ok(Some(FieldResult {
            nullable: nullable || read.nullable,
            ..read
        }))
    }

    /// Reads the alternatives one by one, and joins those that a person can enter.
    fn union(
        &mut self,
        parts: &[Flat<'j, 'a>],
        outer: &Flat<'j, 'a>,
        place: &SchemaLocation,
        at: &SchemaLocation,
        depth: usize,
    ) -> Result<FieldResult, UnreadablePart> {
        if let [only] = parts {
            return self.value(outer.clone().over(only), place, depth + 1);
        }
        if parts.len() > ALTERNATIVES {
            let why = format!("{} alternatives; {ALTERNATIVES} at most", parts.len());
            return Err(self.defect(at, DefectCode::TooManyOptions, why));
        }
        let before = self.defects.len();
        let base = outer.clone().without(&["default", "title", "description"]);
        let (mut kinds, mut lists, mut nullable) = (Vec::new(), Vec::new(), false);
        for part in parts {
            // An alternative's own type replaces that of the field, which only repeats it.
            self.spend_keywords(&base, place)?;
            let merged = part.clone().over(&base);
            let Ok(read) = self.value(merged, place, depth + 1) else {
                continue;
            };
            nullable |= read.nullable;
            match read.kind {
                Some(Kind::Union(union)) => kinds.extend(union.alternatives),
                Some(kind @ (Kind::Choices(_) | Kind::Lines(_))) => lists.push(kind),
                Some(
                    kind @ (Kind::Text(_)
                    | Kind::Number(_)
                    | Kind::Integer(_)
                    | Kind::Boolean(_)
                    | Kind::Choice(_)),
                ) => kinds.push(kind),
                None => {}
            }
        }
        if kinds.len() > ALTERNATIVES {
            let why = format!("{} alternatives; {ALTERNATIVES} at most", kinds.len());
            return Err(self.defect(at, DefectCode::TooManyOptions, why));
        }
        if kinds.is_empty() && lists.is_empty() {
            if self.defects.len() == before {
                return Ok(Self::field_with(outer, None, true, false));
            }
            return Err(UnreadablePart);
        }
        let dropped = if kinds.is_empty() {
            lists.len() > 1
        } else {
            !lists.is_empty()
        };
        if dropped || self.defects.len() > before {
            self.defects.truncate(before);
            let why = "an alternative that cannot be shown is left out";
            self.adjust(AdjustmentKind::AlternativeDropped, at, why);
        }
        let kind = if kinds.is_empty() {
            lists.swap_remove(0)
        } else {
            self.joined(kinds, outer, place, at)
        };
        Ok(Self::field_with(outer, Some(kind), nullable, false))
    }

    /// Joins single values: choices into one choice, anything else into a union.
    fn joined(
        &mut self,
        kinds: Vec<Kind>,
        outer: &Flat<'j, 'a>,
        place: &SchemaLocation,
        at: &SchemaLocation,
    ) -> Kind {
        let mut distinct_kinds: Vec<Kind> = Vec::new();
        for kind in kinds {
            if !distinct_kinds.contains(&kind) {
                distinct_kinds.push(kind);
            }
        }
        let all_choices: Option<Vec<OptionDraft>> = distinct_kinds
            .iter()
            .map(|kind| match kind {
                Kind::Choice(choice) => Some(choice),
                _ => None,
            })
            .collect::<Option<Vec<&Choice>>>()
            .map(|choices| {
                let options = choices.iter().flat_map(|choice| choice.options.iter());
                options.map(OptionDraft::from_option).collect()
            });
        if let Some(options) = all_choices {
            return self.choice(options, outer, place);
        }
        if distinct_kinds.len() == 1 {
            let kind = distinct_kinds.swap_remove(0);
            return self.with_default(kind, outer.get("default"), place);
        }
        let union = Union {
            alternatives: distinct_kinds,
            default: None,
        };
        let why = format!(
            "several types are accepted ({}); the text is sent as the first that it fits",
            union.types()
        );
        self.adjust(AdjustmentKind::Union, at, why);
        self.with_default(Kind::Union(union), outer.get("default"), place)
    }

    /// Reads a value without options: of one type, or of several.
    fn of_types(
        &mut self,
        kinds: &[&'j str],
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
        depth: usize,
    ) -> Result<Kind, UnreadablePart> {
        let [_, _, ..] = kinds else {
            let kind = kinds.first().copied();
            return self.of_type(kind, flat, place, depth);
        };
        let at = place.child("type");
        let before = self.defects.len();
        let (mut scalars, mut lists) = (Vec::new(), Vec::new());
        let base = flat.clone().without(&["default"]);
        for kind in kinds {
            match self.of_type(Some(kind), &base, place, depth) {
                Ok(kind @ (Kind::Choices(_) | Kind::Lines(_))) => lists.push(kind),
                Ok(kind) => scalars.push(kind),
                Err(UnreadablePart) => {}
            }
        }
        if scalars.is_empty() && lists.is_empty() {
            return Err(UnreadablePart);
        }
        let dropped = if scalars.is_empty() {
            lists.len() > 1
        } else {
            !lists.is_empty()
        };
        if dropped || self.defects.len() > before {
            self.defects.truncate(before);
            let why = "an alternative that cannot be shown is left out";
            self.adjust(AdjustmentKind::AlternativeDropped, &at, why);
        }
        if scalars.is_empty() {
            return Ok(lists.swap_remove(0));
        }
        Ok(self.joined(scalars, flat, place, &at))
    }

    fn of_type(
        &mut self,
        name: Option<&str>,
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
        depth: usize,
    ) -> Result<Kind, UnreadablePart> {
        let is_nested = !flat.properties.is_empty() || flat.has(&["patternProperties"]);
        let scalar = match name {
            Some("object") => None,
            Some("array") => return self.list(flat, place, depth),
            Some(name) => Some(self.scalar_type(name, place)),
            None if is_nested => None,
            None if flat.has(&["items", "minItems", "maxItems", "uniqueItems"]) => {
                let why = "the field has no `type`; it has `items`, so it is a list";
                self.adjust(AdjustmentKind::TypeAssumed, place, why);
                return self.list(flat, place, depth);
            }
            None => Some(self.assumed_type(flat, place)),
        };
        let Some(scalar) = scalar else {
            let field = clip(place.field.as_deref().unwrap_or_default());
            let why = format!("`{field}` is an object with fields of its own, and a form is flat");
            let key = match name {
                Some(_) => "type",
                None => "properties",
            };
            return Err(self.defect(&place.child(key), DefectCode::Nested, why));
        };
        self.scalar(scalar, flat, place)
    }

    /// Returns the type of a field that has none.
    fn assumed_type(&mut self, flat: &Flat<'_, '_>, place: &SchemaLocation) -> ScalarType {
        let scalar = if flat.has(&["minLength", "maxLength", "pattern", "format"]) {
            ScalarType::Text
        } else if flat.has(&[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ]) {
            ScalarType::Number
        } else {
            match flat.get("default") {
                Some(Json::Boolean(_)) => ScalarType::Boolean,
                Some(Json::Number(..)) => ScalarType::Number,
                _ => ScalarType::Text,
            }
        };
        let why = format!("the field has no `type`; it is read as {}", scalar.words());
        self.adjust(AdjustmentKind::TypeAssumed, place, why);
        scalar
    }

    /// Reads an array: several choices, or values that are written one per line.
    fn list(
        &mut self,
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
        depth: usize,
    ) -> Result<Kind, UnreadablePart> {
        for key in SHAPES.into_iter().filter(|key| flat.has(&[key])) {
            let why = format!("the server's rule `{key}` is not checked here");
            self.adjust(AdjustmentKind::RuleNotEnforced, &place.child(key), why);
        }
        let at = place.child("items");
        let item = match flat.get("items") {
            None => self.scalar(ScalarType::Text, &Flat::default(), &at)?,
            Some(items) => {
                let items = self.flatten(items, &at)?;
                let items = items.without(&["default"]);
                let Some(kind) = self.value(items, &at, depth + 1)?.kind else {
                    let why = "the items of this list accept no value but null";
                    return Err(self.defect(&at, DefectCode::ArrayItems, why));
                };
                kind
            }
        };
        let (min_items, max_items, unique) = self.list_bounds(flat, place);
        let kind = match item {
            Kind::Choice(choice) => {
                let options = choice.options;
                let impossible = min_items.filter(|min| *min > options.len() as u64);
                if impossible.is_some() {
                    let why = format!("a selection of that many of {} options", options.len());
                    self.bound(&place.child("minItems"), &why);
                }
                Kind::Choices(Choices {
                    min_items: min_items.filter(|_| impossible.is_none()),
                    max_items,
                    unique,
                    default: None,
                    options,
                })
            }
            Kind::Choices(_) | Kind::Lines(_) => {
                let why = "this field is a list of lists, which a form cannot show";
                return Err(self.defect(&at, DefectCode::ArrayItems, why));
            }
            item @ (Kind::Text(_)
            | Kind::Number(_)
            | Kind::Integer(_)
            | Kind::Boolean(_)
            | Kind::Union(_)) => {
                let why = "the list is written, one value per line";
                self.adjust(AdjustmentKind::Lines, place, why);
                Kind::Lines(Lines {
                    item: Box::new(item),
                    min_items,
                    max_items,
                    unique,
                    default: None,
                })
            }
        };
        for key in [
            "prefixItems",
            "additionalItems",
            "contains",
            "minContains",
            "maxContains",
        ] {
            if constrains(key) && flat.has(&[key]) {
                let why = format!("the server's rule `{key}` is not checked here");
                self.adjust(AdjustmentKind::RuleNotEnforced, &place.child(key), why);
            }
        }
        Ok(self.with_default(kind, flat.get("default"), place))
    }

    fn list_bounds(
        &mut self,
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
    ) -> (Option<u64>, Option<u64>, bool) {
        let mut min = self.count(flat, "minItems", place);
        let mut max = self.count(flat, "maxItems", place);
        if let (Some(least), Some(most)) = (min, max)
            && least > most
        {
            let why = format!("a list of at least {least} and at most {most} values");
            self.bound(&place.child("minItems"), &why);
            (min, max) = (None, None);
        }
        let unique = match flat.get("uniqueItems") {
            None => false,
            Some(Json::Boolean(unique)) => *unique,
            Some(other) => {
                let why = format!("`uniqueItems` is {} and is ignored", other.kind());
                self.adjust(
                    AdjustmentKind::KeywordIgnored,
                    &place.child("uniqueItems"),
                    why,
                );
                false
            }
        };
        (min, max, unique)
    }

    fn count(&mut self, flat: &Flat<'j, 'a>, key: &str, place: &SchemaLocation) -> Option<u64> {
        let value = flat.get(key)?;
        let number = value.as_number().cloned();
        let count = number.and_then(|n| crate::number::canonical_integer(n).as_u64());
        if count.is_none() {
            let why = format!("`{key}` is not a whole number from 0 and is not checked");
            self.adjust(AdjustmentKind::BoundNotEnforced, &place.child(key), why);
        }
        count
    }

    /// Notes a bound that no value meets: `wanted` describes the value.
    pub(super) fn bound(&mut self, place: &SchemaLocation, wanted: &str) {
        let why =
            format!("the server asks for {wanted}, which does not exist; this is not checked");
        self.adjust(AdjustmentKind::BoundNotEnforced, place, why);
    }

    /// Fills in the default of a kind that has none yet, if the field accepts it.
    fn with_default(
        &mut self,
        kind: Kind,
        default: Option<&'j Json<'a>>,
        place: &SchemaLocation,
    ) -> Kind {
        let Some(default) = default else { return kind };
        if matches!(default, Json::Null) {
            return kind;
        }
        if !kind.accepts(default.given()) {
            self.default_dropped(place);
            return kind;
        }
        let value = default.clone().into_value();
        let key = |kind: &super::super::ChoiceOptions, json: &Json<'_>| {
            kind.find(json.given())
                .map(|option| option.value.to_string())
        };
        match kind {
            Kind::Union(union) => Kind::Union(Union {
                default: Some(value),
                ..union
            }),
            Kind::Lines(lines) => Kind::Lines(Lines {
                default: value.as_array().cloned(),
                ..lines
            }),
            Kind::Choice(choice) => Kind::Choice(Choice {
                default: key(&choice.options, default),
                ..choice
            }),
            Kind::Choices(choices) => {
                let picked = match default {
                    Json::List(items) => items.as_slice(),
                    _ => &[],
                };
                let picked = picked.iter().filter_map(|item| key(&choices.options, item));
                Kind::Choices(Choices {
                    default: Some(picked.collect()),
                    ..choices
                })
            }
            // Their default was read with their rules.
            kind @ (Kind::Text(_) | Kind::Number(_) | Kind::Integer(_) | Kind::Boolean(_)) => {
                Self::plain_default(kind, default)
            }
        }
    }

    fn plain_default(kind: Kind, default: &Json<'_>) -> Kind {
        match (kind, default) {
            (Kind::Text(text), Json::Text(default)) => Kind::Text(super::super::Text {
                default: Some(default.to_string()),
                ..text
            }),
            (Kind::Number(number), Json::Number(default, _)) => {
                Kind::Number(super::super::Number {
                    default: Some(default.clone()),
                    ..number
                })
            }
            (Kind::Integer(number), Json::Number(default, _)) => {
                Kind::Integer(super::super::Number {
                    default: Some(crate::number::canonical_integer(default.clone())),
                    ..number
                })
            }
            (Kind::Boolean(boolean), Json::Boolean(default)) => {
                Kind::Boolean(super::super::Boolean {
                    default: Some(*default),
                    ..boolean
                })
            }
            (kind, _) => kind,
        }
    }

    pub(super) fn default_dropped(&mut self, place: &SchemaLocation) {
        let why = "the default is not a value that the field accepts, and is ignored";
        self.adjust(AdjustmentKind::DefaultDropped, &place.child("default"), why);
    }

    /// Creates a choice from options that may repeat.
    fn choice(
        &mut self,
        options: Vec<OptionDraft>,
        flat: &Flat<'j, 'a>,
        place: &SchemaLocation,
    ) -> Kind {
        let (options, dropped) = distinct(options);
        if dropped {
            let why = "an option that occurs twice is shown once";
            self.adjust(AdjustmentKind::OptionDropped, place, why);
        }
        if options.iter().any(|option| option.typed.is_some()) {
            let why = "the options are numbers or yes and no, and are sent as such";
            self.adjust(AdjustmentKind::TypedOptions, place, why);
        }
        let kind = Kind::Choice(Choice {
            options: super::super::ChoiceOptions::from_distinct(options),
            constant: None,
            default: None,
        });
        self.with_default(kind, flat.get("default"), place)
    }
}
