//! The keys of the record in its table, of which the key files of each state folder are a copy.
//!
//! A state folder needs only `seal.key` with the master key: it gets the other keys from the table. The first gateway of a
//! record that has no keys in the table yet writes those of its folder there, if they are the record's.
//!
//! A new data key is in the table before it seals: each running gateway reads it within a second, writes it into its folder,
//! and says so in its row. Only then the key is ready, and seals. So no value is sealed with a key that a running gateway
//! cannot open with.

use std::collections::BTreeSet;
use std::io;

use futures::FutureExt as _;
use tokio_postgres::Client;

use super::super::RecordStoreError;
use super::database::{BEGIN, PostgresDatabase, ended, execute, query};
use super::{keys, migrations, statements};
use crate::encryption::{self, Encryption, KeyId, SealedWith};
use crate::key_files::KeyFiles;
use crate::wrapped_keys::{
    DataKey, KeyBytes, KeyKind, RecordKeys, UnwrapError, WrappedKey, wrapped,
};
use crate::{IdentityKey, state_file};

/// The number of the lock under which one process changes the keys: "elikey" in ASCII.
const LOCK: i64 = 0x656c_696b_6579;
/// The most data keys of a record: fewer than a key file may have.
const MOST_DATA_KEYS: usize = 500;
/// The number of times that running gateways are looked for which do not have a new key, with a pause of a quarter of a
/// second before each.
const TRIES: usize = 60;

impl PostgresDatabase {
    /// Makes the key files of a state folder complete with the keys of the record. A record without keys in the table gets
    /// those of the folder, which are made if the record is new. Returns the number of the newest data key.
    pub(super) async fn share_keys(&self, files: &KeyFiles) -> Result<i32, RecordStoreError> {
        let (files, address) = (files.clone(), self.settings().address().to_owned());
        self.transaction(move |client| {
            let (files, address) = (files.clone(), address.clone());
            async move {
                lock(client).await?;
                let (keys, _) = shared(client, &files, &address).await?;
                Ok(keys.newest())
            }
            .boxed()
        })
        .await
    }

    /// Makes the key files of a state folder complete with the keys of the record. A record without keys in its table gets
    /// those of the folder, which are made if the record is new.
    ///
    /// # Errors
    /// If the database cannot be reached or used, or the folder's keys are another record's.
    pub async fn give_keys(&self, files: &KeyFiles) -> Result<(), RecordStoreError> {
        self.share_keys(files).await.map(drop)
    }

    /// Makes the key files of a state folder complete with the keys of the record. Nothing is written into the database, and a
    /// record without keys in its table stays one. Returns the ids of the master keys.
    pub(super) async fn complete_files(
        &self,
        files: &KeyFiles,
    ) -> Result<BTreeSet<String>, RecordStoreError> {
        let address = self.settings().address();
        self.with_rows(|rows| match rows {
            [] => Ok(BTreeSet::new()),
            rows => Ok(completed(rows, files, address)?.1),
        })
        .await
    }

    /// Checks that a start would complete the key files of a state folder. Nothing is written.
    pub(super) async fn check_files(&self, files: &KeyFiles) -> Result<(), RecordStoreError> {
        let address = self.settings().address();
        self.with_rows(|rows| match rows {
            [] => Ok(()),
            rows => fitting(rows, files, address).map(drop),
        })
        .await
    }

    /// Reads the table of keys while no other process changes it or the files; a record of an earlier version has no rows.
    async fn with_rows<T>(
        &self,
        read_rows: impl FnOnce(&[WrappedKey]) -> Result<T, RecordStoreError>,
    ) -> Result<T, RecordStoreError> {
        let client = self.connect().await?;
        migrations::recognize(&client, self.settings().address()).await?;
        let has_keys = query(&client, &statements::HAS_KEYS, &[]).await?;
        let has_keys: bool = has_keys
            .first()
            .ok_or(RecordStoreError::Closed)?
            .try_get(0)?;
        if !has_keys {
            return read_rows(&[]);
        }
        client.batch_execute(BEGIN).await?;
        let done = async {
            lock(&client).await?;
            read_rows(&read(&client).await?)
        };
        ended(&client, done.await).await
    }

