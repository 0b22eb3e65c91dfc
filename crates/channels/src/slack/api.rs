//! Requests to Slack's Web API.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

use crate::channel::{ChannelError, NotSentReason};
use crate::http::{ChannelHttp, ChannelHttpError, Networks, refused};
use crate::secret::SecretText;

/// The time limit for Slack.
const LIMIT: Duration = Duration::from_secs(10);

/// A client of the Web API.
pub(super) struct Api {
    http: ChannelHttp,
    base: Url,
    token: SecretText,
}

impl Api {
    pub(super) fn new(base: Url, token: SecretText) -> Result<Self, ChannelHttpError> {
        let http = ChannelHttp::new(Networks::Any, LIMIT)?;
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
        url.map_err(|_| ChannelError::Permanent(NotSentReason::Configuration))
    }

    fn headers(&self) -> Result<HeaderMap, ChannelError> {
        let bearer = format!("Bearer {}", self.token.reveal());
        let mut bearer = HeaderValue::from_str(&bearer)
            .map_err(|_| ChannelError::Permanent(NotSentReason::Credentials))?;
        bearer.set_sensitive(true);
        Ok(HeaderMap::from_iter([(AUTHORIZATION, bearer)]))
    }
}

fn read(reply: &crate::http::HttpReply) -> Result<Value, ChannelError> {
    if !(200..=299).contains(&reply.status) {
        return Err(refused(reply));
    }
    let value: Value = serde_json::from_slice(&reply.body)
        .map_err(|_| ChannelError::retry(NotSentReason::Reply))?;
    if value["ok"] == true {
        return Ok(value);
    }
    Err(match value["error"].as_str() {
        Some(
            "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired"
            | "no_permission",
        ) => ChannelError::Permanent(NotSentReason::Credentials),
        Some("missing_scope") => ChannelError::Permanent(NotSentReason::MissingScope),
        Some("not_in_channel") => ChannelError::Permanent(NotSentReason::NotInChannel),
        // The account may be created, or its address corrected.
        Some("users_not_found" | "user_not_found") => {
            ChannelError::Permanent(NotSentReason::Address)
        }
        Some("channel_not_found" | "is_archived" | "message_not_found") => {
            ChannelError::AddressGone
        }
        Some("ratelimited" | "rate_limited") => ChannelError::Retry {
            after: reply.retry_after,
            why: NotSentReason::TooMany,
        },
        Some("internal_error" | "fatal_error" | "service_unavailable" | "request_timeout") => {
            ChannelError::retry(NotSentReason::Refused(reply.status))
        }
        Some("msg_too_long" | "view_too_large") => ChannelError::Permanent(NotSentReason::TooLarge),
        _ => ChannelError::Permanent(NotSentReason::Refused(reply.status)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpReply;

    #[test]
    fn an_error_of_slack_says_what_to_do_about_it() {
        for (error, expected) in [
            (
                "missing_scope",
                ChannelError::Permanent(NotSentReason::MissingScope),
            ),
            (
                "not_in_channel",
                ChannelError::Permanent(NotSentReason::NotInChannel),
            ),
            (
                "invalid_auth",
                ChannelError::Permanent(NotSentReason::Credentials),
            ),
            ("channel_not_found", ChannelError::AddressGone),
            (
                "users_not_found",
                ChannelError::Permanent(NotSentReason::Address),
            ),
            (
                "user_not_found",
                ChannelError::Permanent(NotSentReason::Address),
            ),
            (
                "fatal_error",
                ChannelError::retry(NotSentReason::Refused(200)),
            ),
            (
                "never heard of",
                ChannelError::Permanent(NotSentReason::Refused(200)),
            ),
        ] {
            let body = serde_json::json!({"ok": false, "error": error}).to_string();
            let reply = HttpReply {
                status: 200,
                body: body.into(),
                retry_after: None,
            };
            assert_eq!(read(&reply).unwrap_err(), expected, "{error}");
        }
    }
}
