//! One question as the backends receive it, and the digest that binds an answer to it.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_elicit_core::answer::{CheckError, Outcome, judge};
use mcp_elicit_core::digest::of_parts;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::{Link, Mention, mentions_in};
use mcp_elicit_core::secrecy::{self, Suspicion};
use mcp_elicit_core::wire::{Action, Mode, Revision};
use rmcp::model::ElicitationSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::error::ElicitError;
use crate::multi_select_fallback::MultiSelectFallback;
use crate::rmcp_schema;

/// The first 16 bytes of a SHA-256 of the question as the person sees it, small enough to carry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct QuestionDigest([u8; 16]);

impl QuestionDigest {
    /// Returns the digest of `parts`, each with its length, so that no two lists of parts have equal input.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let whole = of_parts(parts);
        let mut short = [0; 16];
        short.copy_from_slice(&whole[..16]);
        Self(short)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for QuestionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for QuestionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuestionDigest({self})")
    }
}

impl Serialize for QuestionDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QuestionDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = URL_SAFE_NO_PAD
            .decode(text.as_bytes())
            .map_err(de::Error::custom)?;
        bytes
            .try_into()
            .map(Self)
            .map_err(|_| de::Error::custom("a digest has 16 bytes"))
    }
}

/// A form ready to be asked repeatedly: its schemas per revision are computed once.
#[derive(Debug)]
pub(crate) struct PreparedForm {
    form: Form,
    digest: QuestionDigest,
    /// `true` if it is asked repeatedly: its schemas are then kept too.
    lasting: bool,
    schemas: [OnceLock<Result<Value, String>>; Revision::ALL.len()],
    multi_select_fallback: OnceLock<Result<Option<MultiSelectFallback>, String>>,
    typed: OnceLock<Result<ElicitationSchema, String>>,
    /// The last message that this form was asked with, and the findings in both together.
    inspected: Mutex<Option<(String, Arc<Inspected>)>>,
}

impl PreparedForm {
    pub(crate) fn new(form: Form) -> Result<Self, ElicitError> {
        let newest = form
            .emit(Revision::LATEST)
            .map_err(|cannot_emit| ElicitError::Author(cannot_emit.to_string()))?;
        let digest = QuestionDigest::of(&[newest.to_string().as_bytes()]);
        Ok(Self {
            form,
            digest,
            lasting: false,
            schemas: Default::default(),
            multi_select_fallback: OnceLock::new(),
            typed: OnceLock::new(),
            inspected: Mutex::default(),
        })
    }

    /// Returns the form of a Rust type, built once per type and process.
    pub(crate) fn from_type<T: schemars::JsonSchema + 'static>() -> Result<Arc<Self>, ElicitError> {
        type Known = RwLock<HashMap<TypeId, Result<Arc<PreparedForm>, ElicitError>>>;
        static KNOWN: LazyLock<Known> = LazyLock::new(Known::default);
        let id = TypeId::of::<T>();
        if let Some(known) = KNOWN
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
        {
            return known.clone();
        }
        let built = Form::from_type::<T>()
            .map_err(|defects| {
                ElicitError::Author(format!("{}: {defects}", std::any::type_name::<T>()))
            })
            .and_then(Self::new)
            .map(|prepared| {
                Arc::new(Self {
                    lasting: true,
                    ..prepared
                })
            });
        KNOWN
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, built.clone());
        built
    }

    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// Returns the findings in the texts of this form and `message`. They are kept for the next ask with the same
    /// message.
    pub(crate) fn inspected(&self, message: &str) -> Arc<Inspected> {
        let mut last = self
            .inspected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, inspected)) if known == message => Arc::clone(inspected),
            _ => {
                let inspected = Arc::new(Inspected {
                    suspicions: secrecy::inspect(&self.form, message),
                    links: mentions_in(&self.form, message),
                });
                *last = Some((message.to_owned(), Arc::clone(&inspected)));
                inspected
            }
        }
    }

    /// Returns the schema as `revision` spells it.
    pub(crate) fn schema(&self, revision: Revision) -> Result<Value, ElicitError> {
        if !self.lasting {
            return self.emit(revision).map_err(ElicitError::Author);
        }
        let index = Revision::ALL
            .iter()
            .position(|known| *known == revision)
            .unwrap_or_default();
        self.schemas[index]
            .get_or_init(|| self.emit(revision))
            .clone()
            .map_err(ElicitError::Author)
    }

    fn emit(&self, revision: Revision) -> Result<Value, String> {
        let multi_select_fallback = self.multi_select_fallback(revision).map_err(Clone::clone)?;
        let form = multi_select_fallback.map_or(&self.form, MultiSelectFallback::form);
        form.emit(revision)
            .map_err(|cannot_emit| cannot_emit.to_string())
    }

    /// Returns the outcome of an action on this form in `revision`.
    fn outcome(
        &self,
        action: Action,
        content: &str,
        revision: Revision,
    ) -> Result<Outcome, CheckError> {
        match self.multi_select_fallback(revision) {
            Ok(Some(multi_select_fallback)) => {
                multi_select_fallback.outcome(&self.form, action, content)
            }
            // A form that cannot be converted was not sent either.
            Ok(None) | Err(_) => judge(Some(&self.form), action, content),
        }
    }

    /// Returns the form with its lists replaced by checkboxes, if it has any and `revision` has no lists.
    fn multi_select_fallback(
        &self,
        revision: Revision,
    ) -> Result<Option<&MultiSelectFallback>, &String> {
        if revision.has_several_choices() {
            return Ok(None);
        }
        let multi_select_fallback = self
            .multi_select_fallback
            .get_or_init(|| MultiSelectFallback::from_form(&self.form));
        multi_select_fallback.as_ref().map(Option::as_ref)
    }

    /// Returns the schema in rmcp's type.
    pub(crate) fn typed(&self, revision: Revision) -> Result<ElicitationSchema, ElicitError> {
        self.typed
            .get_or_init(|| {
                let schema = self
                    .schema(revision)
                    .map_err(|cannot_emit| cannot_emit.to_string())?;
                rmcp_schema::typed(schema)
            })
            .clone()
            .map_err(ElicitError::Author)
    }
}

