//! A list of choices, with arrow keys and type-ahead.

use mcp_elicit_core::answer::DraftValue;

use crate::view::{Control, FieldView};

/// The value of a chosen entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Gives {
    Value(String),
    Flag(bool),
    Nothing,
}

#[derive(Clone)]
struct PickerEntry {
    label: String,
    /// The text that type-ahead searches, in lower case.
    sought: String,
    gives: Gives,
    chosen: bool,
}

/// The entries, the selected ones, and the cursor.
#[derive(Clone)]
pub(super) struct Picker {
    entries: Vec<PickerEntry>,
    several: bool,
    typed: String,
    /// The position among the matching entries. `None` while nothing is proposed: a plain yes-or-no field without a
    /// default starts like this, so that a held key does not answer it.
    at: Option<usize>,
}

/// One entry as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShownEntry<'a> {
    pub(super) label: &'a str,
    pub(super) chosen: bool,
    pub(super) here: bool,
}

impl Picker {
    /// Creates the list of a field that has one: its options, or yes and no. An optional field with a single choice
    /// gets an entry for no answer.
    pub(super) fn from_field(field: &FieldView, typed: &DraftValue) -> Option<Self> {
        let entry = |label: &str, also: &str, gives: Gives| PickerEntry {
            label: label.to_owned(),
            sought: format!("{} {}", label.to_lowercase(), also.to_lowercase()),
            gives,
            chosen: false,
        };
        let (mut entries, several): (Vec<_>, _) = match &field.control {
            Control::YesNo => (
                vec![
                    entry("Yes", "", Gives::Flag(true)),
                    entry("No", "", Gives::Flag(false)),
                ],
                false,
            ),
            Control::One(options) | Control::Several { options, .. } => (
                options
                    .iter()
                    .map(|pick| entry(&pick.label, &pick.value, Gives::Value(pick.value.clone())))
                    .collect(),
                matches!(field.control, Control::Several { .. }),
            ),
            _ => return None,
        };
        if !several && !field.required {
            entries.push(entry("No answer", "", Gives::Nothing));
        }
        let mut picker = Self {
            entries,
            several,
            typed: String::new(),
            at: Some(0),
        };
        picker.choose_what(typed);
        if field.control == Control::YesNo && *typed == DraftValue::Nothing {
            picker.at = None;
        }
        Some(picker)
    }

    fn choose_what(&mut self, typed: &DraftValue) {
        for entry in &mut self.entries {
            entry.chosen = match (&entry.gives, typed) {
                (Gives::Value(value), DraftValue::Picked(picked)) => picked.contains(value),
                (Gives::Flag(a), DraftValue::Flag(b)) => a == b,
                (Gives::Nothing, DraftValue::Nothing) => true,
                _ => false,
            };
        }
        let chosen = self
            .entries
            .iter()
            .position(|entry| entry.chosen && entry.gives != Gives::Nothing);
        self.at = Some(chosen.unwrap_or(0));
    }

    pub(super) fn is_several(&self) -> bool {
        self.several
    }

    /// Returns the type-ahead text.
    pub(super) fn typed(&self) -> &str {
        &self.typed
    }

