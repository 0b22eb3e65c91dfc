//! Choices: one or several of a list.

use serde_json::{Value, json};

use super::single_field::{FieldWords, words_of_one_field};
use super::{AcceptedContent, Ask, AskBody, Askable, ReadResult};
use crate::error::ElicitError;

/// A value to choose, with an optional title.
///
/// ```
/// use mcp_elicit_server::ask::ChoiceItem;
/// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shown_as_it_is = ChoiceItem::from("small");
/// let with_a_title = ChoiceItem::from(("l", "Large"));
/// # let elicit = ScriptedUser::answering([ScriptedAnswer::pick("l")]).elicit();
/// let size = elicit.choose("Which size?", [shown_as_it_is, with_a_title]).await?;
/// # assert_eq!(size, "l");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceItem {
    value: String,
    title: Option<String>,
}

impl From<&str> for ChoiceItem {
    fn from(value: &str) -> Self {
        Self {
            value: value.to_owned(),
            title: None,
        }
    }
}

impl From<String> for ChoiceItem {
    fn from(value: String) -> Self {
        Self { value, title: None }
    }
}

impl<V: Into<String>, T: Into<String>> From<(V, T)> for ChoiceItem {
    fn from((value, title): (V, T)) -> Self {
        Self {
            value: value.into(),
            title: Some(title.into()),
        }
    }
}

/// Returns the schema keyword and list that offer `picks`: the values alone, or each with its title.
fn listed(
    picks: &[ChoiceItem],
    plain: &'static str,
    titled: &'static str,
) -> (&'static str, Value) {
    if picks.iter().all(|pick| pick.title.is_none()) {
        return (
            plain,
            picks.iter().map(|pick| pick.value.as_str()).collect(),
        );
    }
    let option = |pick: &ChoiceItem| json!({ "const": pick.value, "title": pick.title.as_deref().unwrap_or(&pick.value) });
    (titled, picks.iter().map(option).collect())
}

/// A choice of one option.
///
/// ```
/// use mcp_elicit_server::Elicit;
/// use mcp_elicit_server::ask::{Ask, Choose};
///
/// /// The same choice for several tools.
/// fn choose_region(elicit: &Elicit) -> Ask<Choose> {
///     elicit.choose("Which region?", [("eu", "Europe"), ("us", "United States")]).title("Region")
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Choose {
    picks: Vec<ChoiceItem>,
    words: FieldWords,
    default: Option<String>,
}

const CHOICE: &str = "choice";

impl Choose {
    pub(crate) fn among<P: Into<ChoiceItem>>(options: impl IntoIterator<Item = P>) -> Self {
        Self {
            picks: options.into_iter().map(Into::into).collect(),
            words: FieldWords::default(),
            default: None,
        }
    }
}

impl Askable for Choose {
    type Answer = String;

    fn asking(&self) -> Result<AskBody, ElicitError> {
        let (keyword, options) = listed(&self.picks, "enum", "oneOf");
        let field = json!({ "type": "string", keyword: options });
        self.words
            .form(CHOICE, field, self.default.clone().map(Value::from))
    }

    fn read(&self, accepted: AcceptedContent) -> ReadResult<String> {
        let answers = accepted.answers;
        answers
            .as_ref()
            .and_then(|answers| answers.get(CHOICE))
            .and_then(Value::as_str)
            .map(str::to_owned)
            .into()
    }
}

/// A choice of one item of the author's own type.
///
/// ```
/// use mcp_elicit_server::Elicit;
/// use mcp_elicit_server::ask::{Ask, ChooseAmong};
///
/// /// A choice among numbers, each shown with its unit; the answer is the number.
/// fn choose_size(elicit: &Elicit, gigabytes: &[u32]) -> Ask<ChooseAmong<u32>> {
///     elicit.choose_among("How large?", gigabytes.to_vec(), |size| format!("{size} GB"))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ChooseAmong<T> {
    choose: Choose,
    items: Vec<T>,
}

impl<T> ChooseAmong<T> {
    pub(crate) fn new<P: Into<ChoiceItem>>(
        items: impl IntoIterator<Item = T>,
        option: impl Fn(&T) -> P,
    ) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        Self {
            choose: Choose::among(items.iter().map(option)),
            items,
        }
    }
}

