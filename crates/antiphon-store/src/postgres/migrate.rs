//! The versions of the tables: applied in order, by one instance at a time.

use tokio_postgres::{Client, Error};

use super::error::of_statement;
use super::names::Names;
use super::statements::{
    CREATE_MIGRATIONS, LOCK_MIGRATIONS, MIGRATIONS, SCHEMA_EXISTS, SET_VERSION, TABLE_EXISTS, VERSION,
};
use crate::error::{StoreError, StoreErrorKind, Written};

/// Creates the missing tables and functions, if `may_change`; otherwise only checks their version.
pub(super) async fn migrate(client: &mut Client, names: &Names, may_change: bool) -> Result<(), StoreError> {
    let fail = |error| of_statement("connect", Written::Unknown, error);
    let newest = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let mut found = version(client, names).await.map_err(fail)?;
    if found < newest && may_change {
        apply(client, names).await.map_err(fail)?;
        found = version(client, names).await.map_err(fail)?;
    }
    let text = match found {
        _ if found == newest => return Ok(()),
        0 => format!(
            "the tables are not in the schema {}: let a role that may create them connect once with `migrate(true)`",
            names.schema()
        ),
        _ if found < newest => format!(
            "the tables have version {found}, this program needs {newest}: let a role that may change them connect once with `migrate(true)`"
        ),
        _ => format!(
            "the tables have version {found}, this program needs {newest}: a later program changed them"
        ),
    };
    Err(StoreError::read(StoreErrorKind::Version, "connect", text))
}

/// Returns the version of the tables; 0 if there are none.
async fn version(client: &Client, names: &Names) -> Result<i64, Error> {
    let exists: bool = client.query_one(TABLE_EXISTS, &[&names.migrations()]).await?.get(0);
    if !exists {
        return Ok(0);
    }
    Ok(client.query_one(&names.fill(VERSION), &[]).await?.get(0))
}

/// Applies the missing versions in one transaction.
async fn apply(client: &mut Client, names: &Names) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    transaction.query_one(LOCK_MIGRATIONS, &[&names.migrations()]).await?;
    // `IF NOT EXISTS` asks for the right to create a schema even if it is there.
    let exists: bool = transaction.query_one(SCHEMA_EXISTS, &[&names.fill("{schema}")]).await?.get(0);
    if !exists {
        transaction.batch_execute(&names.fill("CREATE SCHEMA {schema}")).await?;
    }
    transaction.batch_execute(&names.fill(CREATE_MIGRATIONS)).await?;
    let found: i64 = transaction.query_one(&names.fill(VERSION), &[]).await?.get(0);
    for (number, migration) in (1_i64..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        transaction.batch_execute(&names.fill(migration)).await?;
        transaction.execute(&names.fill(SET_VERSION), &[&number]).await?;
    }
    transaction.commit().await
}
