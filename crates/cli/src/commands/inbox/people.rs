//! `inbox people`: the people who logged in, and the subjects that they are bound to.

use mcp_elicit_inbox::direct_record::ON_COMMAND_LINE;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::{Details, Event};
use serde_json::json;

use super::super::audit::moment_in_seconds;
use super::{PeopleCommand, note_all, unwritable};
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};

/// Lists people, or releases one from their subject. Gateways apply it from the next request on.
pub(super) async fn run(
    folder: &StateFolder,
    act: Option<&PeopleCommand>,
    json: bool,
) -> Result<Exit, Failure> {
    match act {
        None | Some(PeopleCommand::List) => list(folder, json),
        Some(PeopleCommand::Unbind { name }) => unbind(folder, name).await,
    }
}

fn list(folder: &StateFolder, json: bool) -> Result<Exit, Failure> {
    let table = folder.logins().table();
    let table = table.map_err(|error| unwritable(&error))?;
    let mut is_empty = true;
    for (person, issuer, subject, seen) in table.bound() {
        is_empty = false;
        if json {
            output::print_json(&json!({
                "person": person, "issuer": issuer, "subject": subject, "seenAt": seen,
            }))?;
        } else {
            let seen = moment_in_seconds(seen);
            let line = format!("{person}  {subject} ({issuer})  last seen {seen}");
            output::print(harmless(&line))?;
        }
    }
    if is_empty && !json {
        output::say("nobody has logged in");
    }
    Ok(Exit::Done)
}

async fn unbind(folder: &StateFolder, name: &str) -> Result<Exit, Failure> {
    let unbound = folder.logins().unbind(name);
    if !unbound.map_err(|error| unwritable(&error))? {
        return Err(
            Failure::usage(format!("nobody named `{}` has logged in", harmless(name)))
                .hint("`mcp-elicit inbox people list` shows those who have."),
        );
    }
    let details = Details {
        person: Some(name),
        ..Details::by(ON_COMMAND_LINE)
    };
    note_all(folder, &[(Event::PersonUnbound, details)]).await;
    let name = harmless(name);
    output::say(format_args!(
        "{name}  released: the next login that shows the mail address of [people.{name}] binds them again; their sessions and devices ended"
    ));
    Ok(Exit::Done)
}
