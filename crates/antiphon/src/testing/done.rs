//! What a call came to.

use super::{
    Bench, Effects,
    finding::{About, Finding, Findings},
};
use antiphon_wire::{AskKind, meta_keys};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt};

/// One call, from its first request to its end.
#[derive(Clone, Debug)]
#[must_use = "a call that nobody looks at tests nothing"]
pub struct Done {
    pub(super) outcome: Outcome,
    pub(super) legs: Vec<Leg>,
    pub(super) effects: Effects,
    pub(super) causes: Vec<String>,
    pub(super) struck: bool,
    /// How often the request of each leg was begun.
    pub(super) begun: BTreeMap<u16, usize>,
    pub(super) findings: Vec<Finding>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// With this `result`, as it is on the wire. A tool that failed has `"isError": true` in it.
    Complete(Value),
    /// With this JSON-RPC `error`.
    Error(Value),
    /// Its state was refused, as it should be: the fault was one that ends a call.
    Refused,
    /// The bench could not go on: the script has no answer to a question, the call does not end, a reply is not valid.
    Stopped(String),
}

/// One leg of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leg {
    /// What it asked, by key, in the order it was asked.
    pub asked: Vec<(String, AskKind)>,
    /// How often its handler was polled, the last time included.
    pub polls: usize,
}

impl Outcome {
    /// Whether it is the one answer to every state that is not to be opened, byte for byte.
    pub(super) fn is_frozen_refusal(&self) -> bool {
        let frozen = json!({
            "code": -32602,
            "message": "Invalid or expired requestState",
            "data": { "reason": "invalid_request_state" },
        });
        matches!(self, Self::Error(error) if *error == frozen)
    }

    /// What an unexpected end is about.
    pub(super) fn about(&self) -> About {
        let Self::Error(error) = self else { return About::Result };
        let is = |place: &str, name: &str| error.pointer(place).and_then(Value::as_str) == Some(name);
        let is_another_handler = is("/data/reason", "flow_diverged") || is("/data/limit", "times_asked");
        if is_another_handler { About::Replay } else { About::Result }
    }

    /// Whether a call of an older version was refused.
    pub(super) fn refuses_a_version(&self) -> bool {
        let reason = match self {
            Self::Error(error) => error.pointer("/data/reason").and_then(Value::as_str),
            _ => None,
        };
        reason == Some("version") || self.is_frozen_refusal()
    }

    /// What is compared: without who answered, which a newer build says otherwise, and as
    /// [`Bench::disregard`] leaves it.
    pub(super) fn comparable(&self, bench: &Bench) -> Value {
        match self {
            Self::Complete(result) => {
                let mut result = result.clone();
                if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
                    meta.remove(meta_keys::SERVER_INFO);
                }
                (bench.disregard)(&mut result);
                json!({ "result": result })
            }
            Self::Error(error) => json!({ "error": error }),
            Self::Refused => json!("refused"),
            Self::Stopped(why) => json!({ "stopped": why }),
        }
    }
}

impl fmt::Display for Outcome {
    /// Without what every result has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete(result) => {
                let mut result = result.clone();
                if let Some(members) = result.as_object_mut() {
                    members.retain(|name, _| name != "_meta" && name != "resultType");
                }
                write!(f, "the result {result}")
            }
            Self::Error(error) => write!(f, "the error {error}"),
            Self::Refused => f.write_str("a refused state"),
            Self::Stopped(why) => write!(f, "nothing: {why}"),
        }
    }
}

impl Done {
    /// How it ended.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Its legs, in order.
    pub fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// The keys of all that was asked, in order.
    pub fn asked(&self) -> Vec<&str> {
        self.legs.iter().flat_map(|leg| &leg.asked).map(|(key, _)| key.as_str()).collect()
    }

    /// What it did to the world.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Why requests of it failed, as the server's log is told and callers are not: an author's mistake, what a step came
    /// to, a panic. What went on nevertheless is there too.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// How it ended, and why, if that does not say.
    pub(super) fn came_to(&self) -> String {
        let unsaid = |cause: &&String| !self.outcome.to_string().contains(cause.as_str());
        let causes: Vec<&str> = self.causes.iter().filter(unsaid).map(String::as_str).collect();
        match (&self.outcome, causes.as_slice()) {
            (Outcome::Complete(result), _) if result["isError"] != json!(true) => self.outcome.to_string(),
            (outcome, []) => outcome.to_string(),
            (outcome, causes) => format!("{outcome}; the server's log says: {}", causes.join("; ")),
        }
    }

    /// Whether the fault happened: a leg may be over before it can.
    pub fn struck(&self) -> bool {
        self.struck
    }

    /// What the bench saw that must not be. What a run with a fault must have in common with one without, only
    /// [`Report`](super::Report) can tell.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The first text of the result of a tool, prompt or resource; empty if it has none.
    pub fn text(&self) -> &str {
        let Outcome::Complete(result) = &self.outcome else { return "" };
        let places = ["/content/0/text", "/messages/0/content/text", "/contents/0/text"];
        places.iter().find_map(|place| result.pointer(place)).and_then(Value::as_str).unwrap_or_default()
    }

    /// The first text of the result is this, and nothing was found.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn expect_text(&self, text: &str) -> &Self {
        assert!(
            matches!(self.outcome, Outcome::Complete(_)) && self.text() == text,
            "expected {text:?}, but the call came to {}{}",
            self.came_to(),
            Findings(&self.findings),
        );
        self.expect_nothing_found()
    }

    /// The call ended with an error whose message holds this, be it a tool's failure or a JSON-RPC error.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn expect_failure(&self, part: &str) -> &Self {
        let told = match &self.outcome {
            Outcome::Complete(result) if result["isError"] == json!(true) => self.text().contains(part),
            Outcome::Error(error) => error["message"].as_str().is_some_and(|text| text.contains(part)),
            _ => false,
        };
        assert!(told, "expected a failure that says {part:?}, but the call came to {}", self.came_to());
        self
    }

    /// These keys were asked, in this order.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn expect_asked(&self, keys: &[&str]) -> &Self {
        assert_eq!(self.asked(), keys, "these questions were asked, in this order");
        self
    }

    /// The bench saw nothing that must not be.
    ///
    /// # Panics
    /// If it did.
    #[track_caller]
    pub fn expect_nothing_found(&self) -> &Self {
        assert!(self.findings.is_empty(), "the bench found:{}", Findings(&self.findings));
        self
    }
}
