//! The `elicitation` capability in all its spellings: the modes in which a client can ask a person.

use serde_json::{Map, Value, json};

use super::revision::{Mode, Revision};

/// The modes a client declared. Nothing may be asked in an undeclared mode (every revision: "servers MUST NOT").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capability {
    /// The client can show forms.
    pub form: bool,
    /// The client can send a person to a URL.
    pub url: bool,
}

impl Capability {
    /// The client declared no elicitation.
    pub const NONE: Self = Self {
        form: false,
        url: false,
    };
    /// Forms only, which is the meaning of `{}`.
    pub const FORM: Self = Self {
        form: true,
        url: false,
    };
    /// URLs only.
    pub const URL: Self = Self {
        form: false,
        url: true,
    };
    /// Both modes.
    pub const BOTH: Self = Self {
        form: true,
        url: true,
    };

    /// Reads the member `elicitation`, absent or not, as `revision` defines it.
    ///
    /// - 2025-06-18 has no modes: any object means forms.
    /// - On later revisions, `{}` means forms; otherwise the members `form` and `url` count. An object with neither
    ///   (only unknown members) is read like `{}`. A member counts if it is an object.
    /// - An empty list is an empty object: PHP writes both as `[]`.
    /// - Any other value declares nothing; `null` counts as absent.
    pub fn read(elicitation: Option<&Value>, revision: Revision) -> Self {
        let empty = Map::new();
        let declared = match elicitation {
            Some(Value::Object(declared)) => declared,
            Some(Value::Array(list)) if list.is_empty() => &empty,
            Some(_) | None => return Self::NONE,
        };
        match revision {
            Revision::V2025_06_18 => Self::FORM,
            Revision::V2025_11_25 | Revision::V2026_07_28 => Self::read_modes(declared),
        }
    }

    fn read_modes(declared: &Map<String, Value>) -> Self {
        let says = |mode: Mode| declared.get(mode.as_str()).filter(|value| !value.is_null());
        if says(Mode::Form).is_none() && says(Mode::Url).is_none() {
            return Self::FORM;
        }
        Self {
            form: says(Mode::Form).is_some_and(is_declared),
            url: says(Mode::Url).is_some_and(is_declared),
        }
    }

    /// Reads a whole `ClientCapabilities` object, from `initialize` or a request's `_meta`.
    pub fn from_client(capabilities: &Value, revision: Revision) -> Self {
        Self::read(capabilities.get("elicitation"), revision)
    }

    /// Returns the value of the member `elicitation`, or `None` if the member must be omitted.
    ///
    /// 2025-06-18 has one spelling, `{}`, and cannot express url mode: url alone is omitted there.
    pub fn to_value(self, revision: Revision) -> Option<Value> {
        match revision {
            Revision::V2025_06_18 => self.form.then(|| json!({})),
            Revision::V2025_11_25 | Revision::V2026_07_28 => self.modes(),
        }
    }

    fn modes(self) -> Option<Value> {
        let mut declared = Map::new();
        for mode in [Mode::Form, Mode::Url] {
            if self.has(mode) {
                declared.insert(mode.as_str().to_owned(), json!({}));
            }
        }
        (!declared.is_empty()).then_some(Value::Object(declared))
    }

    /// Returns `true` if the client declared this mode.
    pub const fn has(self, mode: Mode) -> bool {
        match mode {
            Mode::Form => self.form,
            Mode::Url => self.url,
        }
    }

    /// Returns the capability that a question of this mode needs.
    pub const fn needed(mode: Mode) -> Self {
        match mode {
            Mode::Form => Self::FORM,
            Mode::Url => Self::URL,
        }
    }

    /// Returns the modes that both have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            form: self.form && other.form,
            url: self.url && other.url,
        }
    }

    /// Returns the modes that either has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            form: self.form || other.form,
            url: self.url || other.url,
        }
    }

    /// Returns `true` if no mode is declared.
    pub const fn is_none(self) -> bool {
        !self.form && !self.url
    }
}

/// Returns `true` for an object, or an empty list, which PHP writes for an empty object.
fn is_declared(value: &Value) -> bool {
    value.is_object() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

    #[test]
    fn every_spelling_is_read() {
        let cases = [
            (json!({}), Capability::NONE),
            (json!({"elicitation": null}), Capability::NONE),
            (json!({"elicitation": true}), Capability::NONE),
            (json!({"elicitation": {}}), Capability::FORM),
            (json!({"elicitation": {"form": {}}}), Capability::FORM),
            (
                json!({"elicitation": {"form": {"applyDefaults": true}}}),
                Capability::FORM,
            ),
            (
                json!({"elicitation": {"form": null, "url": null}}),
                Capability::FORM,
            ),
            (json!({"elicitation": {"vendor": {}}}), Capability::FORM),
            (json!({"elicitation": {"url": {}}}), Capability::URL),
            (
                json!({"elicitation": {"url": {}, "form": null}}),
                Capability::URL,
            ),
            (
                json!({"elicitation": {"form": {}, "url": {}}}),
                Capability::BOTH,
            ),
            (
                json!({"elicitation": {"form": false, "url": {}}}),
                Capability::URL,
            ),
        ];
        for (capabilities, expected) in cases {
            for revision in MODERN {
                assert_eq!(
                    Capability::from_client(&capabilities, revision),
                    expected,
                    "{capabilities} on {revision}"
                );
            }
        }
    }

    #[test]
    fn the_first_revision_knows_forms_only() {
        for spelling in [
            json!({}),
            json!({"form": {}, "url": {}}),
            json!({"url": {}}),
        ] {
            assert_eq!(
                Capability::read(Some(&spelling), Revision::V2025_06_18),
                Capability::FORM
            );
        }
        assert_eq!(
            Capability::BOTH.to_value(Revision::V2025_06_18),
            Some(json!({}))
        );
        assert_eq!(Capability::URL.to_value(Revision::V2025_06_18), None);
    }

    #[test]
    fn what_is_written_reads_back() {
        for revision in MODERN {
            for capability in [
                Capability::NONE,
                Capability::FORM,
                Capability::URL,
                Capability::BOTH,
            ] {
                let written = capability.to_value(revision);
                assert_eq!(Capability::read(written.as_ref(), revision), capability);
            }
        }
    }

    #[test]
    fn sets_combine() {
        assert_eq!(Capability::FORM.or(Capability::URL), Capability::BOTH);
        assert_eq!(Capability::BOTH.and(Capability::URL), Capability::URL);
        assert!(Capability::FORM.and(Capability::URL).is_none());
        assert!(Capability::needed(Mode::Url).has(Mode::Url));
    }
}
