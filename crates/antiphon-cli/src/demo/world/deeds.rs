//! What can be done in the world, as it stands in a request's body.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One deed: the body of `POST /`, as in `{"do": "list", "path": "reports"}`. The reply is JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Deed {
    /// Makes a folder with these files; what was there is gone. Replies nothing.
    Fill {
        /// Which.
        path: String,
        /// The names of its files.
        files: Vec<String>,
    },
    /// Replies the names of the folder's files, or null if there is no such folder.
    List {
        /// Which.
        path: String,
    },
    /// Deletes a folder; replies whether it was there.
    Delete {
        /// Which.
        path: String,
    },
    /// Deletes one file of a folder; replies whether it was there.
    DeleteFile {
        /// Which folder.
        path: String,
        /// The name of the file.
        file: String,
    },
    /// Charges an amount, once for each idempotency key; replies the receipt, the same one for the same key.
    Charge {
        /// In euros.
        amount: u32,
        /// The idempotency key.
        key: String,
    },
    /// Replies who has paid the deposit of this booking, or null.
    Deposit {
        /// Which.
        booking_id: u64,
    },
    /// Counts the primes of one portion of numbers, and takes its time; replies how many there are.
    Compute {
        /// Which one: the numbers from this times 1,000 on.
        portion: u32,
        /// Under which idempotency key it is counted.
        key: String,
    },
    /// Replies what was done so far: [`Counts`].
    Count,
}

/// How often things were done.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// By idempotency key, how often a charge was requested. Each was charged once.
    pub charges: BTreeMap<String, u32>,
    /// By idempotency key, how often a portion was computed.
    pub portions: BTreeMap<String, u32>,
    /// By booking, how often its deposit was paid.
    pub deposits: BTreeMap<String, u32>,
    /// By path, how often a folder or a file was deleted.
    pub deleted: BTreeMap<String, u32>,
}
