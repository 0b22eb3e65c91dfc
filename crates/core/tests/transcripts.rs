//! Checks every transcript of the project with core: each message is legal by the official schema, is read and written
//! again unchanged, and each question ends as the transcript says.

mod transcripts {
    mod refusals;
    pub(crate) mod table;
}

use std::collections::BTreeMap;

use mcp_elicit_core::wire::Revision;
use mcp_elicit_testkit::spec::Spec;
use mcp_elicit_testkit::transcript::{Transcript, TranscriptEvent};
use transcripts::table::Table;

#[test]
fn every_transcript_is_what_core_reads_and_writes() {
    let specs = Revision::ALL.map(|revision| {
        (
            revision.as_str(),
            Spec::from_revision(revision.as_str()).unwrap(),
        )
    });
    let specs = BTreeMap::from(specs);
    let mut wrong = Vec::new();
    for (path, transcript) in Transcript::all().unwrap() {
        let mut table = Table::new(&transcript.revision, &specs[&*transcript.revision]);
        for line in transcript.bound() {
            let happened = match &line.event {
                TranscriptEvent::Says { pattern, side, .. } => table.said(*side, pattern),
                TranscriptEvent::Person { action, content } => {
                    table.person(action, content.as_ref())
                }
                TranscriptEvent::Time { seconds } => table.time(*seconds),
                TranscriptEvent::Outcome { phase } => table.outcome(phase),
            };
            if let Err(why) = happened {
                wrong.push(format!("{}:{}: {why}", path.display(), line.number));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_protocol_table_has_a_transcript() {
    let all = Transcript::all().unwrap();
    for (revision, name) in [
        ("2025-06-18", "form-accept"),
        ("2025-06-18", "no-capability"),
        ("2025-11-25", "url-complete"),
        ("2025-11-25", "url-required"),
        ("2025-11-25", "mode-not-declared"),
        ("2025-11-25", "defaults-and-choices"),
        ("2026-07-28", "form-accept"),
        ("2026-07-28", "url"),
        ("2026-07-28", "no-capability"),
        ("2026-07-28", "discover"),
        ("2026-07-28", "prompt"),
        ("2026-07-28", "resource"),
        ("2026-07-28", "task"),
    ] {
        let file = format!("{revision}/{name}.txt");
        assert!(
            all.iter()
                .any(|(path, transcript)| path.ends_with(&file) && transcript.revision == revision),
            "{file} is missing"
        );
    }
}
