//! A database in PostgreSQL.

use super::{
    database::{Database, TIMEOUT, clock, next},
    script::Script,
};
use antiphon::{
    server::{Ctx, StepError},
    store::{ManualStoreClock, PostgresOptions, PostgresStore, StoreClock, tokio_postgres},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::sync::Arc;

/// A schema of a test, with its table and its calls.
pub(super) struct Postgres {
    url: String,
    schema: String,
    clock: StoreClock,
    hand: ManualStoreClock,
}

impl Postgres {
    pub(super) async fn new(url: String) -> Self {
        let (clock, hand) = clock();
        let database = Self { url, schema: format!("case_{}", next()), clock, hand };
        let schema = &database.schema;
        let tables = format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.orders (item text)");
        database.client().await.batch_execute(&tables).await.unwrap();
        database
    }

    async fn client(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

impl Database for Postgres {
    type Store = PostgresStore;

    async fn open(&self) -> PostgresStore {
        let options = PostgresOptions::default().schema(self.schema.as_str()).timeout(TIMEOUT);
        // The tables of the test are found without their schema.
        let url = format!("{} options='-c search_path={}'", self.url, self.schema);
        PostgresStore::connect(&url, options.test_clock(self.clock.clone())).await.unwrap()
    }

    fn hand(&self) -> &ManualStoreClock {
        &self.hand
    }

    async fn orders(&self) -> i64 {
        let count = format!("SELECT count(*) FROM {}.orders", self.schema);
        self.client().await.query_one(&count, &[]).await.unwrap().get(0)
    }

    fn order<'a>(
        ctx: &'a Ctx,
        key: &'static str,
        store: &'a PostgresStore,
        script: &Arc<Script>,
    ) -> BoxFuture<'a, Result<String, StepError>> {
        let script = Arc::clone(script);
        ctx.in_transaction(key, store, async move |tx| {
            tx.execute("INSERT INTO orders (item) VALUES ($1)", &[&key]).await?;
            script.body.pass().await;
            script.end()
        })
        .boxed()
    }
}
