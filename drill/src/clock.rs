//! The host's clock, and the steps by which the clocks of the servers and of SQLite's rows are wrong.

use crate::error::Result;
use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Returns the time in microseconds since 1970.
pub(crate) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The steps of the clocks, in a file that all processes read: one for the whole host, and one for the process in each place.
/// Steps are in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct ClockSteps(Arc<File>);

impl ClockSteps {
    /// Opens the file in the folder of a run, and creates it if it is missing: then no clock is wrong.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("clocks");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self(Arc::new(file)))
    }

    /// Sets the step of the host's clock.
    pub(crate) fn set_host(&self, step: i64) -> Result<()> {
        self.write(0, step)
    }

    /// Sets the step of the process in a place, beside that of the host.
    pub(crate) fn set_place(&self, place: usize, step: i64) -> Result<()> {
        self.write(place + 1, step)
    }

    fn write(&self, index: usize, step: i64) -> Result<()> {
        Ok(self.0.write_all_at(&step.to_le_bytes(), offset(index))?)
    }

    /// A part of the file that was never written is no step.
    fn read(&self, index: usize) -> i64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, offset(index)).map_or(0, |()| i64::from_le_bytes(bytes))
    }

    /// Returns the time of the host.
    pub(crate) fn host(&self) -> SystemTime {
        stepped(SystemTime::now(), self.read(0))
    }

    /// Returns the time of the process in a place.
    pub(crate) fn place(&self, place: usize) -> SystemTime {
        stepped(self.host(), self.read(place + 1))
    }
}

fn offset(index: usize) -> u64 {
    u64::try_from(index * 8).unwrap_or_default()
}

fn stepped(time: SystemTime, step: i64) -> SystemTime {
    let by = Duration::from_millis(step.unsigned_abs());
    if step < 0 { time - by } else { time + by }
}
