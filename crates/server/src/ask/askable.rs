//! The things that can be asked for, forms and links, and the reading of an accepted response.

use std::marker::PhantomData;
use std::sync::Arc;

use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Ask, Reasons};
use crate::error::ElicitError;
use crate::question::{OutgoingBody, PreparedForm};

/// Something that can be asked for: a [`Form`], a [`Link`], or a request built by the methods of
/// [`Elicit`](crate::Elicit).
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

    /// Returns the body of the question.
    #[doc(hidden)]
    fn asking(&self) -> Result<AskBody, ElicitError>;

    /// Reads an accepted response.
    #[doc(hidden)]
    fn read(&self, accepted: AcceptedContent) -> ReadResult<Self::Answer>;
}

mod sealed {
    use super::{Form, Link, TypedForm, Visit};
    use crate::ask::choices::{Choose, ChooseAmong, ChooseMany};
    use crate::ask::single_field::Confirm;

    /// Seals [`Askable`](super::Askable), so that it can gain methods.
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

/// The body of a question. Only this crate creates one.
#[derive(Debug)]
pub struct AskBody(pub(crate) OutgoingBody);

/// An accepted response: checked answers, or nothing for a URL. Only this crate creates one.
#[derive(Debug)]
pub struct AcceptedContent {
    pub(crate) answers: Option<Answers>,
    /// `true` if it passed the author's own check in an earlier run.
    pub(crate) passed: bool,
}

/// The result of reading an accepted response.
#[derive(Debug)]
pub enum ReadResult<T> {
    /// An answer.
    Answer(T),
    /// A "no" to a confirmation.
    No,
    /// Unusable, for this reason: the person is asked again.
    Misfit(String),
    /// Refused by the author's own check: the person is asked again.
    Refused(Reasons),
    /// The author's type does not fit the form: the author has to change it.
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
        Ok(AskBody(OutgoingBody::Form(PreparedForm::from_type::<T>()?)))
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

/// Reads `answers` with the schema's defaults for omitted fields, which serde may not know.
fn with_defaults<T>(answers: &Answers) -> ReadResult<T>
where
    T: schemars::JsonSchema + DeserializeOwned + Send + 'static,
{
    let prepared = match PreparedForm::from_type::<T>() {
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
        // Only if the type needs one: a person may have omitted a field that is optional in the type.
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
        Ok(AskBody(OutgoingBody::Form(Arc::new(PreparedForm::new(
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
    /// Sets the `elicitationId` of 2025-11-25, which `notifications/elicitation/complete` repeats. By default it is
    /// unguessable.
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
