//! A replica: the same program in another process.

use crate::Result;
use antiphon::{
    seal::KeyRing,
    serve::http::{HttpOptions, serve_http},
};
use antiphon_demo::{Backend, Build, backend};
use std::{env, net::SocketAddr, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStdout, Command},
    sync::Mutex,
};

/// The environment variable with the shared key, which `antiphon serve-demo` reads too.
const KEYS: &str = "ANTIPHON_KEYS";
/// The first argument of a replica's command line. The second argument is its build.
const REPLICA_ARGUMENT: &str = "replica";
/// The line that a replica prints when it begins to drain.
const DRAINING: &str = "draining";

/// The process of a replica. Dropping the value kills the process.
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) process: u32,
    child: Mutex<(Child, Lines<BufReader<ChildStdout>>)>,
}

impl Replica {
    /// Starts a replica, and waits until it listens.
    pub(crate) async fn start(name: String, build: Build, key: &str, backend: SocketAddr) -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args([REPLICA_ARGUMENT, if build == Build::Old { "old" } else { "new" }])
            .env(KEYS, key)
            .env(backend::ADDRESS_VARIABLE, backend.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
        let address = lines.next_line().await?.ok_or("the replica ended")?.parse()?;
        let process = child.id().unwrap_or_default();
        Ok(Self { name, address, process, child: Mutex::new((child, lines)) })
    }

    /// Kills the process with SIGKILL, and waits until it has ended.
    pub(crate) async fn kill(&self) -> Result<()> {
        Ok(self.child.lock().await.0.kill().await?)
    }

    /// Drains the replica. Returns when the drain has begun.
    pub(crate) async fn drain(&self) -> Result<()> {
        let (child, lines) = &mut *self.child.lock().await;
        drop(child.stdin.take());
        match lines.next_line().await?.as_deref() {
            Some(DRAINING) | None => Ok(()),
            Some(other) => Err(format!("the replica said {other}").into()),
        }
    }

    /// Waits until the process has ended.
    pub(crate) async fn wait(&self) -> Result<()> {
        self.child.lock().await.0.wait().await?;
        Ok(())
    }
}

/// Serves the demo server on a free port if this program was started as a replica. The replica ends with its standard
/// input, that is, with its parent process. Returns `true` if the program was a replica.
///
/// # Errors
/// If the server fails.
pub async fn serve_if_replica() -> Result<bool> {
    let mut words = env::args().skip(1);
    if words.next().as_deref() != Some(REPLICA_ARGUMENT) {
        return Ok(false);
    }
    let build = if words.next().as_deref() == Some("old") { Build::Old } else { Build::New };
    let ring = KeyRing::parse_list(&env::var(KEYS)?)?;
    let server = antiphon_demo::builder(Backend::from_env(), build).keys(ring).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    print_line(&listener.local_addr()?.to_string()).await?;
    let drained = server.clone();
    let parent_gone = async move {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
        drained.drain();
        let _ = print_line(DRAINING).await;
    };
    serve_http(listener, server, HttpOptions::default()).with_graceful_shutdown(parent_gone).await?;
    Ok(true)
}

async fn print_line(line: &str) -> Result<()> {
    let mut stdout = tokio::io::stdout();
    stdout.write_all(format!("{line}\n").as_bytes()).await?;
    Ok(stdout.flush().await?)
}
