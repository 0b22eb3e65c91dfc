//! Questions that must not be asked, decided before anything is sent.

pub(crate) mod rate;

use mcp_elicit_core::link::Link;
use mcp_elicit_core::secrecy::Confidence;

use crate::error::ElicitError;
use crate::question::{OutgoingBody, OutgoingQuestion, PreparedForm};

/// Rejects questions that a server must not send, and warns of those that it should not.
pub(crate) fn may_ask(question: &OutgoingQuestion) -> Result<(), ElicitError> {
    match &question.subject {
        OutgoingBody::Form(form) => may_ask_in_form(form, &question.message),
        OutgoingBody::Url { url, .. } => may_send(url),
    }
}

/// Checks a form: it must not ask for credentials and should not hold links. A suspected credential is a warning too.
fn may_ask_in_form(form: &PreparedForm, message: &str) -> Result<(), ElicitError> {
    let inspected = form.inspected(message);
    for suspicion in &inspected.suspicions {
        if suspicion.level() == Confidence::Certain {
            return Err(ElicitError::Author(format!(
                "{suspicion} A form must not ask for that: `visit` a page of yours instead."
            )));
        }
        tracing::warn!(target: "mcp_elicit", %suspicion, "a form that looks as if it asked for a secret");
    }
    for link in &inspected.links {
        let (field, source) = (link.field.as_deref(), link.source.as_str());
        tracing::warn!(target: "mcp_elicit", field, source, "a form should not hold links: `visit` is for them");
    }
    Ok(())
}

/// Checks a URL by "Safe URL Handling": no credentials and no personal data, https outside development.
fn may_send(url: &str) -> Result<(), ElicitError> {
    let link = Link::parse(url).map_err(|fault| ElicitError::Author(fault.to_string()))?;
    if let Some(caution) = link.refused_for_asking().next() {
        return Err(ElicitError::Author(caution.to_string()));
    }
    for caution in link.unwise_for_asking() {
        tracing::warn!(target: "mcp_elicit", host = link.host().ascii(), %caution, "a link that a server should not send");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use mcp_elicit_core::form::Form;

    use super::*;

    fn form(schema: &str, message: &str) -> OutgoingQuestion {
        let form = Form::parse(schema).unwrap();
        let subject = OutgoingBody::Form(Arc::new(PreparedForm::new(form).unwrap()));
        OutgoingQuestion {
            message: message.into(),
            subject,
            key: None,
            timeout: Duration::ZERO,
        }
    }

    fn url(url: &str) -> OutgoingQuestion {
        let subject = OutgoingBody::Url {
            url: url.into(),
            id: None,
        };
        OutgoingQuestion {
            message: "Visit".into(),
            subject,
            key: None,
            timeout: Duration::ZERO,
        }
    }

    #[test]
    fn credentials_are_not_asked_for_in_forms() {
        let asks = form(
            r#"{"type":"object","properties":{"password":{"type":"string"}}}"#,
            "Sign in",
        );
        let Err(ElicitError::Author(why)) = may_ask(&asks) else {
            panic!("it must be refused")
        };
        assert!(why.contains("password") && why.contains("visit"), "{why}");
        let fine = form(
            r#"{"type":"object","properties":{"name":{"type":"string"}}}"#,
            "Who are you?",
        );
        assert!(may_ask(&fine).is_ok());
        // The message decides too, so the last result must not be reused for another message.
        let harmless = form(
            r#"{"type":"object","properties":{"value":{"type":"string"}}}"#,
            "Which colour?",
        );
        assert!(may_ask(&harmless).is_ok());
        let again = OutgoingQuestion {
            message: "Enter your password".into(),
            ..harmless
        };
        assert!(may_ask(&again).is_err());
    }

    #[test]
    fn credentials_and_odd_schemes_are_not_sent_in_urls() {
        assert!(may_ask(&url("https://example.com/connect?state=abc")).is_ok());
        for bad in [
            "javascript:alert(1)",
            "https://ada:secret@example.com/",
            "file:///etc/passwd",
            "nonsense",
        ] {
            assert!(
                matches!(may_ask(&url(bad)), Err(ElicitError::Author(_))),
                "{bad}"
            );
        }
    }
}
