//! The start of a server: the time until its first answer, and its memory then.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::arguments::Start;
use crate::case::Case;
use crate::connection::Connection;
use crate::error::Error;
use crate::report::Spread;

const BETWEEN_ATTEMPTS: Duration = Duration::from_micros(200);
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// One start.
struct StartMeasurement {
    ready_millis: f64,
    /// Resident memory, in MiB: all of it, and the part that no file is behind.
    resident: f64,
    anonymous: f64,
}

/// Starts the server `runs` times, and prints one line of a table.
pub(crate) async fn start(options: &Start) -> Result<(), Error> {
    let mut all = Vec::with_capacity(options.runs);
    for _ in 0..options.runs {
        let started = Instant::now();
        let mut child = Server::spawn(options)?;
        first_answer(options, &mut child).await?;
        let ready_millis = started.elapsed().as_secs_f64() * 1e3;
        let (resident, anonymous) = memory(child.0.id())?;
        all.push(StartMeasurement { ready_millis, resident, anonymous });
    }
    println!(
        "| {} | {} | {} | {} |",
        options.name,
        Spread::of(&all, |one| one.ready_millis).text(1),
        Spread::of(&all, |one| one.resident).text(1),
        Spread::of(&all, |one| one.anonymous).text(1),
    );
    Ok(())
}

/// A process that ends with its owner.
struct Server(Child);

impl Server {
    fn spawn(options: &Start) -> Result<Self, Error> {
        let mut command = Command::new(&options.program);
        command.args(&options.arguments).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self(command.spawn()?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn first_answer(options: &Start, server: &mut Server) -> Result<(), Error> {
    let request = Case::Echo.request(options.addr, "");
    let begun = Instant::now();
    let mut connection = loop {
        match Connection::try_open(options.addr).await {
            Ok(connection) => break connection,
            Err(fault) => {
                if begun.elapsed() > START_TIMEOUT || server.0.try_wait()?.is_some() {
                    return Err(format!("{}: {fault}", options.name).into());
                }
                tokio::time::sleep(BETWEEN_ATTEMPTS).await;
            }
        }
    };
    let answer = connection.exchange(&request).await?;
    if answer.status == 200 { Ok(()) } else { Err(format!("status {}", answer.status).into()) }
}

fn memory(pid: u32) -> Result<(f64, f64), Error> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path)?;
    let mebibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kibibytes / 1024.0)
    };
    let both = mebibytes("VmRSS:").zip(mebibytes("RssAnon:"));
    both.ok_or_else(|| format!("{path}: unknown form").into())
}
