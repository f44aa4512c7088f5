//! Results of the cases: one line per case, the totals at the end, and one line of JSON per case for
//! `interop/table.py`.

use crate::error::AnyError;
use serde_json::json;
use std::{env, fs::File, io::Write, process::ExitCode};

/// The counters, and the file that `INTEROP_RESULTS` names. `INTEROP_PEER` and `INTEROP_VERSION` name the server.
/// Without `INTEROP_PEER` no file is written; the caller then writes the lines.
pub(crate) struct Results {
    file: Option<File>,
    peer: String,
    version: String,
    transport: &'static str,
    passed: usize,
    failed: usize,
}

impl Results {
    pub(crate) fn open(transport: &'static str) -> Result<Self, AnyError> {
        let open = |path| File::options().append(true).create(true).open(path);
        let peer = env::var("INTEROP_PEER").unwrap_or_default();
        let path = env::var_os("INTEROP_RESULTS").filter(|_| !peer.is_empty());
        Ok(Self {
            file: path.map(open).transpose()?,
            peer,
            version: env::var("INTEROP_VERSION").unwrap_or_default(),
            transport,
            passed: 0,
            failed: 0,
        })
    }

    /// Adds one case, with the negotiated protocol version.
    pub(crate) fn add(&mut self, era: &str, case: &str, fault: Option<&str>) -> Result<(), AnyError> {
        match fault {
            None => {
                self.passed += 1;
                println!("ok     {case}");
            }
            Some(fault) => {
                self.failed += 1;
                println!("FAILED {case}: {fault}");
            }
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let line = json!({
            "peer": self.peer,
            "version": self.version,
            "direction": "server for ours",
            "transport": self.transport,
            "era": era,
            "case": case,
            "outcome": if fault.is_none() { "pass" } else { "fail" },
            "note": fault.unwrap_or_default(),
        });
        // One write per line, because other processes append to the same file.
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }

    /// Prints the totals and returns the exit code.
    pub(crate) fn total(&self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 && self.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
