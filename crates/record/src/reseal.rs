//! Values that are sealed anew with the newest key, so that none needs an earlier one.
//!
//! It works beside running gateways, in parts that are each complete: one that ends in the middle has lost nothing, and the
//! next goes on. A row that was changed meanwhile is read again. A gateway may write a value back that it has in memory,
//! sealed with an earlier key: such a key stays until no value names it.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;

use crate::audit::{Details, Event};
use crate::candidates::{ARGUMENTS, COLUMN};
use crate::encryption::{KeyId, UnsealError, sealed_texts};
use crate::store::{RecordStore as _, ResealedRow, SealedQuery, SealedRow, SealedTable};
use crate::team::{COMMENT, ENTERED};
use crate::{Record, RecordError, associated_data, grants};

/// The most rows that are read and written at once.
const AT_ONCE: usize = 500;
/// The number of times that rows are read which were changed meanwhile.
const TRIES: usize = 3;

/// The result of sealing values anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// The number of values that were sealed anew.
    pub values: u64,
    /// The number of rows that were changed meanwhile, time and again, and are as they were.
    pub left: u64,
    /// The number of values that no key here opens. They are as they were.
    pub unopened: u64,
    /// The keys that sealed some of those, and are not here.
    pub missing: BTreeSet<KeyId>,
}

/// One run over the record.
struct ResealRun<'a, F> {
    by: &'a str,
    progress: F,
    is_audited: bool,
    done: Resealed,
}

impl Record {
    /// Seals every value anew that an earlier key sealed. The first change of a run has an entry in the audit under this
    /// actor. `progress` gets the numbers after each part.
    ///
    /// # Errors
    /// If the store fails, or a value cannot be sealed. What was sealed anew before stays so.
    pub async fn reseal(
        &self,
        by: &str,
        progress: impl FnMut(&Resealed),
    ) -> Result<Resealed, RecordError> {
        let mut run = ResealRun {
            by,
            progress,
            is_audited: false,
            done: Resealed::default(),
        };
        for _ in 0..TRIES {
            let newest = self.keys.encryption.newest();
            run.done = Resealed {
                values: run.done.values,
                ..Resealed::default()
            };
            for table in SealedTable::ALL {
                self.reseal_table(table, &mut run).await?;
            }
            // What people are typing is not sealed anew: it is typed again, or was left.
            if let (Some(drafts), Some(newest)) = (self.store.drafts(), newest) {
                drafts.drop_drafts_of_other_keys(newest.beginning()).await?;
            }
            // The key may have been changed meanwhile.
            if run.done.left == 0 && self.keys.encryption.newest() == newest {
                break;
            }
        }
        Ok(run.done)
    }

    async fn reseal_table<F: FnMut(&Resealed)>(
        &self,
        table: SealedTable,
        run: &mut ResealRun<'_, F>,
    ) -> Result<(), RecordError> {
        let mut after = String::new();
        loop {
            let newest = self.keys.encryption.newest();
            let query = SealedQuery {
                table,
                newest: newest.map(KeyId::beginning).unwrap_or_default(),
                after,
                most: AT_ONCE,
            };
            let rows = self.store.sealed_rows(query).await?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            after = last.key().to_owned();
            let mut changes = Vec::new();
            let mut values = 0;
            for before in rows {
                let (after, count) = self.resealed(&before, &mut run.done)?;
                if count > 0 {
                    values += count;
                    changes.push(ResealedRow { before, after });
                }
            }
            if changes.is_empty() {
                continue;
            }
            if !run.is_audited {
                let key = newest.map(|key| format!("with the key {key}"));
                let details = Details {
                    reason: key.as_deref(),
                    ..Details::by(run.by)
                };
                self.audit_details(Event::Resealed, &details).await?;
                self.flush().await?;
                run.is_audited = true;
            }
            let wanted = changes.len();
            let made = self.store.reseal(changes).await?;
            run.done.left += u64::try_from(wanted.saturating_sub(made)).unwrap_or(u64::MAX);
            run.done.values += values;
            (run.progress)(&run.done);
        }
    }

    /// Returns a row with its values sealed anew, and the number of those that were not sealed with the newest key.
    fn resealed(
        &self,
        row: &SealedRow,
        done: &mut Resealed,
    ) -> Result<(SealedRow, u64), RecordError> {
        let mut after = row.clone();
        let mut count = 0;
        let mut anew = |data: &[String], value: &mut Vec<u8>| {
            let sealed = self.sealed_anew(data, value, done)?;
            if let Some(sealed) = sealed {
                *value = sealed;
                count += 1;
            }
            Ok::<_, RecordError>(())
        };
        match &mut after {
            SealedRow::Question {
                id,
                arguments,
                content,
                team,
                ..
            } => {
                let data = |columns: &[&str]| -> Vec<String> {
                    let all = columns.iter();
                    all.map(|column| associated_data(id, column)).collect()
                };
                if let Some(arguments) = arguments {
                    anew(&data(&[ARGUMENTS, COLUMN]), arguments)?;
                }
                if let Some(content) = content {
                    anew(&data(&["content"]), content)?;
                }
                if let Some(team) = team {
                    let data = data(&[ENTERED, COMMENT, ARGUMENTS, "content"]);
                    let texts: BTreeSet<String> = sealed_texts(team).collect();
                    for text in texts {
                        let before = HEXLOWER.decode(text.as_bytes()).unwrap_or_default();
                        let mut value = before.clone();
                        anew(&data, &mut value)?;
                        if value != before {
                            let quoted = |value: &str| format!("\"{value}\"");
                            let value = HEXLOWER.encode(&value);
                            *team = team.replace(&quoted(&text), &quoted(&value));
                        }
                    }
                }
            }
            SealedRow::Result { id, result } => anew(&[associated_data(id, "result")], result)?,
            SealedRow::Grant {
                key,
                at,
                until,
                answers,
            } => anew(&[grants::bound_to(key, *at, *until)], answers)?,
        }
        Ok((after, count))
    }

    /// Returns a value sealed anew; `None` if the newest key sealed it, or if it does not open with any of these
    /// associated data.
    fn sealed_anew(
        &self,
        data: &[String],
        value: &[u8],
        done: &mut Resealed,
    ) -> Result<Option<Vec<u8>>, RecordError> {
        let encryption = &self.keys.encryption;
        if encryption.is_newest(value) {
            return Ok(None);
        }
        let mut missing = None;
        for data in data {
            match encryption.open(data, value) {
                Ok(text) => return Ok(Some(encryption.seal(data, &text)?)),
                Err(UnsealError::MissingKey(key)) => missing = Some(key),
                Err(UnsealError::NotOpened) => {}
            }
        }
        done.unopened += 1;
        done.missing.extend(missing);
        Ok(None)
    }
}
