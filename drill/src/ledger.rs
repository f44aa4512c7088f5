//! The ledger of effects: outside of the store, a file for each call, a line for each effect.

use crate::{clock::micros, error::Result};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// One effect of a step.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Effect {
    pub(crate) step: String,
    /// The idempotency key.
    pub(crate) key: String,
    /// The run of the handler, which begins with its process.
    pub(crate) run: String,
    /// The process.
    pub(crate) process: u32,
    /// The time of the effect, in microseconds.
    pub(crate) at: u64,
}

/// The folder of the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(PathBuf);

impl Ledger {
    /// Opens the ledger in the folder of a run.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let folder = folder.join("effects");
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// Appends an effect of a call, in one write.
    pub(crate) fn append(&self, call: &str, step: &str, key: &str, run: &str) -> io::Result<()> {
        let (step, key, run) = (step.to_owned(), key.to_owned(), run.to_owned());
        let mut file = OpenOptions::new().create(true).append(true).open(self.0.join(call))?;
        let effect = Effect { step, key, run, process: std::process::id(), at: micros() };
        let mut line = serde_json::to_vec(&effect)?;
        line.push(b'\n');
        file.write_all(&line)
    }

    /// Returns true if a call has had an effect with this key.
    pub(crate) fn has(&self, call: &str, key: &str) -> Result<bool> {
        Ok(self.read(call)?.iter().any(|effect| effect.key == key))
    }

    /// Returns the effects of a call.
    pub(crate) fn read(&self, call: &str) -> Result<Vec<Effect>> {
        let text = match fs::read_to_string(self.0.join(call)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text?,
        };
        // A last line without its end is being written.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Removes the effects of a call that was checked.
    pub(crate) fn remove(&self, call: &str) {
        // A call without an effect has no file.
        let _ = fs::remove_file(self.0.join(call));
    }

    /// Returns the calls that have effects.
    pub(crate) fn calls(&self) -> Result<Vec<String>> {
        let names = fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }
}
