//! The server processes.

use crate::Result;
use antiphon::{
    seal::KeyRing,
    transport::http::{HttpOptions, serve_http},
};
use std::{env, io, net::SocketAddr, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    net::TcpListener,
    process::{Child, Command},
    sync::Mutex,
};

/// Where the shared key stands, as `antiphon serve-demo` reads it too.
const KEYS: &str = "ANTIPHON_KEYS";

/// Some replicas. Dropping them kills them.
pub(crate) struct Fleet(Vec<Replica>);

/// One replica.
struct Replica {
    name: &'static str,
    address: SocketAddr,
    process: Mutex<Child>,
}

impl Fleet {
    /// Starts one replica of each name, all with the same key, and waits until they listen.
    pub(crate) async fn start(names: &[&'static str], key: &str) -> Result<Self> {
        let mut replicas = Vec::new();
        for name in names {
            replicas.push(Replica::start(name, key).await?);
        }
        Ok(Self(replicas))
    }

    /// Where they listen, by name.
    pub(crate) fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        self.0.iter().map(|replica| (replica.name, replica.address)).collect()
    }

    /// `kill -9`, and waits until the process is gone.
    pub(crate) async fn kill(&self, name: &str) -> io::Result<()> {
        for replica in self.0.iter().filter(|replica| replica.name == name) {
            replica.process.lock().await.kill().await?;
            println!("killed: replica {name}");
        }
        Ok(())
    }

    /// Lets those that still run end in peace.
    pub(crate) async fn stop(&self) -> Result<()> {
        for replica in &self.0 {
            let mut process = replica.process.lock().await;
            drop(process.stdin.take());
            process.wait().await?;
        }
        Ok(())
    }
}

impl Replica {
    async fn start(name: &'static str, key: &str) -> Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .arg("replica")
            .env(KEYS, key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = process.stdout.take().ok_or("no pipe")?;
        let line = BufReader::new(stdout).lines().next_line().await?.ok_or("the replica ended")?;
        let address = line.parse()?;
        println!("replica {name}: process {}, {address}", process.id().unwrap_or_default());
        Ok(Self { name, address, process: Mutex::new(process) })
    }
}

/// A replica: the demo server on a free port, until its standard input ends, as it does when its parent is gone.
pub(crate) async fn serve() -> Result<()> {
    let ring = KeyRing::parse_list(&env::var(KEYS)?)?;
    let server = antiphon_cli::demo::server(Some(ring))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let parent_gone = async {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    Ok(serve_http(listener, server, HttpOptions::default(), parent_gone).await?)
}
