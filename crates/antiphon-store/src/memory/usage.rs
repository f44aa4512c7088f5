//! The rows and bytes that each owner uses.

use std::collections::HashMap;

use super::limits::MemoryLimits;
use crate::error::{StoreError, StoreErrorKind};
use crate::key::Owner;

/// The rows and bytes in use, in all and for each owner.
#[derive(Debug, Default)]
pub(super) struct Usage {
    all: Amount,
    owners: HashMap<Owner, Amount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    rows: usize,
    bytes: usize,
}

impl Usage {
    /// Checks that this owner may add so many rows and bytes.
    pub(super) fn check(
        &self,
        limits: &MemoryLimits,
        operation: &'static str,
        owner: Owner,
        rows: usize,
        bytes: usize,
    ) -> Result<(), StoreError> {
        let own = self.owners.get(&owner).copied().unwrap_or_default();
        let over = |used: Amount, max_rows, max_bytes| {
            used.rows.saturating_add(rows) > max_rows || used.bytes.saturating_add(bytes) > max_bytes
        };
        let cause = if over(own, limits.rows_per_owner, limits.bytes_per_owner) {
            "this owner's limit of the memory store is reached"
        } else if over(self.all, limits.rows, limits.bytes) {
            "the limit of the memory store is reached"
        } else {
            return Ok(());
        };
        Err(StoreError::read(StoreErrorKind::Full, operation, cause))
    }

    pub(super) fn add(&mut self, owner: Owner, rows: usize, bytes: usize) {
        for amount in [&mut self.all, self.owners.entry(owner).or_default()] {
            amount.rows += rows;
            amount.bytes += bytes;
        }
    }

    pub(super) fn remove(&mut self, owner: Owner, rows: usize, bytes: usize) {
        self.all.rows -= rows;
        self.all.bytes -= bytes;
        if let Some(own) = self.owners.get_mut(&owner) {
            own.rows -= rows;
            own.bytes -= bytes;
            if *own == Amount::default() {
                self.owners.remove(&owner);
            }
        }
    }

    /// Returns all rows, all bytes, and the number of owners.
    pub(super) fn totals(&self) -> (usize, usize, usize) {
        (self.all.rows, self.all.bytes, self.owners.len())
    }
}
