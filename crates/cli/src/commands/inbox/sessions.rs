//! `inbox sessions`: the browsers that are signed in, by a link or as a person, and how to end their sessions.

use mcp_elicit_forms::web::{BrowserSession, SessionStore as _};
use mcp_elicit_inbox::direct_record::ON_COMMAND_LINE;
use mcp_elicit_inbox::login::table::{EndedLogins, LoginSession};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::{Details, Event};
use serde_json::json;

use super::super::audit::moment_in_seconds;
use super::open::now;
use super::{SessionsCommand, note, note_all, unwritable};
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};

/// Lists sessions, or ends them. Gateways apply it from the browser's next request on.
pub(super) async fn run(
    folder: &StateFolder,
    act: &SessionsCommand,
    json: bool,
) -> Result<Exit, Failure> {
    match act {
        SessionsCommand::List => list(folder, json),
        SessionsCommand::Revoke { id: Some(id), .. } => revoke(folder, id).await,
        SessionsCommand::Revoke { id: None, .. } => revoke_all(folder).await,
    }
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
            output::print(harmless(&line(session)))?;
        }
    }
    let logins = folder.logins().table();
    let logins = logins.map_err(|error| unwritable(&error))?;
    let people = logins.sessions();
    for session in &people {
        if json {
            output::print_json(&json!({
                "id": session.id(), "person": session.person(), "signedInAt": session.created(), "lastUsedAt": session.used(),
                "browser": session.browser(),
            }))?;
        } else {
            output::print(harmless(&line_of_person(session)))?;
        }
    }
    if live.is_empty() && people.is_empty() && !json {
        output::say("no browser is signed in");
    }
    Ok(Exit::Done)
}

fn line(session: &BrowserSession) -> String {
    format!(
        "{}  signed in {}  last used {}  {}",
        session.id(),
        moment_in_seconds(session.created()),
        moment_in_seconds(session.used()),
        session.browser()
    )
}

fn line_of_person(session: &LoginSession) -> String {
    format!(
        "{}  {}  signed in {}  last used {}  {}",
        session.id(),
        session.person(),
        moment_in_seconds(session.created()),
        moment_in_seconds(session.used()),
        session.browser()
    )
}

async fn revoke(folder: &StateFolder, id: &str) -> Result<Exit, Failure> {
    let mut is_ended = false;
    let changed = folder.sessions().change(&mut |table| {
        is_ended = table.revoke(id);
        Ok(())
    });
    changed.map_err(|error| unwritable(&error))?;
    if is_ended {
        note(folder, Event::SessionsRevoked).await;
    } else {
        let ended = folder.logins().end(|session| session.id() == id);
        let ended = ended.map_err(|error| unwritable(&error))?;
        if ended.sessions.is_empty() {
            return Err(Failure::usage(format!("there is no session `{id}`"))
                .hint("`mcp-elicit inbox sessions list` shows them."));
        }
        note_ended(folder, &ended).await;
    }
    output::say(format_args!("{id}  ended"));
    Ok(Exit::Done)
}

async fn revoke_all(folder: &StateFolder) -> Result<Exit, Failure> {
    let mut count = 0;
    let changed = folder.sessions().change(&mut |table| {
        count = table.revoke_all();
        Ok(())
    });
    changed.map_err(|error| unwritable(&error))?;
    note(folder, Event::SessionsRevoked).await;
    let ended = folder.logins().end(|_| true);
    let ended = ended.map_err(|error| unwritable(&error))?;
    count += ended.sessions.len();
    note_ended(folder, &ended).await;
    output::say(format_args!(
        "{count} session(s) ended; unused login links are void too"
    ));
    Ok(Exit::Done)
}

/// Writes audit events for the people's sessions that ended here, with their devices.
async fn note_ended(folder: &StateFolder, ended: &EndedLogins) {
    let sessions = ended.sessions.iter().map(|session| {
        let details = Details {
            person: Some(session.person()),
            session: Some(session.id()),
            ..Details::by(ON_COMMAND_LINE)
        };
        (Event::SessionEnded, details)
    });
    let devices = ended.devices.iter().map(|device| {
        let details = Details {
            person: Some(device.person()),
            device: Some(device.id()),
            ..Details::by(ON_COMMAND_LINE)
        };
        (Event::DeviceRemoved, details)
    });
    let events: Vec<_> = sessions.chain(devices).collect();
    note_all(folder, &events).await;
}
