//! Refusals: every error in a transcript is the one that core would send.

use std::time::Duration;

use mcp_elicit_core::fault::{Fault, LimitFault, PeerFault};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Lifecycle;
use mcp_elicit_core::wire::{ElicitRequest, Mode, Revision, WireError};
use serde_json::{Value, json};

use super::table::{Held, Table, same};

impl Table<'_> {
    /// Checks that a client that does not ask gives the reason, as the revision's error.
    pub(crate) fn refused(
        &mut self,
        request: Result<ElicitRequest, WireError>,
        error: &Value,
    ) -> Held {
        let mode = request.as_ref().map_or(Mode::Form, ElicitRequest::mode);
        let timed_out = self.last.as_ref().and_then(Lifecycle::fault);
        let fault: Fault = match request {
            Err(defect) => PeerFault::Wire(defect).into(),
            Ok(_) if !self.declared.has(mode) => PeerFault::CapabilityMissing {
                mode,
                declared: self.declared,
            }
            .into(),
            Ok(request) => match (timed_out, error["data"]["retryAfterSeconds"].as_u64()) {
                (Some(fault), _) => fault,
                (None, Some(seconds)) => LimitFault::RateLimited {
                    retry_after: Duration::from_secs(seconds),
                }
                .into(),
                (None, None) => illegal(&request)?.into(),
            },
        };
        self.is_error(&fault, error)
    }

    pub(crate) fn call_failed(&self, message: &Value) -> Held {
        let error = &message["error"];
        match error["code"].as_i64() {
            Some(-32021) => {
                self.legal("MissingRequiredClientCapabilityError", message)?;
                let mode = match error["data"]["requiredCapabilities"]["elicitation"].get("url") {
                    Some(_) => Mode::Url,
                    None => Mode::Form,
                };
                let fault = PeerFault::CapabilityMissing {
                    mode,
                    declared: self.declared,
                };
                self.is_error(&fault.clone().into(), error)?;
                same(
                    &error["data"]["requiredCapabilities"],
                    &object(&fault.into(), self.revision)["data"]["requiredCapabilities"],
                )
            }
            Some(-32022) => {
                let requested = error["data"]["requested"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                self.is_error(&PeerFault::UnsupportedRevision { requested }.into(), error)
            }
            Some(-32602) => self.is_error(&PeerFault::StateRefused.into(), error),
            Some(-32000) => {
                let fault = self
                    .last
                    .as_ref()
                    .and_then(Lifecycle::fault)
                    .ok_or("nothing failed")?;
                self.is_error(&fault, error)
            }
            _ => Err("no such error".into()),
        }
    }

    /// Checks the code of the fault and every part of its text that the transcript fixes.
    fn is_error(&self, fault: &Fault, error: &Value) -> Held {
        let expected = object(fault, self.revision);
        same(&expected["code"], &error["code"])?;
        for member in [
            "field",
            "supportedTypes",
            "timeoutSeconds",
            "retryAfterSeconds",
            "supported",
            "requested",
        ] {
            same(&error["data"][member], &expected["data"][member])?;
        }
        let said = error["message"].as_str().unwrap_or_default();
        if said == "why" {
            Ok(())
        } else {
            same(&json!(said), &expected["message"])
        }
    }
}

/// Returns the only remaining reason: the form is illegal.
fn illegal(request: &ElicitRequest) -> Result<PeerFault, String> {
    match request {
        ElicitRequest::Url { .. } => Err("there is no reason to refuse".into()),
        ElicitRequest::Form { schema, .. } => match Form::parse(schema.get()) {
            Ok(_) => Err("there is no reason to refuse".into()),
            Err(defects) => Ok(PeerFault::from(&defects)),
        },
    }
}

fn object(fault: &Fault, revision: Revision) -> Value {
    let error = fault.to_error(revision);
    serde_json::from_str(error.to_raw().get()).expect("an error is JSON")
}
