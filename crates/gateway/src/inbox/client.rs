//! The inbox's API from the other side, for commands in another terminal.

use futures::{Stream, StreamExt as _, stream};
use reqwest::{Client, Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::serve::sse::EventReader;

/// Questions on one page.
const PAGE: usize = 500;

/// One page of a list.
#[derive(Debug, Deserialize)]
pub struct Listed {
    /// The questions.
    pub questions: Vec<Value>,
    /// What the next page starts behind; `None` when there is none.
    pub next: Option<String>,
    /// How many questions wait in all.
    pub waiting: usize,
}

/// A running inbox, reached over its API.
pub struct InboxClient {
    client: Client,
    base: Url,
    token: String,
}

/// Why the inbox did not do it.
#[derive(Debug, thiserror::Error)]
pub enum InboxFault {
    /// Nobody answers there.
    #[error("no inbox answers at {at}")]
    Unreachable {
        /// The address.
        at: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The address is none.
    #[error("{at} is no address of an inbox")]
    Address {
        /// What was given.
        at: String,
    },
    /// It refused, in its own words.
    #[error("{message}")]
    Refused {
        /// The stable code.
        code: String,
        /// In words.
        message: String,
        /// What is wrong with each field, never a value.
        violations: Vec<String>,
    },
    /// What came is not what an inbox says.
    #[error("what answers there is no inbox")]
    NotAnInbox,
}

impl InboxClient {
    /// The inbox at this address.
    pub fn new(at: &str, token: String) -> Result<Self, InboxFault> {
        let base = Url::parse(at)
            .and_then(|url| url.join("/api/"))
            .map_err(|_| InboxFault::Address { at: at.to_owned() })?;
        if base.scheme() != "http" && base.scheme() != "https" {
            return Err(InboxFault::Address { at: at.to_owned() });
        }
        mcp_elicit_client::tls::ready();
        let mut client = Client::builder().redirect(reqwest::redirect::Policy::none());
        if base.scheme() == "http" {
            // Nothing is followed to https, so the system's certificates need not be read.
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(|source| InboxFault::Unreachable {
            at: at.to_owned(),
            source,
        })?;
        Ok(Self {
            client,
            base,
            token,
        })
    }

    /// One page of the questions that wait, or of those that ended; behind this question, when one is named.
    pub async fn page(
        &self,
        ended: bool,
        after: Option<&str>,
        most: usize,
    ) -> Result<Listed, InboxFault> {
        let after = after.map_or_else(String::new, |id| format!("&after={}", plain(id)));
        let path = format!("questions?ended={ended}&most={most}{after}");
        let said = self.call(Method::GET, &path, None).await?;
        serde_json::from_value(said).map_err(|_| InboxFault::NotAnInbox)
    }

    /// All of them behind this question, page by page; at most so many.
    pub async fn list(
        &self,
        ended: bool,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Value>, InboxFault> {
        let mut all = Vec::new();
        let mut after = after.map(str::to_owned);
        while all.len() < most {
            let left = (most - all.len()).min(PAGE);
            let page = self.page(ended, after.as_deref(), left).await?;
            all.extend(page.questions);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(all)
    }

    /// One question, whole.
    pub async fn show(&self, id: &str) -> Result<Value, InboxFault> {
        self.call(Method::GET, &format!("questions/{}", plain(id)), None)
            .await
    }

    /// Hands in a person's act. To `insist` is to accept although the form asks for a credential.
    pub async fn answer(
        &self,
        id: &str,
        action: &str,
        content: Option<Value>,
        insist: bool,
    ) -> Result<Value, InboxFault> {
        let mut body = json!({"action": action, "by": "the command line", "insist": insist});
        if let Some(content) = content {
            body["content"] = content;
        }
        self.call(
            Method::POST,
            &format!("questions/{}/answer", plain(id)),
            Some(body),
        )
        .await
    }

    /// Something for every change, and once at the start.
    pub async fn changes(&self) -> Result<impl Stream<Item = ()> + use<>, InboxFault> {
        let response = self
            .request(Method::GET, "events")?
            .send()
            .await
            .map_err(|source| self.unreachable(source))?;
        if !response.status().is_success() {
            return Err(InboxFault::NotAnInbox);
        }
        let chunks = response.bytes_stream();
        let events = stream::unfold(
            (chunks, EventReader::default()),
            |(mut chunks, mut reader)| async move {
                loop {
                    let chunk = chunks.next().await?.ok()?;
                    let mut any = false;
                    reader.read(&chunk, |_| any = true);
                    if any {
                        return Some(((), (chunks, reader)));
                    }
                }
            },
        );
        Ok(events)
    }

    fn request(&self, method: Method, path: &str) -> Result<reqwest::RequestBuilder, InboxFault> {
        let url = self.base.join(path).map_err(|_| InboxFault::Address {
            at: path.to_owned(),
        })?;
        Ok(self.client.request(method, url).bearer_auth(&self.token))
    }

    fn unreachable(&self, source: reqwest::Error) -> InboxFault {
        InboxFault::Unreachable {
            at: self.base.origin().ascii_serialization(),
            source: source.without_url(),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, InboxFault> {
        let mut request = self.request(method, path)?;
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request
            .send()
            .await
            .map_err(|source| self.unreachable(source))?;
        let status = response.status();
        let text = response
            .text()
            .await
            .map_err(|source| self.unreachable(source))?;
        let said: Value = serde_json::from_str(&text).map_err(|_| InboxFault::NotAnInbox)?;
        if status == StatusCode::OK {
            Ok(said)
        } else {
            Err(refused(&said))
        }
    }
}

fn refused(said: &Value) -> InboxFault {
    let word = |pointer: &str| {
        said.pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let violations = said
        .get("violations")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    match (word("/error/code"), word("/error/message")) {
        (Some(code), Some(message)) => InboxFault::Refused {
            code,
            message,
            violations: violations
                .iter()
                .filter_map(|one| {
                    Some(format!(
                        "{}: {}",
                        one["field"].as_str()?,
                        one["message"].as_str()?
                    ))
                })
                .collect(),
        },
        _ => InboxFault::NotAnInbox,
    }
}

/// Ids are letters and digits; anything else names no question.
fn plain(id: &str) -> String {
    id.chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
        .collect()
}
