//! Programs of the system that tests start, and the words for those that are missing.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of a program: in `PATH`, or where Debian puts those of PostgreSQL.
pub(crate) fn find(program: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = std::env::split_paths(&path).chain(versions.map(|version| version.path().join("bin")));
    let found = folders.map(|folder| folder.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{program} is not installed: apt-get install {package}"))
}

/// Runs a command to its end, and returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A user that may run PostgreSQL, which refuses to run as root.
#[derive(Clone, Copy)]
pub(crate) struct User(Option<(u32, u32)>);

impl User {
    /// Returns the user `postgres`, whom Debian's package creates, if the tests run as root; else the user of the tests.
    pub(crate) fn postgres() -> Self {
        let id = |arguments: &[&str]| run(Command::new("id").args(arguments)).trim().parse::<u32>().unwrap();
        let root = id(&["-u"]) == 0;
        Self(root.then(|| (id(&["-u", "postgres"]), id(&["-g", "postgres"]))))
    }

    /// Gives a file or folder to the user.
    pub(crate) fn own(self, path: &Path) {
        if let Some((user, group)) = self.0 {
            std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
        }
    }

    /// Returns a command that runs as the user.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group).current_dir("/");
        }
        command
    }
}
