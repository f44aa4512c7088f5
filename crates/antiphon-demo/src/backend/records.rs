//! The data of a backend (folders, receipts, deposits, and the counts of all effects), and the operations in the body of a request.

use antiphon::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The data of a backend.
#[derive(Default)]
pub(super) struct Records {
    folders: BTreeMap<String, Vec<String>>,
    /// The receipts by idempotency key.
    receipts: BTreeMap<String, String>,
    /// The users who paid, by number of the booking.
    pub(super) deposits: BTreeMap<String, String>,
    pub(super) counts: EffectCounts,
}

/// The data of a backend, shared by all its requests.
#[derive(Clone)]
pub(super) struct SharedRecords(Arc<Mutex<Records>>);

impl SharedRecords {
    /// Returns the data that a backend begins with.
    pub(super) fn with_folders() -> Self {
        let reports = vec!["q1.txt".into(), "q2.txt".into()];
        let folders = BTreeMap::from([("reports".into(), reports), ("drafts".into(), Vec::new())]);
        Self(Arc::new(Mutex::new(Records { folders, ..Records::default() })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// Performs an operation and returns its result.
    pub(super) fn apply(&mut self, operation: Operation) -> Result<Value> {
        Ok(match operation {
            Operation::Fill { path, files } => {
                self.folders.insert(path, files);
                Value::Null
            }
            Operation::List { path } => json!(self.folders.get(&path)),
            Operation::Delete { path } => {
                let existed = self.folders.remove(&path).is_some();
                if existed {
                    *self.counts.deleted.entry(path).or_default() += 1;
                }
                json!(existed)
            }
            Operation::DeleteFile { path, file } => {
                let files = self.folders.get_mut(&path);
                let index = files.as_ref().and_then(|files| files.iter().position(|name| *name == file));
                if let Some((files, index)) = files.zip(index) {
                    files.remove(index);
                    *self.counts.deleted.entry(format!("{path}/{file}")).or_default() += 1;
                }
                json!(index.is_some())
            }
            Operation::Charge { amount, key } => {
                *self.counts.charges.entry(key.clone()).or_default() += 1;
                let next = self.receipts.len() + 1;
                json!(self.receipts.entry(key).or_insert_with(|| format!("receipt {next} over {amount} EUR")))
            }
            Operation::Deposit { booking_id } => json!(self.deposits.get(&booking_id.to_string())),
            Operation::Compute { portion, key } => {
                *self.counts.portions.entry(key).or_default() += 1;
                json!((portion * 1000..(portion + 1) * 1000).filter(|number| is_prime(*number)).count())
            }
            Operation::Count => serde_json::to_value(&self.counts)?,
        })
    }
}

fn is_prime(number: u32) -> bool {
    number > 1
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}

/// One operation: the body of `POST /`, such as `{"operation": "list", "path": "reports"}`. The reply is JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operation {
    /// Creates or replaces a folder. The result is null.
    Fill {
        /// The path of the folder.
        path: String,
        /// The names of its files.
        files: Vec<String>,
    },
    /// Lists a folder. The result is the names of its files, or null if the folder does not exist.
    List {
        /// The path of the folder.
        path: String,
    },
    /// Deletes a folder. The result is `true` if the folder existed.
    Delete {
        /// The path of the folder.
        path: String,
    },
    /// Deletes one file. The result is `true` if the file existed.
    DeleteFile {
        /// The path of the folder.
        path: String,
        /// The name of the file.
        file: String,
    },
    /// Charges a card, once for each idempotency key. The result is the receipt, the same text for the same key.
    Charge {
        /// The amount in euros.
        amount: u32,
        /// The idempotency key.
        key: String,
    },
    /// Looks up the deposit of a booking. The result is the name of the user who paid, or null.
    Deposit {
        /// The number of the booking.
        booking_id: u64,
    },
    /// Counts the primes in a portion of 1,000 numbers. The result is the number of primes.
    ///
    /// The operation waits for the [`ComputeHook`](super::ComputeHook) first.
    Compute {
        /// The index of the portion: it begins at this index times 1,000.
        portion: u32,
        /// The idempotency key, for the counts only.
        key: String,
    },
    /// Reads the counters of all effects so far. The result is [`EffectCounts`].
    Count,
}

/// The number of times that each effect was requested.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct EffectCounts {
    /// Requests of a charge, by idempotency key. Each key was charged once.
    pub charges: BTreeMap<String, u32>,
    /// Computations of a portion, by idempotency key.
    pub portions: BTreeMap<String, u32>,
    /// Payments of a deposit, by number of the booking.
    pub deposits: BTreeMap<String, u32>,
    /// Deletions of a folder or a file, by path.
    pub deleted: BTreeMap<String, u32>,
}
