//! The kinds of questions, and the reading of an accepted response.

use std::marker::PhantomData;
use std::sync::Arc;

use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Ask, Reasons};
use crate::error::ElicitError;
use crate::question::{OutgoingBody, Prepared};

/// Something that can be asked for: a [`Form`], a [`Link`], or what the methods of [`Elicit`](crate::Elicit) make.
///
/// ```
/// use mcp_elicit_server::ask::Askable;
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// /// Asks for a form or a link, whichever the caller has, under a name that logs can show.
/// async fn ask_named<W: Askable>(elicit: &Elicit, name: &str, what: W) -> Result<W::Answer, ElicitError> {
///     elicit.ask("One more thing is needed", what).key(name).await
/// }
/// ```
pub trait Askable: sealed::Sealed + Send + 'static {
    /// The type that `.await` returns.
    type Answer: Send + 'static;

    /// Returns the body of the question to show.
    #[doc(hidden)]
    fn asking(&self) -> Result<AskBody, ElicitError>;

    /// Reads what was accepted.
    #[doc(hidden)]
    fn read(&self, accepted: AcceptedContent) -> ReadResult<Self::Answer>;
}

mod sealed {
    use super::{Choose, ChooseAmong, ChooseMany, Confirm, Form, Link, TypedForm, Visit};

    /// Only these can be asked for, so that the trait may grow.
    pub trait Sealed {}

    impl<T> Sealed for TypedForm<T> {}
    impl Sealed for Form {}
    impl Sealed for Link {}
    impl Sealed for Visit {}
    impl Sealed for Confirm {}
    impl Sealed for Choose {}
    impl<T> Sealed for ChooseAmong<T> {}
    impl Sealed for ChooseMany {}
}

/// The body of a question. Only this crate makes one.
#[derive(Debug)]
pub struct AskBody(pub(crate) OutgoingBody);

/// An accepted reply: checked answers, or nothing where a URL was visited. Only this crate makes one.
#[derive(Debug)]
pub struct AcceptedContent {
    pub(crate) answers: Option<Answers>,
    /// `true` if it passed the author's own check in an earlier run.
    pub(crate) passed: bool,
}

/// The result of reading an accepted response.
#[derive(Debug)]
pub enum ReadResult<T> {
    /// As an answer.
    Answer(T),
    /// As a "no" to what was to be confirmed.
    No,
    /// As nothing usable, for this reason: the person is asked again.
    Misfit(String),
    /// As nothing that the author's own check takes: the person is asked again.
    Refused(Reasons),
    /// As what the author's type cannot hold, whatever the person says: the author has to change it.
    Author(String),
}

impl<T> From<Option<T>> for ReadResult<T> {
    fn from(read: Option<T>) -> Self {
        read.map_or_else(
            || Self::Misfit("the answer does not fit what was asked".into()),
            Self::Answer,
        )
    }
}

/// A form made from a Rust type.
///
/// ```
/// use mcp_elicit_server::Elicit;
/// use mcp_elicit_server::ask::{Ask, TypedForm};
///
/// #[derive(schemars::JsonSchema, serde::Deserialize)]
/// struct Target {
///     environment: String,
/// }
///
/// /// The same question for several tools.
/// fn ask_target(elicit: &Elicit) -> Ask<TypedForm<Target>> {
///     elicit.form("Where to?").key("target")
/// }
/// ```
#[derive(Debug)]
pub struct TypedForm<T>(PhantomData<fn() -> T>);

impl<T> TypedForm<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: schemars::JsonSchema + DeserializeOwned + Send + 'static> Askable for TypedForm<T> {
    type Answer = T;

    fn asking(&self) -> Result<AskBody, ElicitError> {
        Ok(AskBody(OutgoingBody::Form(Prepared::from_type::<T>()?)))
    }

    fn read(&self, accepted: AcceptedContent) -> ReadResult<T> {
        let Some(answers) = accepted.answers else {
            return None.into();
        };
        match answers.clone().deserialize::<T>() {
            Ok(answer) => ReadResult::Answer(answer),
            Err(misfit) if misfit.is_empty_field() => with_defaults(&answers),
            Err(misfit) => ReadResult::Misfit(misfit.to_string()),
        }
    }
}

