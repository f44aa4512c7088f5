//! Outcomes of checks: a line on standard output, and a line of JSON in the file that `INTEROP_RESULTS` names.

use serde_json::json;
use std::{
    env,
    fs::{File, OpenOptions},
    io::{self, Write},
    process::ExitCode,
};

/// Outcome of a check.
pub(crate) enum Outcome {
    Pass,
    /// The difference that was found.
    Fail(String),
    /// The peer does not support the case, for this reason.
    Unsupported(String),
}

/// The checks over one transport. `INTEROP_PEER` and `INTEROP_VERSION` name the peer.
pub(crate) struct Report {
    transport: &'static str,
    file: Option<File>,
    passed: usize,
    failed: usize,
}

impl Report {
    pub(crate) fn new(transport: &'static str) -> io::Result<Self> {
        let path = env::var_os("INTEROP_RESULTS").filter(|path| !path.is_empty());
        let file = path.map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose()?;
        Ok(Self { transport, file, passed: 0, failed: 0 })
    }

    pub(crate) fn add(&mut self, era: &str, case: &str, outcome: &Outcome) -> io::Result<()> {
        let (word, note) = match outcome {
            Outcome::Pass => ("pass", ""),
            Outcome::Fail(fault) => ("fail", fault.as_str()),
            Outcome::Unsupported(why) => ("not supported by peer", why.as_str()),
        };
        let (transport, mut out) = (self.transport, io::stdout().lock());
        match outcome {
            Outcome::Pass => {
                self.passed += 1;
                writeln!(out, "ok     [{transport}] {case}")?;
            }
            Outcome::Fail(_) => {
                self.failed += 1;
                writeln!(out, "FAILED [{transport}] {case}: {}", note.replace('\n', " "))?;
            }
            Outcome::Unsupported(_) => writeln!(out, "--     [{transport}] {case}: {note}")?,
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let line = json!({
            "peer": env::var("INTEROP_PEER").unwrap_or_default(),
            "version": env::var("INTEROP_VERSION").unwrap_or_default(),
            "direction": "client of ours",
            "transport": transport,
            "era": era,
            "case": case,
            "outcome": word,
            "note": note,
        });
        // One write per line, because other processes append to the same file.
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Prints the totals and returns the exit code: failure if a check failed or there was none.
    pub(crate) fn end(self) -> io::Result<ExitCode> {
        writeln!(io::stdout(), "{} passed, {} failed", self.passed, self.failed)?;
        Ok(if self.failed == 0 && self.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
