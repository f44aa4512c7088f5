//! One measurement: a fixed number of requests to one server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use tokio::task::JoinSet;

use crate::arguments::{Plan, Server};
use crate::case::Case;
use crate::connection::{Answer, Connection};
use crate::cpu::Times;
use crate::error::Error;
use crate::{cpu, record};

/// A server that hangs fails the run.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);

/// The result of one measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) requests_per_second: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
    /// The server's time per request; then its parts, in the program itself and in the kernel.
    pub(crate) cpu_micros: f64,
    pub(crate) user_micros: f64,
    pub(crate) system_micros: f64,
    /// The share of the processor that neither server nor load generator used: how noisy the machine was.
    pub(crate) others: f64,
}

/// Opens the connections, warms them up with a tenth of the requests, then measures.
pub(crate) async fn measure(
    server: &Server,
    case: Case,
    plan: Plan,
    processor: u32,
) -> Result<Figures, Error> {
    let measured = tokio::time::timeout(RUN_TIMEOUT, unbounded(server, case, plan, processor)).await;
    let measured = measured.unwrap_or_else(|_| Err("no end within a minute".into()));
    measured.map_err(|error| format!("{}, {}: {error}", server.name, case.name()).into())
}

async fn unbounded(server: &Server, case: Case, plan: Plan, processor: u32) -> Result<Figures, Error> {
    let state = record::state(server.addr, case).await?;
    let mut connections = Vec::with_capacity(plan.connections);
    for _ in 0..plan.connections {
        connections.push(Connection::open(server.addr).await?);
    }
    let load = Arc::new(Load::new(case, case.request(server.addr, &state)));
    let warm_up = (plan.requests / 10).max(plan.connections);
    let (connections, _) = load.drive(connections, warm_up).await?;

    let before = ResourceUse::now(server, processor)?;
    let started = Instant::now();
    let (_, mut latencies) = load.drive(connections, plan.requests).await?;
    let wall = started.elapsed();
    let after = ResourceUse::now(server, processor)?;

    latencies.sort_unstable();
    let count = latencies.len() as f64;
    let server = after.server - before.server;
    let ours = server.total + (after.load - before.load).total;
    let others = after.all.saturating_sub(before.all).saturating_sub(ours);
    Ok(Figures {
        requests_per_second: count / wall.as_secs_f64(),
        p50_micros: percentile(&latencies, 50),
        p99_micros: percentile(&latencies, 99),
        cpu_micros: server.total.as_secs_f64() * 1e6 / count,
        user_micros: server.user.as_secs_f64() * 1e6 / count,
        system_micros: server.system.as_secs_f64() * 1e6 / count,
        others: others.as_secs_f64() / wall.as_secs_f64(),
    })
}

/// Processor time, by who used it.
struct ResourceUse {
    server: Times,
    load: Times,
    all: Duration,
}

impl ResourceUse {
    fn now(server: &Server, processor: u32) -> Result<Self, Error> {
        let (server, load) = (Times::of(server.pid)?, Times::of(std::process::id())?);
        Ok(Self { server, load, all: cpu::used_of(processor)? })
    }
}

/// The state that all connections of one measurement share.
struct Load {
    request: Vec<u8>,
    expected: Vec<Finder<'static>>,
    /// Requests not yet taken by a connection.
    left: AtomicUsize,
}

impl Load {
    fn new(case: Case, request: Vec<u8>) -> Self {
        let expected = case.expected().iter().copied().map(Finder::new).collect();
        Self { request, expected, left: AtomicUsize::new(0) }
    }

    /// Sends `count` requests over all connections and gives these back with the latencies.
    async fn drive(
        self: &Arc<Self>,
        connections: Vec<Connection>,
        count: usize,
    ) -> Result<(Vec<Connection>, Vec<Duration>), Error> {
        self.left.store(count, Ordering::Relaxed);
        let mut running = JoinSet::new();
        for connection in connections {
            running.spawn(Arc::clone(self).drive_one(connection));
        }
        let (mut connections, mut latencies) = (Vec::new(), Vec::with_capacity(count));
        while let Some(ended) = running.join_next().await {
            let (connection, mut own) = ended??;
            connections.push(connection);
            latencies.append(&mut own);
        }
        Ok((connections, latencies))
    }

    async fn drive_one(
        self: Arc<Self>,
        mut connection: Connection,
    ) -> Result<(Connection, Vec<Duration>), Error> {
        let mut latencies = Vec::new();
        while self.take() {
            let sent = Instant::now();
            let answer = connection.exchange(&self.request).await?;
            latencies.push(sent.elapsed());
            self.check(&answer)?;
        }
        Ok((connection, latencies))
    }

    fn take(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// A benchmark that measures errors is worthless.
    fn check(&self, answer: &Answer<'_>) -> Result<(), Error> {
        let holds = |text: &Finder<'_>| text.find(answer.body).is_some();
        if answer.status == 200 && self.expected.iter().all(holds) {
            return Ok(());
        }
        let text: String = String::from_utf8_lossy(answer.body).chars().take(2000).collect();
        Err(format!("wrong answer: {} {text}", answer.status).into())
    }
}

/// Nearest rank, in microseconds. `sorted` is not empty.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1].as_secs_f64() * 1e6
}
