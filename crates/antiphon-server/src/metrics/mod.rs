//! Metrics: counts of what a server does. Each is a relaxed atomic, to which a request adds without a lock.

mod snapshot;

pub(crate) use self::snapshot::Gauges;
pub use self::snapshot::Metrics;

use crate::errors::refusal::Refusal;
use antiphon_store::StoreOperation;
use antiphon_wire::{InputRequest, InputRequests, method};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The methods with a histogram of their own; all others share the last one.
const METHODS: [&str; 17] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
    method::TOOLS_LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::COMPLETION_COMPLETE,
    method::DISCOVER,
    method::SUBSCRIPTIONS_LISTEN,
    method::TASKS_GET,
    method::TASKS_UPDATE,
    method::TASKS_CANCEL,
    method::TASKS_RESULT,
    method::TASKS_LIST,
    method::TASKS_INPUT_RESPONSE,
    "_OTHER",
];

/// The values of `error_type`: none, the conventions' value for a tool's error, and the codes of JSON-RPC errors.
const ERRORS: [&str; 9] =
    ["", "tool_error", "-32602", "-32603", "-32601", "-32600", "-32021", "-32042", "_OTHER"];

/// The outcomes of calls.
const OUTCOMES: [&str; 5] = ["complete", "error", "task", "refused", "sent again"];

/// The kinds of asks.
const KINDS: [&str; 5] = ["form", "url", "sampling", "roots", "_OTHER"];

/// The kinds and outcomes of answers.
const ANSWERS: [(&str, &str); 6] = [
    ("elicitation", "accept"),
    ("elicitation", "decline"),
    ("elicitation", "cancel"),
    ("sampling", "answered"),
    ("roots", "answered"),
    ("_OTHER", "answered"),
];

/// The ends of steps.
const STEPS: [&str; 3] = ["done", "error", "no outcome"];

/// The operations of a store.
const OPERATIONS: [&str; 9] =
    ["claim", "renew", "append", "commit", "release", "load", "put", "get", "_OTHER"];

/// The counters of a server.
#[derive(Debug)]
pub(crate) struct Meters {
    /// A histogram for each method and each error.
    requests: Vec<Histogram>,
    calls: [Counter; OUTCOMES.len()],
    legs: Counter,
    asks: [Counter; KINDS.len()],
    answers: [Counter; ANSWERS.len()],
    human_wait: Histogram,
    steps: [Counter; STEPS.len()],
    refusals: [Counter; Refusal::LABELS.len()],
    /// A histogram for each operation that succeeded, then for each that failed.
    store: Vec<Histogram>,
}

impl Default for Meters {
    fn default() -> Self {
        let histograms = |count| std::iter::repeat_with(Histogram::default).take(count).collect();
        Self {
            requests: histograms(METHODS.len() * ERRORS.len()),
            calls: Default::default(),
            legs: Counter::default(),
            asks: Default::default(),
            answers: Default::default(),
            human_wait: Histogram::default(),
            steps: Default::default(),
            refusals: Default::default(),
            store: histograms(OPERATIONS.len() * 2),
        }
    }
}

/// The end of a call, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Complete,
    Error,
    Task,
    Refused,
    SentAgain,
}

impl CallOutcome {
    /// Returns the name, as in the log.
    pub(crate) fn name(self) -> &'static str {
        OUTCOMES[self as usize]
    }
}

/// The end of a step, as it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepEnd {
    Done,
    Error,
    NoOutcome,
}

