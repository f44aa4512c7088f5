//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

use crate::Error;

/// The command.
pub(crate) enum Command {
    /// Records the answers of the server at `addr` in `out`.
    Record { addr: SocketAddr, out: PathBuf },
    /// Measures servers.
    Compare(Options),
}

/// The plan of a measurement.
pub(crate) struct Options {
    /// In the order of their turns.
    pub(crate) servers: Vec<Server>,
    /// The server whose ratios to the others are printed.
    pub(crate) subject: String,
    pub(crate) rounds: usize,
    pub(crate) plans: Vec<Plan>,
    /// No round starts after this.
    pub(crate) deadline: Duration,
}

/// One server under measurement, given as `NAME=ADDR=PID`.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) addr: SocketAddr,
    pub(crate) pid: u32,
}

/// Connections and requests of one measurement, given as `CONNECTIONSxREQUESTS`.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) connections: usize,
    pub(crate) requests: usize,
}

impl Command {
    pub(crate) fn from_env() -> Result<Self, Error> {
        let mut parser = lexopt::Parser::from_env();
        match parser.next()? {
            Some(Value(name)) if name == "record" => record(&mut parser),
            Some(Value(name)) if name == "compare" => compare(&mut parser),
            _ => Err("usage: load record --addr ADDR --out DIR | load compare --server ..".into()),
        }
    }
}

fn record(parser: &mut lexopt::Parser) -> Result<Command, Error> {
    let (mut addr, mut out) = (None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("addr") => addr = Some(parser.value()?.parse()?),
            Long("out") => out = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Record {
        addr: addr.ok_or("--addr ADDR is missing")?,
        out: out.ok_or("--out DIR is missing")?,
    })
}

fn compare(parser: &mut lexopt::Parser) -> Result<Command, Error> {
    let (mut servers, mut plans) = (Vec::<Server>::new(), Vec::new());
    let (mut subject, mut rounds, mut seconds) = (None, 5, 150);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("server") => servers.push(parser.value()?.parse()?),
            Long("plan") => plans.push(parser.value()?.parse()?),
            Long("subject") => subject = Some(parser.value()?.string()?),
            Long("rounds") => rounds = parser.value()?.parse()?,
            Long("deadline-seconds") => seconds = parser.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    let subject = subject.ok_or("--subject NAME is missing")?;
    if !servers.iter().any(|server| server.name == subject) {
        return Err(format!("no --server is named {subject}").into());
    }
    if plans.is_empty() || rounds == 0 {
        return Err("nothing to do: give --plan CONNECTIONSxREQUESTS and --rounds N".into());
    }
    let deadline = Duration::from_secs(seconds);
    Ok(Command::Compare(Options { servers, subject, rounds, plans, deadline }))
}

impl FromStr for Server {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = text.splitn(3, '=');
        let (Some(name), Some(addr), Some(pid)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("{text}: expected NAME=ADDR=PID").into());
        };
        Ok(Self { name: name.to_owned(), addr: addr.parse()?, pid: pid.parse()? })
    }
}

impl FromStr for Plan {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (connections, requests) =
            text.split_once('x').ok_or_else(|| format!("{text}: expected CONNECTIONSxREQUESTS"))?;
        let plan = Self { connections: connections.parse()?, requests: requests.parse()? };
        if plan.connections == 0 || plan.requests < plan.connections {
            return Err(format!("{text}: at least one connection, and one request on each").into());
        }
        Ok(plan)
    }
}
