//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

use crate::case::Case;
use crate::error::Error;

const USAGE: &str = "usage: load record --addr ADDR --out DIR --case NAME.. \
                     | load compare --server NAME=ADDR=PID.. --case NAME.. --plan CONNECTIONSxREQUESTS.. \
                     | load start --addr ADDR --name NAME -- PROGRAM ARGUMENT..";

/// The task of this run.
pub(crate) enum Command {
    /// Store the answers of the server at `addr` in `out`.
    Record { addr: SocketAddr, out: PathBuf, cases: Vec<Case> },
    /// Measure servers that run.
    Compare(Options),
    /// Measure how a server starts.
    Start(Start),
}

/// The measurement of servers that run.
pub(crate) struct Options {
    /// The servers in the order of their turns.
    pub(crate) servers: Vec<Server>,
    pub(crate) cases: Vec<Case>,
    /// The server whose ratios to the others are printed.
    pub(crate) subject: String,
    pub(crate) rounds: usize,
    pub(crate) plans: Vec<Plan>,
    /// The processor that servers and load generator are pinned to.
    pub(crate) processor: u32,
    /// No round starts after this.
    pub(crate) deadline: Duration,
}

/// The measurement of a server's start.
pub(crate) struct Start {
    pub(crate) name: String,
    /// The address on which the program listens.
    pub(crate) addr: SocketAddr,
    pub(crate) runs: usize,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
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
            Some(Value(name)) if name == "start" => start(&mut parser),
            _ => Err(USAGE.into()),
        }
    }
}

fn record(parser: &mut lexopt::Parser) -> Result<Command, Error> {
    let (mut addr, mut out, mut cases) = (None, None, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("addr") => addr = Some(parser.value()?.parse()?),
            Long("out") => out = Some(PathBuf::from(parser.value()?)),
            Long("case") => cases.push(parser.value()?.parse()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Record { addr: addr.ok_or(USAGE)?, out: out.ok_or(USAGE)?, cases })
}

fn compare(parser: &mut lexopt::Parser) -> Result<Command, Error> {
    let (mut servers, mut cases, mut plans) = (Vec::<Server>::new(), Vec::new(), Vec::new());
    let (mut subject, mut rounds, mut processor, mut seconds) = (None, 5, 0, 600);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("server") => servers.push(parser.value()?.parse()?),
            Long("case") => cases.push(parser.value()?.parse()?),
            Long("plan") => plans.push(parser.value()?.parse()?),
            Long("subject") => subject = Some(parser.value()?.string()?),
            Long("rounds") => rounds = parser.value()?.parse()?,
            Long("cpu") => processor = parser.value()?.parse()?,
            Long("deadline-seconds") => seconds = parser.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    let subject = subject.ok_or("--subject NAME is missing")?;
    if !servers.iter().any(|server| server.name == subject) {
        return Err(format!("no --server is named {subject}").into());
    }
    if cases.is_empty() || plans.is_empty() || rounds == 0 {
        return Err(USAGE.into());
    }
    let deadline = Duration::from_secs(seconds);
    Ok(Command::Compare(Options { servers, cases, subject, rounds, plans, processor, deadline }))
}

fn start(parser: &mut lexopt::Parser) -> Result<Command, Error> {
    let (mut addr, mut name, mut runs, mut words) = (None, None, 5, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("addr") => addr = Some(parser.value()?.parse()?),
            Long("name") => name = Some(parser.value()?.string()?),
            Long("runs") => runs = parser.value()?.parse()?,
            Value(word) => words.push(word),
            other => return Err(other.unexpected().into()),
        }
    }
    let mut words = words.into_iter();
    let program = words.next().ok_or(USAGE)?;
    let (addr, name) = (addr.ok_or(USAGE)?, name.ok_or(USAGE)?);
    Ok(Command::Start(Start { name, addr, runs, program, arguments: words.collect() }))
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
