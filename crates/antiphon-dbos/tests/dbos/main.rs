//! The engine on a PostgreSQL server that the tests start, in a folder and on a socket of its own.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

// The database server of the tests of `antiphon-store`.
#[allow(dead_code, reason = "these tests need a part of each file")]
mod folder;
#[allow(dead_code, reason = "these tests need a part of each file")]
mod postgres_server;
#[allow(dead_code, reason = "these tests need a part of each file")]
mod programs;

mod antiphon_program;
mod contract;
mod every_carrier;
mod fleet;
mod instance;
mod launch;
mod operations;
mod recovery;
mod shown;

use antiphon_dbos::{DbosOptions, DbosTasks};
use postgres_server::Server;
use std::{sync::Arc, time::Duration};

/// The time that no test needs.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the URL of a database of a test.
fn url(server: &Server) -> String {
    let folder = server.folder.path("").display().to_string().replace('/', "%2F");
    format!("postgres://postgres@{folder}:5432/postgres")
}

async fn connect(server: &Server, options: DbosOptions) -> Arc<DbosTasks> {
    Arc::new(DbosTasks::connect(&url(server), options).await.unwrap())
}
