//! Requests to providers: no redirects followed, with limits on time and size.

use std::pin::Pin;
use std::time::Duration;

use mcp_elicit_core::fault::with_causes;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};

const CONNECT: Duration = Duration::from_secs(5);
/// The time limit for a response, up to its last byte. People wait for it.
pub(crate) const WHOLE: Duration = Duration::from_secs(10);
/// The size limit; token responses and key sets are a few kilobytes.
const MOST: usize = 512 * 1024;

/// The HTTP client of one provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderHttp(reqwest::Client);

/// The reason why there is no response. The URL is omitted, because it may contain a code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderHttpError {
    #[error("{}", with_causes(.0))]
    Failed(reqwest::Error),
    #[error("the response is larger than {MOST} bytes")]
    TooLarge,
    #[error("{0}")]
    Malformed(http::Error),
}

impl From<reqwest::Error> for ProviderHttpError {
    fn from(error: reqwest::Error) -> Self {
        Self::Failed(error.without_url())
    }
}

impl ProviderHttp {
    pub(crate) fn new() -> Result<Self, String> {
        // A provider that is already installed stays: the application may have chosen another.
        let _chosen_already = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder()
            .user_agent(concat!("mcp-elicit/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }

    pub(crate) async fn send(
        &self,
        request: HttpRequest,
    ) -> Result<HttpResponse, ProviderHttpError> {
        let request = reqwest::Request::try_from(request)?;
        let mut response = self.0.execute(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MOST {
                return Err(ProviderHttpError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let mut answer = http::Response::builder().status(response.status());
        if let Some(headers) = answer.headers_mut() {
            headers.clone_from(response.headers());
        }
        answer.body(body).map_err(ProviderHttpError::Malformed)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderHttp {
    type Error = ProviderHttpError;
    type Future =
        Pin<Box<dyn Future<Output = Result<HttpResponse, ProviderHttpError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
