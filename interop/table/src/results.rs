//! What `interop/table.py` reads: a line of JSON for each case, appended to a file.

use crate::AnyError;
use serde_json::json;
use std::{env, fs::File, io::Write};

/// The file that `INTEROP_RESULTS` names, if it is set; `INTEROP_PEER` and `INTEROP_VERSION` say who the server is. If
/// nobody says so, whoever started this program writes the lines.
pub(crate) struct Results {
    file: Option<File>,
    peer: String,
    version: String,
    transport: &'static str,
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
        })
    }

    /// One case, and the revision that was spoken.
    pub(crate) fn add(&mut self, era: &str, case: &str, fault: Option<&str>) -> Result<(), AnyError> {
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
        // One write, so that lines of two writers do not mix.
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }
}
