//! Prints the memory that idle connections, idle subscriptions and waiting calls take on a server.
//!
//! `streams [CONNECTIONS] [CALLS]`: each case gets a fresh server process; its resident memory is read from `/proc` before and
//! after. Then every subscription receives one change, and every call goes on: all of them were alive.

mod client;
mod error;
mod server;

use client::{Connection, send_to_all};
use error::Result;
use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Instant,
};

/// A kind of stream that is opened many times.
#[derive(Clone, Copy)]
enum Case {
    /// A connection that has had one small answer.
    Connections,
    /// A `subscriptions/listen` that was acknowledged.
    Subscriptions,
    /// A `tools/call` whose handler waits.
    Calls,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if arguments.first().is_some_and(|first| first == "serve") {
        return runtime.block_on(server::serve());
    }
    let number = |at: usize, or: usize| arguments.get(at).map_or(Ok(or), |text| text.parse());
    let (many, calls) = (number(0, 10_000)?, number(1, 1000)?);
    println!("| what | how many | KiB each, resident | all told within |\n|---|--:|--:|--:|");
    for (name, case, count) in [
        ("idle connections", Case::Connections, many),
        ("idle subscriptions", Case::Subscriptions, many),
        ("waiting calls", Case::Calls, calls),
    ] {
        let (each, told) = runtime.block_on(measure(case, count))?;
        println!("| {name} | {count} | {each:.1} | {told} |");
    }
    Ok(())
}

/// KiB for each, and the time until all were notified.
async fn measure(case: Case, count: usize) -> Result<(f64, String)> {
    let mut server = Server::start()?;
    // Whatever the first request costs is not counted.
    let mut control = Connection::open(server.address).await?;
    control.asks(&client::call("echo", 0)).await?;
    control.receive_until("\"result\"").await?;
    let before = server.resident()?;
    let mut open = Vec::with_capacity(count);
    for id in 1..=count {
        let mut connection = Connection::open(server.address).await?;
        match case {
            Case::Connections => {
                connection.asks(&client::call("echo", id)).await?;
                connection.receive_until("\"result\"").await?;
            }
            Case::Subscriptions => {
                connection.asks(&client::listen(id)).await?;
                connection.receive_until("acknowledged").await?;
            }
            Case::Calls => connection.asks(&client::call("wait", id)).await?,
        }
        open.push(connection);
    }
    if matches!(case, Case::Calls) {
        control.asks(&client::call("all_wait", count)).await?;
        control.receive_until("\"result\"").await?;
    }
    let each = (server.resident()?.saturating_sub(before)) as f64 / count as f64;
    let began = Instant::now();
    let told = match case {
        Case::Connections => "-".to_owned(),
        Case::Subscriptions => {
            control.asks(&client::call("change", 0)).await?;
            send_to_all(open, "tools/list_changed").await?;
            format!("{} ms", began.elapsed().as_millis())
        }
        Case::Calls => {
            control.asks(&client::call("go_on", 0)).await?;
            send_to_all(open, "\"result\"").await?;
            format!("{} ms", began.elapsed().as_millis())
        }
    };
    server.child.kill()?;
    server.child.wait()?;
    Ok((each, told))
}

/// A server process of its own.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().parse()? })
    }

    /// Resident memory, in KiB.
    fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
