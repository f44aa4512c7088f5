//! `--save`: the binary contents of a result, as files.

use crate::{console, failure::Failure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use std::{
    cell::Cell,
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

/// The maximum number of files of one name that are tried.
const NAMES: u32 = 10_000;

/// The endings of files, by media type.
const ENDINGS: [(&str, &str); 15] = [
    ("application/json", "json"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("audio/flac", "flac"),
    ("audio/mp4", "m4a"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/wav", "wav"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/webp", "webp"),
    ("text/csv", "csv"),
    ("text/plain", "txt"),
];

/// The directory of the files.
pub(crate) struct Saver {
    directory: PathBuf,
    failed: Cell<bool>,
}

impl Saver {
    /// Creates the directory if there is none.
    pub(crate) fn new(directory: PathBuf) -> Result<Self, Failure> {
        fs::create_dir_all(&directory)
            .map_err(|fault| Failure::usage(format!("--save {}: {fault}", directory.display())))?;
        Ok(Self { directory, failed: Cell::new(false) })
    }

    /// Returns `true` if a file could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Writes a new file, and returns its path as a text. The server chooses no part of its name, and no file is replaced.
    pub(crate) fn save(&self, kind: &str, media_type: &str, base64: &str) -> Option<String> {
        match self.write(kind, media_type, base64) {
            Ok(path) => Some(path.display().to_string()),
            Err(text) => {
                self.failed.set(true);
                console::note(&format!("error: {kind} was not saved: {text}"));
                None
            }
        }
    }

    fn write(&self, kind: &str, media_type: &str, base64: &str) -> Result<PathBuf, String> {
        let bytes = BASE64_STANDARD.decode(base64).map_err(|fault| format!("it is not base64: {fault}"))?;
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let ending =
            ENDINGS.iter().find(|(known, _)| *known == media_type).map_or("bin", |(_, ending)| ending);
        for number in 1..=NAMES {
            let path = self.directory.join(format!("{kind}-{number}.{ending}"));
            let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(fault) if fault.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened.map_err(|fault| format!("{}: {fault}", path.display()))?,
            };
            file.write_all(&bytes).map_err(|fault| format!("{}: {fault}", path.display()))?;
            return Ok(path);
        }
        Err(format!("{} has too many files", self.directory.display()))
    }
}
