//! Reading a file of profiles. A mistake is reported with its line and column.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use mcp_elicit_core::form::{FieldKind, FieldKinds};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use toml::value::Datetime;

use crate::acts::ProgramActs;
use crate::entry::{Doubt, EntryKeys, EntrySource, Evidence, How, Played, ProfileEntry};
use crate::matching::{EntryMatch, Range as Versions};
use crate::profile::{Apps, Dialog, EmptyForm, Shows, Titles, View};

/// The longest duration in a profile.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// A file of profiles that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ProfileError {
    line: usize,
    column: usize,
    message: String,
}

impl ProfileError {
    /// Returns the line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns the mistake and what to write instead.
    pub fn message(&self) -> &str {
        &self.message
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntriesFile {
    #[serde(default)]
    client: Vec<Spanned<FileEntry>>,
    /// The spelling of a gateway's file.
    #[serde(default)]
    clients: Option<Spanned<IgnoredAny>>,
}

/// The entries in a gateway's file, beside which other tables may be.
#[derive(Deserialize)]
struct OtherTables {
    #[serde(default)]
    clients: Vec<Spanned<FileEntry>>,
    /// The spelling of a file of profiles.
    #[serde(default)]
    client: Option<Spanned<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileEntry {
    #[serde(default)]
    id: Option<String>,
    #[serde(rename = "match")]
    matches: Spanned<EntryMatch>,
    #[serde(default)]
    form: Option<Shows>,
    #[serde(default)]
    url: Option<Shows>,
    #[serde(default)]
    dialog: Option<Dialog>,
    #[serde(default)]
    kinds: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    titles: Option<Titles>,
    #[serde(default)]
    empty_form: Option<EmptyForm>,
    #[serde(default)]
    doubt: Option<Spanned<String>>,
    #[serde(default)]
    wait: Option<Spanned<String>>,
    #[serde(default)]
    progress_extends: Option<bool>,
    #[serde(default)]
    one_at_a_time: Option<bool>,
    #[serde(default)]
    echo_id: Option<bool>,
    #[serde(default)]
    apps: Option<Apps>,
    #[serde(default)]
    view: Option<View>,
    #[serde(default)]
    plays: Option<Played>,
    #[serde(default)]
    acts: ProgramActs,
    #[serde(default)]
    evidence: Vec<Spanned<FileEvidence>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEvidence {
    on: Datetime,
    #[serde(default)]
    version: Option<String>,
    how: How,
    what: String,
    #[serde(default, rename = "where")]
    place: Option<String>,
}

/// A mistake at a place of the text.
type MisplacedError = (Range<usize>, String);

/// Reads a file of profiles, whose entries are `[[client]]`.
pub(crate) fn file(text: &str, source: &EntrySource) -> Result<Vec<ProfileEntry>, ProfileError> {
    let file: EntriesFile = toml::from_str(text).map_err(|error| of_toml(text, &error))?;
    if let Some(other) = file.clients {
        let why = "a file of profiles has `[[client]]`: did you mean that? `[[clients]]` is for a gateway's file";
        return Err(error_at(text, other.span().start, why.to_owned()));
    }
    entries(text, file.client, source)
}

/// Reads the entries `[[clients]]` of a gateway's file.
pub(crate) fn tables(text: &str, path: &Path) -> Result<Vec<ProfileEntry>, ProfileError> {
    let file: OtherTables = toml::from_str(text).map_err(|error| of_toml(text, &error))?;
    if let Some(other) = file.client {
        let why = "a gateway's file has `[[clients]]`: did you mean that? `[[client]]` is for a file of profiles";
        return Err(error_at(text, other.span().start, why.to_owned()));
    }
    entries(text, file.clients, &EntrySource::File(path.to_owned()))
}

fn entries(
    text: &str,
    all: Vec<Spanned<FileEntry>>,
    source: &EntrySource,
) -> Result<Vec<ProfileEntry>, ProfileError> {
    let read = |entry: Spanned<FileEntry>| {
        let span = entry.span();
        let (line, _) = position(text, span.start);
        entry
            .into_inner()
            .read(span, source.clone(), line)
            .map_err(|(at, message)| error_at(text, at.start, message))
    };
    all.into_iter().map(read).collect()
}

impl FileEntry {
    fn read(
        self,
        span: Range<usize>,
        source: EntrySource,
        line: usize,
    ) -> Result<ProfileEntry, MisplacedError> {
        let at = self.matches.span();
        let matches = self.matches.into_inner();
        if matches == EntryMatch::default() {
            let why = "`match` needs a condition, such as name = \"my-client\"";
            return Err((at, why.to_owned()));
        }
        if let Some(range) = &matches.version {
            Versions::read(range).map_err(|why| (at.clone(), why))?;
        }
        if let Some(meta) = &matches.call_meta
            && !meta.pointer.starts_with('/')
        {
            let why = "`pointer` begins with `/`, such as /turn/trigger";
            return Err((at, why.to_owned()));
        }
        if self.evidence.is_empty() {
            let why =
                "the entry has no `evidence`: say when and how the client was seen to do this";
            return Err((span, why.to_owned()));
        }
        let doubt = self.doubt.map(|text| match text.get_ref().as_str() {
            "off" => Ok(Doubt::Off),
            _ => read_duration(&text).map(Doubt::Within),
        });
        let evidence = self.evidence.into_iter().map(read_evidence);
        Ok(ProfileEntry {
            source,
            line,
            id: self.id,
            matches,
            keys: EntryKeys {
                form: self.form,
                url: self.url,
                dialog: self.dialog,
                kinds: self.kinds.map(read_kinds).transpose()?,
                titles: self.titles,
                empty_form: self.empty_form,
                doubt: doubt.transpose()?,
                wait: self.wait.as_ref().map(read_duration).transpose()?,
                progress_extends: self.progress_extends,
                one_at_a_time: self.one_at_a_time,
                echo_id: self.echo_id,
                apps: self.apps,
                view: self.view,
            },
            plays: self.plays,
            acts: self.acts,
            evidence: evidence.collect::<Result<_, _>>()?,
        })
    }
}

fn read_kinds(words: Vec<Spanned<String>>) -> Result<FieldKinds, MisplacedError> {
    let kind = |word: Spanned<String>| {
        FieldKind::named(word.get_ref()).ok_or_else(|| {
            let known: Vec<_> = FieldKind::ALL.iter().map(|kind| kind.as_str()).collect();
            let why = format!(
                "`{}` is not a kind of field; write {}",
                word.get_ref(),
                known.join(", ")
            );
            (word.span(), why)
        })
    };
    words.into_iter().map(kind).collect()
}

fn read_duration(text: &Spanned<String>) -> Result<Duration, MisplacedError> {
    duration(text.get_ref()).ok_or_else(|| {
        let why = format!(
            "`{}` is not a duration; write 150ms, 5s or 2m",
            text.get_ref()
        );
        (text.span(), why)
    })
}

fn read_evidence(evidence: Spanned<FileEvidence>) -> Result<Evidence, MisplacedError> {
    let at = evidence.span();
    let evidence = evidence.into_inner();
    let (Some(on), None) = (evidence.on.date, evidence.on.time) else {
        let why = "`on` is a date, such as 2026-11-26";
        return Err((at, why.to_owned()));
    };
    if evidence.what.trim().is_empty() {
        let why = "`what` says what the client was seen to do";
        return Err((at, why.to_owned()));
    }
    Ok(Evidence {
        on: on.to_string(),
        version: evidence.version,
        how: evidence.how,
        what: evidence.what,
        place: evidence.place,
    })
}

/// Reads a duration such as `150ms`, `5s` or `2m`; `None` if it is not one, or longer than a day.
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let span = match &text[digits..] {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    };
    (span <= MAX_DURATION).then_some(span)
}

fn of_toml(text: &str, error: &toml::de::Error) -> ProfileError {
    let at = error.span().map_or(0, |span| span.start);
    error_at(text, at, error.message().trim().to_owned())
}

fn error_at(text: &str, at: usize, message: String) -> ProfileError {
    let (line, column) = position(text, at);
    ProfileError {
        line,
        column,
        message,
    }
}

/// Returns the line and the column of a place in a text, both from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[start..].chars().count() + 1)
}
