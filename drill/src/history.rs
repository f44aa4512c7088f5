//! The calls under way: the replies of all servers, and what each person has seen.

use crate::{clock::micros, leg::Leg, tools::Level, trace::Traces};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The replies to the requests with one state and one set of answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    /// The different results, as they were sent, and the process of each one.
    pub(crate) results: BTreeMap<String, u32>,
    /// The number of replies with a result.
    pub(crate) count: u64,
    /// The reasons of errors.
    pub(crate) reasons: BTreeMap<String, u64>,
}

/// The outcome of a call, as its person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The final result, as text.
    Result(String),
    /// The effect of a step is unknown.
    Unknown,
    /// The person gave up, after this reason; the call could be resumed.
    GaveUp(String),
    /// An error after which nobody can go on.
    Refused(String),
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) call: String,
    pub(crate) level: Level,
    pub(crate) plan: String,
    pub(crate) from: u64,
    /// The moment of the latest request or reply.
    pub(crate) until: u64,
    pub(crate) outcome: Option<Outcome>,
    /// The number of the last leg, from 1.
    pub(crate) legs: u32,
    /// By leg and state, and by answers.
    pub(crate) replies: BTreeMap<(u32, String), BTreeMap<String, Replies>>,
    /// Legs that two people answered: the number of the leg, and the outcome of each.
    pub(crate) rivalries: Vec<(u32, [String; 2])>,
    /// The answers that were accepted: the leg that brought them has a result. By the key of the question.
    pub(crate) accepted: BTreeMap<String, String>,
    /// Questions that were asked although their answer was accepted.
    pub(crate) asked_again: Vec<String>,
    /// The processes that had a request of the call.
    pub(crate) processes: BTreeSet<u32>,
    /// True if a connection was cut while a server had a request.
    pub(crate) is_cut: bool,
    /// The number of requests of somebody else, and of results for them.
    pub(crate) thefts: u64,
    pub(crate) stolen: u64,
    /// The number of requests that nobody waits for.
    deliveries: u64,
    touched: Instant,
}

/// The calls under way, and those that wait for their check.
#[derive(Debug, Default)]
pub(crate) struct History {
    calls: Mutex<HashMap<String, CallRecord>>,
    /// The ends of the latest calls.
    ends: Mutex<VecDeque<Instant>>,
    traces: Mutex<Traces>,
    replies: AtomicU64,
}

#[derive(Deserialize)]
struct Body {
    result: Option<Box<RawValue>>,
    error: Option<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    message: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    reason: Option<String>,
}

impl History {
    /// Notes that a call begins.
    pub(crate) fn begin(&self, call: &str, level: Level, plan: &str) {
        let record = CallRecord {
            call: call.to_owned(),
            level,
            plan: plan.to_owned(),
            from: micros(),
            until: micros(),
            outcome: None,
            legs: 1,
            replies: BTreeMap::new(),
            rivalries: Vec::new(),
            accepted: BTreeMap::new(),
            asked_again: Vec::new(),
            processes: BTreeSet::new(),
            is_cut: false,
            thefts: 0,
            stolen: 0,
            deliveries: 0,
            touched: Instant::now(),
        };
        lock(&self.calls).insert(call.to_owned(), record);
    }

    /// Changes the record of a call that is not checked yet.
    pub(crate) fn with(&self, call: &str, change: impl FnOnce(&mut CallRecord)) {
        if let Some(record) = lock(&self.calls).get_mut(call) {
            record.until = micros();
            record.touched = Instant::now();
            change(record);
        }
    }

    /// Notes the end of a call.
    pub(crate) fn end(&self, leg: &Leg, outcome: Outcome) {
        self.with(&leg.call, |record| {
            record.outcome = Some(outcome);
            record.legs = leg.number + 1;
        });
        lock(&self.ends).push_back(Instant::now());
    }

    /// Notes the result of a leg: its answers are accepted, and its questions are asked.
    pub(crate) fn accepted(&self, leg: &Leg, result: &Value) {
        self.with(&leg.call, |record| {
            for (key, answer) in leg.answers.as_object().into_iter().flatten() {
                let name = answer["content"]["name"].as_str().unwrap_or_default();
                record.accepted.insert(key.clone(), name.to_owned());
            }
            let keys = result["inputRequests"].as_object().map(serde_json::Map::keys).into_iter().flatten();
            let again = keys.filter(|key| record.accepted.contains_key(*key)).cloned().collect::<Vec<_>>();
            record.asked_again.extend(again);
        });
    }

    /// Notes a reply. The first leg of a call has no state, so that each delivery begins a call of its own.
    pub(crate) fn replied(&self, leg: &Leg, process: u32, reply: &[u8]) {
        self.replies.fetch_add(1, Ordering::Relaxed);
        let Ok(body) = serde_json::from_slice::<Body>(reply) else { return };
        let Some(state) = &leg.state else { return };
        self.with(&leg.call, |record| {
            if leg.person != person_of(&leg.call) {
                record.thefts += 1;
                record.stolen += u64::from(body.result.is_some());
                return;
            }
            let by_answers = record.replies.entry((leg.number, state.clone())).or_default();
            let replies = by_answers.entry(leg.answers.to_string()).or_default();
            if let Some(result) = body.result {
                replies.results.entry(result.get().to_owned()).or_insert(process);
                replies.count += 1;
            } else if let Some(error) = body.error {
                let reason = error.data.and_then(|data| data.reason).unwrap_or(error.message);
                *replies.reasons.entry(reason).or_default() += 1;
            }
        });
    }

    /// Notes a request that nobody waits for. The call is not checked before [`close_delivery`](Self::close_delivery).
    pub(crate) fn open_delivery(&self, call: &str) {
        self.with(call, |record| record.deliveries += 1);
    }

    pub(crate) fn close_delivery(&self, call: &str) {
        self.with(call, |record| record.deliveries -= 1);
    }

    /// Removes and returns the calls that have ended, and of which nothing was sent or received for this time.
    pub(crate) fn settled(&self, quiet: Duration) -> Vec<CallRecord> {
        let mut calls = lock(&self.calls);
        let is_settled = |record: &CallRecord| {
            record.outcome.is_some() && record.deliveries == 0 && record.touched.elapsed() >= quiet
        };
        let settled: Vec<String> =
            calls.values().filter(|record| is_settled(record)).map(|record| record.call.clone()).collect();
        settled.iter().filter_map(|call| calls.remove(call)).collect()
    }

    /// Returns true if a request that nobody waits for is under way.
    pub(crate) fn is_busy(&self) -> bool {
        lock(&self.calls).values().any(|record| record.deliveries > 0)
    }

    /// Returns true if a call runs that began before this moment.
    pub(crate) fn runs_since_before(&self, moment: u64) -> bool {
        lock(&self.calls).values().any(|record| record.outcome.is_none() && record.from < moment)
    }

    /// Returns the number of calls that run, or that have ended within this time.
    pub(crate) fn recent(&self, time: Duration) -> u64 {
        let mut ends = lock(&self.ends);
        while ends.front().is_some_and(|end| end.elapsed() > time) {
            ends.pop_front();
        }
        let running = lock(&self.calls).values().filter(|record| record.outcome.is_none()).count();
        u64::try_from(running + ends.len()).unwrap_or(u64::MAX)
    }

    /// Returns the log of the fleet.
    pub(crate) fn traces(&self) -> MutexGuard<'_, Traces> {
        lock(&self.traces)
    }

    /// Returns the number of replies.
    pub(crate) fn count(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the person whose call it is.
pub(crate) fn person_of(call: &str) -> String {
    format!("person-of-{call}")
}