    /// Adds a data key, which seals new values from the moment that every running gateway has it.
    pub(super) async fn rotate_keys(&self, files: &KeyFiles) -> Result<(), RecordStoreError> {
        let (of_folder, address) = (files.clone(), self.settings().address().to_owned());
        let number = self.transaction(move |client| {
            let (files, address) = (of_folder.clone(), address.clone());
            async move {
                lock(client).await?;
                let (keys, masters) = shared(client, &files, &address).await?;
                refuse_two_masters(&masters)?;
                // One that an interrupted command has added.
                if let Some(key) = keys.data.iter().find(|key| !key.is_ready) {
                    return Ok(key.number);
                }
                if keys.data.len() >= MOST_DATA_KEYS {
                    return Err(RecordStoreError::Refused {
                        why: format!("the record has {MOST_DATA_KEYS} data keys, which is the most"),
                        next: "run `mcp-elicit keys reseal`, and `mcp-elicit keys retire` while no gateway runs.".to_owned(),
                    });
                }
                let key = DataKey {
                    number: keys.newest().saturating_add(1),
                    key: encryption::random()?,
                    is_ready: false,
                };
                insert(client, &[wrapped(&keys.master, KeyKind::Data, &key)?]).await?;
                Ok(key.number)
            }
            .boxed()
        });
        let number = number.await?;
        self.wait_until_known(number).await?;
        self.execute(&statements::MAKE_KEY_READY, &[&number])
            .await?;
        self.share_keys(files).await.map(drop)
    }

    /// Waits until each running gateway has the key of this number.
    async fn wait_until_known(&self, number: i32) -> Result<(), RecordStoreError> {
        let without = self.running_without(|row| {
            let newest: Option<i32> = row.try_get(5)?;
            Ok(newest.is_some_and(|newest| newest >= number))
        });
        let without = without.await?;
        if without == 0 {
            return Ok(());
        }
        Err(RecordStoreError::Refused {
            why: format!(
                "{without} running gateway(s) or command(s) did not read the new key within 15 seconds, so it does not seal yet"
            ),
            next:
                "end those of an earlier version, and run this again: it goes on with the same key."
                    .to_owned(),
        })
    }

    /// Waits until the state folder of each running gateway has the master key of this id.
    async fn wait_until_has_master(&self, master: &str) -> Result<(), RecordStoreError> {
        let without = self.running_without(|row| {
            let masters: Option<Vec<String>> = row.try_get(6)?;
            Ok(masters.is_some_and(|masters| masters.iter().any(|id| id == master)))
        });
        let without = without.await?;
        if without == 0 {
            return Ok(());
        }
        Err(RecordStoreError::Refused {
            why: format!(
                "the state folder of {without} running gateway(s) does not have the new master key, so it would be refused at its next start"
            ),
            next: "run `mcp-elicit keys rewrap --new FILE` for the state folder of each gateway first, or end those that must not go on."
                .to_owned(),
        })
    }

    /// Waits until what a row says is true of each running gateway. Returns the number of those of which it is not.
    async fn running_without(
        &self,
        is_true: impl Fn(&tokio_postgres::Row) -> Result<bool, RecordStoreError>,
    ) -> Result<usize, RecordStoreError> {
        let mut without = 0;
        for _ in 0..TRIES {
            without = 0;
            for row in self.rows(&statements::RUNNING, &[]).await? {
                without += usize::from(!is_true(&row)?);
            }
            if without == 0 {
                break;
            }
            self.pause().await;
        }
        Ok(without)
    }

    /// Removes the data keys that no value needs from the table and from the files of a state folder. Returns their ids.
    pub(super) async fn retire_keys(
        &self,
        files: &KeyFiles,
        needed: &SealedWith,
    ) -> Result<Vec<KeyId>, RecordStoreError> {
        let (files, address) = (files.clone(), self.settings().address().to_owned());
        let needed = needed.clone();
        self.transaction(move |client| {
            let (files, address, needed) = (files.clone(), address.clone(), needed.clone());
            async move {
                lock(client).await?;
                let (mut keys, masters) = shared(client, &files, &address).await?;
                refuse_two_masters(&masters)?;
                let before = read_seal(&files)?;
                let mut at = 0;
                let (mut gone, mut ids) = (Vec::new(), Vec::new());
                keys.data.retain(|key| {
                    at += 1;
                    let stays = at == 1 || needed.any || needed.keys.contains(&KeyId::of(&key.key));
                    if !stays {
                        gone.push(key.number);
                        ids.push(KeyId::of(&key.key));
                    }
                    stays
                });
                execute(client, &statements::REMOVE_KEYS, &[&gone]).await?;
                let is_needed =
                    |key: &&KeyBytes| needed.any || needed.keys.contains(&KeyId::of(key));
                let rest: Vec<KeyBytes> = before.iter().filter(is_needed).copied().collect();
                let after = keys.in_file(&rest);
                if after != before {
                    write_seal(&files, &after)?;
                }
                // One with the bytes of the master key stays in the file.
                let removed = before.iter().filter(|key| !after.contains(key));
                for id in removed.map(KeyId::of) {
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                }
                Ok(ids)
            }
            .boxed()
        })
        .await
    }

