//! The load generator.
//!
//! - `load record --addr ADDR --out DIR --case NAME ..` sends each request once to a live server, checks the answers as
//!   JSON and stores their bytes for the bare server.
//! - `load compare --server NAME=ADDR=PID ..` measures the servers in interleaved rounds and prints tables.
//! - `load start --addr ADDR --name NAME -- PROGRAM ARGUMENT ..` starts a server several times and prints a line of a table.
//!
//! One thread, keep-alive connections, one request in flight on each. Every answer is checked.

mod arguments;
mod case;
mod compare;
mod connection;
mod cpu;
mod error;
mod measure;
mod record;
mod report;
mod start;

use std::process::ExitCode;

use crate::arguments::Command;
use crate::error::Error;

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
            Command::Record { addr, out, cases } => record::record(addr, &out, &cases).await,
            Command::Compare(options) => compare::compare(&options).await,
            Command::Start(options) => start::start(&options).await,
        }
    })
}