impl<T: Clone + Send + 'static> Askable for ChooseAmong<T> {
    type Answer = T;

    fn asking(&self) -> Result<AskBody, ElicitError> {
        self.choose.asking()
    }

    fn read(&self, accepted: AcceptedContent) -> ReadResult<T> {
        let value = match self.choose.read(accepted) {
            ReadResult::Answer(value) => value,
            ReadResult::No => return ReadResult::No,
            ReadResult::Misfit(why) => return ReadResult::Misfit(why),
            ReadResult::Refused(reasons) => return ReadResult::Refused(reasons),
            ReadResult::Author(why) => return ReadResult::Author(why),
        };
        let mut options = self.choose.picks.iter().zip(&self.items);
        let found = options.find(|(option, _)| option.value == value);
        found.map(|(_, item)| item.clone()).into()
    }
}

/// A choice of any number of options.
///
/// ```
/// use mcp_elicit_server::Elicit;
/// use mcp_elicit_server::ask::{Ask, ChooseMany};
///
/// /// One or two of three days.
/// fn choose_days(elicit: &Elicit) -> Ask<ChooseMany> {
///     elicit.choose_many("On which days?", ["Monday", "Tuesday", "Friday"]).at_least(1).at_most(2)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ChooseMany {
    picks: Vec<ChoiceItem>,
    words: FieldWords,
    default: Option<Vec<String>>,
    at_least: Option<u64>,
    at_most: Option<u64>,
}

const CHOICES: &str = "choices";

impl ChooseMany {
    pub(crate) fn among<P: Into<ChoiceItem>>(options: impl IntoIterator<Item = P>) -> Self {
        let picks = options.into_iter().map(Into::into).collect();
        Self {
            picks,
            words: FieldWords::default(),
            default: None,
            at_least: None,
            at_most: None,
        }
    }
}

impl Askable for ChooseMany {
    type Answer = Vec<String>;

    fn asking(&self) -> Result<AskBody, ElicitError> {
        let (keyword, options) = listed(&self.picks, "enum", "anyOf");
        let items = if keyword == "enum" {
            json!({ "type": "string", "enum": options })
        } else {
            json!({ keyword: options })
        };
        let mut field = json!({ "type": "array", "items": items });
        for (limit, value) in [("minItems", self.at_least), ("maxItems", self.at_most)] {
            if let Some(value) = value {
                field[limit] = value.into();
            }
        }
        self.words
            .form(CHOICES, field, self.default.clone().map(Value::from))
    }

    fn read(&self, accepted: AcceptedContent) -> ReadResult<Vec<String>> {
        let answers = accepted.answers;
        let chosen = answers
            .as_ref()
            .and_then(|answers| answers.get(CHOICES))
            .and_then(Value::as_array);
        chosen
            .and_then(|chosen| {
                chosen
                    .iter()
                    .map(|value| value.as_str().map(str::to_owned))
                    .collect()
            })
            .into()
    }
}

words_of_one_field!(Choose);
words_of_one_field!(ChooseMany);

impl Ask<Choose> {
    /// Sets the value that is preselected when the question is shown.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn region(elicit: Elicit) -> Result<String, ElicitError> {
    /// elicit.choose("Which region?", ["eu", "us"]).default("eu").await
    /// # }
    /// ```
    pub fn default(self, value: impl Into<String>) -> Self {
        self.change(|choose| Choose {
            default: Some(value.into()),
            ..choose
        })
    }
}

impl Ask<ChooseMany> {
    /// Sets the values that are preselected when the question is shown.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn days(elicit: Elicit) -> Result<Vec<String>, ElicitError> {
    /// elicit.choose_many("On which days?", ["Monday", "Tuesday", "Friday"]).default(["Friday"]).await
    /// # }
    /// ```
    pub fn default<V: Into<String>>(self, values: impl IntoIterator<Item = V>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.change(|choose| ChooseMany {
            default: Some(values),
            ..choose
        })
    }

    /// Sets the fewest options that may be chosen.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn days(elicit: Elicit) -> Result<Vec<String>, ElicitError> {
    /// elicit.choose_many("On which days?", ["Monday", "Tuesday", "Friday"]).at_least(1).await
    /// # }
    /// ```
    pub fn at_least(self, number: u64) -> Self {
        self.change(|choose| ChooseMany {
            at_least: Some(number),
            ..choose
        })
    }

    /// Sets the most options that may be chosen.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn days(elicit: Elicit) -> Result<Vec<String>, ElicitError> {
    /// elicit.choose_many("On which days?", ["Monday", "Tuesday", "Friday"]).at_most(2).await
    /// # }
    /// ```
    pub fn at_most(self, number: u64) -> Self {
        self.change(|choose| ChooseMany {
            at_most: Some(number),
            ..choose
        })
    }
}
