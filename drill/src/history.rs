//! The replies of all servers, and the ends of all calls.

use crate::{leg::Leg, tools::Level};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
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

/// A leg of a call: a state.
pub(crate) type LegKey = (String, u32, String);

/// The end of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallEnd {
    pub(crate) call: String,
    pub(crate) level: Level,
    pub(crate) plan: String,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) outcome: Outcome,
}

/// The outcome of a call, as its person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Result,
    /// The effect of a step is unknown.
    Unknown,
    /// The person gave up, after this reason; the call could be resumed.
    GaveUp(String),
    /// An error after which nobody can go on.
    Refused(String),
}

/// Two people answered one leg: the outcome of each.
#[derive(Clone, Debug)]
pub(crate) struct Rivalry {
    pub(crate) call: String,
    pub(crate) outcomes: Vec<String>,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) state: Mutex<State>,
    deliveries: AtomicU64,
    replies: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// By leg and answers.
    pub(crate) replies: BTreeMap<LegKey, BTreeMap<String, Replies>>,
    /// The calls of which a connection was cut while a server had a request.
    pub(crate) cuts: HashSet<String>,
    pub(crate) ends: Vec<CallEnd>,
    pub(crate) rivalries: Vec<Rivalry>,
    /// Results for a state that belongs to somebody else.
    pub(crate) stolen: BTreeSet<String>,
    pub(crate) thefts: u64,
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
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a reply. The first leg of a call has no state, so that each delivery begins a call of its own.
    pub(crate) fn replied(&self, leg: &Leg, process: u32, reply: &[u8]) {
        self.replies.fetch_add(1, Ordering::Relaxed);
        let Ok(body) = serde_json::from_slice::<Body>(reply) else { return };
        let Some(state) = &leg.state else { return };
        let mut all = self.lock();
        if leg.person != person_of(&leg.call) {
            all.thefts += 1;
            if body.result.is_some() {
                all.stolen.insert(leg.call.clone());
            }
            return;
        }
        let key = (leg.call.clone(), leg.number, state.clone());
        let replies = all.replies.entry(key).or_default().entry(leg.answers.to_string()).or_default();
        if let Some(result) = body.result {
            replies.results.entry(result.get().to_owned()).or_insert(process);
            replies.count += 1;
        } else if let Some(error) = body.error {
            let reason = error.data.and_then(|data| data.reason).unwrap_or(error.message);
            *replies.reasons.entry(reason).or_default() += 1;
        }
    }

    /// Notes that a connection was cut while a server had the request.
    pub(crate) fn cut(&self, call: &str) {
        self.lock().cuts.insert(call.to_owned());
    }

    pub(crate) fn open_delivery(&self) {
        self.deliveries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn close_delivery(&self) {
        self.deliveries.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of deliveries that nobody waits for.
    pub(crate) fn deliveries(&self) -> u64 {
        self.deliveries.load(Ordering::Relaxed)
    }

    /// Returns the number of replies.
    pub(crate) fn count(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }
}

/// Returns the person whose call it is.
pub(crate) fn person_of(call: &str) -> String {
    format!("person-of-{call}")
}
