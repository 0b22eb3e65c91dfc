//! Sign-in at a server over HTTP that requires OAuth: the person agrees in the browser, and the tokens are kept for
//! later calls. rmcp discovers, registers, exchanges and refreshes; this module handles the person's part.
//!
//! - [`callback`]: the page on this machine to which the browser returns
//! - [`step_up`]: the additional scopes that a server requires for one call
//! - [`store`]: tokens in a file of the state folder, readable by their owner only

mod callback;
pub(crate) mod step_up;
mod store;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mcp_elicit_client::connection::Target;
use mcp_elicit_core::link::without_userinfo;
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::{
    AuthError, AuthorizationRequest, AuthorizationSession, CredentialStore as _, OAuthClientConfig,
};
use tokio_util::sync::CancellationToken;

use crate::call_session::{failures, stop};
use crate::failure::Failure;
use crate::output;
use callback::{Callback, CameBack};
use store::FileStore;

/// The name under which this client is registered.
const NAME: &str = "mcp-elicit";

/// Options for signing in at a server over HTTP.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sign-in")]
pub(crate) struct SignInArgs {
    /// Sign in with OAuth in the browser if the server at the URL requires it. Tokens are kept in the state folder and
    /// refreshed, so that later calls do not ask again
    #[arg(long, requires = "url", conflicts_with_all = ["command", "token_env"])]
    sign_in: bool,

    /// Id of a client that you registered; by default, this client registers itself
    #[arg(long, value_name = "ID", requires = "sign_in")]
    client_id: Option<String>,

    /// Environment variable that holds the secret of that client
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,

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

/// A sign-in that has not been done yet.
pub(crate) struct SignIn {
    url: String,
    args: SignInArgs,
    secret: Option<String>,
    store: FileStore,
    /// `true` if only JSON is printed to stdout, for a program.
    json: bool,
    within: Option<Duration>,
}

impl SignIn {
    /// Returns the sign-in that the options ask for; `state` is the state folder.
    pub(crate) fn from_args(
        args: &SignInArgs,
        target: &Target,
        state: Option<PathBuf>,
        json: bool,
        within: Option<Duration>,
    ) -> Result<Option<Self>, Failure> {
        let (true, Target::Url(url)) = (args.sign_in, target) else {
            return Ok(None);
        };
        if without_userinfo(url) != url.as_str() {
            return Err(Failure::usage(
                "a user name in the URL cannot be combined with `--sign-in`",
            )
            .hint("leave out the name and the password: the sign-in replaces them."));
        }
        let state = state.ok_or_else(|| {
            Failure::usage("there is no folder for the tokens of the sign-in")
                .hint("name one with `--state DIR`.")
        })?;
        let secret = match &args.client_secret_env {
            None => None,
            Some(variable) => Some(std::env::var(variable).map_err(|_| {
                Failure::usage(format!(
                    "the environment variable {variable} for the client's secret is not set"
                ))
            })?),
        };
        Ok(Some(Self {
            url: url.clone(),
            args: args.clone(),
            secret,
            store: FileStore::new(&state, url),
            json,
            within,
        }))
    }

