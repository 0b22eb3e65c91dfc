//! OAuth 2 and OpenID Connect for this project: people who sign in elsewhere, and callers with access tokens.
//!
//! | item | contents |
//! | --- | --- |
//! | [`Provider`], [`Metadata`] | a provider with this program as its client, and its published endpoints |
//! | [`Provider::authorization_url`], [`AuthorizationResponse`], [`Provider::exchange_code`] | the authorization-code flow with PKCE |
//! | [`Grant`], [`Subject`] | the result of a flow |
//! | [`OidcError`] | the errors of a flow |
//! | [`TokenVerifier`], [`AccessToken`], [`AccessTokenError`] | the checks of access tokens, by the issuer's keys or by asking it; [`LogoutToken`] |
//! | [`Provider::exchange_token`], [`ExchangedToken`] | a token for another resource |
//!
//! | file | contents |
//! | --- | --- |
//! | `provider`, `client_request`, `code` | discovery and the client; its other requests to the provider; the authorization-code flow |
//! | `grant` | the tokens of a flow, and the subject |
//! | `access_token`, `jwt`, `keys` | access tokens; JSON Web Tokens; the keys of an issuer |
//! | `introspected` | answers of an issuer about tokens, and the limits on questions to it |
//! | `http`, `error` | requests with limits; errors |
//!
//! https everywhere except for loopback addresses; no redirects are followed, and time and size are limited. No error,
//! log line or debug output contains the text of a token, or the `error_description` of a provider. The time is an
//! argument.

mod access_token;
mod client_request;
mod code;
mod error;
mod grant;
mod http;
mod introspected;
mod jwt;
mod keys;
mod provider;

pub use access_token::{AccessToken, AccessTokenError, LogoutToken, TokenVerifier};
pub use client_request::ExchangedToken;
pub use code::AuthorizationResponse;
pub use error::OidcError;
pub use grant::{Grant, Subject};
pub use provider::{Metadata, Provider, ProviderError};
