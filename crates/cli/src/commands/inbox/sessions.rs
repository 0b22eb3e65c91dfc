//! `inbox sessions`: the browsers that are signed in, and the end of that.

use mcp_elicit_forms::web::{Session, SessionStore as _};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::Event;
use serde_json::json;

use super::super::audit::moment_in_seconds;
use super::open::now;
use super::{SessionsCommand, note, unwritable};
use crate::failure::{Exit, Failure};
use crate::output;

/// Lists sessions, or ends them. Gateways see it at the next request of the browser.
pub(super) async fn run(
    folder: &StateFolder,
    act: &SessionsCommand,
    json: bool,
) -> Result<Exit, Failure> {
    let done = match act {
        SessionsCommand::List => return list(folder, json),
        SessionsCommand::Revoke { id: Some(id), .. } => revoke(folder, id),
        SessionsCommand::Revoke { id: None, .. } => revoke_all(folder),
    }?;
    note(folder, Event::SessionsRevoked).await;
    Ok(done)
}

fn list(folder: &StateFolder, json: bool) -> Result<Exit, Failure> {
    let table = folder.sessions().read();
    let table = table.map_err(|error| unwritable(&error))?;
    let live = table.live(now());
    for session in &live {
        if json {
            output::print_json(&json!({
                "id": session.id(), "signedInAt": session.created(), "lastUsedAt": session.used(), "browser": session.browser(),
            }))?;
        } else {
            output::print(line(session))?;
        }
    }
    if live.is_empty() && !json {
        output::say(
            "no browser is signed in by a link (where people log in, an administrator sees their sessions on the page `/account`)",
        );
    }
    Ok(Exit::Done)
}

fn line(session: &Session) -> String {
    format!(
        "{}  signed in {}  last used {}  {}",
        session.id(),
        moment_in_seconds(session.created()),
        moment_in_seconds(session.used()),
        session.browser()
    )
}

fn revoke(folder: &StateFolder, id: &str) -> Result<Exit, Failure> {
    let mut ended = false;
    let changed = folder.sessions().change(&mut |table| {
        ended = table.revoke(id);
        Ok(())
    });
    changed.map_err(|error| unwritable(&error))?;
    if !ended {
        return Err(Failure::usage(format!("there is no session `{id}`"))
            .hint("`mcp-elicit inbox sessions list` has them."));
    }
    output::say(format_args!("{id}  ended"));
    Ok(Exit::Done)
}

fn revoke_all(folder: &StateFolder) -> Result<Exit, Failure> {
    let mut ended = 0;
    let changed = folder.sessions().change(&mut |table| {
        ended = table.revoke_all();
        Ok(())
    });
    changed.map_err(|error| unwritable(&error))?;
    output::say(format_args!(
        "{ended} session(s) ended; unused login links are void too"
    ));
    Ok(Exit::Done)
}
