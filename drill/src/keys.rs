//! The key file of the fleet, and the three edits of a rotation.

use crate::error::Result;
use antiphon::seal::{KeyFile, SecretKey};
use std::{
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

/// An edit of the key file, as `antiphon keygen` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Add,
    Promote,
    Retire,
}

/// The key file of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Keys(PathBuf);

impl Keys {
    /// Creates a file with one key.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let keys = Self(folder.join("keys"));
        keys.edit(Edit::Add)?;
        Ok(keys)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Edits the file, and replaces it as a whole. Returns the moment of the new file: see [`modified`].
    pub(crate) fn edit(&self, edit: Edit) -> Result<u64> {
        let mut file = KeyFile::parse(&fs::read_to_string(&self.0).unwrap_or_default())?;
        let now = crate::clock::micros() / 1_000_000;
        match edit {
            Edit::Add => drop(file.add(SecretKey::random()?, now)?),
            Edit::Promote => file.promote(now)?,
            // The drill knows that no call has a state of the old key: it need not wait for their longest life.
            Edit::Retire => drop(file.retire_at_once()?),
        }
        let new = self.0.with_extension("new");
        fs::write(&new, file.to_text().as_bytes())?;
        fs::rename(new, &self.0)?;
        modified(&self.0)
    }
}

/// Returns the time of modification of a file, in microseconds since 1970.
pub(crate) fn modified(file: &Path) -> Result<u64> {
    let since = fs::metadata(file)?.modified()?.duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_micros())?)
}
