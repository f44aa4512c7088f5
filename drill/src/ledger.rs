//! The ledger of effects: outside of the store, a file for each process, a line for each effect.

use crate::{Result, clock::micros};
use serde::{Deserialize, Serialize};
use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

/// One effect of a step.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Effect {
    /// The call, as its person names it.
    pub(crate) call: String,
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

/// The file of this process, and its folder.
#[derive(Debug)]
pub(crate) struct Ledger {
    folder: PathBuf,
    file: File,
}

impl Ledger {
    /// Opens the ledger of this process.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let file = folder.join(format!("{}.ledger", std::process::id()));
        let file = OpenOptions::new().create(true).append(true).open(file)?;
        Ok(Self { folder: folder.to_owned(), file })
    }

    /// Appends an effect, in one write.
    pub(crate) fn append(&self, call: &str, step: &str, key: &str, run: &str) -> std::io::Result<()> {
        let effect = Effect {
            call: call.to_owned(),
            step: step.to_owned(),
            key: key.to_owned(),
            run: run.to_owned(),
            process: std::process::id(),
            at: micros(),
        };
        let mut line = serde_json::to_vec(&effect)?;
        line.push(b'\n');
        (&self.file).write_all(&line)
    }

    /// Returns true if any process has had an effect with this key.
    pub(crate) fn has(&self, key: &str) -> Result<bool> {
        Ok(read(&self.folder)?.iter().any(|effect| effect.key == key))
    }
}

/// Returns the effects of all processes.
pub(crate) fn read(folder: &Path) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "ledger") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        // A last line without its end is being written.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for line in lines {
            effects.push(serde_json::from_str(line)?);
        }
    }
    Ok(effects)
}
