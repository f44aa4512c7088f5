//! The rows of a memory store, in the order in which they expire.

use crate::{
    claim::{BlobDigest, CallKey, Claim, Owner},
    clock::Micros,
    error::{StoreError, StoreErrorKind},
    row::{Change, Mark, Operation, Phase, Reply, Row, transition},
    step::{StepEvent, StepRecord},
    store::Swept,
};
use std::collections::{BTreeSet, HashMap};

/// The bytes that a row or a blob costs besides its values.
const ROW_BYTES: usize = 512;
/// The bytes that a step's record costs besides its name and value.
const STEP_BYTES: usize = 64;
/// The number of expired rows that one operation removes, so that their removal does not wait for a sweep.
const REMOVED_EACH_TIME: usize = 4;

/// The rows of calls and blobs.
#[derive(Debug, Default)]
pub(super) struct Table {
    calls: HashMap<CallKey, CallEntry>,
    blobs: HashMap<BlobDigest, BlobEntry>,
    expiry: BTreeSet<(Micros, Name)>,
    usage: Usage,
    /// The latest time that any operation saw: the clock of the rows never goes back.
    seen: Micros,
}

#[derive(Debug)]
struct CallEntry {
    row: Row,
    /// The value of each mark of the row.
    values: Vec<Vec<u8>>,
    owner: Owner,
}

#[derive(Debug)]
struct BlobEntry {
    bytes: Vec<u8>,
    keep_until: Micros,
    owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Call(CallKey),
    Blob(BlobDigest),
}

impl CallEntry {
    fn bytes(&self) -> usize {
        let outcome = match &self.row.phase {
            Phase::Done { outcome } => outcome.len(),
            Phase::Running { .. } | Phase::Released => 0,
        };
        let steps = self.row.marks.iter().zip(&self.values);
        ROW_BYTES
            + outcome
            + steps.map(|(mark, value)| STEP_BYTES + mark.step.len() + value.len()).sum::<usize>()
    }
}

impl BlobEntry {
    fn cost(&self) -> usize {
        ROW_BYTES + self.bytes.len()
    }
}

impl Table {
    /// Returns the time, never earlier than before, and removes a few expired rows.
    pub(super) fn begin(&mut self, now: Micros) -> Micros {
        self.seen = self.seen.max(now);
        for _ in 0..REMOVED_EACH_TIME {
            if !self.remove_expired() {
                break;
            }
        }
        self.seen
    }

    /// Runs one operation on the row of a call.
    pub(super) fn run(
        &mut self,
        limits: &MemoryLimits,
        call: CallKey,
        operation: Operation<'_>,
        now: Micros,
    ) -> Result<Reply, StoreError> {
        let (change, reply) = transition(self.calls.get(&call).map(|entry| &entry.row), operation, now);
        if change == Change::Nothing {
            return Ok(reply);
        }
        self.check_room(limits, call, operation, &change, &reply)?;
        let before = self.take_call(call);
        let after = match (change, operation, before) {
            (Change::Create(row), Operation::Claim(request), _) => {
                Some(CallEntry { row, values: Vec::new(), owner: request.owner })
            }
            (Change::Update(row), _, Some(before)) => Some(CallEntry { row, ..before }),
            (Change::Append(mark), Operation::Append(_, record), Some(mut before)) => {
                before.row.marks.push(mark);
                before.values.push(record.value().to_vec());
                Some(before)
            }
            (_, _, before) => before,
        };
        if let Some(entry) = after {
            self.put_call(call, entry);
        }
        Ok(reply)
    }

    /// Refuses what begins when a limit is reached; what ends is never refused.
    fn check_room(
        &mut self,
        limits: &MemoryLimits,
        call: CallKey,
        operation: Operation<'_>,
        change: &Change,
        reply: &Reply,
    ) -> Result<(), StoreError> {
        let (name, owner, rows, bytes) = match (operation, change, reply) {
            (Operation::Claim(request), Change::Create(_), _) => {
                // The row that it replaces has expired.
                drop(self.take_call(call));
                ("claim", request.owner, 1, ROW_BYTES)
            }
            (Operation::Claim(request), _, Reply::Claim(Claim::Fresh(_))) => ("claim", request.owner, 0, 0),
            (Operation::Append(_, record), _, _) if matches!(record.event(), StepEvent::Started { .. }) => {
                let Some(entry) = self.calls.get(&call) else { return Ok(()) };
                ("append", entry.owner, 0, STEP_BYTES + record.step().len() + record.value().len())
            }
            _ => return Ok(()),
        };
        if self.usage.check(limits, name, owner, rows, bytes).is_ok() {
            return Ok(());
        }
        while self.remove_expired() {}
        self.usage.check(limits, name, owner, rows, bytes)
    }

