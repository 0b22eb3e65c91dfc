//! The record as the commands use it, beside running gateways.

use std::io;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use futures::FutureExt as _;

use super::super::api_tokens::ApiTokenStore;
use super::super::database_record::DatabaseRecord;
use super::super::shared_rows::SharedRowStore;
use super::super::{PartReceiver, PartSender, RecordFuture, RecordStore};
use super::{
    Postgres, PostgresDatabase, PostgresReplica, PostgresSettings, PostgresTables, migrations,
    statements,
};
use crate::encryption::{KeyId, SealedWith, sealed_texts};
use crate::{KeyFiles, LockFile, OwnKeys};

/// A record in a PostgreSQL database, for the commands that read or change it.
#[derive(Clone, Debug)]
pub struct PostgresRecord {
    database: PostgresDatabase,
}

impl PostgresRecord {
    /// Creates the connections to the record, which are made on demand.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn new(settings: PostgresSettings) -> io::Result<Self> {
        let database = PostgresDatabase::new(settings)?;
        Ok(Self { database })
    }
}

impl DatabaseRecord for PostgresRecord {
    fn address(&self) -> &str {
        self.database.settings().address()
    }

    fn recognize(&self) -> RecordFuture<'_, ()> {
        async {
            let client = self.database.connect().await?;
            migrations::recognize(&client, self.address()).await
        }
        .boxed()
    }

    fn to_read(&self) -> Arc<dyn RecordStore> {
        Arc::new(Postgres::at(self.database.clone()))
    }

    fn open(
        &self,
        keys: OwnKeys,
        files: KeyFiles,
    ) -> RecordFuture<'_, (Arc<dyn RecordStore>, LockFile)> {
        async move {
            let store = Postgres::at(self.database.clone()).with_keys(&keys);
            store.ready().await?;
            let replica = PostgresReplica::join(self.database.clone(), None, Some(files)).await?;
            let store: Arc<dyn RecordStore> = Arc::new(store.of(&replica));
            Ok((store, LockFile::among(Arc::new(replica))))
        }
        .boxed()
    }

    fn share_keys(&self, files: KeyFiles) -> RecordFuture<'_, Vec<String>> {
        async move {
            let masters = self.database.complete_files(&files).await?;
            Ok(masters.into_iter().collect())
        }
        .boxed()
    }

    fn check_keys(&self, files: KeyFiles) -> RecordFuture<'_, ()> {
        async move { self.database.check_files(&files).await }.boxed()
    }

    fn rotate_keys(&self, files: KeyFiles) -> RecordFuture<'_, ()> {
        async move { self.database.rotate_keys(&files).await }.boxed()
    }

    fn retire_keys(&self, files: KeyFiles, needed: SealedWith) -> RecordFuture<'_, Vec<KeyId>> {
        async move { self.database.retire_keys(&files, &needed).await }.boxed()
    }

    fn rewrap_keys(&self, files: KeyFiles, master: [u8; 32]) -> RecordFuture<'_, bool> {
        async move { self.database.rewrap_keys(&files, master).await }.boxed()
    }

    fn finish_rewrap(&self, files: KeyFiles, master: [u8; 32]) -> RecordFuture<'_, bool> {
        async move { self.database.finish_rewrap(&files, master).await }.boxed()
    }

    fn sealed_with(&self) -> RecordFuture<'_, SealedWith> {
        async {
            let mut found = SealedWith::default();
            let rows = self.database.rows(&statements::BEGINNINGS, &[]).await?;
            for row in rows {
                found.add(row.try_get(0)?);
            }
            let rows = self.database.rows(&statements::TEAMS, &[]).await?;
            for row in rows {
                for hex in sealed_texts(row.try_get(0)?) {
                    found.add(&HEXLOWER.decode(hex.as_bytes()).unwrap_or_default());
                }
            }
            Ok(found)
        }
        .boxed()
    }

    fn running(&self) -> RecordFuture<'_, usize> {
        async { Ok(self.database.rows(&statements::RUNNING, &[]).await?.len()) }.boxed()
    }

    fn send_parts(&self, keys: OwnKeys, to: PartSender) -> RecordFuture<'_, ()> {
        async move {
            let store = Postgres::at(self.database.clone()).with_keys(&keys);
            store.send_parts(to).await
        }
        .boxed()
    }

    fn receive_parts(&self, keys: OwnKeys, from: PartReceiver) -> RecordFuture<'_, ()> {
        async move {
            let store = Postgres::at(self.database.clone()).with_keys(&keys);
            store.receive_parts(from).await
        }
        .boxed()
    }

    fn refuse_occupied(&self) -> RecordFuture<'_, ()> {
        async move { Postgres::at(self.database.clone()).refuse_occupied().await }.boxed()
    }

    fn set_aside(&self) -> RecordFuture<'_, ()> {
        async move { Postgres::at(self.database.clone()).set_aside().await }.boxed()
    }

    fn tokens(&self) -> Arc<dyn ApiTokenStore> {
        Arc::new(PostgresTables::at(self.database.clone()))
    }

    fn shared_rows(&self) -> Arc<dyn SharedRowStore> {
        Arc::new(PostgresTables::at(self.database.clone()))
    }
}