/// Reads `answers` with the schema's defaults in the fields that were left out: serde may not know them.
fn with_defaults<T>(answers: &Answers) -> ReadResult<T>
where
    T: schemars::JsonSchema + DeserializeOwned + Send + 'static,
{
    let prepared = match Prepared::from_type::<T>() {
        Ok(prepared) => prepared,
        Err(defects) => return ReadResult::Author(defects.to_string()),
    };
    let Value::Object(given) = answers.to_value() else {
        return None.into();
    };
    let read = |content: &Map<String, Value>| {
        let checked = prepared.form().check(Value::Object(content.clone()));
        checked
            .ok()
            .and_then(|answers| answers.deserialize::<T>().ok())
    };
    let mut filled = prepared.form().defaults();
    filled.extend(given.clone());
    if let Some(mut answer) = read(&filled) {
        // Only where the type needs one: a person may have left out what the type can do without.
        let proposed: Vec<String> = filled.keys().cloned().collect();
        for field in proposed {
            let Some(value) = filled.get(&field).cloned() else {
                continue;
            };
            if given.contains_key(&field) {
                continue;
            }
            filled.shift_remove(&field);
            match read(&filled) {
                Some(without) => answer = without,
                None => {
                    filled.insert(field, value);
                }
            }
        }
        return ReadResult::Answer(answer);
    }
    let left_out: Vec<&str> = prepared
        .form()
        .fields()
        .iter()
        .map(mcp_elicit_core::form::Field::name)
        .filter(|name| !given.contains_key(*name))
        .collect();
    ReadResult::Author(format!(
        "its form lets {} be left out, but {} needs a value there; make the field an Option, or give it a serde default",
        left_out.join(", "),
        std::any::type_name::<T>()
    ))
}

impl Askable for Form {
    type Answer = Answers;

    fn asking(&self) -> Result<AskBody, ElicitError> {
        Ok(AskBody(OutgoingBody::Form(Arc::new(Prepared::new(
            self.clone(),
        )?))))
    }

    fn read(&self, accepted: AcceptedContent) -> ReadResult<Answers> {
        accepted.answers.into()
    }
}

/// A URL to visit.
///
/// ```
/// use mcp_elicit_server::Elicit;
/// use mcp_elicit_server::ask::{Ask, Visit};
///
/// /// The same visit for several tools.
/// fn visit_terms(elicit: &Elicit) -> Ask<Visit> {
///     elicit.visit("Please read the terms", "https://example.com/terms")
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Visit {
    url: String,
    id: Option<String>,
}

impl Visit {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            id: None,
        }
    }
}

impl Askable for Visit {
    type Answer = ();

    fn asking(&self) -> Result<AskBody, ElicitError> {
        Ok(AskBody(OutgoingBody::Url {
            url: self.url.clone(),
            id: self.id.clone(),
        }))
    }

    fn read(&self, _: AcceptedContent) -> ReadResult<()> {
        ReadResult::Answer(())
    }
}

impl Ask<Visit> {
    /// The `elicitationId` of 2025-11-25, which `notifications/elicitation/complete` repeats. One that cannot
    /// can guess unless given.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn pay(elicit: Elicit, order: u32) -> Result<(), ElicitError> {
    /// let page = format!("https://shop.example.com/orders/{order}");
    /// elicit.visit("Pay on our page", page).elicitation_id(format!("order-{order}")).await
    /// # }
    /// ```
    pub fn elicitation_id(self, id: impl Into<String>) -> Self {
        self.change(|visit| Visit {
            id: Some(id.into()),
            ..visit
        })
    }
}

impl Askable for Link {
    type Answer = ();

    fn asking(&self) -> Result<AskBody, ElicitError> {
        Visit::new(self.as_str()).asking()
    }

    fn read(&self, _: AcceptedContent) -> ReadResult<()> {
        ReadResult::Answer(())
    }
}

/// The words around a single field.
#[derive(Debug, Clone, Default)]
struct Words {
    title: Option<String>,
    description: Option<String>,
}

impl Words {
    /// A form with the one field `name`.
    fn form(
        &self,
        name: &str,
        mut field: Value,
        default: Option<Value>,
    ) -> Result<AskBody, ElicitError> {
        let words = [
            ("title", self.title.clone().map(Value::from)),
            ("description", self.description.clone().map(Value::from)),
            ("default", default),
        ];
        for (word, value) in words {
            if let Some(value) = value {
                field[word] = value;
            }
        }
        let schema = json!({ "type": "object", "properties": { name: field }, "required": [name] });
        let form = Form::from_value(&schema)
            .map_err(|defects| ElicitError::Author(defects.to_string()))?;
        Ok(AskBody(OutgoingBody::Form(Arc::new(Prepared::new(form)?))))
    }
}

