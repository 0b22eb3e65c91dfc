//! `record move`: the record of a state folder into a database, and back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use mcp_elicit_gateway::database_record;
use mcp_elicit_inbox::direct_record;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::LockFile;
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::store::{
    DatabaseRecord, RecordContents, RecordStore, Sqlite, both_sides, record_parts,
};

use super::gateway::database_failed;
use super::inbox;
use super::state_record::{self, unopened, unreadable};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// The place to which a record is moved.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum MoveInto {
    /// From the state folder into the database of `--record`, which has no record yet
    Database,
    /// From the database of `--record` into the state folder, which has no record
    File,
}

/// The old and the new place of a record.
struct Move {
    folder: StateFolder,
    database: Arc<dyn DatabaseRecord>,
}

/// Moves the record. No gateway may run.
pub(super) async fn run(place: &RecordLocation, into: MoveInto) -> Result<Exit, Failure> {
    let named = place.named()?;
    let database = named.database.ok_or_else(|| {
        Failure::usage("no database is named").hint(
            "write `--record postgres://USER@HOST:PORT/DATABASE`, or the gateway's `--config FILE`.",
        )
    })?;
    let places = Move {
        folder: StateFolder::at(&named.folder),
        database: database_record(&database).map_err(database_failed)?,
    };
    let path = places.folder.path();
    if !places.folder.is_known() {
        let shown = path.display();
        return Err(
            Failure::usage(format!("{shown} is not the state folder of a gateway"))
                .hint("name the gateway's with `--state DIR`."),
        );
    }
    // No command changes the record meanwhile without being noticed at the end.
    let lease = LockFile::acquire(&places.folder.leases()).map_err(unusable(path))?;
    state_record::wait_until_unused(async || Ok(lease.has_others())).await?;
    places.refuse_running(&lease)?;
    match into {
        MoveInto::Database => places.into_database(&lease).await,
        MoveInto::File => places.into_file(&lease).await,
    }
}

impl Move {
    fn refuse_running(&self, lease: &LockFile) -> Result<(), Failure> {
        if !lease.has_others() {
            return Ok(());
        }
        let shown = self.folder.path().display();
        let running = format!("a gateway runs on the state folder {shown}");
        Err(Failure::usage(running).hint("end it first. Nothing was moved."))
    }

    async fn into_database(self, lease: &LockFile) -> Result<Exit, Failure> {
        let noted = self.folder.record_address();
        if let Some(address) = noted.map_err(unusable(self.folder.path()))? {
            let next = "it was moved already; name";
            return Err(state_record::in_another_database(
                &self.folder,
                &address,
                next,
            ));
        }
        state_record::check_exists(&self.folder).await?;
        let file = self.folder.record();
        let kept = beside(&file, "moved");
        refuse_existing(&kept)?;
        let keys = direct_record::keys(&self.folder).await.map_err(unopened)?;
        let source = Sqlite::at(&file).with_keys(&keys);
        source.ready().await.map_err(unreadable)?;
        let (to, from) = record_parts();
        let (sent, received) = tokio::join!(
            source.send_parts(to),
            self.database.receive_parts(keys, from)
        );
        both_sides(sent, received).map_err(unreadable)?;
        let contents = compared(&source, &*self.database.to_read()).await?;
        source.close().await.map_err(unreadable)?;
        // Those that began meanwhile have the file.
        self.refuse_running(lease)?;
        fs::rename(&file, &kept).map_err(unusable(&file))?;
        let address = self.database.address();
        let written = self.folder.write_record_address(Some(address));
        written.map_err(unusable(self.folder.path()))?;
        say(&contents, address)?;
        output::say(format_args!(
            "start the gateways with `--record {address}`. The file is {} now: delete it once they run",
            kept.display()
        ));
        note(&self.folder.with_database(self.database), "into a database").await;
        Ok(Exit::Done)
    }

