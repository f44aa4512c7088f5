//! Checks calls and tasks while the run goes on, so that a long run needs no more memory than a short one.

use crate::{
    clock::ClockSteps,
    error::Result,
    fault::Faults,
    findings::{Findings, Rule},
    ledger::Ledger,
    log::Subject,
    rows,
    store::Address,
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The time without a request or a reply after which a call is checked: longer than the pause of a process, its slow step
/// and the time limit of the store.
const QUIET: Duration = Duration::from_secs(20);
/// The time between two counts of rows, and between two lines of a long run.
const ROWS: Duration = Duration::from_secs(10);
const LINE: Duration = Duration::from_secs(60);
/// The rows that a call may have in the store besides its own: a stored record for each of its legs.
const BLOBS: u64 = 16;

/// The checks of a run.
#[derive(Debug)]
pub(crate) struct Checker {
    pub(crate) log: Arc<dyn Subject>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) ledger: Ledger,
    pub(crate) store: Address,
    /// The longest time for which a row is kept after the last request of its call.
    pub(crate) kept: Duration,
    /// The rule about rows.
    pub(crate) rule: Rule,
    pub(crate) findings: Mutex<Findings>,
}

impl Checker {
    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks calls that are over until it is aborted.
    pub(crate) async fn run(self: Arc<Self>) {
        let begin = Instant::now();
        let (mut counted, mut printed) = (begin, begin);
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.check(QUIET);
            if counted.elapsed() >= ROWS {
                counted = Instant::now();
                self.count_rows().await;
            }
            if printed.elapsed() >= LINE {
                printed = Instant::now();
                self.print(begin);
            }
        }
    }

    fn check(&self, quiet: Duration) {
        self.log.check(quiet, &self.ledger, &self.faults, &self.findings);
    }

    /// While the store runs, it has a row for each call of the time for which rows are kept, and none for earlier calls.
    async fn count_rows(&self) {
        let Ok(count) = rows::count(&self.store).await else { return };
        // Counted after the rows: calls begin all the time. Rows are swept every minute.
        let recent = self.log.recent(self.kept + Duration::from_secs(120));
        let mut findings = self.findings();
        findings.counts.most_rows = findings.counts.most_rows.max(count);
        let limit = if matches!(self.store, Address::Redis(_)) { recent * (1 + BLOBS) } else { recent };
        if count.calls > limit || count.blobs > recent * BLOBS || count.tasks > recent {
            findings.breaks(self.rule, format!("{count}, for {recent} calls that may have some"));
        }
    }

    fn print(&self, begin: Instant) {
        let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = memory.lines().find_map(|line| line.strip_prefix("VmRSS:")).map_or("?", str::trim);
        let findings = self.findings();
        println!(
            "at {} s: {} checked, {} replies, at most {}, driver {memory}, {}",
            begin.elapsed().as_secs(),
            findings.counts.calls + findings.tasks.tasks,
            self.log.count(),
            findings.counts.most_rows,
            findings.first_broken().unwrap_or("no rule broken"),
        );
    }

    /// Checks the calls that are left, when all servers have ended, and the rows of the store at the end of their time.
    pub(crate) async fn conclude(&self, clocks: &ClockSteps) -> Result<Findings> {
        self.check(Duration::ZERO);
        for call in self.ledger.calls()? {
            let effects = self.ledger.read(&call)?.len();
            let what =
                format!("{call}: {effects} effects after its check, {} s after its end", QUIET.as_secs());
            self.findings().breaks(Rule::SingleUse, what);
        }
        let left = rows::left(&self.store, clocks, self.kept).await?;
        let mut findings = self.findings();
        findings.counts.rows_left = left;
        if left != rows::Count::default() {
            findings.breaks(self.rule, format!("{left} after their time"));
        }
        Ok(findings.clone())
    }
}
