//! Questions with one field, and the texts of that field: confirmations.

use std::sync::Arc;

use mcp_elicit_core::form::Form;
use serde_json::{Value, json};

use super::{AcceptedContent, Ask, AskBody, Askable, ReadResult};
use crate::error::ElicitError;
use crate::question::{OutgoingBody, PreparedForm};

/// The texts of a single field.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldWords {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
}

impl FieldWords {
    /// Returns a form with the one field `name`.
    pub(super) fn form(
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
        Ok(AskBody(OutgoingBody::Form(Arc::new(PreparedForm::new(
            form,
        )?))))
    }
}

/// A confirmation.
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
    words: FieldWords,
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

/// Methods that set the texts of the single field, for each ask that has one.
macro_rules! words_of_one_field {
    ($what:ty) => {
        impl Ask<$what> {
            /// Sets the field's title. Defaults to the field's name.
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

            /// Sets the field's description.
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

pub(super) use words_of_one_field;

words_of_one_field!(Confirm);

impl Ask<Confirm> {
    /// Sets the answer that is filled in when the question is shown.
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
