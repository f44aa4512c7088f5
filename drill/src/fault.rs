//! The faults of a run, with their times.

use crate::clock::micros;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
};

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// SIGKILL of a process.
    Kill,
    /// SIGSTOP of a process for longer than the lease, then SIGCONT.
    Pause,
    /// SIGTERM of a process: the requests under way may end.
    Terminate,
    /// SIGTERM of a process, and its successor has another version of the tools.
    Upgrade,
    /// SIGKILL of all processes; for a while none of them runs.
    Blackout,
    /// The store ends and begins again.
    StoreRestart,
    /// Another process has the lock of the store's file.
    StoreLock,
    /// A connection to the store ends before a request has arrived.
    CutRequest,
    /// A connection to the store ends before a reply has arrived.
    CutReply,
    /// All connections to the store end.
    CutAll,
    /// A reply of the store is late, perhaps by more than the lease.
    Stall,
    /// The clock of the host steps, by which the store measures leases.
    StoreClock,
    /// The clock of a server steps.
    ServerClock,
    /// A key was added, promoted or retired.
    Keys,
}

impl FaultKind {
    /// Returns the name of the kind in a report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Pause => "SIGSTOP beyond the lease",
            Self::Terminate => "SIGTERM",
            Self::Upgrade => "upgrades",
            Self::Blackout => "deaths of the whole fleet",
            Self::StoreRestart => "restarts of the store",
            Self::StoreLock => "locks of the file",
            Self::CutRequest => "store requests cut",
            Self::CutReply => "store replies cut",
            Self::CutAll => "cuts of all store connections",
            Self::Stall => "late store replies",
            Self::StoreClock => "steps of the host's clock",
            Self::ServerClock => "steps of a server's clock",
            Self::Keys => "edits of the key file",
        }
    }

    /// Returns true if a step may be left without an outcome. A change of keys or of a server's own clock is no such cause.
    fn interrupts(self) -> bool {
        !matches!(self, Self::ServerClock | Self::Keys)
    }
}

/// A fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The process that it concerns, or none for all of them.
    pub(crate) process: Option<u32>,
    /// The begin and the end, in microseconds.
    pub(crate) from: u64,
    pub(crate) until: u64,
}

impl Fault {
    /// Returns true if the fault may be the cause of an interrupted step in one of these processes, in this time.
    pub(crate) fn may_interrupt(&self, is_of: impl Fn(u32) -> bool, from: u64, until: u64) -> bool {
        self.kind.interrupts() && self.process.is_none_or(is_of) && self.from <= until && self.until >= from
    }
}

/// The age from which on a fault is forgotten, in microseconds: longer than a call.
const REMEMBERED: u64 = 600_000_000;

/// The faults of a run: all of them counted, and the latest ones kept.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<FaultLog>);

#[derive(Debug, Default)]
struct FaultLog {
    latest: VecDeque<(u64, Fault)>,
    begun: u64,
    counts: BTreeMap<FaultKind, u64>,
}

/// A fault that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultId(u64);

impl Faults {
    /// Notes the begin of a fault.
    pub(crate) fn begin(&self, kind: FaultKind, process: Option<u32>) -> FaultId {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = micros();
        kept.latest.retain(|(_, fault)| fault.until.saturating_add(REMEMBERED) > from);
        kept.begun += 1;
        *kept.counts.entry(kind).or_default() += 1;
        let id = kept.begun;
        kept.latest.push_back((id, Fault { kind, process, from, until: u64::MAX }));
        FaultId(id)
    }

    /// Notes the end of a fault.
    pub(crate) fn end(&self, id: FaultId) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fault)) = kept.latest.iter_mut().find(|(found, _)| *found == id.0) {
            fault.until = micros();
            show(fault);
        }
    }

    /// Notes a fault of a moment.
    pub(crate) fn note(&self, kind: FaultKind, process: Option<u32>) {
        self.end(self.begin(kind, process));
    }

    /// Returns the latest faults.
    pub(crate) fn latest(&self) -> Vec<Fault> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.latest.iter().map(|(_, fault)| fault.clone()).collect()
    }

    /// Returns the numbers of faults, for a report.
    pub(crate) fn words(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let words = kept.counts.iter().map(|(kind, count)| format!("{count} {}", kind.name()));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Prints a fault that has ended, if the servers' warnings are printed: see `trace::Printer`.
fn show(fault: &Fault) {
    if std::env::var_os("DRILL_LOG").is_some() {
        let Fault { kind, process, from, until } = fault;
        eprintln!("{process:?} {} from {from} until {until}", kind.name());
    }
}
