//! The operator's sign-in at a server over HTTP that requires OAuth. A person signs in with a command; the gateway sends
//! the tokens, and renews them.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, StatusCode};
use mcp_elicit_client::connection::BearerToken;
use mcp_elicit_client::sign_in::step_up::{in_words, missing_scopes};
use mcp_elicit_client::sign_in::{SignIn, SignInError, SignInOptions};
use mcp_elicit_core::fault::with_causes;
use mcp_elicit_core::link::without_userinfo;
use mcp_elicit_core::text::shortened;
use mcp_elicit_inbox::state_folder::StateFolder;

/// The longest reason in an error about a sign-in, in characters.
const LONGEST_REASON: usize = 500;

/// The subfolder of the state folder that holds tokens.
const FOLDER: &str = "sign-in";

/// Opens the folder of the tokens of sign-ins below a state folder, for its owner only.
///
/// # Errors
/// The same as [`StateFolder::open`].
pub fn sign_in_folder(state: &StateFolder) -> io::Result<PathBuf> {
    let folder = state.path().join(FOLDER);
    StateFolder::open(&folder)?;
    Ok(folder)
}

/// The operator's sign-in at one server. Clones share it.
#[derive(Clone)]
pub struct UpstreamSignIn {
    inner: Arc<UpstreamSignInParts>,
}

struct UpstreamSignInParts {
    url: String,
    options: SignInOptions,
    /// The command with which a person signs in.
    command: String,
    opened: OnceLock<SignIn>,
}

impl fmt::Debug for UpstreamSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSignIn")
            .field("url", &without_userinfo(&self.inner.url))
            .finish_non_exhaustive()
    }
}

impl UpstreamSignIn {
    /// Creates the sign-in at the server at this URL; `command` is what a person runs to sign in.
    pub fn new(url: &str, options: SignInOptions, command: String) -> Self {
        Self {
            inner: Arc::new(UpstreamSignInParts {
                url: url.to_owned(),
                options,
                command,
                opened: OnceLock::new(),
            }),
        }
    }

    /// Returns the same sign-in with another command.
    #[must_use]
    pub fn with_command(&self, command: String) -> Self {
        Self::new(&self.inner.url, self.inner.options.clone(), command)
    }

    /// Returns the id of the registered client; empty if the client registers itself.
    pub(crate) fn client_id(&self) -> &str {
        self.inner.options.client_id.as_deref().unwrap_or_default()
    }

    /// Returns the sign-in, whose tokens are in this state folder.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn open(&self, state: &StateFolder) -> io::Result<&SignIn> {
        let folder = sign_in_folder(state)?;
        let inner = &self.inner;
        Ok(inner
            .opened
            .get_or_init(|| SignIn::new(&inner.url, inner.options.clone(), &folder)))
    }

    /// Returns the `Authorization` for the server; `None` while nobody has signed in, which the server may not require.
    ///
    /// # Errors
    /// If the tokens cannot be renewed. In words.
    pub(super) async fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        let opened = self.opened()?;
        self.header(opened.token().await)
    }

    /// Returns an `Authorization` in place of one that the server does not accept; `None` if a person has to sign in.
    ///
    /// # Errors
    /// The same as `authorization`.
    pub(super) async fn renewed(
        &self,
        rejected: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, String> {
        let opened = self.opened()?;
        let rejected = rejected.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        match rejected.and_then(|token| BearerToken::new(token).ok()) {
            Some(rejected) => self.header(opened.renewed(&rejected).await),
            // Somebody may have signed in meanwhile.
            None => self.header(opened.token().await),
        }
    }

    /// Returns the reason, in words, if the server refuses a request because of its token. Such a request was not
    /// processed.
    pub(super) fn refusal(&self, status: StatusCode, headers: &HeaderMap) -> Option<String> {
        if status == StatusCode::UNAUTHORIZED {
            let command = &self.inner.command;
            tracing::warn!(server = %self.shown(), %command, "the server requires a sign-in");
            return Some(self.required());
        }
        if status != StatusCode::FORBIDDEN {
            return None;
        }
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut scopes = challenges.filter_map(|value| missing_scopes(value.to_str().ok()?));
        let scopes = scopes.next()?;
        let options = scopes
            .iter()
            .flat_map(|scope| ["--scope".to_owned(), quoted(scope)]);
        let options: Vec<String> = options.collect();
        let why = format!(
            "the server requires more than was granted ({}). Run in a terminal: {} {}",
            in_words(&scopes),
            self.inner.command,
            options.join(" ")
        );
        tracing::warn!(server = %self.shown(), scopes = %scopes.join(" "), command = %self.inner.command, "the sign-in lacks scopes");
        Some(format!("{why}. Then make the call again"))
    }

    /// Logs that a person has to sign in, if so, when the gateway starts.
    pub(crate) async fn announce(&self) {
        if let Err(why) = self.authorization().await {
            tracing::warn!(server = %self.shown(), %why, "no sign-in at the server");
        }
    }

    fn opened(&self) -> Result<&SignIn, String> {
        self.inner
            .opened
            .get()
            .ok_or_else(|| "the state folder of the sign-in is not open".to_owned())
    }

    fn header(
        &self,
        token: Result<Option<BearerToken>, SignInError>,
    ) -> Result<Option<HeaderValue>, String> {
        let token = match token {
            Ok(Some(token)) => token,
            Ok(None) => return Ok(None),
            Err(error) => {
                // The command comes first: some of the words after it are of others.
                let why = with_causes(&error);
                return Err(format!(
                    "the sign-in at {} cannot be renewed. If this does not pass, run in a terminal: {}. The reason, perhaps in the words of the authorization server: {}",
                    self.shown(),
                    self.inner.command,
                    shortened(&why, LONGEST_REASON)
                ));
            }
        };
        // A token contains only characters that a header allows.
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.secret()))
            .map_err(|_| "the token fits no header".to_owned())?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn required(&self) -> String {
        format!(
            "{} requires a sign-in. Run in a terminal: {}. Then make the call again",
            self.shown(),
            self.inner.command
        )
    }

    fn shown(&self) -> String {
        without_userinfo(&self.inner.url).into_owned()
    }
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/+@,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