    async fn into_file(self, lease: &LockFile) -> Result<Exit, Failure> {
        let database = &self.database;
        state_record::check_exists(&self.folder.clone().with_database(database.clone())).await?;
        state_record::wait_until_unused(async || {
            Ok(database.running().await.map_err(unreadable)? > 0)
        })
        .await?;
        self.refuse_running_elsewhere().await?;
        let file = self.folder.record();
        refuse_existing(&file)?;
        let unfinished = beside(&file, "unfinished");
        Sqlite::remove(&unfinished).map_err(unusable(&unfinished))?;
        let folder = self.folder.clone().with_database(database.clone());
        let keys = direct_record::keys(&folder).await.map_err(unopened)?;
        let target = Sqlite::at(&unfinished).with_keys(&keys);
        target.ready().await.map_err(unreadable)?;
        let (to, from) = record_parts();
        let (sent, received) = tokio::join!(
            database.send_parts(keys.clone(), to),
            target.receive_parts(from)
        );
        let moved = both_sides(sent, received).map_err(unreadable);
        let contents = match moved {
            Ok(()) => compared(&*database.to_read(), &target).await,
            Err(failure) => Err(failure),
        };
        target.close().await.map_err(unreadable)?;
        let contents = match contents {
            Ok(contents) => contents,
            Err(failure) => {
                Sqlite::remove(&unfinished).map_err(unusable(&unfinished))?;
                return Err(failure);
            }
        };
        self.refuse_running(lease)?;
        self.refuse_running_elsewhere().await?;
        fs::rename(&unfinished, &file).map_err(unusable(&file))?;
        database.set_aside().await.map_err(|fault| {
            let _left = fs::remove_file(&file);
            unreadable(fault).hint(
                "the schema mcp_elicit has to be renamed to mcp_elicit_moved: connect as its owner, and drop an earlier mcp_elicit_moved. Nothing was moved.",
            )
        })?;
        let written = self.folder.write_record_address(None);
        written.map_err(unusable(self.folder.path()))?;
        say(&contents, &file.display().to_string())?;
        output::say(format_args!(
            "start the gateway without `--record`. The tables in {} are in the schema mcp_elicit_moved now: drop it once the gateway runs",
            database.address()
        ));
        note(&self.folder, "into the state folder").await;
        Ok(Exit::Done)
    }

    async fn refuse_running_elsewhere(&self) -> Result<(), Failure> {
        let running = self.database.running().await.map_err(unreadable)?;
        if running == 0 {
            return Ok(());
        }
        let address = self.database.address();
        Err(
            Failure::usage(format!("{running} gateway(s) run on {address}")).hint(
                "end them first; one that was killed counts for 10 seconds. Nothing was moved.",
            ),
        )
    }
}

/// Writes the audit event, at the new place.
async fn note(folder: &StateFolder, reason: &str) {
    let details = Details {
        reason: Some(reason),
        ..Details::by(direct_record::ON_COMMAND_LINE)
    };
    inbox::note_all(folder, &[(Event::RecordMoved, details)]).await;
}

/// Returns the contents of the copy, which are those of the source.
async fn compared(
    source: &dyn RecordStore,
    copy: &dyn RecordStore,
) -> Result<RecordContents, Failure> {
    let read = source.contents().await.map_err(unreadable)?;
    let expected = RecordContents {
        // They have ended with their gateway.
        running_calls: 0,
        ..read
    };
    let found = copy.contents().await.map_err(unreadable)?;
    if found == expected {
        return Ok(found);
    }
    Err(
        Failure::usage("the record was changed while it was moved, and its copy is not complete")
            .hint(
                "end every gateway and command that uses it. Drop the schema mcp_elicit if it is in the new place, and move it again.",
            ),
    )
}

fn say(contents: &RecordContents, to: &str) -> Result<(), Failure> {
    let questions = contents.waiting + contents.undelivered + contents.ended;
    output::print(format_args!(
        "moved to {to}: {questions} question(s), of which {} wait, and {} event(s) of the audit",
        contents.waiting, contents.links
    ))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn refuse_existing(file: &Path) -> Result<(), Failure> {
    if !file.exists() {
        return Ok(());
    }
    let shown = file.display();
    Err(Failure::usage(format!("{shown} exists"))
        .hint("move it away, or delete it if it is not needed. Nothing was moved."))
}

fn unusable(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let shown = path.display().to_string();
    move |error| Failure::usage(format!("{shown} cannot be used")).because(error)
}
