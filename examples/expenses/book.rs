//! The expenses, in the file of the store, and the bank.

use antiphon::{
    Result,
    store::rusqlite::{Connection, OptionalExtension as _, Row, params},
};
use std::{path::Path, path::PathBuf, sync::Arc, sync::Mutex, sync::MutexGuard, sync::PoisonError};

#[derive(Clone)]
pub(crate) struct Book(PathBuf);

#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Expense {
    pub(crate) id: i64,
    pub(crate) owner: String,
    pub(crate) project: String,
    pub(crate) cents: i64,
    pub(crate) payment: Option<String>,
}

impl Book {
    /// Opens the book, and makes its tables if they are not there.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        Connection::open(file)?.execute_batch(
            "CREATE TABLE IF NOT EXISTS projects (id TEXT PRIMARY KEY, title TEXT NOT NULL);
             INSERT OR IGNORE INTO projects VALUES ('apollo', 'Apollo'), ('gemini', 'Gemini');
             CREATE TABLE IF NOT EXISTS expenses (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, project TEXT NOT NULL,
                                                  cents INTEGER NOT NULL, payment TEXT);",
        )?;
        Ok(Self(file.to_owned()))
    }

    /// Returns the projects and their titles, in a fixed order: a question with other choices is another question.
    pub(crate) fn projects(&self) -> Result<Vec<(String, String)>> {
        let connection = Connection::open(&self.0)?;
        let mut statement = connection.prepare("SELECT id, title FROM projects ORDER BY id")?;
        let projects = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(projects.collect::<Result<_, _>>()?)
    }

    pub(crate) fn expense(&self, id: i64) -> Result<Option<Expense>> {
        let connection = Connection::open(&self.0)?;
        let query = "SELECT id, owner, project, cents, payment FROM expenses WHERE id = ?1";
        Ok(connection.query_row(query, [id], read).optional()?)
    }

    /// Returns the expenses of a user behind this one, at most so many.
    pub(crate) fn expenses(&self, owner: &str, behind: i64, most: usize) -> Result<Vec<Expense>> {
        let connection = Connection::open(&self.0)?;
        let mut statement = connection.prepare(
            "SELECT id, owner, project, cents, payment FROM expenses WHERE owner = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
        )?;
        let expenses = statement.query_map(params![owner, behind, i64::try_from(most)?], read)?;
        Ok(expenses.collect::<Result<_, _>>()?)
    }

    pub(crate) fn sum(&self, owner: &str, project: &str) -> Result<i64> {
        let query = "SELECT coalesce(sum(cents), 0) FROM expenses WHERE owner = ?1 AND project = ?2";
        Ok(Connection::open(&self.0)?.query_row(query, [owner, project], |row| row.get(0))?)
    }
}

fn read(row: &Row<'_>) -> antiphon::store::rusqlite::Result<Expense> {
    let (id, owner, project) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(Expense { id, owner, project, cents: row.get(3)?, payment: row.get(4)? })
}

/// A bank, which pays once for each idempotency key.
#[derive(Clone, Default)]
pub(crate) struct Bank(Arc<Mutex<Vec<String>>>);

impl Bank {
    /// Pays, or finds that it has paid. Returns the number of the payment.
    pub(crate) async fn pay(&self, key: &str) -> Option<String> {
        tokio::task::yield_now().await;
        if self.find(key).is_none() {
            self.lock().push(key.to_owned());
        }
        tokio::task::yield_now().await;
        self.find(key)
    }

    /// Returns the number of the payment with this key.
    pub(crate) fn find(&self, key: &str) -> Option<String> {
        Some(format!("payment {}", self.lock().iter().position(|paid| paid == key)? + 1))
    }

    pub(crate) fn payments(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
