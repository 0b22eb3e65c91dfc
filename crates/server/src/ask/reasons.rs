//! The reasons of an author's own check.

use std::fmt;

use mcp_elicit_core::fault::Finding;

/// The reasons why an author's own check refuses an answer, written for the person. See
/// [`Ask::check`](crate::Ask::check).
///
/// Made from a sentence, from a field and a sentence, or from several of them by [`and`](Self::and).
///
/// ```
/// use mcp_elicit_server::ask::Reasons;
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// #[derive(schemars::JsonSchema, serde::Deserialize)]
/// struct Stay {
///     from: u8,
///     to: u8,
///     guests: u8,
/// }
///
/// async fn stay(elicit: Elicit) -> Result<Stay, ElicitError> {
///     let check = |stay: &Stay| {
///         let mut reasons = Reasons::new();
///         if stay.from >= stay.to {
///             reasons = reasons.and("to", "must be after the day of arrival");
///         }
///         if stay.guests > 4 {
///             reasons = reasons.and("guests", "the house has four beds");
///         }
///         if reasons.is_empty() { Ok(()) } else { Err(reasons) }
///     };
///     elicit.form::<Stay>("When do you come?").check(check).await
/// }
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Reasons(Vec<RetryReason>);

#[derive(Clone, PartialEq, Eq)]
struct RetryReason {
    field: Option<String>,
    words: String,
}

impl Reasons {
    /// Creates an empty list of reasons.
    ///
    /// ```
    /// use mcp_elicit_server::ask::Reasons;
    ///
    /// assert!(Reasons::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reason that belongs to one field.
    ///
    /// ```
    /// use mcp_elicit_server::ask::Reasons;
    ///
    /// let reasons = Reasons::new().and("to", "must be after the day of arrival");
    /// assert!(!reasons.is_empty());
    /// ```
    #[must_use]
    pub fn and(mut self, field: impl Into<String>, words: impl Into<String>) -> Self {
        self.0.push(RetryReason {
            field: Some(field.into()),
            words: words.into(),
        });
        self
    }

    /// Returns `true` if there are no reasons.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns one line per reason, in the form in which violations of the form's rules are listed.
    pub(crate) fn listed(&self) -> String {
        if self.is_empty() {
            return "- the server does not take this answer".to_owned();
        }
        let lines: Vec<String> = self.0.iter().map(RetryReason::line).collect();
        lines.join("\n")
    }

    /// Returns the reasons as findings, for programs.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let finding = |reason: &RetryReason| {
            let location = reason.field.as_deref().unwrap_or_default();
            Finding::new(location, "check", reason.words.as_str())
        };
        self.0.iter().map(finding).collect()
    }
}

/// Returns listed reasons on one line, for an error's message.
pub(crate) fn on_one_line(listed: &str) -> String {
    let reasons = listed
        .lines()
        .map(|line| line.strip_prefix("- ").unwrap_or(line));
    reasons.collect::<Vec<_>>().join("; ")
}

impl RetryReason {
    fn line(&self) -> String {
        match &self.field {
            Some(field) => format!("- {field}: {}", self.words),
            None => format!("- {}", self.words),
        }
    }
}

impl fmt::Debug for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text may repeat a person's answer.
        let fields = self.0.iter().map(|reason| &reason.field);
        f.debug_list().entries(fields).finish()
    }
}

impl From<&str> for Reasons {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl From<String> for Reasons {
    fn from(words: String) -> Self {
        Self(vec![RetryReason { field: None, words }])
    }
}

impl<F: Into<String>, W: Into<String>> From<(F, W)> for Reasons {
    fn from((field, words): (F, W)) -> Self {
        Self::new().and(field, words)
    }
}
