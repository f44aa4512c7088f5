//! The arguments of `keygen` and `receipt`.

use clap::{Args, Subcommand};
use std::{path::PathBuf, time::Duration};

#[derive(Args, Debug)]
pub(crate) struct KeygenArgs {
    /// Write a new key into this file, which opens states and does not seal yet; the first key of a file seals at once
    #[arg(long, value_name = "FILE", group = "edit")]
    pub(crate) add: Option<PathBuf>,
    /// Let the new key of this file seal, when every instance has read it
    #[arg(long, value_name = "FILE", group = "edit")]
    pub(crate) promote: Option<PathBuf>,
    /// Remove the old keys of this file, when no state of theirs can come back
    #[arg(long, value_name = "FILE", group = "edit")]
    pub(crate) retire: Option<PathBuf>,
    /// The longest life of a state, such as 30m, 24h or 3d: the longest answer timeout, and a day for URLs
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration, requires = "edit")]
    pub(crate) longest_life: Duration,
    /// Remove the old keys although states of theirs may come back; these are refused then
    #[arg(long, requires = "retire")]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptCommand {
    /// Checks that servers with these keys made a receipt, and prints it
    Verify(VerifyArgs),
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The file with the receipt; `-` for standard input
    pub(crate) file: PathBuf,
    /// The key file of the servers, or an old copy of it; may be repeated
    #[arg(long = "key-file", visible_alias = "keys", value_name = "FILE", required = true)]
    pub(crate) key_files: Vec<PathBuf>,
    /// Check that the call had these arguments too, a JSON object; `@FILE` reads them from a file
    #[arg(long = "args", value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a number of seconds, minutes, hours or days.
fn duration(text: &str) -> Result<Duration, &'static str> {
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3600,
        Some(b'd') => 86_400,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1)).and_then(|number| number.parse::<u64>().ok());
    match number.and_then(|number| number.checked_mul(unit)) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err("must be a number with s, m, h or d, such as 24h"),
    }
}