    /// Wraps each key by a new master key too. The one before goes on until [`finish_rewrap`](Self::finish_rewrap). Returns
    /// `false` if it wrapped them already.
    pub(super) async fn rewrap_keys(
        &self,
        files: &KeyFiles,
        master: KeyBytes,
    ) -> Result<bool, RecordStoreError> {
        let (files, address) = (files.clone(), self.settings().address().to_owned());
        self.transaction(move |client| {
            let (files, address) = (files.clone(), address.clone());
            async move {
                lock(client).await?;
                let (keys, masters) = shared(client, &files, &address).await?;
                // Another folder of the record may have begun it.
                let is_new = !masters.contains(&KeyId::of(&master).to_string());
                if is_new {
                    refuse_two_masters(&masters)?;
                    refuse_own(&keys, &master)?;
                    insert(client, &keys.wrapped_by(&master)?).await?;
                }
                let mut file = read_seal(&files)?;
                if !file.contains(&master) {
                    file.push(master);
                    write_seal(&files, &file)?;
                }
                Ok(is_new)
            }
            .boxed()
        })
        .await
    }

    /// Removes what other master keys than this one wrap.
    pub(super) async fn finish_rewrap(
        &self,
        files: &KeyFiles,
        master: KeyBytes,
    ) -> Result<bool, RecordStoreError> {
        let (files, address) = (files.clone(), self.settings().address().to_owned());
        let id = KeyId::of(&master).to_string();
        let masters = self.rows(&statements::MASTERS, &[]).await?;
        let masters: Vec<String> = masters
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        if masters.len() > 1 && masters.contains(&id) {
            self.wait_until_has_master(&id).await?;
        }
        self.transaction(move |client| {
            let (files, address) = (files.clone(), address.clone());
            async move {
                lock(client).await?;
                let rows = read(client).await?;
                if !rows
                    .iter()
                    .any(|row| row.master == KeyId::of(&master).to_string())
                {
                    return Err(RecordStoreError::Refused {
                        why: "the new master key wraps no key of the record yet".to_owned(),
                        next: "run `mcp-elicit keys rewrap --new FILE` without `--finish` first."
                            .to_owned(),
                    });
                }
                // It unwraps all of them.
                let keys = unwrapped(&rows, &[master], &address)?;
                let id = KeyId::of(&master).to_string();
                let masters: BTreeSet<&String> = rows.iter().map(|row| &row.master).collect();
                execute(client, &statements::REMOVE_OTHER_MASTERS, &[&id]).await?;
                // The master keys from before, unless they are data keys too.
                let others = |key: &&KeyBytes| !masters.contains(&KeyId::of(key).to_string());
                let before = read_seal(&files)?;
                let rest: Vec<KeyBytes> = before.iter().filter(others).copied().collect();
                let after = keys.in_file(&rest);
                if after != before {
                    write_seal(&files, &after)?;
                }
                Ok(masters.len() > 1)
            }
            .boxed()
        })
        .await
    }
}

async fn lock(client: &Client) -> Result<(), RecordStoreError> {
    query(client, &statements::LOCK_LAYOUT, &[&LOCK]).await?;
    Ok(())
}

/// Returns the keys of the record, after the files of a state folder have them.
async fn shared(
    client: &Client,
    files: &KeyFiles,
    address: &str,
) -> Result<(RecordKeys, BTreeSet<String>), RecordStoreError> {
    let rows = read(client).await?;
    if rows.is_empty() {
        let keys = adopted(client, files, address).await?;
        let rows = keys.wrapped_by(&keys.master)?;
        insert(client, &rows).await?;
        let masters = rows.into_iter().map(|row| row.master).collect();
        return Ok((keys, masters));
    }
    completed(&rows, files, address)
}

/// Returns the keys of a table that has some, and those in the `seal.key` of a state folder, if the folder's are the
/// record's.
fn fitting(
    rows: &[WrappedKey],
    files: &KeyFiles,
    address: &str,
) -> Result<(RecordKeys, Vec<KeyBytes>), RecordStoreError> {
    let in_file = read_seal(files)?;
    if in_file.is_empty() {
        return Err(RecordStoreError::Refused {
            why: format!(
                "{} is missing or has no key, and wraps the keys of the record at {address}",
                files.seal.display()
            ),
            next:
                "copy seal.key from the state folder of a gateway of this record, or from a backup."
                    .to_owned(),
        });
    }
    let keys = unwrapped(rows, &in_file, address)?;
    if read_identity(files)?.is_some_and(|identity| identity != keys.identity) {
        return Err(keys::other("identity.key", address));
    }
    Ok((keys, in_file))
}

/// Completes the files of a state folder with the keys of a table that has some.
fn completed(
    rows: &[WrappedKey],
    files: &KeyFiles,
    address: &str,
) -> Result<(RecordKeys, BTreeSet<String>), RecordStoreError> {
    let (keys, before) = fitting(rows, files, address)?;
    if read_identity(files)?.is_none() {
        state_file::replace(&files.identity, &keys.identity)?;
    }
    let after = keys.in_file(&before);
    if after != before {
        write_seal(files, &after)?;
    }
    Ok((keys, rows.iter().map(|row| row.master.clone()).collect()))
}