/// Findings about the texts of a form.
#[derive(Debug)]
pub(crate) struct Inspected {
    pub(crate) suspicions: Vec<Suspicion>,
    pub(crate) links: Vec<Mention>,
}

/// The body of the question.
#[derive(Debug, Clone)]
pub(crate) enum OutgoingBody {
    Form(Arc<PreparedForm>),
    Url {
        url: String,
        /// The author's `elicitationId` for 2025-11-25; the other revisions have none.
        id: Option<String>,
    },
}

/// One question to a person.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingQuestion {
    pub(crate) message: String,
    pub(crate) subject: OutgoingBody,
    /// The author's name for it in `inputRequests`, if given.
    pub(crate) key: Option<String>,
    pub(crate) timeout: Duration,
}

impl OutgoingQuestion {
    pub(crate) fn mode(&self) -> Mode {
        match self.subject {
            OutgoingBody::Form(_) => Mode::Form,
            OutgoingBody::Url { .. } => Mode::Url,
        }
    }

    /// Returns the outcome of an action on it in `revision`.
    ///
    /// # Errors
    /// If the content of an accepted form does not answer the form.
    pub(crate) fn outcome(
        &self,
        action: Action,
        content: &str,
        revision: Revision,
    ) -> Result<Outcome, CheckError> {
        match &self.subject {
            OutgoingBody::Form(form) => form.outcome(action, content, revision),
            OutgoingBody::Url { .. } => judge(None, action, content),
        }
    }

    /// Returns the digest of the question as the person sees it.
    pub(crate) fn digest(&self) -> QuestionDigest {
        match &self.subject {
            OutgoingBody::Form(form) => {
                QuestionDigest::of(&[b"form", self.message.as_bytes(), form.digest.bytes()])
            }
            OutgoingBody::Url { url, .. } => {
                QuestionDigest::of(&[b"url", self.message.as_bytes(), url.as_bytes()])
            }
        }
    }

    /// Returns the names of the fields; never their values.
    pub(crate) fn fields(&self) -> Vec<String> {
        match &self.subject {
            OutgoingBody::Form(form) => form
                .form()
                .fields()
                .iter()
                .map(|field| field.name().to_owned())
                .collect(),
            OutgoingBody::Url { .. } => Vec::new(),
        }
    }

    /// Returns the host of the URL to visit, for the audit.
    pub(crate) fn host(&self) -> Option<String> {
        match &self.subject {
            OutgoingBody::Form(_) => None,
            OutgoingBody::Url { url, .. } => {
                let link = Link::parse(url).ok()?;
                Some(link.host().ascii().to_owned())
            }
        }
    }
}
