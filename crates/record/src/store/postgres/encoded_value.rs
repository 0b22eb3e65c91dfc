//! Values of statements as the bytes that are sent, so that a statement can run in a task of its own.

use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type};

use super::super::{DatabaseError, DatabaseFault, RecordStoreError};
use super::database::StatementValues;
use super::statements::Statement;

/// A value of a statement in the database's binary format; `None` for NULL.
#[derive(Debug)]
pub(super) struct EncodedValue(Option<BytesMut>);

impl EncodedValue {
    /// Encodes the values of a statement.
    pub(super) fn of_all(
        statement: &Statement,
        values: StatementValues<'_>,
    ) -> Result<Vec<Self>, RecordStoreError> {
        debug_assert_eq!(statement.types.len(), values.len(), "{}", statement.text);
        let encoded = statement.types.iter().zip(values).map(|(kind, value)| {
            let mut bytes = BytesMut::new();
            Ok(Self(match value.to_sql_checked(kind, &mut bytes)? {
                IsNull::Yes => None,
                IsNull::No => Some(bytes),
            }))
        });
        encoded
            .collect::<Result<_, Box<dyn Error + Sync + Send>>>()
            .map_err(|error| {
                let fault = DatabaseFault::Other;
                DatabaseError::of_server(fault, std::io::Error::other(error)).into()
            })
    }

    /// Returns the values as those of a statement.
    pub(super) fn borrowed(values: &[Self]) -> Vec<&(dyn ToSql + Sync)> {
        let each = values.iter().map(|value| value as &(dyn ToSql + Sync));
        each.collect()
    }
}

impl ToSql for EncodedValue {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Ok(match &self.0 {
            Some(bytes) => {
                out.put_slice(bytes);
                IsNull::No
            }
            None => IsNull::Yes,
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(kind, out)
    }
}