/// Returns the keys of a folder for a record that has none in the table. They are made if the record is new, and must be
/// those with which an earlier version has begun it.
async fn adopted(
    client: &Client,
    files: &KeyFiles,
    address: &str,
) -> Result<RecordKeys, RecordStoreError> {
    let (identity, seal) = (
        keys::left(client, keys::IDENTITY).await?,
        keys::left(client, keys::SEAL).await?,
    );
    if identity.is_none() && seal.is_none() {
        // Both are made if they are missing.
        Encryption::from_file(&files.seal)?;
        IdentityKey::from_file(&files.identity)?;
    }
    let other = |name| keys::other(name, address);
    let own_seal = read_seal(files)?;
    let own = read_identity(files)?.ok_or_else(|| other("identity.key"))?;
    let known = RecordKeys::from_files(&own_seal, own).ok_or_else(|| other("seal.key"))?;
    let opens = |left: &Vec<u8>| {
        let encryption = Encryption::read(&files.seal).ok().flatten();
        encryption.is_some_and(|encryption| keys::opens(&encryption, left))
    };
    if identity.is_some_and(|left| !keys::is_of(&IdentityKey::new(own), &left)) {
        return Err(other("identity.key"));
    }
    if seal.is_some_and(|left| !opens(&left)) {
        return Err(other("seal.key"));
    }
    Ok(known)
}

fn unwrapped(
    rows: &[WrappedKey],
    known: &[KeyBytes],
    address: &str,
) -> Result<RecordKeys, RecordStoreError> {
    RecordKeys::unwrap(rows, known).map_err(|error| match error {
        UnwrapError::OtherMaster => keys::other("seal.key", address),
        UnwrapError::Damaged => RecordStoreError::Refused {
            why: format!(
                "a key in the table mcp_elicit.record_key of {address} was changed, or is missing"
            ),
            next: "restore the record from a backup.".to_owned(),
        },
    })
}

fn refuse_two_masters(masters: &BTreeSet<String>) -> Result<(), RecordStoreError> {
    if masters.len() < 2 {
        return Ok(());
    }
    Err(RecordStoreError::Refused {
        why: "the master key is being changed".to_owned(),
        next: "once every gateway has the new one, run `mcp-elicit keys rewrap --finish --new FILE` with its file first.".to_owned(),
    })
}

/// Rejects a new master key that is a key of the record already.
fn refuse_own(keys: &RecordKeys, master: &KeyBytes) -> Result<(), RecordStoreError> {
    if keys.identity != *master && !keys.data.iter().any(|key| key.key == *master) {
        return Ok(());
    }
    Err(RecordStoreError::Refused {
        why: "the new master key is another key of the record".to_owned(),
        next: "make a new one with `openssl rand -out FILE 32`.".to_owned(),
    })
}

async fn read(client: &Client) -> Result<Vec<WrappedKey>, RecordStoreError> {
    let rows = query(client, &statements::RECORD_KEYS, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(WrappedKey {
                kind: row.try_get(0)?,
                number: row.try_get(1)?,
                master: row.try_get(2)?,
                wrapped: row.try_get(3)?,
                is_ready: row.try_get(4)?,
            })
        })
        .collect()
}

async fn insert(client: &Client, rows: &[WrappedKey]) -> Result<(), RecordStoreError> {
    for row in rows {
        let values: super::database::StatementValues<'_> = &[
            &row.kind,
            &row.number,
            &row.master,
            &row.wrapped,
            &row.is_ready,
        ];
        execute(client, &statements::ADD_KEY, values).await?;
    }
    Ok(())
}

/// Returns the keys in the file of a folder; none if it is missing or has no whole keys.
fn read_seal(files: &KeyFiles) -> io::Result<Vec<KeyBytes>> {
    Ok(encryption::read_keys(&files.seal)?.unwrap_or_default())
}

/// Returns which of these master keys the files of a state folder have.
pub(super) fn masters_of(files: &KeyFiles, masters: Vec<String>) -> io::Result<Vec<String>> {
    let keys = read_seal(files)?;
    let ids: Vec<String> = keys.iter().map(|key| KeyId::of(key).to_string()).collect();
    Ok(masters.into_iter().filter(|id| ids.contains(id)).collect())
}

fn read_identity(files: &KeyFiles) -> io::Result<Option<KeyBytes>> {
    let keys = encryption::read_keys(&files.identity)?;
    Ok(keys.and_then(|keys| keys.first().copied()))
}

fn write_seal(files: &KeyFiles, keys: &[KeyBytes]) -> io::Result<()> {
    state_file::replace(&files.seal, &keys.concat())
}
