//! The result of one run of a call, and the violations that the bench found.

use super::{Effects, Fault, setup::Setup};
use crate::server::test_hooks::AfterCrash;
use antiphon_wire::{AskKind, meta_keys};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt};

/// One run of a call, from its first request to its end.
#[derive(Clone, Debug)]
#[must_use = "check the run with `expect_text` or another method"]
pub struct CallRun {
    pub(super) outcome: Outcome,
    /// True if the call ended as `outcome_unknown`, as its level permits after this fault.
    pub(super) is_unknown: bool,
    /// True if a session may make the same call.
    pub(super) has_sessions: bool,
    /// The first request of the second call, after [`Fault::SessionCrash`].
    pub(super) called_again: Option<u32>,
    pub(super) legs: Vec<Leg>,
    pub(super) effects: Effects,
    pub(super) causes: Vec<String>,
    pub(super) fault_occurred: bool,
    /// The number of requests that were sent per leg.
    pub(super) begun: BTreeMap<u16, usize>,
    pub(super) findings: Vec<Finding>,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// A JSON-RPC `result`, as on the wire. The result of a failed tool contains `"isError": true`.
    Complete(Value),
    /// A JSON-RPC `error`.
    Error(Value),
    /// The server rejected the request state, as it must after [`Fault::Expire`](super::Fault::Expire).
    Refused,
    /// The bench stopped: the script has no answer to a question, the call has too many legs, or a reply is invalid.
    Stopped(String),
}

/// One leg of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leg {
    /// The keys and kinds of the asks, in order.
    pub asked: Vec<(String, AskKind)>,
    /// The number of polls of the handler, including the last one.
    pub polls: usize,
}

impl Outcome {
    /// Returns true for the exact error that the server returns for every invalid request state.
    pub(super) fn is_frozen_refusal(&self) -> bool {
        let frozen = json!({
            "code": -32602,
            "message": "Invalid or expired requestState",
            "data": { "reason": "invalid_request_state" },
        });
        matches!(self, Self::Error(error) if *error == frozen)
    }

    /// Returns true for an end that the level of the tool permits after a crash.
    pub(super) fn is_unknown(&self, after_crash: AfterCrash) -> bool {
        let Self::Error(error) = self else { return false };
        self.reason() == Some("outcome_unknown")
            && match after_crash {
                AfterCrash::RunsAgain | AfterCrash::Continues => false,
                AfterCrash::UnknownLeg => true,
                AfterCrash::UnknownStep => error.pointer("/data/step").is_some(),
            }
    }

    /// Returns true for an error, and for the result of a failed tool.
    pub(super) fn has_failed(&self) -> bool {
        !matches!(self, Self::Complete(result) if result["isError"] != json!(true))
    }

    /// Returns true if the server refused a state because the call has gone on.
    pub(super) fn is_used(&self) -> bool {
        self.reason() == Some("used")
    }

    /// The reason of an error.
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Error(error) => error.pointer("/data/reason").and_then(Value::as_str),
            Self::Complete(_) | Self::Refused | Self::Stopped(_) => None,
        }
    }

    /// Returns the kind of finding that an unexpected end is.
    pub(super) fn finding_kind(&self) -> FindingKind {
        let Self::Error(error) = self else { return FindingKind::Result };
        let is = |place: &str, name: &str| error.pointer(place).and_then(Value::as_str) == Some(name);
        let is_another_handler = is("/data/reason", "flow_diverged") || is("/data/limit", "times_asked");
        if is_another_handler { FindingKind::Replay } else { FindingKind::Result }
    }

    /// Returns true if the server rejected a call of an older version.
    pub(super) fn refuses_a_version(&self) -> bool {
        self.reason() == Some("version") || self.is_frozen_refusal()
    }

    /// Returns true if another run still had the leg after all attempts.
    pub(super) fn is_in_flight(&self) -> bool {
        self.reason() == Some("in_flight")
    }

    /// Returns the outcome for messages, after [`Bench::disregard`](super::Bench::disregard).
    pub(super) fn disregarded(&self, setup: &Setup) -> Self {
        let mut outcome = self.clone();
        if let Self::Complete(result) = &mut outcome {
            (setup.disregard)(result);
        }
        outcome
    }

    /// Returns the value that is compared between runs: without the server info, which differs in a newer build, and
    /// after [`Bench::disregard`](super::Bench::disregard).
    pub(super) fn comparable(&self, setup: &Setup) -> Value {
        match self {
            Self::Complete(result) => {
                let mut result = result.clone();
                if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
                    meta.remove(meta_keys::SERVER_INFO);
                }
                (setup.disregard)(&mut result);
                json!({ "result": result })
            }
            Self::Error(error) => json!({ "error": error }),
            Self::Refused => json!("refused"),
            Self::Stopped(why) => json!({ "stopped": why }),
        }
    }
}

impl fmt::Display for Outcome {
    /// Writes the outcome without the members that every result has.
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

impl CallRun {
    /// The end of the call.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The legs, in order.
    pub fn legs(&self) -> &[Leg] {
        &self.legs
    }

    /// The keys of all asks, in order.
    pub fn asked(&self) -> Vec<&str> {
        self.legs.iter().flat_map(|leg| &leg.asked).map(|(key, _)| key.as_str()).collect()
    }

