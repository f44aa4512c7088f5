//! The load generator.
//!
//! - `load record --addr ADDR --out DIR` asks a live server the three questions of the benchmark,
//!   checks the answers as JSON and keeps their bytes for the bare server.
//! - `load compare --server NAME=ADDR=PID ...` measures the servers in interleaved rounds and
//!   prints the table.
//!
//! One thread, keep-alive connections, one request in flight on each. Every answer is checked.

mod arguments;
mod case;
mod compare;
mod connection;
mod cpu;
mod measure;
mod record;
mod report;

use std::error::Error as StdError;
use std::process::ExitCode;

use crate::arguments::Command;

/// Errors are for the person who runs the benchmark: text is enough.
type Error = Box<dyn StdError + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let command = Command::from_env()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Record { addr, out } => record::record(addr, &out).await,
            Command::Compare(options) => compare::compare(&options).await,
        }
    })
}