    /// Returns the authorization of an earlier sign-in, if its tokens can still be used.
    pub(crate) async fn known(&self) -> Result<Option<AuthorizationManager>, Failure> {
        let mut manager = self.manager().await?;
        let stored = self
            .store
            .load()
            .await
            .map_err(|error| self.failed(error))?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        let same_client = self
            .args
            .client_id
            .as_ref()
            .is_none_or(|id| *id == stored.client_id);
        let same_scopes =
            self.args.scopes.iter().all(|scope| {
                stored.granted_scopes.is_empty() || stored.granted_scopes.contains(scope)
            });
        if !same_client || !same_scopes {
            return Ok(None);
        }
        let known = manager
            .initialize_from_store()
            .await
            .map_err(|error| self.failed(error))?;
        if !known {
            return Ok(None);
        }
        if let (Some(id), Some(secret)) = (&self.args.client_id, &self.secret) {
            let client = OAuthClientConfig::new(id, &self.url).with_client_secret(secret);
            manager
                .configure_client(client)
                .map_err(|error| self.failed(error))?;
        }
        match manager.get_access_token().await {
            Ok(_) => Ok(Some(manager)),
            // A client that registered itself with a secret cannot refresh without it.
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshFailed(_)) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Signs in: the person opens a link, agrees in the browser and returns. `more` are scopes to request in addition
    /// to those of the command line.
    pub(crate) async fn in_browser(
        &self,
        stop: &CancellationToken,
        more: &[String],
    ) -> Result<AuthorizationManager, Failure> {
        let callback = Callback::listen(self.args.callback_port)
            .await
            .map_err(|error| {
                Failure::usage("cannot listen for the browser's return")
                    .because(error)
                    .hint("name a free port with `--callback-port`, or leave it out.")
            })?;
        let mut manager = self.manager().await?;
        let metadata = manager
            .resolve_metadata()
            .await
            .map_err(|error| self.failed(error))?;
        manager.set_metadata(metadata.metadata);
        let mut request = AuthorizationRequest::new(callback.address())
            .with_client_name(NAME)
            .with_initial_scope_selection()
            .with_scopes(self.args.scopes.iter().chain(more));
        if let Some(id) = &self.args.client_id {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = &self.secret {
            request = request.with_client_secret(secret);
        }
        let session = AuthorizationSession::new(manager, request)
            .await
            .map_err(|(_, error)| self.failed(error))?;
        let link = session.get_authorization_url().to_owned();
        output::say(format_args!("sign in here: {}", output::harmless(&link)));
        if !self.json {
            let link = link.clone();
            // A person without a browser here can copy the link.
            drop(tokio::task::spawn_blocking(move || {
                stop::open_in_browser(&link)
            }));
        }
        let time = async {
            match self.within {
                Some(within) => tokio::time::sleep(within).await,
                None => std::future::pending().await,
            }
        };
        let came_back = tokio::select! {
            came_back = callback.wait(&link) => came_back,
            () = stop.cancelled() => return Err(failures::stopped()),
            () = time => return Err(Failure::unanswered("the sign-in was not completed in time")),
        };
        match came_back {
            CameBack::Code(address) => {
                session
                    .handle_callback_url(&address)
                    .await
                    .map_err(|error| self.failed(error))?;
                output::say("signed in");
                Ok(session.auth_manager)
            }
            CameBack::Denied => Err(Failure::declined("the sign-in was declined")),
            CameBack::Failed(code) => Err(Failure::refused(format!(
                "the sign-in failed: {}",
                output::harmless(&code)
            ))),
            CameBack::Never => Err(Failure::connection(
                "the page for the browser's return ended",
            )),
        }
    }

    /// Returns the scopes that the server granted with the stored tokens.
    pub(crate) async fn granted(&self) -> Result<Vec<String>, Failure> {
        let stored = self.store.load().await;
        let stored = stored.map_err(|error| self.failed(error))?;
        Ok(stored.map_or_else(Vec::new, |stored| stored.granted_scopes))
    }

    /// Deletes the tokens, which the server no longer accepts.
    pub(crate) async fn forget(&self) -> Result<(), Failure> {
        self.store.clear().await.map_err(|error| self.failed(error))
    }

    async fn manager(&self) -> Result<AuthorizationManager, Failure> {
        mcp_elicit_client::tls::ready();
        let mut manager = AuthorizationManager::new(self.url.as_str())
            .await
            .map_err(|error| self.failed(error))?;
        manager.set_credential_store(self.store.clone());
        Ok(manager)
    }

    /// Returns the failure for an error of the flow, which contains no token and no code.
    fn failed(&self, error: AuthError) -> Failure {
        let failure = Failure::connection(format!("cannot sign in at {}", self.url));
        let hint = match &error {
            AuthError::RegistrationFailed(_) => Some(
                "register a client by hand, and name it with `--client-id ID`; its redirect URI is the one of `--callback-port`.",
            ),
            AuthError::CredentialStoreError(_) => {
                Some("check the folder of `--state DIR`, and delete the file if it is broken.")
            }
            AuthError::NoAuthorizationSupport | AuthError::MetadataError(_) => {
                Some("the server may not want a sign-in: call without `--sign-in`.")
            }
            _ => None,
        };
        let failure = failure.because(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
