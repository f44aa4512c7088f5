//! A folder of a test, removed with its value.

use std::path::{Path, PathBuf};

/// A temporary folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder of this process whose name begins with `name`.
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("antiphon-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.0.join(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
