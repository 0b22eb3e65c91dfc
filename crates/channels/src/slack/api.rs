//! Requests to Slack's Web API.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

use crate::channel::{ChannelError, Reason};
use crate::http::{Http, HttpError, Networks, refused};
use crate::secret::SecretText;

/// The time limit for Slack.
const LIMIT: Duration = Duration::from_secs(10);

/// A client of the Web API.
pub(super) struct Api {
    http: Http,
    base: Url,
    token: SecretText,
}

impl Api {
    pub(super) fn new(base: Url, token: SecretText) -> Result<Self, HttpError> {
        let http = Http::new(Networks::Any, LIMIT)?;
        Ok(Self { http, base, token })
    }

    /// Calls a method with a JSON body.
    pub(super) async fn call(&self, method: &str, body: &Value) -> Result<Value, ChannelError> {
        let mut headers = self.headers()?;
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        headers.insert(CONTENT_TYPE, json);
        let url = self.url(method)?;
        let body = body.to_string().into_bytes();
        read(&self.http.post(&url, headers, body).await?)
    }

    /// Calls a method without JSON, with one argument.
    pub(super) async fn look_up(
        &self,
        method: &str,
        name: &str,
        value: &str,
    ) -> Result<Value, ChannelError> {
        let mut url = self.url(method)?;
        url.query_pairs_mut().append_pair(name, value);
        read(&self.http.get(&url, self.headers()?).await?)
    }

    fn url(&self, method: &str) -> Result<Url, ChannelError> {
        let url = self.base.join(method);
        url.map_err(|_| ChannelError::Permanent(Reason::Configuration))
    }

    fn headers(&self) -> Result<HeaderMap, ChannelError> {
        let bearer = format!("Bearer {}", self.token.reveal());
        let mut bearer = HeaderValue::from_str(&bearer)
            .map_err(|_| ChannelError::Permanent(Reason::Credentials))?;
        bearer.set_sensitive(true);
        Ok(HeaderMap::from_iter([(AUTHORIZATION, bearer)]))
    }
}

fn read(reply: &crate::http::Reply) -> Result<Value, ChannelError> {
    if !(200..=299).contains(&reply.status) {
        return Err(refused(reply));
    }
    let value: Value =
        serde_json::from_slice(&reply.body).map_err(|_| ChannelError::retry(Reason::Reply))?;
    if value["ok"] == true {
        return Ok(value);
    }
    Err(match value["error"].as_str() {
        Some(
            "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired"
            | "no_permission",
        ) => ChannelError::Permanent(Reason::Credentials),
        Some("missing_scope") => ChannelError::Permanent(Reason::MissingScope),
        Some("not_in_channel") => ChannelError::Permanent(Reason::NotInChannel),
        // The account may be created, or its address corrected.
        Some("users_not_found" | "user_not_found") => ChannelError::Permanent(Reason::Address),
        Some("channel_not_found" | "is_archived" | "message_not_found") => {
            ChannelError::AddressGone
        }
        Some("ratelimited" | "rate_limited") => ChannelError::Retry {
            after: reply.retry_after,
            why: Reason::TooMany,
        },
        Some("internal_error" | "fatal_error" | "service_unavailable" | "request_timeout") => {
            ChannelError::retry(Reason::Refused(reply.status))
        }
        Some("msg_too_long" | "view_too_large") => ChannelError::Permanent(Reason::TooLarge),
        _ => ChannelError::Permanent(Reason::Refused(reply.status)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Reply;

    #[test]
    fn an_error_of_slack_says_what_to_do_about_it() {
        for (error, expected) in [
            (
                "missing_scope",
                ChannelError::Permanent(Reason::MissingScope),
            ),
            (
                "not_in_channel",
                ChannelError::Permanent(Reason::NotInChannel),
            ),
            ("invalid_auth", ChannelError::Permanent(Reason::Credentials)),
            ("channel_not_found", ChannelError::AddressGone),
            ("users_not_found", ChannelError::Permanent(Reason::Address)),
            ("user_not_found", ChannelError::Permanent(Reason::Address)),
            ("fatal_error", ChannelError::retry(Reason::Refused(200))),
            (
                "never heard of",
                ChannelError::Permanent(Reason::Refused(200)),
            ),
        ] {
            let body = serde_json::json!({"ok": false, "error": error}).to_string();
            let reply = Reply {
                status: 200,
                body: body.into(),
                retry_after: None,
            };
            assert_eq!(read(&reply).unwrap_err(), expected, "{error}");
        }
    }
}
