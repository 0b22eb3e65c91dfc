//! One field on a page: its control, texts, value and errors.

/// The control of a field, and its value.
#[derive(Clone, PartialEq)]
pub(super) enum FieldControl {
    /// One line of text; `kind` is the input's `type`.
    Line {
        kind: &'static str,
        inputmode: Option<&'static str>,
        autocomplete: &'static str,
        value: String,
        short: bool,
        /// `true` if it may become several lines when such text is pasted.
        grows: bool,
    },
    /// Several lines of text.
    Lines { value: String },
    /// A number with buttons for less and more.
    Number {
        value: String,
        whole: bool,
        least: String,
        most: String,
        step: String,
    },
    /// A local date and time, and its zone.
    Moment { local: String, zone: String },
    /// One (`radio`) or several (`checkbox`) of a list.
    Picks {
        kind: &'static str,
        options: Vec<OptionPart>,
        /// Side by side instead of below each other.
        row: bool,
        /// With a box to search in.
        search: bool,
        /// `true` if "no answer" is chosen, where that is a choice.
        none: Option<bool>,
    },
}

/// One entry of a list.
#[derive(Clone, PartialEq)]
pub(super) struct OptionPart {
    pub index: usize,
    pub label: String,
    pub picked: bool,
}

/// A field with everything around it.
#[derive(Clone, PartialEq)]
pub(super) struct FieldPart {
    /// The name of its control on the page, which is never the server's name for it.
    pub key: String,
    pub label: String,
    pub required: bool,
    /// The word beside the label.
    pub mark: Option<&'static str>,
    pub about: Option<String>,
    pub limit: String,
    pub errors: Vec<String>,
    pub entry: FieldControl,
}

/// The number of characters above which a description scrolls.
const LONG: usize = 900;

impl FieldPart {
    pub(super) fn wrong(&self) -> bool {
        !self.errors.is_empty()
    }

    pub(super) fn about_is_long(&self) -> bool {
        self.about
            .as_ref()
            .is_some_and(|about| about.chars().count() > LONG)
    }

    /// Returns the ids of the elements that describe the field, for assistive technology.
    pub(super) fn described_by(&self) -> String {
        let about = self.about.as_ref().map(|_| "about");
        let limit = (!self.limit.is_empty()).then_some("limit");
        let parts = [about, limit, Some("error")];
        let ids = parts
            .into_iter()
            .flatten()
            .map(|part| format!("{}-{part}", self.key));
        ids.collect::<Vec<_>>().join(" ")
    }
}
