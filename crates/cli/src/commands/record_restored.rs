//! `record restored`: the end of what could take effect a second time, after a restore with other tools.

use mcp_elicit_inbox::backup::{self, BackupError, Restore};
use mcp_elicit_record::clock;

use super::backup::failed;
use super::restore::in_lines;
use super::state_record;
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// Ends what could take effect a second time. No gateway may run.
pub(super) async fn run(place: &RecordLocation, revokes_tokens: bool) -> Result<Exit, Failure> {
    let named = state_record::named_folder(place)?;
    let folder = named.folder;
    state_record::check_exists(&folder).await?;
    let settings = Restore { revokes_tokens };
    let done = state_record::once_unused(
        async || backup::end_restored(&folder, settings, clock::now).await,
        |error| matches!(error, BackupError::Running(_)),
    )
    .await;
    let Some(ended) = done.map_err(failed)? else {
        output::say("nothing was left to end: the audit says already that the record was restored");
        return Ok(Exit::Done);
    };
    for line in in_lines(ended) {
        output::say(line);
    }
    output::say("the record can be used: the audit says that it was restored");
    if ended.tokens > 0 {
        output::say(format_args!(
            "{} token(s) of programs are valid, even if they were revoked after the copy was made: see `mcp-elicit tokens list{}`",
            ended.tokens, named.options
        ));
    }
    Ok(Exit::Done)
}
