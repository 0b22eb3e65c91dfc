//! OAuth 2 and OpenID Connect, as far as this project needs them: people who sign in elsewhere, and callers who show an access token.
//!
//! | item | contents |
//! | --- | --- |
//! | [`Provider`], [`Metadata`] | a provider, this program as its client, and the endpoints that it publishes |
//! | [`Provider::authorization_url`], [`AuthorizationResponse`], [`Provider::exchange_code`] | the authorization-code flow with PKCE |
//! | [`Grant`], [`Subject`] | the result of a flow |
//! | [`OidcError`] | why there is none |
//!
//! https everywhere, but for the loopback addresses; no redirect is followed, nothing is waited for long, nothing large is read. No error,
//! log line or debug print has the text of a token, nor the `error_description` of a provider. The time is an argument.

mod code;
mod error;
mod grant;
mod http;
#[expect(dead_code, reason = "access tokens will be checked with it")]
mod jwt;
mod provider;
mod secret;

pub use code::AuthorizationResponse;
pub use error::OidcError;
pub use grant::{Grant, Subject};
pub use provider::{Metadata, Provider, ProviderError};

pub(crate) use secret::Secret;
