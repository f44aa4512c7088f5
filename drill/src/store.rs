//! The store of a run: a file, or a PostgreSQL or Redis server in a folder and on a socket of its own.

use crate::Result;
use antiphon::store::{
    CallStore, MemoryStore, PostgresOptions, PostgresStore, RedisOptions, RedisStore, SqliteOptions,
    SqliteStore,
};
use serde::{Deserialize, Serialize};
use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

/// The address of a store, for the server processes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Address {
    Memory,
    Sqlite(PathBuf),
    Postgres(String),
    Redis(String),
}

impl Address {
    /// Opens the store.
    pub(crate) async fn open(&self) -> Result<Arc<dyn CallStore>> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::new()),
            Self::Sqlite(file) => Arc::new(SqliteStore::open(file, SqliteOptions::default()).await?),
            Self::Postgres(url) => Arc::new(PostgresStore::connect(url, PostgresOptions::default()).await?),
            Self::Redis(url) => Arc::new(RedisStore::connect(url, RedisOptions::default()).await?),
        })
    }

    /// Returns true for a store that a process has for itself.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory)
    }
}

/// A store that this process has started. Dropping the value stops its server.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) address: Address,
    server: Option<StoreServer>,
}

#[derive(Debug)]
enum StoreServer {
    Postgres { data: PathBuf, user: Option<(u32, u32)> },
    Redis(Child),
}

impl Store {
    /// Starts a store of this kind in a folder.
    pub(crate) fn start(kind: &str, folder: &Path) -> Result<Self> {
        match kind {
            "memory" => Ok(Self { address: Address::Memory, server: None }),
            "sqlite" => Ok(Self { address: Address::Sqlite(folder.join("calls.db")), server: None }),
            "postgres" => start_postgres(folder),
            "redis" => start_redis(folder),
            other => Err(format!("unknown store {other}").into()),
        }
    }
}

fn start_postgres(folder: &Path) -> Result<Store> {
    // PostgreSQL refuses to run as root: Debian's package creates a user.
    let id =
        |arguments: &[&str]| -> Result<u32> { Ok(run(Command::new("id").args(arguments))?.trim().parse()?) };
    let user = match id(&["-u"])? {
        0 => Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?)),
        _ => None,
    };
    let own = folder.join("postgres");
    std::fs::create_dir_all(&own)?;
    if let Some((user, group)) = user {
        std::os::unix::fs::chown(&own, Some(user), Some(group))?;
    }
    let data = own.join("data");
    run(as_user(&find("initdb")?, user)
        .args(["--auth=trust", "--username=postgres", "--no-sync", "-D"])
        .arg(&data))?;
    // Data survive a crash of the processes, as no fault of the drill is one of the host.
    let options =
        format!("-p 5432 -c fsync=off -c listen_addresses= -c unix_socket_directories={}", own.display());
    let mut start = as_user(&find("pg_ctl")?, user);
    run(start
        .arg("-D")
        .arg(&data)
        .args(["start", "-w", "-t", "120", "-o", &options, "-l"])
        .arg(own.join("log")))?;
    let address = format!("host={} port=5432 user=postgres dbname=postgres", own.display());
    Ok(Store { address: Address::Postgres(address), server: Some(StoreServer::Postgres { data, user }) })
}

fn start_redis(folder: &Path) -> Result<Store> {
    let socket = folder.join("redis.socket");
    let mut command = Command::new(find("redis-server")?);
    command.args(["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir"]);
    command.arg(folder).arg("--unixsocket").arg(&socket);
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let output = process.stdout.take().ok_or("redis-server has no output")?;
    let mut lines = BufReader::new(output).lines().map_while(std::io::Result::ok);
    if !lines.any(|line| line.contains("eady to accept connections")) {
        return Err("redis-server did not start".into());
    }
    std::thread::spawn(move || lines.for_each(drop));
    let address = Address::Redis(format!("redis+unix://{}", socket.display()));
    Ok(Store { address, server: Some(StoreServer::Redis(process)) })
}

impl Drop for Store {
    fn drop(&mut self) {
        match self.server.take() {
            Some(StoreServer::Postgres { data, user }) => {
                if let Ok(program) = find("pg_ctl") {
                    let mut stop = as_user(&program, user);
                    let _ = stop.arg("-D").arg(data).args(["stop", "-m", "immediate"]).output();
                }
            }
            Some(StoreServer::Redis(mut process)) => {
                let _ = process.kill();
                let _ = process.wait();
            }
            None => (),
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
