//! The person's part of a sign-in at a server over HTTP that requires OAuth: the options, the question whether to open
//! the page, and the words. The sign-in itself is in `mcp_elicit_client::sign_in`.

mod person;

use std::path::Path;

use clap::Args;
use mcp_elicit_client::connection::Target;
use mcp_elicit_client::rmcp::transport::auth::AuthError;
use mcp_elicit_client::sign_in::{SignIn, SignInError, SignInOptions};
use mcp_elicit_core::link::without_userinfo;
use mcp_elicit_core::secret::SecretText;
use mcp_elicit_inbox::state_folder::StateFolder;

use crate::failure::Failure;
pub(crate) use person::LocalPerson;

/// The subfolder of the state folder that holds tokens.
const FOLDER: &str = "sign-in";

/// Options for signing in at a server over HTTP.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sign-in")]
pub(crate) struct SignInArgs {
    /// Sign in with OAuth in the browser if the server at the URL requires it. Tokens are kept in the state folder and
    /// refreshed, so that later calls do not ask again
    #[arg(long, conflicts_with_all = ["command", "token_env"])]
    pub(crate) sign_in: bool,

    /// Id of a client that you registered; by default, this client registers itself
    #[arg(long, value_name = "ID", requires = "sign_in")]
    client_id: Option<String>,

    /// Environment variable that holds the secret of that client. It is sent only to the authorization server of the
    /// client's first sign-in
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,

    /// The authorization server to sign in at; another one is refused [default: the one that the server names]
    #[arg(long, value_name = "URL", requires = "sign_in")]
    issuer: Option<String>,

    /// Scope to request; repeat for more [default: the scopes that the server names]
    #[arg(long = "scope", value_name = "SCOPE", requires = "sign_in")]
    scopes: Vec<String>,

    /// Port of http://127.0.0.1:PORT/callback, if that address is registered [default: a free port]
    #[arg(
        long,
        value_name = "PORT",
        requires = "sign_in",
        default_value_t = 0,
        hide_default_value = true
    )]
    callback_port: u16,
}

impl SignInArgs {
    /// Returns the options, with the secret from its environment variable.
    pub(crate) fn options(&self) -> Result<SignInOptions, Failure> {
        let secret = match &self.client_secret_env {
            None => None,
            Some(variable) => {
                let text = std::env::var(variable).ok();
                let secret = text.as_deref().and_then(SecretText::from_line);
                Some(secret.ok_or_else(|| {
                    Failure::usage(format!(
                        "the environment variable {variable} for the client's secret is not set"
                    ))
                })?)
            }
        };
        let mut options = SignInOptions::default();
        options.client_id.clone_from(&self.client_id);
        options.client_secret = secret;
        options.issuer.clone_from(&self.issuer);
        options.scopes.clone_from(&self.scopes);
        options.callback_port = self.callback_port;
        Ok(options)
    }

    /// Returns the sign-in of a call that the options ask for; `state` is the state folder.
    pub(crate) fn of_call(
        &self,
        target: &Target,
        state: Option<&Path>,
    ) -> Result<Option<SignIn>, Failure> {
        if !self.sign_in {
            return Ok(None);
        }
        let Target::Url(url) = target else {
            return Err(Failure::usage("`--sign-in` needs a server at a URL")
                .hint("name it with `--url URL`."));
        };
        let folder = token_folder(state)?;
        check_url(url)?;
        Ok(Some(SignIn::new(url, self.options()?, &folder)))
    }
}

/// Refuses a URL whose own credentials the sign-in would replace.
pub(crate) fn check_url(url: &str) -> Result<(), Failure> {
    if without_userinfo(url) == url {
        return Ok(());
    }
    Err(
        Failure::usage("a user name in the URL cannot be combined with `--sign-in`")
            .hint("leave out the name and the password: the sign-in replaces them."),
    )
}

/// Opens the folder of the tokens below the state folder.
pub(crate) fn token_folder(state: Option<&Path>) -> Result<std::path::PathBuf, Failure> {
    let state = state.ok_or_else(|| {
        Failure::usage("there is no folder for the tokens of the sign-in")
            .hint("name one with `--state DIR`.")
    })?;
    let folder = state.join(FOLDER);
    let opened = StateFolder::open(state).and_then(|_| StateFolder::open(&folder));
    opened.map_err(|error| {
        Failure::usage(format!("cannot use the folder {}", folder.display()))
            .because(error)
            .hint("name a writable folder with `--state DIR`.")
    })?;
    Ok(folder)
}

/// Returns the failure for an error of a sign-in at this URL.
pub(crate) fn failed(error: SignInError, url: &str) -> Failure {
    let failure = Failure::connection(format!("cannot sign in at {}", without_userinfo(url)));
    match error {
        SignInError::Declined => Failure::declined("the sign-in was declined"),
        SignInError::Failed { code } => Failure::refused(format!(
            "the sign-in failed: {}",
            crate::output::harmless(&code)
        )),
        SignInError::Listen(error) => Failure::usage("cannot listen for the browser's return")
            .because(error)
            .hint("name a free port with `--callback-port`, or leave it out."),
        error @ SignInError::Folder(_) => failure
            .because(error)
            .hint("check the folder of `--state DIR`, and delete the file if it is broken."),
        error @ SignInError::OtherIssuer { .. } => failure.because(error).hint(
            "ask the server's operator; only if the client is registered there too, name that server with `--issuer URL`.",
        ),
        error @ SignInError::NotTheIssuer { .. } => failure
            .because(error)
            .hint("ask the server's operator, or correct `--issuer URL`."),
        error @ SignInError::NoPkce { .. } => failure.because(error).hint(
            "ask the server's operator; only if you know that this authorization server supports it, name it with `--issuer URL`.",
        ),
        error @ SignInError::DiscoveryTimeout => failure.because(error).hint(
            "try again; if it stays so, ask the server's operator which authorization servers its metadata name.",
        ),
        error @ (SignInError::NotItsMetadata { .. }
        | SignInError::NoIssuer
        | SignInError::Page { .. }) => failure
            .because(error)
            .hint("do not sign in at this server; tell its operator."),
        error @ SignInError::IssuerUnreadable { .. } => failure.because(error).hint(
            "try again; if it stays so, ask the operator of this authorization server.",
        ),
        error @ SignInError::TokensOfOtherIssuer { .. } => failure.because(error).hint(
            "sign in again in a terminal only if you expect this authorization server: use `--sign-in`.",
        ),
        SignInError::Flow(error) => flow_failed(failure, error),
        error => failure.because(error),
    }
}

/// Adds the error of the flow, which contains no credential.
fn flow_failed(failure: Failure, error: AuthError) -> Failure {
    let hint = match &error {
        AuthError::RegistrationFailed(_) => Some(
            "register a client by hand, and name it with `--client-id ID`; its redirect URI is the one of `--callback-port`.",
        ),
        AuthError::CredentialStoreError(_) => {
            Some("check the folder of `--state DIR`, and delete the file if it is broken.")
        }
        AuthError::NoAuthorizationSupport | AuthError::MetadataError(_) => {
            Some("the server may not want a sign-in: leave out `--sign-in`.")
        }
        _ => None,
    };
    let failure = failure.because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
