//! The log of a run: a record of each call or task under way, and of those that wait for their check.

use crate::{
    clock::micros,
    fault::{Fault, Faults},
    findings::Findings,
    ledger::{Effect, Ledger},
    trace::Traces,
};
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The life of a record.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// The name in the ledger.
    pub(crate) call: String,
    pub(crate) from: u64,
    /// The moment of the latest request or reply.
    pub(crate) until: u64,
    /// True if nobody waits for anything.
    is_over: bool,
    /// The number of requests that nobody waits for.
    deliveries: u64,
    touched: Instant,
}

impl Life {
    fn begin(call: &str) -> Self {
        let now = micros();
        let call = call.to_owned();
        Self { call, from: now, until: now, is_over: false, deliveries: 0, touched: Instant::now() }
    }

    fn touch(&mut self) {
        self.until = micros();
        self.touched = Instant::now();
    }

    /// Returns true if a request is under way, or one may come.
    fn is_busy(&self) -> bool {
        !self.is_over || self.deliveries > 0
    }
}

/// A record: of a call, or of a task.
pub(crate) trait Record: Clone + fmt::Debug + Send + 'static {
    /// Returns the life of the record.
    fn life(&self) -> &Life;

    /// Returns the life of the record, to change it.
    fn life_mut(&mut self) -> &mut Life;

    /// Checks the rules, when nothing is under way any more.
    fn check(&self, evidence: &Evidence<'_>, findings: &mut Findings);

    /// Returns the number of times for which a record waits for its check.
    fn quiet_times(&self) -> u32 {
        1
    }
}

/// The material of the checks of one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) effects: &'a [Effect],
    pub(crate) faults: &'a [Fault],
    pub(crate) traces: &'a Traces,
}

/// The log of a run, for the parts of the drill that do not distinguish calls and tasks.
pub(crate) trait Subject: fmt::Debug + Send + Sync + 'static {
    /// Checks the records of which nothing was sent or received for this time, and forgets them with their effects.
    fn check(&self, quiet: Duration, ledger: &Ledger, faults: &Faults, findings: &Mutex<Findings>);

    /// Returns the log of the fleet.
    fn traces(&self) -> MutexGuard<'_, Traces>;

    /// Returns true if a call or task runs that began before this moment.
    fn runs_since_before(&self, moment: u64) -> bool;

    /// Returns the number of calls and tasks that run, or that have ended within this time.
    fn recent(&self, time: Duration) -> u64;

    /// Returns true if a request that nobody waits for is under way.
    fn is_busy(&self) -> bool;

    /// Returns the number of replies.
    fn count(&self) -> u64;
}

/// The records under way, and those that wait for their check.
#[derive(Debug)]
pub(crate) struct Log<R> {
    records: Mutex<HashMap<String, R>>,
    /// The latest ends.
    ends: Mutex<VecDeque<Instant>>,
    traces: Mutex<Traces>,
    replies: AtomicU64,
}

impl<R> Default for Log<R> {
    fn default() -> Self {
        Self {
            records: Mutex::default(),
            ends: Mutex::default(),
            traces: Mutex::default(),
            replies: AtomicU64::new(0),
        }
    }
}

impl<R: Record> Log<R> {
    /// Notes that something begins.
    pub(crate) fn insert(&self, call: &str, record: impl FnOnce(Life) -> R) {
        lock(&self.records).insert(call.to_owned(), record(Life::begin(call)));
    }

    /// Changes a record that is not checked yet.
    pub(crate) fn with<T>(&self, call: &str, change: impl FnOnce(&mut R) -> T) -> Option<T> {
        let mut records = lock(&self.records);
        let record = records.get_mut(call)?;
        record.life_mut().touch();
        Some(change(record))
    }

    /// Notes the end.
    pub(crate) fn end(&self, call: &str, change: impl FnOnce(&mut R)) {
        self.with(call, |record| {
            record.life_mut().is_over = true;
            change(record);
        });
        lock(&self.ends).push_back(Instant::now());
    }

    /// Notes a reply.
    pub(crate) fn count_reply(&self) {
        self.replies.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a request that nobody waits for. The record is not checked before [`close_delivery`](Self::close_delivery).
    pub(crate) fn open_delivery(&self, call: &str) {
        self.with(call, |record| record.life_mut().deliveries += 1);
    }

    pub(crate) fn close_delivery(&self, call: &str) {
        self.with(call, |record| record.life_mut().deliveries -= 1);
    }

    /// Removes and returns the records that have ended, and of which nothing was sent or received for this time.
    fn settled(&self, quiet: Duration) -> Vec<R> {
        let mut records = lock(&self.records);
        let is_settled = |record: &&R| {
            let life = record.life();
            !life.is_busy() && life.touched.elapsed() >= quiet * record.quiet_times()
        };
        let settled: Vec<String> =
            records.values().filter(is_settled).map(|record| record.life().call.clone()).collect();
        settled.iter().filter_map(|call| records.remove(call)).collect()
    }
}

impl<R: Record> Subject for Log<R> {
    fn check(&self, quiet: Duration, ledger: &Ledger, faults: &Faults, findings: &Mutex<Findings>) {
        let settled = self.settled(quiet);
        if settled.is_empty() {
            return;
        }
        let faults = faults.latest();
        for record in settled {
            let call = &record.life().call;
            let effects = ledger.read(call);
            let mut findings = lock(findings);
            match effects {
                Ok(effects) => {
                    let traces = lock(&self.traces);
                    let evidence = Evidence { effects: &effects, faults: &faults, traces: &traces };
                    record.check(&evidence, &mut findings);
                    ledger.remove(call);
                }
                Err(error) => findings.unreadable(&error.to_string()),
            }
        }
        lock(&self.traces).forget(quiet * 6);
    }

    fn traces(&self) -> MutexGuard<'_, Traces> {
        lock(&self.traces)
    }

    fn runs_since_before(&self, moment: u64) -> bool {
        lock(&self.records).values().map(Record::life).any(|life| life.is_busy() && life.from < moment)
    }

    fn recent(&self, time: Duration) -> u64 {
        let mut ends = lock(&self.ends);
        while ends.front().is_some_and(|end| end.elapsed() > time) {
            ends.pop_front();
        }
        let running = lock(&self.records).values().filter(|record| !record.life().is_over).count();
        u64::try_from(running + ends.len()).unwrap_or(u64::MAX)
    }

    fn is_busy(&self) -> bool {
        lock(&self.records).values().any(|record| record.life().deliveries > 0)
    }

    fn count(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