    /// Returns the records of a call's steps.
    pub(super) fn load(&self, call: CallKey, now: Micros) -> Vec<StepRecord> {
        let Some(entry) = self.calls.get(&call).filter(|entry| !entry.row.is_expired(now)) else {
            return Vec::new();
        };
        let steps = entry.row.marks.iter().zip(&entry.values);
        steps.map(|(mark, value)| StepRecord::from_parts(&*mark.step, mark.event, value.as_slice())).collect()
    }

    /// Returns the value of a step's record.
    pub(super) fn value(&self, call: CallKey, record: &StepRecord) -> Vec<u8> {
        let found = self.calls.get(&call).and_then(|entry| {
            let same = |mark: &Mark| mark.step == record.step() && mark.event == record.event();
            entry.row.marks.iter().position(same).and_then(|index| entry.values.get(index))
        });
        found.cloned().unwrap_or_default()
    }

    /// Stores a blob, or extends its time.
    pub(super) fn put(
        &mut self,
        limits: &MemoryLimits,
        digest: BlobDigest,
        bytes: &[u8],
        keep_until: Micros,
        owner: Owner,
    ) -> Result<(), StoreError> {
        let entry = if let Some(mut entry) = self.take_blob(digest) {
            entry.keep_until = entry.keep_until.max(keep_until);
            entry
        } else {
            let entry = BlobEntry { bytes: bytes.to_vec(), keep_until, owner };
            if self.usage.check(limits, "put", owner, 1, entry.cost()).is_err() {
                while self.remove_expired() {}
                self.usage.check(limits, "put", owner, 1, entry.cost())?;
            }
            entry
        };
        self.expiry.insert((entry.keep_until, Name::Blob(digest)));
        self.usage.add(entry.owner, 1, entry.cost());
        self.blobs.insert(digest, entry);
        Ok(())
    }

    /// Returns a blob whose time is not over.
    pub(super) fn get(&self, digest: BlobDigest, now: Micros) -> Option<Vec<u8>> {
        let entry = self.blobs.get(&digest).filter(|entry| now < entry.keep_until)?;
        Some(entry.bytes.clone())
    }

    /// Removes expired rows.
    pub(super) fn sweep(&mut self, limit: usize) -> Swept {
        let (calls, blobs) = (self.calls.len(), self.blobs.len());
        for _ in 0..limit {
            if !self.remove_expired() {
                break;
            }
        }
        Swept { calls: calls - self.calls.len(), blobs: blobs - self.blobs.len() }
    }

    /// Returns all rows, all bytes, and the number of owners.
    pub(super) fn totals(&self) -> (usize, usize, usize) {
        self.usage.totals()
    }

    /// Removes the row that expired first; returns false if none has expired.
    fn remove_expired(&mut self) -> bool {
        let Some(&(at, name)) = self.expiry.first() else { return false };
        if self.seen < at {
            return false;
        }
        match name {
            Name::Call(call) => drop(self.take_call(call)),
            Name::Blob(digest) => drop(self.take_blob(digest)),
        }
        true
    }

    fn take_call(&mut self, call: CallKey) -> Option<CallEntry> {
        let entry = self.calls.remove(&call)?;
        self.expiry.remove(&(entry.row.expires_at(), Name::Call(call)));
        self.usage.remove(entry.owner, 1, entry.bytes());
        Some(entry)
    }

    fn put_call(&mut self, call: CallKey, entry: CallEntry) {
        self.expiry.insert((entry.row.expires_at(), Name::Call(call)));
        self.usage.add(entry.owner, 1, entry.bytes());
        self.calls.insert(call, entry);
    }

    fn take_blob(&mut self, digest: BlobDigest) -> Option<BlobEntry> {
        let entry = self.blobs.remove(&digest)?;
        self.expiry.remove(&(entry.keep_until, Name::Blob(digest)));
        self.usage.remove(entry.owner, 1, entry.cost());
        Some(entry)
    }
}

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

/// The limits of a [`MemoryStore`](super::MemoryStore).
///
/// A claim, a record that a step starts, and a new blob are refused as [`Full`](crate::StoreErrorKind::Full) when a limit is
/// reached. The end of a step and an outcome are never refused, since the effect has happened: the store may exceed its limit
/// of bytes by the outcomes of the legs that run.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    pub(super) rows: usize,
    pub(super) bytes: usize,
    pub(super) rows_per_owner: usize,
    pub(super) bytes_per_owner: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { rows: 100_000, bytes: 256 << 20, rows_per_owner: 1_000, bytes_per_owner: 16 << 20 }
    }
}

impl MemoryLimits {
    /// Sets the maximum number of calls and blobs; 100,000 by default.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Sets the maximum number of bytes of all calls and blobs; 256 MiB by default.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the maximum number of calls and blobs of one owner; 1,000 by default.
    #[must_use]
    pub fn rows_per_owner(mut self, rows: usize) -> Self {
        self.rows_per_owner = rows;
        self
    }

    /// Sets the maximum number of bytes of one owner; 16 MiB by default.
    #[must_use]
    pub fn bytes_per_owner(mut self, bytes: usize) -> Self {
        self.bytes_per_owner = bytes;
        self
    }
}
