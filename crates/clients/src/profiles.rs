//! All entries, in order, and the profile of a client.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use crate::acts::ProgramActs;
use crate::entry::{EntrySource, Played, ProfileEntry};
use crate::matching::ObservedClient;
use crate::profile::Profile;
use crate::read::{self, ProfileError};

/// The entries that come with the program.
const BUILT_IN: &str = include_str!("../profiles.toml");

static BUILT_IN_ENTRIES: LazyLock<Vec<ProfileEntry>> = LazyLock::new(|| {
    let read = read::file(BUILT_IN, &EntrySource::BuiltIn);
    debug_assert!(read.is_ok(), "{read:?}");
    read.unwrap_or_default()
});

/// The entries that apply, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Profiles {
    entries: Vec<ProfileEntry>,
    doubt: Option<Duration>,
}

/// The profile of a client, with the entries that it comes from.
#[derive(Clone, Debug)]
pub struct Recognized<'a> {
    /// The profile.
    pub profile: Profile,
    /// The entries that match, in order.
    pub entries: Vec<&'a ProfileEntry>,
}

impl PartialEq for ProfileEntry {
    /// Compares the place and the keys.
    fn eq(&self, other: &Self) -> bool {
        (&self.source, self.line, &self.matches, &self.keys)
            == (&other.source, other.line, &other.matches, &other.keys)
    }
}

impl Default for Profiles {
    /// Returns the entries that come with the program.
    fn default() -> Self {
        Self {
            entries: BUILT_IN_ENTRIES.clone(),
            doubt: None,
        }
    }
}

impl Profiles {
    /// Adds the entries of an operator's file, whose text this is.
    ///
    /// # Errors
    /// The first mistake, with its position.
    pub fn add_file(&mut self, path: &Path, text: &str) -> Result<(), ProfileError> {
        let source = EntrySource::File(PathBuf::from(path));
        self.entries.extend(read::file(text, &source)?);
        Ok(())
    }

    /// Adds the entries `[[clients]]` of a gateway's file, whose text this is.
    ///
    /// # Errors
    /// The first mistake, with its position.
    pub fn add_tables(&mut self, path: &Path, text: &str) -> Result<(), ProfileError> {
        self.entries.extend(read::tables(text, path)?);
        Ok(())
    }

    /// Sets the time within which an act is doubted, for clients whose entries say nothing about it.
    pub fn set_doubt(&mut self, doubt: Option<Duration>) {
        self.doubt = doubt;
    }

    /// Returns all entries, in order.
    pub fn entries(&self) -> &[ProfileEntry] {
        &self.entries
    }

    /// Returns the profile of a client.
    pub fn profile(&self, seen: &ObservedClient<'_>) -> Profile {
        let mut profile = Profile {
            doubt: self.doubt,
            ..Profile::default()
        };
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.matches.holds(seen))
        {
            entry.apply(&mut profile);
        }
        profile
    }

    /// Returns the profile of a client, with the entries that it comes from.
    pub fn recognize(&self, seen: &ObservedClient<'_>) -> Recognized<'_> {
        let matching = self
            .entries
            .iter()
            .filter(|entry| entry.matches.holds(seen));
        Recognized {
            profile: self.profile(seen),
            entries: matching.collect(),
        }
    }

    /// Returns the client of this short name as it describes itself, its profile, and its answers.
    pub fn played(&self, id: &str) -> Option<(Played, Profile, ProgramActs)> {
        let mut found = None;
        for entry in self.entries.iter().filter(|entry| entry.id() == Some(id)) {
            let (plays, profile, acts) =
                found.get_or_insert_with(|| (None, Profile::default(), ProgramActs::default()));
            *plays = entry.plays.clone().or_else(|| plays.take());
            entry.apply(profile);
            acts.apply(entry.acts);
        }
        let (plays, profile, acts) = found?;
        Some((plays?, profile, acts))
    }

    /// Returns the short names of clients that can be played, in order.
    pub fn playable(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for entry in &self.entries {
            if let (Some(id), Some(_)) = (entry.id(), &entry.plays)
                && !names.contains(&id)
            {
                names.push(id);
            }
        }
        names
    }
}
