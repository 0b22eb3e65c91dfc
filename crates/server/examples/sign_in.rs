//! Sign in to a third party: a tool needs the person's account elsewhere, and asks them to let this server in.
//!
//! `-- --issuer https://accounts.example.com --client ID [--scope NAME]... [--listen 127.0.0.1:8080]`, with the
//! client's secret in `CLIENT_SECRET` if it has one. MCP is at `/mcp`, the pages under `/connect`; the redirect URI to
//! register at the provider is said on stderr.
//!
//! There is only one user here, the person at this machine; a real server looks at its own login (`Session`,
//! `from_cookie`, or `.sign_in(..)` at a provider) and at who the MCP client signed in as.

#[path = "listen/over_http.rs"]
mod over_http;

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_elicit_server::connect::Connect;
use mcp_elicit_server::connect::oauth::{Grant, Provider};
use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

const USER: &str = "you";

/// The store of grants; a real server encrypts them.
type Vault = Arc<Mutex<HashMap<String, Grant>>>;

#[derive(Clone)]
struct Accounts {
    connect: Connect,
    vault: Vault,
}

impl Accounts {
    /// Returns what is known of the user's account, without the tokens.
    fn account(&self, user: &str) -> Option<String> {
        let vault = self.vault.lock().unwrap_or_else(PoisonError::into_inner);
        let grant = vault.get(user)?;
        let who = grant
            .subject()
            .map_or("somebody", |subject| subject.subject());
        Some(format!("{who}, who allowed {}", grant.scopes().join(" ")))
    }
}

#[tool_router]
impl Accounts {
    #[tool(description = "Who the user is elsewhere; asks to connect the account first")]
    async fn whoami(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let user = elicit.principal().unwrap_or(USER).to_owned();
        let known = elicit
            .step("known", async || self.account(&user).is_some())
            .await?;
        if !known {
            let why = "So that I can tell who you are there";
            self.connect.require(&elicit, "Account", why).await?;
        }
        let account = self.account(&user);
        Ok(account.unwrap_or_else(|| "The account is not connected any more".to_owned()))
    }
}

#[tool_handler(name = "accounts", version = "1.0.0")]
impl ServerHandler for Accounts {}

/// The options of the command line.
struct Options {
    issuer: String,
    client: String,
    scopes: Vec<String>,
    listen: SocketAddr,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let (mut issuer, mut client) = (None, None);
    let mut scopes = vec!["openid".to_owned()];
    let mut listen = "127.0.0.1:8080".parse()?;
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let value = words.next().ok_or("each flag has a value")?;
        match flag.as_str() {
            "--issuer" => issuer = Some(value),
            "--client" => client = Some(value),
            "--scope" => scopes.push(value),
            "--listen" => listen = value.parse()?,
            _ => return Err(format!("there is no {flag}").into()),
        }
    }
    Ok(Options {
        issuer: issuer.ok_or("--issuer URL")?,
        client: client.ok_or("--client ID")?,
        scopes,
        listen,
    })
}

#[expect(clippy::print_stderr, reason = "an example talks to its reader")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let mut provider = Provider::issuer(options.issuer, options.client)?.scopes(options.scopes);
    if let Ok(secret) = std::env::var("CLIENT_SECRET") {
        provider = provider.secret(secret);
    }
    let listener = tokio::net::TcpListener::bind(options.listen).await?;
    let at = format!("http://{}", listener.local_addr()?);
    let vault = Vault::default();
    let kept = Arc::clone(&vault);
    let visitor = |_: &http::request::Parts| Some(USER.to_owned());
    let connect = Connect::builder("The account server", format!("{at}/connect"), visitor)?
        .grant("Account", provider, move |user, grant| {
            let mut vault = kept.lock().unwrap_or_else(PoisonError::into_inner);
            vault.insert(user, grant);
            std::future::ready(Ok(()))
        })
        .build();
    eprintln!(
        "register {} at the provider; MCP is at {at}/mcp",
        connect.redirect_uri("Account")
    );
    let settings = ServerSettings::default()
        .audience("accounts")
        .principal(|_| Some(USER.to_owned()));
    let pages = connect.router();
    let accounts = Accounts { connect, vault };
    let pages = axum::Router::new().nest("/connect", pages);
    over_http::serve(listener, pages, move || {
        accounts.clone().eliciting(settings.clone())
    })
    .await
}