impl Meters {
    /// Counts a request that ended. `tool_failed`: the result has `isError`.
    pub(crate) fn request(&self, method: &str, error: Option<&Refusal>, tool_failed: bool, time: Duration) {
        let of = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len() - 1);
        let error = match error {
            None => usize::from(tool_failed),
            Some(refusal) => {
                self.refusals[refusal.label()].add(1);
                let code = refusal.to_error().code.0.to_string();
                ERRORS.iter().position(|known| *known == code).unwrap_or(ERRORS.len() - 1)
            }
        };
        self.requests[of * ERRORS.len() + error].record(time);
    }

    /// Counts a leg that was admitted, and the answers in its request.
    pub(crate) fn leg(&self) {
        self.legs.add(1);
    }

    /// Counts a call that ended.
    pub(crate) fn call(&self, outcome: CallOutcome) {
        self.calls[outcome as usize].add(1);
    }

    /// Counts the asks of a round that leaves.
    pub(crate) fn asks(&self, asks: &InputRequests) {
        asks.iter().for_each(|(_, ask)| self.ask(ask));
    }

    /// Counts an ask that leaves.
    pub(crate) fn ask(&self, ask: &InputRequest) {
        let kind = match ask {
            InputRequest::Elicit(elicit) if elicit.is_url() => 1,
            InputRequest::Elicit(_) => 0,
            InputRequest::CreateMessage(_) => 2,
            InputRequest::ListRoots { .. } => 3,
            _ => 4,
        };
        self.asks[kind].add(1);
    }

    /// Counts an answer that arrived, by its members: only an elicitation's has an `action`.
    pub(crate) fn answer(&self, answer: &str) {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow, default)]
            action: Option<&'a RawValue>,
            #[serde(default)]
            role: Option<IgnoredAny>,
            #[serde(default)]
            roots: Option<IgnoredAny>,
        }
        let found = match serde_json::from_str::<Members<'_>>(answer) {
            Ok(Members { action: Some(action), .. }) => {
                // None of the words needs an escape.
                let action = action.get().trim_matches('"');
                ANSWERS.iter().position(|(kind, outcome)| *kind == "elicitation" && *outcome == action)
            }
            Ok(Members { role: Some(_), .. }) => Some(3),
            Ok(Members { roots: Some(_), .. }) => Some(4),
            _ => None,
        };
        self.answers[found.unwrap_or(ANSWERS.len() - 1)].add(1);
    }

    /// Counts the time between a round and its answers.
    pub(crate) fn waited(&self, time: Duration) {
        self.human_wait.record(time);
    }

    /// Counts a step that ended in this process.
    pub(crate) fn step(&self, end: StepEnd) {
        self.steps[end as usize].add(1);
    }

    /// Counts an operation of the store.
    pub(crate) fn stored(&self, operation: StoreOperation, succeeded: bool, time: Duration) {
        let failed = if succeeded { 0 } else { OPERATIONS.len() };
        let operation = match operation {
            StoreOperation::Claim => 0,
            StoreOperation::Renew => 1,
            StoreOperation::Append => 2,
            StoreOperation::Commit => 3,
            StoreOperation::Release => 4,
            StoreOperation::Load => 5,
            StoreOperation::Put => 6,
            StoreOperation::Get => 7,
            _ => 8,
        };
        self.store[operation + failed].record(time);
    }
}

/// The upper bounds of the buckets, in milliseconds: those that OpenTelemetry's conventions for MCP recommend.
const BOUNDS: [u64; 14] =
    [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000];

/// A count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram. The last bucket has everything above the largest bound.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Counter; BOUNDS.len() + 1],
    micros: Counter,
}

impl Histogram {
    pub(crate) fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.buckets[BOUNDS.partition_point(|bound| bound * 1000 < micros)].add(1);
        self.micros.add(micros);
    }

    /// Returns the cumulative counts with their bounds in seconds, then the count and the sum in seconds of all.
    pub(crate) fn read(&self) -> (Vec<(f64, u64)>, u64, f64) {
        let mut count = 0;
        let mut cumulative = Vec::with_capacity(BOUNDS.len());
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            count += bucket.get();
            cumulative.push((Duration::from_millis(*bound).as_secs_f64(), count));
        }
        count += self.buckets[BOUNDS.len()].get();
        (cumulative, count, Duration::from_micros(self.micros.get()).as_secs_f64())
    }

    /// Returns true before the first duration.
    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.get() == 0)
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::*;

    #[test]
    fn a_duration_is_in_each_bucket_whose_bound_it_does_not_exceed() {
        for (millis, first) in [(0, 0.01), (10, 0.01), (11, 0.02), (300_000, 300.0)] {
            let histogram = Histogram::default();
            assert!(histogram.is_empty());
            histogram.record(Duration::from_millis(millis));
            let (buckets, count, sum) = histogram.read();
            let found = buckets.iter().find(|(_, count)| *count == 1).map(|(bound, _)| *bound);
            assert_eq!((found, count, histogram.is_empty()), (Some(first), 1, false), "{millis}");
            assert!((sum - Duration::from_millis(millis).as_secs_f64()).abs() < 1e-9);
        }
        let histogram = Histogram::default();
        histogram.record(Duration::MAX);
        let (buckets, count, _) = histogram.read();
        assert_eq!((buckets.last().unwrap().1, count), (0, 1));
    }
}
