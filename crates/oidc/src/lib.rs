//! OAuth 2 and OpenID Connect, as far as this project needs them: people who sign in elsewhere, and callers who show an access token.
//!
//! | item | contents |
//! | --- | --- |
//! | [`Provider`], [`Metadata`] | a provider, this program as its client, and the endpoints that it publishes |
//! | [`Provider::authorization_url`], [`AuthorizationResponse`], [`Provider::exchange_code`] | the authorization-code flow with PKCE |
//! | [`Grant`], [`Subject`] | the result of a flow |
//! | [`OidcError`] | why there is none |
//! | [`TokenVerifier`], [`AccessToken`], [`TokenError`] | the checks of access tokens, by the issuer's keys or by asking it; [`LogoutToken`] |
//! | [`Provider::exchange_token`], [`ExchangedToken`] | a token for another resource |
//!
//! | file | contents |
//! | --- | --- |
//! | `provider`, `client_request`, `code` | discovery and the client; its other requests to the provider; the authorization-code flow |
//! | `grant` | the tokens of a flow, and the subject |
//! | `access_token`, `jwt`, `keys` | access tokens; JSON Web Tokens; the keys of an issuer |
//! | `http`, `error` | requests with bounds; errors |
//!
//! https everywhere, but for the loopback addresses; no redirect is followed, nothing is waited for long, nothing large is read. No error,
//! log line or debug print has the text of a token, nor the `error_description` of a provider. The time is an argument.

mod access_token;
mod client_request;
mod code;
mod error;
mod grant;
mod http;
mod jwt;
mod keys;
mod provider;

pub use access_token::{AccessToken, LogoutToken, TokenError, TokenVerifier};
pub use client_request::ExchangedToken;
pub use code::AuthorizationResponse;
pub use error::OidcError;
pub use grant::{Grant, Subject};
pub use provider::{Metadata, Provider, ProviderError};
