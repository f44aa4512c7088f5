//! The calls under way: the replies of all servers, and what each person has seen.

use crate::{
    leg::Leg,
    level::Level,
    log::{Life, Log},
    request::{Delivery, Observer},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The error of a call in a session.
    SessionError(String),
    /// A session has ended before the reply came.
    SessionLost,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) life: Life,
    pub(crate) level: Level,
    pub(crate) plan: String,
    /// True if the call is made in a session.
    pub(crate) in_session: bool,
    pub(crate) outcome: Option<Outcome>,
    /// The number of the last leg, from 1.
    pub(crate) legs: u32,
    /// The replies by leg and state, and by answers.
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
}

/// The calls under way, and those that wait for their check.
pub(crate) type History = Log<CallRecord>;

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
        self.insert(call, |life| CallRecord {
            life,
            level,
            plan: plan.to_owned(),
            in_session: false,
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
        });
    }

    /// Notes the end of a call.
    pub(crate) fn ended(&self, leg: &Leg, outcome: Outcome) {
        self.end(&leg.call, |record| {
            record.outcome = Some(outcome);
            record.legs = leg.number + 1;
        });
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
}

impl Observer<Leg> for History {
    fn open_delivery(&self, leg: &Leg) {
        Self::open_delivery(self, &leg.call);
    }

    fn close_delivery(&self, leg: &Leg) {
        Self::close_delivery(self, &leg.call);
    }

    fn sent(&self, leg: &Leg, delivery: Delivery) {
        self.with(&leg.call, |record| record.processes.insert(delivery.process));
    }

    /// The first leg of a call has no state, so that each delivery begins a call of its own.
    fn replied(&self, leg: &Leg, delivery: Delivery, reply: &[u8]) {
        self.count_reply();
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
                replies.results.entry(result.get().to_owned()).or_insert(delivery.process);
                replies.count += 1;
            } else if let Some(error) = body.error {
                let reason = error.data.and_then(|data| data.reason).unwrap_or(error.message);
                *replies.reasons.entry(reason).or_default() += 1;
            }
        });
    }

    fn cut(&self, leg: &Leg) {
        self.with(&leg.call, |record| record.is_cut = true);
    }
}

/// Returns the person whose call it is.
pub(crate) fn person_of(call: &str) -> String {
    format!("person-of-{call}")
}
