//! Connect an account with a key: the person leaves it on a page of this server; no client, model or log sees it.
//!
//! `-- --listen 127.0.0.1:8080`, with the page under `/connect`. There is only one user here, the person at this
//! machine, so everybody who can reach the loopback address is that user; a real server looks at its own login.

#[path = "listen/over_http.rs"]
mod over_http;

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_elicit_server::connect::{CannotSave, Connect, Secret};
use mcp_elicit_server::{Elicit, ElicitError, ElicitingExt, ServerSettings};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

const USER: &str = "you";

/// The store of keys; a real server encrypts them.
type Vault = Arc<Mutex<HashMap<String, Secret>>>;

#[derive(Clone)]
struct Calendar {
    connect: Connect,
    vault: Vault,
}

impl Calendar {
    fn is_connected(&self, user: &str) -> bool {
        self.vault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(user)
    }
}

#[tool_router]
impl Calendar {
    #[tool(description = "What is in the calendar today; asks to connect it first")]
    async fn today(&self, elicit: Elicit) -> Result<String, ElicitError> {
        let user = elicit.principal().unwrap_or(USER).to_owned();
        if !elicit
            .step("connected", || async { self.is_connected(&user) })
            .await?
        {
            self.connect
                .visit(&elicit, "Calendar", "So that I can read what is in it")
                .await?;
        }
        Ok("Nothing until noon".into())
    }
}

#[tool_handler(name = "calendar", version = "1.0.0")]
impl ServerHandler for Calendar {}

fn save(vault: &Vault, user: String, secret: Secret) -> Result<(), CannotSave> {
    if secret.reveal().trim().is_empty() {
        return Err(CannotSave("A key is not empty".into()));
    }
    vault
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(user, secret);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => "127.0.0.1:8080".parse::<SocketAddr>()?,
        [flag, address] if flag == "--listen" => address.parse()?,
        _ => return Err("--listen ADDR".into()),
    };
    let listener = tokio::net::TcpListener::bind(address).await?;
    let base = format!("http://{}/connect", listener.local_addr()?);
    let vault = Vault::default();
    let keys = Arc::clone(&vault);
    let connect = Connect::builder("The calendar server", base, |_| Some(USER.to_owned()))?
        .secret("Calendar", "API key", move |user, secret| {
            std::future::ready(save(&keys, user, secret))
        })
        .build();
    let settings = ServerSettings::default()
        .audience("calendar")
        .principal(|_| Some(USER.to_owned()));
    let pages = connect.router();
    let calendar = Calendar { connect, vault };
    let pages = axum::Router::new().nest("/connect", pages);
    over_http::serve(listener, pages, move || {
        calendar.clone().eliciting(settings.clone())
    })
    .await
}
