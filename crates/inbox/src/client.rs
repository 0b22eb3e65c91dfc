//! A client of the inbox's API, for commands.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, stream};
use reqwest::{Client, Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tower::ServiceExt as _;

use super::api::model::{
    AnswerRequest, AnswerResponse, ApiProblem, ListRequest, ListedQuestion, ListedQuestions,
    WholeQuestion,
};
use super::direct_record;
use super::state_folder::StateFolder;
use mcp_elicit_core::wire::sse::EventReader;
use mcp_elicit_core::wire::{Action, CallKind, Mode};

/// The number of questions on one page.
const PAGE: usize = 500;
/// The maximum number of searches for the inbox of a state folder after its gateway has ended.
const MAX_SEARCHES: usize = 20;
/// The time between two searches.
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// An inbox, reached over its API.
pub struct InboxClient {
    over: Mutex<Arc<Transport>>,
    /// The state folder in which the inbox is found again when its gateway has ended.
    found_in: Option<StateFolder>,
}

/// The transport of the API.
enum Transport {
    /// Over HTTP: at an address with the token, or at the socket of a state folder.
    Http {
        client: Client,
        base: Url,
        token: Option<String>,
        #[cfg(unix)]
        _socket: Option<super::socket::SocketPath>,
    },
    /// In this process, over the record itself.
    Record(Router),
}

/// The reason why a request to the inbox failed.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// There is no response.
    #[error("no inbox answers at {at}")]
    Unreachable {
        /// The address.
        at: String,
        /// The error.
        source: reqwest::Error,
    },
    /// The address is invalid.
    #[error("{at} is not an address of an inbox")]
    Address {
        /// The address as given.
        at: String,
    },
    /// The token would be sent unencrypted to another machine.
    #[error("{at} is on another machine and not encrypted: an eavesdropper could read the token")]
    NotEncrypted {
        /// The address.
        at: String,
    },
    /// The address leads elsewhere, where the token is not sent.
    #[error("{at} leads to another address, which is not followed with the token")]
    Redirected {
        /// The address.
        at: String,
    },
    /// No gateway serves the inbox of this state folder, and its record is not in it.
    #[error("no gateway runs on the state folder {folder}, and it has no record")]
    NothingThere {
        /// The state folder.
        folder: String,
    },
    /// The record of the state folder cannot be opened.
    #[error("the record in {folder} cannot be read")]
    Record {
        /// The state folder.
        folder: String,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The inbox refused, with its own message.
    #[error("{message}")]
    Refused {
        /// The stable code.
        code: String,
        /// The message.
        message: String,
        /// The violations of each field, without values.
        violations: Vec<String>,
    },
    /// The response is not an inbox's.
    #[error("the address does not serve an inbox")]
    NotAnInbox,
}

impl InboxClient {
    /// Creates a client of the inbox at this address, for a program with its token. It uses no proxy, whatever the
    /// environment says, and follows no redirect; without encryption the token stays on this machine.
    pub fn new(at: &str, token: String) -> Result<Self, InboxError> {
        let base = Url::parse(at)
            .and_then(|url| url.join("/api/"))
            .map_err(|_| InboxError::Address { at: at.to_owned() })?;
        if base.scheme() != "http" && base.scheme() != "https" {
            return Err(InboxError::Address { at: at.to_owned() });
        }
        if base.scheme() == "http" && !is_this_machine(&base) {
            let at = base.origin().ascii_serialization();
            return Err(InboxError::NotEncrypted { at });
        }
        mcp_elicit_client::tls::ready();
        let mut client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none());
        if base.scheme() == "http" {
            // Redirects are not followed to https, so the system's certificates need not be read.
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(|source| InboxError::Unreachable {
            at: at.to_owned(),
            source,
        })?;
        Ok(Self::over(Transport::Http {
            client,
            base,
            token: Some(token),
            #[cfg(unix)]
            _socket: None,
        }))
    }

    /// Returns the inbox that a gateway currently serves from this state folder; `None` if there is none.
    pub async fn running(folder: &StateFolder) -> Result<Option<Self>, InboxError> {
        let Some(at) = folder.served_inbox().await else {
            return Ok(None);
        };
        Self::served(folder, &at).map(Some)
    }

    #[cfg(unix)]
    fn served(folder: &StateFolder, at: &str) -> Result<Self, InboxError> {
        let broken = |_| InboxError::Address { at: at.to_owned() };
        let socket = super::socket::SocketPath::of(&folder.socket()).map_err(broken)?;
        mcp_elicit_client::tls::ready();
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_only([])
            .unix_socket(socket.as_path())
            .build()
            .map_err(|source| InboxError::Unreachable {
                at: at.to_owned(),
                source,
            })?;
        // The host of an address over a socket is only a name.
        let base = Url::parse("http://inbox/api/").map_err(|_| InboxError::NotAnInbox)?;
        Ok(Self::over(Transport::Http {
            client,
            base,
            token: None,
            _socket: Some(socket),
        }))
    }

    #[cfg(not(unix))]
    fn served(folder: &StateFolder, at: &str) -> Result<Self, InboxError> {
        let unreadable = |_| InboxError::NotAnInbox;
        Self::new(at, folder.known_token().map_err(unreadable)?)
    }

    /// Returns the inbox of this state folder: the one that a gateway serves, else its record, opened by this process.
    /// When the gateway ends, requests go to the next one or to the record.
    pub async fn find(folder: &StateFolder) -> Result<Self, InboxError> {
        let found = Self::found(folder).await?;
        Ok(Self {
            found_in: Some(folder.clone()),
            ..found
        })
    }

    async fn found(folder: &StateFolder) -> Result<Self, InboxError> {
        if let Some(running) = Self::running(folder).await? {
            return Ok(running);
        }
        let named = || folder.path().display().to_string();
        let noted = folder
            .record_address()
            .map_err(|error| InboxError::Record {
                folder: named(),
                source: error.into(),
            })?;
        // Without the database that was noted, a record in the folder is an earlier one.
        let is_elsewhere = noted.is_some() && folder.database().is_none();
        if is_elsewhere || !folder.has_record() {
            return Err(InboxError::NothingThere { folder: named() });
        }
        match direct_record::api(folder).await {
            Ok(api) => Ok(Self::over(Transport::Record(api))),
            Err(source) => Err(InboxError::Record {
                folder: named(),
                source,
            }),
        }
    }

    /// Returns `true` if a gateway serves this inbox, so that changes are reported as they happen.
    pub fn is_running(&self) -> bool {
        matches!(*self.transport(), Transport::Http { .. })
    }

    fn over(transport: Transport) -> Self {
        Self {
            over: Mutex::new(Arc::new(transport)),
            found_in: None,
        }
    }

    fn transport(&self) -> Arc<Transport> {
        self.over
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns one page of the waiting or ended questions; after this question, if one is named.
    pub async fn page(
        &self,
        ended: bool,
        after: Option<&str>,
        most: usize,
    ) -> Result<ListedQuestions, InboxError> {
        let request = ListRequest {
            ended,
            most: Some(most),
            after: after.map(str::to_owned),
            ..ListRequest::default()
        };
        self.page_of(&request).await
    }

    /// Returns one page of the questions that the request selects.
    ///
    /// # Errors
    /// If the inbox refuses it or cannot be reached.
    pub async fn page_of(&self, request: &ListRequest) -> Result<ListedQuestions, InboxError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("ended", if request.ended { "true" } else { "false" });
        let most = request.most.map(|most| most.to_string());
        let after = request.after.as_deref().map(plain);
        let pairs = [
            ("most", most.as_deref()),
            ("after", after.as_deref()),
            ("find", request.find.as_deref()),
            ("server", request.server.as_deref()),
            ("kind", request.kind.map(CallKind::word)),
            ("mode", request.mode.map(Mode::as_str)),
            ("target", request.target.as_deref()),
            ("principal", request.principal.as_deref()),
        ];
        for (name, value) in pairs {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        let path = format!("questions?{}", query.finish());
        self.call(Method::GET, &path, None).await
    }

    /// Returns the questions after this one, page by page, at most `most`.
    pub async fn list(
        &self,
        ended: bool,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<ListedQuestion>, InboxError> {
        let request = ListRequest {
            ended,
            after: after.map(str::to_owned),
            ..ListRequest::default()
        };
        self.list_of(request, most).await
    }

    /// Returns the questions that the request selects, page by page, at most `most`.
    ///
    /// # Errors
    /// If the inbox refuses it or cannot be reached.
    pub async fn list_of(
        &self,
        mut request: ListRequest,
        most: usize,
    ) -> Result<Vec<ListedQuestion>, InboxError> {
        let mut all = Vec::new();
        while all.len() < most {
            request.most = Some((most - all.len()).min(PAGE));
            let page = self.page_of(&request).await?;
            all.extend(page.questions);
            request.after = page.next;
            if request.after.is_none() {
                break;
            }
        }
        Ok(all)
    }

    /// Returns one question in full.
    pub async fn show(&self, id: &str) -> Result<WholeQuestion, InboxError> {
        self.call(Method::GET, &format!("questions/{}", plain(id)), None)
            .await
    }

    /// Submits a person's action. `allow_credentials` accepts even if the form asks for a credential.
    pub async fn answer(
        &self,
        id: &str,
        action: Action,
        content: Option<Map<String, Value>>,
        allow_credentials: bool,
    ) -> Result<AnswerResponse, InboxError> {
        let answer = AnswerRequest {
            action,
            content,
            reason: None,
            allow_credentials,
        };
        self.send_answer(id, &answer).await
    }

    /// Declines a question, with a reason for the server if there is one.
    pub async fn decline(
        &self,
        id: &str,
        reason: Option<&str>,
    ) -> Result<AnswerResponse, InboxError> {
        let answer = AnswerRequest {
            action: Action::Decline,
            content: None,
            reason: reason.map(str::to_owned),
            allow_credentials: false,
        };
        self.send_answer(id, &answer).await
    }

    async fn send_answer(
        &self,
        id: &str,
        answer: &AnswerRequest,
    ) -> Result<AnswerResponse, InboxError> {
        let path = format!("questions/{}/answer", plain(id));
        let body = serde_json::to_string(answer).map_err(|_| InboxError::NotAnInbox)?;
        self.call(Method::POST, &path, Some(body)).await
    }

    /// Returns an item for every change, and one at the start.
    pub async fn changes(&self) -> Result<impl Stream<Item = ()> + use<>, InboxError> {
        let (status, chunks) = self.ask(Method::GET, "events", None).await?;
        if !status.is_success() {
            return Err(InboxError::NotAnInbox);
        }
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

    /// Sends a request; returns the status, and the body as a stream.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<
        (
            StatusCode,
            BoxStream<'static, Result<bytes::Bytes, InboxError>>,
        ),
        InboxError,
    > {
        match &*self.transport() {
            Transport::Http {
                client,
                base,
                token,
                ..
            } => {
                let unreachable = |at: &Url, source: reqwest::Error| InboxError::Unreachable {
                    at: at.origin().ascii_serialization(),
                    source: source.without_url(),
                };
                let url = base.join(path).map_err(|_| InboxError::Address {
                    at: path.to_owned(),
                })?;
                let mut request = client.request(method, url);
                if let Some(token) = token {
                    request = request.bearer_auth(token);
                }
                if let Some(body) = body {
                    request = request
                        .header("content-type", "application/json")
                        .body(body);
                }
                let response = request
                    .send()
                    .await
                    .map_err(|source| unreachable(base, source))?;
                let (status, at) = (response.status(), base.clone());
                if status.is_redirection() {
                    let at = at.origin().ascii_serialization();
                    return Err(InboxError::Redirected { at });
                }
                let chunks = response
                    .bytes_stream()
                    .map(move |chunk| chunk.map_err(|source| unreachable(&at, source)));
                Ok((status, chunks.boxed()))
            }
            Transport::Record(api) => {
                let request = http::Request::builder()
                    .method(method)
                    .uri(format!("/{path}"))
                    .header("content-type", "application/json")
                    .body(body.map_or_else(Body::empty, Body::from))
                    .map_err(|_| InboxError::NotAnInbox)?;
                let Ok(response) = api.clone().oneshot(request).await;
                let status = response.status();
                let chunks = response.into_body().into_data_stream();
                let chunks = chunks.map(|chunk| chunk.map_err(|_| InboxError::NotAnInbox));
                Ok((status, chunks.boxed()))
            }
        }
    }

    /// Sends a request and returns the response. If a gateway ends before it responds, the request goes to the inbox
    /// that the state folder has then; an answer that the gateway had taken is refused there as too late, and so never
    /// given twice.
    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<T, InboxError> {
        let mut said = self.call_once(method.clone(), path, body.clone()).await;
        let Some(folder) = &self.found_in else {
            return said;
        };
        for _ in 0..MAX_SEARCHES {
            if !matches!(said, Err(InboxError::Unreachable { .. })) {
                break;
            }
            tokio::time::sleep(SEARCH_INTERVAL).await;
            // Boxed, because a search may send a request itself.
            let found = Box::pin(Self::found(folder)).await?.transport();
            *self.over.lock().unwrap_or_else(PoisonError::into_inner) = found;
            said = self.call_once(method.clone(), path, body.clone()).await;
        }
        said
    }

    async fn call_once<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<T, InboxError> {
        let (status, mut chunks) = self.ask(method, path, body).await?;
        let mut text = Vec::new();
        while let Some(chunk) = chunks.next().await {
            text.extend_from_slice(&chunk?);
        }
        if status == StatusCode::OK {
            serde_json::from_slice(&text).map_err(|_| InboxError::NotAnInbox)
        } else {
            let problem = serde_json::from_slice(&text).map_err(|_| InboxError::NotAnInbox)?;
            Err(refused(problem))
        }
    }
}

/// Returns `true` if the address can be of this machine only.
fn is_this_machine(at: &Url) -> bool {
    let host = at.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn refused(problem: ApiProblem) -> InboxError {
    let violations = problem.violations.unwrap_or_default();
    InboxError::Refused {
        code: problem.error.code,
        message: problem.error.message,
        violations: violations
            .iter()
            .map(|one| format!("{}: {}", one.field, one.message))
            .collect(),
    }
}

/// Returns an id, which has only letters and digits; anything else matches no question.
fn plain(id: &str) -> String {
    id.chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
        .collect()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn client(at: &str) -> Result<InboxClient, InboxError> {
        InboxClient::new(at, "secret-token".to_owned())
    }

    #[test]
    fn the_token_leaves_this_machine_encrypted_only() {
        for at in [
            "http://example.com",
            "http://192.0.2.1:7878",
            "http://[2001:db8::1]/",
            "http://localhost.example.com",
        ] {
            let refused = client(at).err();
            assert!(
                matches!(refused, Some(InboxError::NotEncrypted { .. })),
                "{at}"
            );
        }
        for at in [
            "https://example.com",
            "http://127.0.0.1:1",
            "http://127.9.9.9",
            "http://[::1]:1/",
            "http://localhost",
        ] {
            assert!(client(at).is_ok(), "{at}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_request_during_the_end_of_its_gateway_reaches_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        drop(direct_record::record(&folder).await.unwrap());
        folder.write_inbox("127.0.0.1:9".parse().unwrap()).unwrap();
        let socket = folder.socket();
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let gateway = tokio::spawn(async move {
            let (_look, _) = listener.accept().await.unwrap();
            let (mut request, _) = listener.accept().await.unwrap();
            let read = request.read(&mut [0; 4_096]).await.unwrap();
            assert!(read > 0);
            std::fs::remove_file(&socket).unwrap();
        });
        let inbox = InboxClient::find(&folder).await.unwrap();
        assert!(inbox.is_running());
        let page = inbox.page(false, None, 1).await.unwrap();
        assert_eq!(page.waiting, 0);
        assert!(!inbox.is_running());
        gateway.await.unwrap();
    }

    #[tokio::test]
    async fn an_earlier_record_in_the_folder_is_not_taken_for_the_one_in_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        drop(direct_record::record(&folder).await.unwrap());
        assert!(InboxClient::find(&folder).await.is_ok());
        let address = "postgres://elicit@db.example/elicit";
        folder.write_record_address(Some(address)).unwrap();
        let found = InboxClient::find(&folder).await.map(|_| ());
        assert!(
            matches!(found, Err(InboxError::NothingThere { .. })),
            "{found:?}"
        );
        std::fs::write(folder.path().join("record.address"), "").unwrap();
        let found = InboxClient::find(&folder).await.map(|_| ());
        assert!(matches!(found, Err(InboxError::Record { .. })), "{found:?}");
    }

    #[tokio::test]
    async fn no_redirect_is_followed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let mut asked = 0;
            loop {
                let Ok((mut stream, _)) = listener.accept().await else {
                    return asked;
                };
                asked += 1;
                assert_eq!(asked, 1, "it was followed");
                let mut head = vec![0; 4_096];
                let read = stream.read(&mut head).await.unwrap();
                assert!(read > 0);
                let redirect = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(redirect).await.unwrap();
            }
        });
        let refused = client(&at).unwrap().page(false, None, 1).await;
        assert!(
            matches!(refused, Err(InboxError::Redirected { .. })),
            "{refused:?}"
        );
        served.abort();
    }
}
