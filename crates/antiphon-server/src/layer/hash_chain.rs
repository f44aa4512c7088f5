//! Lines that are chained by hashes, for an audit log.

use crate::receipt::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
    io::{self, Write},
};

/// Lines of JSON, each with its number, the hash of the one before it, and its own.
pub(super) struct HashChain {
    output: Box<dyn Write + Send>,
    number: u64,
    previous: String,
    /// True if a part of a line may be the end of the log.
    is_torn: bool,
}

impl HashChain {
    /// Returns the log behind a line with this number and this hash.
    pub(super) fn after(output: impl Write + Send + 'static, number: u64, hash: String) -> Self {
        Self { output: Box::new(output), number, previous: hash, is_torn: false }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Writes a line.
    pub(super) fn write(&mut self, mut line: Value) -> io::Result<()> {
        line["number"] = json!(self.number + 1);
        line["previous"] = json!(self.previous);
        let hash = hash_of(&line.to_string());
        line["hash"] = json!(hash);
        // What is left of a line that could not be written stands alone.
        let begin = if self.is_torn { "\n" } else { "" };
        self.is_torn = true;
        self.output.write_all(format!("{begin}{line}\n").as_bytes())?;
        // The line is there, whatever becomes of the flush: the next one follows it.
        (self.number, self.previous, self.is_torn) = (self.number + 1, hash, false);
        self.output.flush()
    }
}

/// Returns the SHA-256 of a text, in hexadecimal digits.
pub(super) fn hash_of(text: &str) -> String {
    hex(&Sha256::digest(text))
}

impl fmt::Debug for HashChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashChain").field("number", &self.number).finish_non_exhaustive()
    }
}
