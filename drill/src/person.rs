//! A person: makes a call, answers its questions, sends requests again.

use crate::{
    fleet::Fleet,
    history::{History, Outcome, person_of},
    leg::Leg,
    level::Level,
    plan::plan,
    proxy::{Lost, Proxy},
    random::Random,
    session,
};
use serde_json::{Map, Value};
use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

/// The time after which a person sends a request again, and goes on waiting for the reply to the first one.
const IMPATIENT: Duration = Duration::from_millis(1200);

/// The script of all people.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) seed: u64,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) proxy: Arc<Proxy<Leg>>,
    pub(crate) history: Arc<History>,
    /// The plan of every call, if all have the same.
    pub(crate) plan: Option<String>,
    /// True if requests are sent again and answered by two people.
    pub(crate) repeats: bool,
    /// The time after which a person gives a call up.
    pub(crate) limit: Duration,
    /// The longest time for which a person thinks about a question, in milliseconds.
    pub(crate) thinks: u64,
}

/// The reply that ends the attempts at a leg.
enum Settled {
    Result(Value),
    Unknown,
    Used,
    GaveUp(String),
    Refused(String),
}

impl Settled {
    fn word(&self) -> String {
        match self {
            Self::Result(_) => "result".to_owned(),
            Self::Unknown => "outcome_unknown".to_owned(),
            Self::Used => "used".to_owned(),
            Self::GaveUp(reason) | Self::Refused(reason) => reason.clone(),
        }
    }
}

impl Script {
    /// Makes the call of this number.
    pub(crate) async fn call(&self, number: u64) {
        if self.repeats && number % 6 == 5 {
            return session::call(&self.fleet, &self.history, self.seed, number).await;
        }
        let mut random = Random::new(self.seed, "person", number);
        let level = Level::ALL[usize::try_from(number % 3).unwrap_or_default()];
        let call = format!("c{number}");
        let plan = self.plan.clone().unwrap_or_else(|| plan(&mut random));
        let begin = Instant::now();
        self.history.begin(&call, level, &plan);
        let mut leg =
            Leg { person: person_of(&call), call, level, plan, number: 0, state: None, answers: Value::Null };
        let mut earlier: Vec<Leg> = Vec::new();
        let outcome = loop {
            let (settled, sent) = self.settle(&leg, begin, &mut random).await;
            let result = match settled {
                Settled::Result(result) => result,
                Settled::Unknown => break Outcome::Unknown,
                Settled::Used => break Outcome::Refused("used".to_owned()),
                Settled::GaveUp(reason) => break Outcome::GaveUp(reason),
                Settled::Refused(reason) => break Outcome::Refused(reason),
            };
            self.history.accepted(&sent, &result);
            earlier.push(sent);
            self.repeat(&earlier, 15, &mut random);
            let Some(state) = result["requestState"].as_str() else {
                break Outcome::Result(result["content"][0]["text"].as_str().unwrap_or_default().to_owned());
            };
            leg.number += 1;
            leg.state = Some(state.to_owned());
            let keys = result["inputRequests"].as_object().map(Map::keys).into_iter().flatten();
            let answers: Map<String, Value> = keys.map(|key| (key.clone(), leg.answer("red", key))).collect();
            if answers.is_empty() {
                leg.answers = Value::Null;
            } else {
                tokio::time::sleep(random.millis(self.thinks)).await;
                leg.answers = Value::Object(answers);
            }
        };
        self.repeat(&earlier, 40, &mut random);
        self.history.ended(&leg, outcome);
    }

    /// Sends a leg until it has a reply that ends it; sometimes two people answer. Returns the request that won.
    async fn settle(&self, leg: &Leg, begin: Instant, random: &mut Random) -> (Settled, Leg) {
        let mut pauses = random.clone();
        let other = leg.with_other_answers("blue").filter(|_| self.repeats && random.percent(20));
        let Some(other) = other else { return (self.attempt(leg, begin, &mut pauses).await, leg.clone()) };
        let mut more = Random::new(self.seed, &leg.call, u64::from(leg.number));
        let (one, two) =
            tokio::join!(self.attempt(leg, begin, &mut pauses), self.attempt(&other, begin, &mut more));
        let outcomes = [one.word(), two.word()];
        self.history.with(&leg.call, |record| record.rivalries.push((leg.number, outcomes)));
        match (one, two) {
            (Settled::Used, two) => (two, other),
            (one, _) => (one, leg.clone()),
        }
    }

    /// Sends a request. If the reply is late, the request is sent once more, beside the first one.
    async fn send(&self, leg: &Leg) -> Result<Value, Lost> {
        let mut first = pin!(self.proxy.send(leg));
        match tokio::time::timeout(IMPATIENT, &mut first).await {
            Ok(reply) => reply,
            Err(_) if self.repeats => {
                self.proxy.later(leg.clone(), Duration::ZERO);
                first.await
            }
            Err(_) => first.await,
        }
    }

    async fn attempt(&self, leg: &Leg, begin: Instant, random: &mut Random) -> Settled {
        let mut last = "no reply".to_owned();
        while begin.elapsed() < self.limit {
            if let Ok(reply) = self.send(leg).await {
                if let Some(result) = reply.get("result") {
                    return Settled::Result(result.clone());
                }
                let error = &reply["error"];
                let reason = error["data"]["reason"].as_str().or(error["message"].as_str()).unwrap_or("?");
                match reason {
                    "used" => return Settled::Used,
                    "outcome_unknown" if leg.level == Level::Once => return Settled::Unknown,
                    "outcome_unknown" | "in_flight" | "store" | "step_failed" | "overloaded" => (),
                    other => return Settled::Refused(other.to_owned()),
                }
                last = reason.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50) + random.millis(200)).await;
        }
        Settled::GaveUp(last)
    }

    /// Sends one of the earlier legs again in some of a hundred cases: as it was, with other answers, or as somebody
    /// else.
    fn repeat(&self, earlier: &[Leg], percent: u64, random: &mut Random) {
        if !self.repeats || !random.percent(percent) {
            return;
        }
        let count = u64::try_from(earlier.len()).unwrap_or_default();
        // The last one more often: only its reply is still in the store.
        let index = if random.percent(50) { count.saturating_sub(1) } else { random.below(count) };
        let Some(leg) = earlier.get(usize::try_from(index).unwrap_or_default()) else { return };
        let leg = match random.below(6) {
            0 | 1 => leg.with_other_answers("green").unwrap_or_else(|| leg.clone()),
            2 => Leg { person: "somebody-else".to_owned(), ..leg.clone() },
            _ => leg.clone(),
        };
        // Most of them soon, and some much later.
        let latest = if random.percent(90) { self.limit / 16 } else { self.limit / 6 };
        let delay = random.millis(u64::try_from(latest.as_millis()).unwrap_or_default());
        self.proxy.later(leg, delay);
    }
}