    /// Returns the number of entries, and of those that match the type-ahead text.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.matching().count())
    }

    pub(super) fn up(&mut self) {
        let count = self.matching().count();
        self.at = Some(match self.at {
            None | Some(0) => count.saturating_sub(1),
            Some(at) => at - 1,
        });
    }

    pub(super) fn down(&mut self) {
        let count = self.matching().count();
        self.at = Some(match self.at {
            Some(at) if at + 1 < count => at + 1,
            _ => 0,
        });
    }

    pub(super) fn is_first(&self) -> bool {
        self.at.is_none_or(|at| at == 0)
    }

    pub(super) fn is_last(&self) -> bool {
        self.at.is_some_and(|at| at + 1 >= self.matching().count())
    }

    /// Returns `true` if an entry is selected, by the person or a default.
    pub(super) fn is_somewhere(&self) -> bool {
        self.at.is_some()
    }

    pub(super) fn first(&mut self) {
        self.at = Some(0);
    }

    pub(super) fn last(&mut self) {
        self.at = Some(self.matching().count().saturating_sub(1));
    }

    /// Adds a character to the type-ahead text. Returns `false`, and leaves it out, if no entry would match.
    pub(super) fn type_ahead(&mut self, c: char) -> bool {
        let here = self.here();
        self.typed.push(c);
        let has_matches = self.matching().next().is_some();
        if !has_matches {
            self.typed.pop();
        }
        self.stay_at(here);
        has_matches
    }

    /// Moves to yes or no. Returns `false` if this is another list.
    pub(super) fn go_to_flag(&mut self, flag: bool) -> bool {
        let at = self
            .entries
            .iter()
            .position(|entry| entry.gives == Gives::Flag(flag));
        if at.is_some() {
            self.typed.clear();
            self.at = at;
        }
        at.is_some()
    }

    /// Selects no entry: a key that is held down must not answer.
    pub(super) fn leave(&mut self) {
        self.at = None;
    }

    /// Removes one character of the type-ahead text; returns `false` if it is empty.
    pub(super) fn widen(&mut self) -> bool {
        let here = self.here();
        let was = self.typed.pop().is_some();
        self.stay_at(here);
        was
    }

    /// Shows the whole list again.
    pub(super) fn clear(&mut self) {
        let here = self.here();
        self.typed.clear();
        self.stay_at(here);
    }

    /// Selects the current entry; in a list of several, toggles it.
    pub(super) fn press(&mut self) {
        let Some(here) = self.here() else { return };
        let several = self.several;
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if several {
                entry.chosen ^= index == here;
            } else {
                entry.chosen = index == here;
            }
        }
    }

    /// Returns the selection as the answer of the field.
    pub(super) fn chosen(&self) -> DraftValue {
        let mut chosen = self.entries.iter().filter(|entry| entry.chosen);
        if self.several {
            let values: Vec<_> = chosen
                .filter_map(|entry| match &entry.gives {
                    Gives::Value(value) => Some(value.clone()),
                    Gives::Flag(_) | Gives::Nothing => None,
                })
                .collect();
            return DraftValue::Picked(values);
        }
        match chosen.next().map(|entry| &entry.gives) {
            Some(Gives::Value(value)) => DraftValue::Picked(vec![value.clone()]),
            Some(Gives::Flag(flag)) => DraftValue::Flag(*flag),
            Some(Gives::Nothing) | None => DraftValue::Nothing,
        }
    }

    /// Returns at most `most` entries around the cursor, with the numbers of entries omitted before and after.
    pub(super) fn window(&self, most: usize) -> (usize, Vec<ShownEntry<'_>>, usize) {
        let all: Vec<_> = self.matching().collect();
        let most = most.max(1);
        let start = self
            .at
            .unwrap_or(0)
            .saturating_sub(most / 2)
            .min(all.len().saturating_sub(most));
        let end = (start + most).min(all.len());
        let shown = (start..end)
            .map(|position| {
                let entry = &self.entries[all[position]];
                ShownEntry {
                    label: &entry.label,
                    chosen: entry.chosen,
                    here: Some(position) == self.at,
                }
            })
            .collect();
        (start, shown, all.len() - end)
    }

    fn here(&self) -> Option<usize> {
        self.matching().nth(self.at?)
    }

    fn stay_at(&mut self, index: Option<usize>) {
        if index.is_none() && self.typed.is_empty() {
            return;
        }
        let device = self.matching().position(|matching| Some(matching) == index);
        self.at = Some(device.unwrap_or(0));
    }

    /// Returns the indices of the matching entries.
    fn matching(&self) -> impl Iterator<Item = usize> {
        let sought = self.typed.to_lowercase();
        self.entries
            .iter()
            .enumerate()
            .filter(move |(_, entry)| entry.sought.contains(&sought))
            .map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Pick;

    fn field(several: bool, required: bool) -> FieldView {
        let options: Vec<_> = ["Staging", "Production", "Preview"]
            .map(|label| Pick {
                value: label.to_lowercase(),
                label: label.to_owned(),
            })
            .into();
        FieldView {
            name: "f".to_owned(),
            label: "F".to_owned(),
            description: None,
            required,
            control: if several {
                Control::Several {
                    options,
                    least: None,
                    most: None,
                }
            } else {
                Control::One(options)
            },
            hints: Vec::new(),
            default: DraftValue::Nothing,
            is_secret: false,
            is_list: false,
        }
    }

    fn here(picker: &Picker) -> &str {
        picker
            .window(9)
            .1
            .into_iter()
            .find(|shown| shown.here)
            .map_or("", |shown| shown.label)
    }

    #[test]
    fn arrows_go_round() {
        let mut picker = Picker::from_field(&field(false, true), &DraftValue::Nothing).unwrap();
        picker.up();
        assert_eq!(here(&picker), "Preview");
        picker.down();
        assert_eq!(here(&picker), "Staging");
    }

    #[test]
    fn typing_narrows_and_never_empties_the_list() {
        let mut picker = Picker::from_field(&field(false, true), &DraftValue::Nothing).unwrap();
        let found = ["p", "r", "x"].map(|c| c.chars().all(|c| picker.type_ahead(c)));
        assert_eq!(found, [true, true, false]);
        assert_eq!((picker.typed(), picker.counts()), ("pr", (3, 2)));
        picker.down();
        assert_eq!(here(&picker), "Preview");
        picker.clear();
        assert_eq!(here(&picker), "Preview");
    }

    #[test]
    fn nothing_is_chosen_until_the_person_does() {
        let mut picker = Picker::from_field(&field(false, true), &DraftValue::Nothing).unwrap();
        assert_eq!(picker.chosen(), DraftValue::Nothing);
        picker.press();
        assert_eq!(
            picker.chosen(),
            DraftValue::Picked(vec!["staging".to_owned()])
        );
    }

    #[test]
    fn a_plain_yes_or_no_without_a_default_proposes_nothing() {
        let yes_no = FieldView {
            control: Control::YesNo,
            ..field(false, true)
        };
        let mut picker = Picker::from_field(&yes_no, &DraftValue::Nothing).unwrap();
        picker.press();
        assert_eq!((here(&picker), picker.chosen()), ("", DraftValue::Nothing));
        picker.down();
        assert_eq!(here(&picker), "Yes");
        let mut picker = Picker::from_field(&yes_no, &DraftValue::Nothing).unwrap();
        picker.type_ahead('n');
        assert_eq!(here(&picker), "No");
        let picker = Picker::from_field(&yes_no, &DraftValue::Flag(false)).unwrap();
        assert_eq!(here(&picker), "No");
    }

    #[test]
    fn optional_lists_can_be_left_empty_again() {
        let held = DraftValue::Picked(vec!["preview".to_owned()]);
        let mut picker = Picker::from_field(&field(false, false), &held).unwrap();
        assert_eq!(here(&picker), "Preview");
        picker.down();
        picker.press();
        assert_eq!(picker.chosen(), DraftValue::Nothing);
    }

    #[test]
    fn several_toggle() {
        let mut picker = Picker::from_field(&field(true, true), &DraftValue::Nothing).unwrap();
        picker.press();
        picker.last();
        picker.press();
        assert_eq!(
            picker.chosen(),
            DraftValue::Picked(vec!["staging".to_owned(), "preview".to_owned()])
        );
        picker.press();
        picker.first();
        picker.press();
        assert_eq!(picker.chosen(), DraftValue::Picked(Vec::new()));
    }

    #[test]
    fn a_window_says_what_it_leaves_out() {
        let mut picker = Picker::from_field(&field(false, true), &DraftValue::Nothing).unwrap();
        picker.last();
        let (before, shown, after) = picker.window(2);
        assert_eq!((before, shown.len(), after), (1, 2, 0));
        assert!(shown[1].here);
    }
}