/// A yes.
///
/// ```
/// use mcp_elicit_server::Elicit;
/// use mcp_elicit_server::ask::{Ask, Confirm};
///
/// /// The same confirmation for several tools.
/// fn confirm_cost(elicit: &Elicit, euros: u32) -> Ask<Confirm> {
///     elicit.confirm(format!("This costs {euros} EUR. Go on?")).default(false)
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Confirm {
    words: Words,
    default: Option<bool>,
}

const CONFIRM: &str = "confirm";

impl Askable for Confirm {
    type Answer = ();

    fn asking(&self) -> Result<AskBody, ElicitError> {
        self.words.form(
            CONFIRM,
            json!({ "type": "boolean" }),
            self.default.map(Value::from),
        )
    }

    fn read(&self, accepted: AcceptedContent) -> ReadResult<()> {
        match accepted
            .answers
            .as_ref()
            .and_then(|answers| answers.get(CONFIRM))
            .and_then(Value::as_bool)
        {
            Some(true) => ReadResult::Answer(()),
            Some(false) => ReadResult::No,
            None => None.into(),
        }
    }
}

/// A value to choose and how to call it.
///
/// ```
/// use mcp_elicit_server::ask::ChoiceItem;
/// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shown_as_it_is = ChoiceItem::from("small");
/// let with_a_title = ChoiceItem::from(("l", "Large"));
/// # let elicit = ScriptedUser::who([ScriptedAnswer::pick("l")]).elicit();
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

/// The keyword and list that says `picks`: values alone, or each with its title.
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

/// One of several.
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
    words: Words,
    default: Option<String>,
}

const CHOICE: &str = "choice";

impl Choose {
    pub(crate) fn among<P: Into<ChoiceItem>>(options: impl IntoIterator<Item = P>) -> Self {
        Self {
            picks: options.into_iter().map(Into::into).collect(),
            words: Words::default(),
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

/// One of several items of the author's own.
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

/// Any number of several.
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
    words: Words,
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
            words: Words::default(),
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

/// The texts of the single field of an ask, for each ask that has one.
macro_rules! words_of_one_field {
    ($what:ty) => {
        impl Ask<$what> {
            /// Returns what the field is called. Its name unless given.
            ///
            /// ```
            /// # use mcp_elicit_server::{Elicit, ElicitError};
            /// # async fn publish(elicit: Elicit) -> Result<(), ElicitError> {
            /// elicit.confirm("Publish the release?").title("Publish it now").await
            /// # }
            /// ```
            pub fn title(self, title: impl Into<String>) -> Self {
                self.change(|mut what| {
                    what.words.title = Some(title.into());
                    what
                })
            }

            /// Returns what the field is for.
            ///
            /// ```
            /// # use mcp_elicit_server::{Elicit, ElicitError};
            /// # async fn publish(elicit: Elicit) -> Result<(), ElicitError> {
            /// elicit.confirm("Publish the release?").description("Everybody can download it from then on").await
            /// # }
            /// ```
            pub fn description(self, description: impl Into<String>) -> Self {
                self.change(|mut what| {
                    what.words.description = Some(description.into());
                    what
                })
            }
        }
    };
}

words_of_one_field!(Confirm);
words_of_one_field!(Choose);
words_of_one_field!(ChooseMany);

impl Ask<Confirm> {
    /// Returns what is filled in when the question is shown.
    ///
    /// ```
    /// # use mcp_elicit_server::{Elicit, ElicitError};
    /// # async fn notify(elicit: Elicit) -> Result<(), ElicitError> {
    /// elicit.confirm("Tell the team?").default(true).await
    /// # }
    /// ```
    pub fn default(self, yes: bool) -> Self {
        self.change(|confirm| Confirm {
            default: Some(yes),
            ..confirm
        })
    }
}

impl Ask<Choose> {
    /// Returns what is chosen when the question is shown.
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
    /// Returns what is chosen when the question is shown.
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

    /// The fewest that may be chosen.
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

    /// The most that may be chosen.
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
