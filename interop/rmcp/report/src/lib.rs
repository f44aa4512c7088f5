//! Outcomes of checks: a line on standard output, and a line of JSON in the file that `INTEROP_RESULTS` names.

use serde_json::json;
use std::{
    env,
    fs::{File, OpenOptions},
    io::{self, Write},
    process::ExitCode,
};

/// The version of the peer in the lock file.
const VERSION: &str = "3.11.0";

/// Outcome of a check.
#[derive(Debug)]
pub enum Outcome {
    /// The check passed.
    Pass,
    /// The check failed, with the difference that was found.
    Fail(String),
    /// The peer does not support the case, with the reason.
    Unsupported(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Pass,
            Err(fault) => Self::Fail(fault),
        }
    }
}

/// The checks of one direction over one transport.
#[derive(Debug)]
pub struct Report {
    direction: &'static str,
    transport: String,
    file: Option<File>,
    passed: usize,
    failed: usize,
    unsupported: usize,
}

impl Report {
    /// Starts a report without checks. `direction` is "client of ours" or "server for ours", `transport` "http" or
    /// "stdio".
    ///
    ///
    ///
    /// # Errors
    ///
    /// If the file that `INTEROP_RESULTS` names cannot be opened.
    pub fn new(direction: &'static str, transport: &str) -> io::Result<Self> {
        let file = match env::var_os("INTEROP_RESULTS") {
            Some(path) if !path.is_empty() => Some(OpenOptions::new().create(true).append(true).open(path)?),
            _ => None,
        };
        Ok(Self { direction, transport: transport.to_owned(), file, passed: 0, failed: 0, unsupported: 0 })
    }

    /// Adds a check. `note` is a remark for the table of results; a failure replaces it.
    ///
    ///
    ///
    /// # Errors
    ///
    /// If a line cannot be written.
    pub fn add(&mut self, case: &str, outcome: &Outcome, note: &str) -> io::Result<()> {
        let (word, note) = match outcome {
            Outcome::Pass => {
                self.passed += 1;
                ("pass", note)
            }
            Outcome::Fail(fault) => {
                self.failed += 1;
                ("fail", fault.as_str())
            }
            Outcome::Unsupported(why) => {
                self.unsupported += 1;
                ("not supported by peer", why.as_str())
            }
        };
        let mut out = io::stdout().lock();
        match outcome {
            Outcome::Pass => writeln!(out, "ok     [{}] {case}", self.transport)?,
            Outcome::Fail(fault) => {
                writeln!(out, "FAILED [{}] {case}: {}", self.transport, fault.replace('\n', " "))?;
            }
            Outcome::Unsupported(why) => writeln!(out, "--     [{}] {case}: {why}", self.transport)?,
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let line = json!({
            "peer": "rmcp",
            "version": VERSION,
            "direction": self.direction,
            "transport": self.transport,
            "era": "2026-07-28",
            "case": case,
            "outcome": word,
            "note": note,
        });
        // One write per line, because other processes append to the same file.
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Prints the totals and returns the exit code: failure if a check failed or there was none.
    ///
    ///
    ///
    /// # Errors
    ///
    /// If the totals cannot be written.
    pub fn end(self) -> io::Result<ExitCode> {
        let Self { passed, failed, unsupported, .. } = self;
        let mut out = io::stdout().lock();
        if unsupported > 0 {
            writeln!(out, "{unsupported} not supported by the peer")?;
        }
        writeln!(out, "{passed} passed, {failed} failed")?;
        Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
