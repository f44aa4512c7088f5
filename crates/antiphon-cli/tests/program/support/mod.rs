//! Runs the built program as a process, with real sockets and pipes.

// Each test program uses only a part of this module.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by several test programs; a test fails by panicking"
)]

pub(crate) mod scripted;
pub(crate) mod served;

use serde_json::Value;
use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// The path of the program.
pub(crate) const ANTIPHON: &str = env!("CARGO_BIN_EXE_antiphon");

/// The output of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Returns the JSON object on standard output.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Checks the exit code and the last line of standard output.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, last: &str) {
        assert_eq!((self.code, self.stdout.lines().last().unwrap_or_default()), (code, last), "{self:?}");
    }

    /// Checks the exit code, an empty standard output, and a text on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, says: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        assert!(self.stderr.contains(says), "{says:?} is not in {:?}", self.stderr);
    }
}

/// Returns the program with these arguments, without a terminal and without its environment variables.
pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(ANTIPHON);
    command.args(arguments).env_remove("ANTIPHON_KEYS").env_remove("MCP_BEARER");
    command.env("ANTIPHON_TOKENS", env::temp_dir().join("antiphon-no-tokens")).stdin(Stdio::null());
    command
}

/// Runs the program with these arguments to its end.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    finish(&mut command(arguments))
}

/// Runs a prepared command to its end.
pub(crate) fn finish(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A `serve-demo` on a free port. Dropping the value kills the process.
pub(crate) struct Server {
    process: Child,
    stderr: BufReader<ChildStderr>,
    /// The URL of the endpoint.
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&mut command(["serve-demo", "--listen", "127.0.0.1:0"]))
    }

    pub(crate) fn with_arguments(arguments: &[&str]) -> Self {
        Self::start_with(command(["serve-demo", "--listen", "127.0.0.1:0"]).args(arguments))
    }

    pub(crate) fn with_keys(file: &Path) -> Self {
        Self::start_with(command(["serve-demo", "--listen", "127.0.0.1:0", "--key-file"]).arg(file))
    }

    /// Starts the command, and waits for the line with the URL.
    pub(crate) fn start_with(command: &mut Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let url =
            line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { process, stderr, url }
    }

    /// Sends SIGHUP, and waits until the keys were read again.
    pub(crate) fn hang_up(&mut self) {
        // The file may have been read before, because it changed.
        self.hang_up_until(": SIGHUP\n");
    }

    /// Sends SIGHUP, and returns the next line of standard error with this text.
    pub(crate) fn hang_up_until(&mut self, text: &str) -> String {
        let kill = format!("kill -HUP {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "the server has ended");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Kills the process.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Sends SIGTERM and waits for the end. Returns the exit status and the rest of standard error.
    pub(crate) fn terminate(mut self) -> (ExitStatus, String) {
        let status =
            Command::new("sh").args(["-c", &format!("kill -TERM {}", self.process.id())]).status().unwrap();
        assert!(status.success());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.process.wait().unwrap(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A temporary directory. Dropping the value removes it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("antiphon-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file with this text.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a file with a new key.
    pub(crate) fn keys(&self, name: &str) -> PathBuf {
        self.file(name, &run(["keygen"]).stdout)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
