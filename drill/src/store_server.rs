//! A PostgreSQL or Redis server in a folder and on a socket of its own.

use crate::error::Result;
use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A server of a store. Dropping the value stops it.
#[derive(Debug)]
pub(crate) enum StoreServer {
    Postgres { folder: PathBuf, user: Option<(u32, u32)> },
    Redis { folder: PathBuf, process: Child },
}

impl StoreServer {
    /// Starts PostgreSQL. Returns the folder of its socket, too.
    pub(crate) fn start_postgres(folder: &Path) -> Result<(Self, PathBuf)> {
        // PostgreSQL refuses to run as root: Debian's package creates a user.
        let id = |arguments: &[&str]| -> Result<u32> {
            Ok(run(Command::new("id").args(arguments))?.trim().parse()?)
        };
        let user = match id(&["-u"])? {
            0 => Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?)),
            _ => None,
        };
        let folder = folder.join("postgres");
        std::fs::create_dir_all(&folder)?;
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(&folder, Some(user), Some(group))?;
        }
        run(as_user(&find("initdb")?, user)
            .args(["--auth=trust", "--username=postgres", "--no-sync", "-D"])
            .arg(folder.join("data")))?;
        let mut server = Self::Postgres { folder: folder.clone(), user };
        server.start()?;
        Ok((server, folder))
    }

    /// Starts Redis. Returns the folder of its socket, too.
    pub(crate) fn start_redis(folder: &Path) -> Result<(Self, PathBuf)> {
        let folder = folder.join("redis");
        std::fs::create_dir_all(&folder)?;
        Ok((Self::Redis { process: redis(&folder)?, folder: folder.clone() }, folder))
    }

    /// Ends the server as a crash of its process does.
    pub(crate) fn crash(&mut self) -> Result<()> {
        match self {
            Self::Postgres { .. } => self.postgres(&["stop", "-w", "-m", "immediate"]),
            Self::Redis { process, .. } => {
                process.kill()?;
                process.wait()?;
                Ok(())
            }
        }
    }

    /// Starts the server again, with its data.
    pub(crate) fn start(&mut self) -> Result<()> {
        match self {
            Self::Postgres { .. } => self.postgres(&["start", "-w", "-t", "120"]),
            Self::Redis { folder, process } => {
                *process = redis(folder)?;
                Ok(())
            }
        }
    }

    fn postgres(&self, words: &[&str]) -> Result<()> {
        let Self::Postgres { folder, user } = self else { return Ok(()) };
        let mut command = as_user(&find("pg_ctl")?, *user);
        command.arg("-D").arg(folder.join("data")).args(words);
        if words.first() == Some(&"start") {
            // Data survive a crash of the processes, as no fault of the drill is one of the host.
            let options = format!(
                "-p 5432 -c fsync=off -c listen_addresses= -c unix_socket_directories={}",
                folder.display()
            );
            command.arg("-o").arg(options).arg("-l").arg(folder.join("log"));
        }
        run(&mut command).map(drop)
    }
}

/// Starts Redis in a folder, with the data that are there. A write is in the file before its reply leaves.
fn redis(folder: &Path) -> Result<Child> {
    let mut command = Command::new(find("redis-server")?);
    command.args(["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir"]);
    command.arg(folder).arg("--unixsocket").arg(folder.join("redis.socket"));
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let output = process.stdout.take().ok_or("redis-server has no output")?;
    let mut lines = BufReader::new(output).lines().map_while(std::io::Result::ok);
    if !lines.any(|line| line.contains("eady to accept connections")) {
        return Err("redis-server did not start".into());
    }
    std::thread::spawn(move || lines.for_each(drop));
    Ok(process)
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        let _ = self.postgres(&["stop", "-m", "immediate"]);
        if let Self::Redis { process, .. } = self {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns the path of a program: in `PATH`, or where Debian puts those of PostgreSQL.
fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = std::env::split_paths(&path).chain(versions.map(|version| version.path().join("bin")));
    let found = folders.map(|folder| folder.join(program)).find(|file| file.is_file());
    Ok(found.ok_or_else(|| format!("{program} is not installed"))?)
}

fn as_user(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = user {
        command.uid(user).gid(group).current_dir("/");
    }
    command
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr)).into())
}
