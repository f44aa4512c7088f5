//! The operations of the backend, as they are written in the body of a request.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