    /// The effects of the call.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// The causes of failures, as in the server's log: mistakes of the author, errors of steps, panics. Replies to callers
    /// do not contain them. The list includes failures after which the call continued.
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// Returns the end of the call, and the causes that the end does not contain.
    fn describe(&self) -> String {
        self.with_causes(&self.outcome)
    }

    /// Returns the same, without what is disregarded.
    pub(super) fn describe_compared(&self, setup: &Setup) -> String {
        self.with_causes(&self.outcome.disregarded(setup))
    }

    fn with_causes(&self, outcome: &Outcome) -> String {
        let unsaid = |cause: &&String| !outcome.to_string().contains(cause.as_str());
        let causes: Vec<&str> = self.causes.iter().filter(unsaid).map(String::as_str).collect();
        match (outcome, causes.as_slice()) {
            (Outcome::Complete(result), _) if result["isError"] != json!(true) => outcome.to_string(),
            (outcome, []) => outcome.to_string(),
            (outcome, causes) => format!("{outcome}; the server's log says: {}", causes.join("; ")),
        }
    }

    /// Returns true if no session can make the call to its end.
    pub(super) fn is_exempt(&self, fault: &Fault) -> bool {
        matches!(fault, Fault::Session | Fault::SessionCrash { .. }) && !self.fault_occurred
    }

    /// Returns true if the fault happened, or if there was none. A leg can end before the fault is due.
    pub fn fault_occurred(&self) -> bool {
        self.fault_occurred
    }

    /// The violations found in this run alone. [`Report`](super::Report) has those found by comparison with a run without
    /// faults.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The first text in the result of a tool, prompt or resource; empty if there is none.
    pub fn text(&self) -> &str {
        let Outcome::Complete(result) = &self.outcome else { return "" };
        let places = ["/content/0/text", "/messages/0/content/text", "/contents/0/text"];
        places.iter().find_map(|place| result.pointer(place)).and_then(Value::as_str).unwrap_or_default()
    }

    /// Asserts that the first text of the result is `text`, and that there are no findings.
    ///
    /// # Panics
    /// If the text differs or there are findings.
    #[track_caller]
    pub fn expect_text(&self, text: &str) -> &Self {
        assert!(
            matches!(self.outcome, Outcome::Complete(_)) && self.text() == text,
            "expected {text:?}, but the call ended with {}{}",
            self.describe(),
            Findings(&self.findings),
        );
        self.expect_nothing_found()
    }

    /// Asserts that the call failed with a message that contains `part`: a tool result with `isError`, or a JSON-RPC
    /// error.
    ///
    /// # Panics
    /// If the call succeeded, or failed with another message.
    #[track_caller]
    pub fn expect_failure(&self, part: &str) -> &Self {
        let contains = match &self.outcome {
            Outcome::Complete(result) if result["isError"] == json!(true) => self.text().contains(part),
            Outcome::Error(error) => error["message"].as_str().is_some_and(|text| text.contains(part)),
            _ => false,
        };
        assert!(
            contains,
            "expected a failure that contains {part:?}, but the call ended with {}",
            self.describe()
        );
        self
    }

    /// Asserts that exactly these keys were asked, in this order.
    ///
    /// # Panics
    /// If the keys or their order differ.
    #[track_caller]
    pub fn expect_asked(&self, keys: &[&str]) -> &Self {
        assert!(
            self.asked() == keys,
            "expected the questions {keys:?}, but the call asked {:?} and ended with {}{}",
            self.asked(),
            self.describe(),
            Findings(&self.findings),
        );
        self
    }

    /// Asserts that there are no findings.
    ///
    /// # Panics
    /// If there are.
    #[track_caller]
    pub fn expect_nothing_found(&self) -> &Self {
        assert!(self.findings.is_empty(), "the bench found:{}", Findings(&self.findings));
        self
    }
}

/// A violation: the fault that was injected, and the difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The injected fault; `None` for the run without a fault.
    pub fault: Option<Fault>,
    /// The kind of violation.
    pub kind: FindingKind,
    /// A description of the difference.
    pub text: String,
}

/// The kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// The result or the questions differ.
    Result,
    /// A request that must be rejected was accepted.
    Refusal,
    /// The number of effects or of their keys differs.
    Effects,
    /// The handler differs between a run and its replay.
    Replay,
}

impl Finding {
    pub(super) fn new(fault: Option<&Fault>, kind: FindingKind, text: String) -> Self {
        Self { fault: fault.cloned(), kind, text }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Some(fault) => write!(f, "{fault}: {}", self.text),
            None => write!(f, "without any fault: {}", self.text),
        }
    }
}

/// A list of findings, one per line.
pub(super) struct Findings<'a>(pub(super) &'a [Finding]);

/// The maximum number of findings in one message.
const SHOWN: usize = 20;

impl fmt::Display for Findings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.0.iter().take(SHOWN) {
            write!(f, "\n  {finding}")?;
        }
        match self.0.len().checked_sub(SHOWN) {
            Some(more @ 1..) => write!(f, "\n  and {more} more"),
            _ => Ok(()),
        }
    }
}
