//! Runs one call from its first request to its end, with at most one fault.

use crate::testing::{
    CallRun, Fault, Leg, Outcome,
    call_run::{Finding, FindingKind},
    setup::Setup,
    simulation::{Reply, Retry, Simulation, invalid_answer},
    user::{AskCounts, no_answer},
};
use crate::{
    client::Call,
    server::{Server, operations::OnExpired},
};
use antiphon_wire::{InputRequests, InputResponses};
use http::Extensions;
use serde_json::{Value, json};
use std::time::Duration;

/// The maximum number of legs, above any limit of a server. A longer call is stopped.
const LEGS: usize = 200;
/// The number of times the bench yields to other tasks after the end of a call.
const SETTLING: usize = 32;

/// The state of one run.
pub(super) struct Run<'a> {
    pub(super) simulation: Simulation<'a>,
    pub(super) fault: Option<&'a Fault>,
    /// The requests and replies of the legs, in order.
    pub(super) sent: Vec<Sent>,
    /// The number of times each question was asked so far.
    pub(super) asked: AskCounts,
    pub(super) findings: Vec<Finding>,
    /// True after the fault happened.
    pub(super) fault_occurred: bool,
    /// The second replica of [`Fault::Move`], while the first one is current.
    pub(super) other: Option<Server>,
    /// The only leg of a call in a session.
    pub(super) session: Option<Leg>,
    /// The id of the first request after a session was lost.
    pub(super) called_again: Option<u32>,
}

/// The request and the reply of one leg.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) retry: Retry,
    pub(super) reply: Reply,
    pub(super) polls: usize,
    /// The ask counts when the request was sent.
    pub(super) asked: AskCounts,
}

/// Runs a call in a new simulation. `upgraded`: on the newer build from the first leg on.
///
/// # Panics
/// If the fault is [`Fault::Upgrade`] and the bench has no newer build.
pub(super) async fn run(setup: &Setup, call: &Call, fault: Option<&Fault>, upgraded: bool) -> CallRun {
    assert!(
        setup.upgrade.is_some() || !matches!(fault, Some(Fault::Upgrade { .. })),
        "`Fault::Upgrade` needs a newer build: give the bench one with `upgrade` or `upgrade_refused`"
    );
    let mut run = Run {
        simulation: Simulation::new(setup, call, upgraded).await,
        fault,
        sent: Vec::new(),
        asked: AskCounts::default(),
        findings: Vec::new(),
        fault_occurred: fault.is_none(),
        other: None,
        session: None,
        called_again: None,
    };
    let outcome = if run.is_in_session() {
        run.in_session().await
    } else {
        let outcome = run.continue_from(Retry::default()).await;
        run.after_the_end(&outcome).await;
        outcome
    };
    // A step of a cancelled request may still run in a task.
    for _ in 0..SETTLING {
        tokio::task::yield_now().await;
    }
    run.simulation.shared.effects.close();
    run.done(outcome)
}

impl Run<'_> {
    /// Continues the call from this request to its end.
    pub(super) async fn continue_from(&mut self, mut retry: Retry) -> Outcome {
        loop {
            if self.sent.len() == LEGS {
                return Outcome::Stopped(format!("the call has not ended after {LEGS} legs"));
            }
            let asked = self.asked.clone();
            let (reply, polls) = self.leg(self.sent.len() as u16 + 1, &retry).await;
            self.sent.push(Sent { retry, reply: reply.clone(), polls, asked });
            self.replay_in_between().await;
            let (asks, state) = match reply {
                Reply::Ended(outcome) => return outcome,
                Reply::Asks { asks, state } => (asks, state),
            };
            match self.answered(&asks) {
                Ok(answers) => retry = Retry { answers, state },
                Err(why) => return Outcome::Stopped(why),
            }
        }
    }

    /// Returns the user's answers to a round for the next leg; `None` if the round has no asks.
    fn answered(&mut self, asks: &InputRequests) -> Result<Option<InputResponses>, String> {
        let (leg, mut answers, mut delay) = (self.sent.len() as u16 + 1, Vec::new(), Duration::ZERO);
        let is_partial = matches!(self.fault, Some(Fault::PartialAnswers { leg: part }) if *part == leg);
        for (key, ask) in asks.iter() {
            let answer = self.simulation.setup.user.next_answer(key, ask, &mut self.asked);
            let answer = answer.ok_or_else(|| no_answer(key))?;
            delay = delay.max(answer.after);
            answers.extend(answer.answer.map(|answer| (key.to_owned(), answer)));
            if is_partial {
                self.fault_occurred = asks.len() > 1;
                break;
            }
        }
        self.simulation.pass(delay);
        self.distort(leg, asks, &mut answers);
        if asks.is_empty() && answers.is_empty() { Ok(None) } else { Ok(Some(responses(&answers))) }
    }

    /// Applies the fault to the answers before they are sent.
    fn distort(&mut self, leg: u16, asks: &InputRequests, answers: &mut Vec<(String, Value)>) {
        match self.fault {
            Some(Fault::ReversedAnswers) if answers.len() > 1 => {
                answers.reverse();
                self.fault_occurred = true;
            }
            Some(Fault::InvalidAnswers { leg: at }) if *at == leg && !asks.is_empty() => {
                *answers = asks.iter().map(|(key, ask)| (key.to_owned(), invalid_answer(ask))).collect();
                // The user's next answer is used when the question is asked again.
                self.asked = self.sent.last().map(|sent| sent.asked.clone()).unwrap_or_default();
                self.fault_occurred = true;
            }
            Some(Fault::UnsolicitedAnswer { leg: at }) if *at == leg => {
                answers.push((
                    UNSOLICITED.to_owned(),
                    json!({ "action": "accept", "content": { "unsolicited": true } }),
                ));
                self.fault_occurred = true;
            }
            _ => {}
        }
    }

    /// Returns true if the fault interrupted a handler: the level of the tool decides whether its leg continues.
    fn may_be_unknown(&self) -> bool {
        let interrupts =
            matches!(self.fault, Some(Fault::Crash { polls: 1.., .. } | Fault::Disconnect { .. }));
        interrupts && self.fault_occurred
    }

    pub(super) fn setup(&self) -> &Setup {
        self.simulation.setup
    }

    pub(super) fn found(&mut self, kind: FindingKind, text: String) {
        self.findings.push(Finding::new(self.fault, kind, text));
    }

    fn done(mut self, outcome: Outcome) -> CallRun {
        for text in self.simulation.shared.replays.take() {
            self.found(FindingKind::Replay, text);
        }
        let is_unknown = self.may_be_unknown() && outcome.is_unknown(self.simulation.after_crash());
        let has_sessions = self.has_sessions();
        let legs = match self.session {
            Some(leg) => vec![leg],
            None => {
                self.sent.iter().map(|sent| Leg { asked: sent.reply.asked(), polls: sent.polls }).collect()
            }
        };
        CallRun {
            outcome,
            is_unknown,
            has_sessions,
            called_again: self.called_again,
            legs,
            effects: self.simulation.shared.effects.clone(),
            causes: self.simulation.shared.causes.take(),
            fault_occurred: self.fault_occurred,
            begun: self.simulation.begun,
            findings: self.findings,
        }
    }
}

/// A key that no tool uses.
const UNSOLICITED: &str = "antiphon-unsolicited";

pub(super) fn responses(answers: &[(String, Value)]) -> InputResponses {
    let mut responses = InputResponses::new();
    for (key, answer) in answers {
        responses.insert(key, answer).unwrap_or_else(|fault| panic!("an answer is not JSON: {fault}"));
    }
    responses
}

/// Returns answers for the first leg, in which the server has not asked anything.
pub(super) fn unsolicited() -> InputResponses {
    responses(&[(UNSOLICITED.to_owned(), json!({ "action": "accept", "content": { "unsolicited": true } }))])
}

/// The maximum number of positions of a state that are altered. In longer states they are spread evenly.
const CHANGES: usize = 128;
/// The time after its expiry at which a state is still accepted, because clocks differ.
const SKEW: Duration = Duration::from_secs(antiphon_seal::CLOCK_SKEW);

impl Run<'_> {
    /// Sends altered states: with one character replaced, truncated, extended, and from another principal.
    pub(super) async fn tamper(&mut self, leg: u16, retry: &Retry) {
        let Some(state) = &retry.state else { return };
        let changed = (0..state.len()).step_by(state.len().div_ceil(CHANGES).max(1));
        let changed = changed.filter(|at| state.is_char_boundary(*at) && state.is_char_boundary(at + 1));
        let mut forged: Vec<(String, String)> = changed
            .map(|at| {
                let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
                (format!("altered at {at}"), format!("{}{other}{}", &state[..at], &state[at + 1..]))
            })
            .collect();
        forged.push(("truncated".to_owned(), state.chars().take(state.len() / 2).collect()));
        forged.push(("extended".to_owned(), format!("{state}AAAA")));
        for (how, state) in forged {
            let retry = Retry { state: Some(state), ..retry.clone() };
            self.expect_refusal(leg, &retry, self.setup().caller(), &how).await;
        }
        if self.setup().principal.is_some() || self.setup().scopes.is_some() {
            self.expect_refusal(leg, retry, self.setup().stranger(), "from another principal").await;
        }
        self.fault_occurred = true;
    }

    /// Sends a request that the server must reject, and checks that there are no effects.
    async fn expect_refusal(&mut self, leg: u16, retry: &Retry, sender: Extensions, how: &str) {
        let before = self.simulation.shared.effects.all().len();
        let reply = self.simulation.begin_refused(leg, retry, sender).await;
        if !reply.is_frozen_refusal() {
            let reply = reply.describe(self.setup());
            self.found(FindingKind::Refusal, format!("a state {how} is not refused; the reply is {reply}"));
        }
        if self.simulation.shared.effects.all().len() > before {
            self.found(FindingKind::Refusal, format!("a state {how} has effects"));
        }
    }

    /// Sends an expired state. The user repeats the answers if the server asks again.
    pub(super) async fn expire(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        let Some(before) = self.sent.last().filter(|_| retry.state.is_some()) else {
            return self.undisturbed(leg, retry).await;
        };
        let asked = before.asked.clone();
        let lifetime = self.simulation.lifetime();
        self.simulation.pass(lifetime.round + SKEW + Duration::from_secs(1));
        self.fault_occurred = true;
        let over = lifetime.call.is_some_and(|limit| self.simulation.age() > limit + SKEW);
        if lifetime.on_expired == OnExpired::AskAgain && !over {
            let (reply, polls) = self.undisturbed(leg, retry).await;
            if matches!(reply, Reply::Asks { .. }) {
                self.asked = asked;
            } else {
                let reply = reply.describe(self.setup());
                self.found(
                    FindingKind::Refusal,
                    format!("expired questions are not asked again; the reply is {reply}"),
                );
            }
            return (reply, polls);
        }
        let mut exchange = self.simulation.begin_refused(leg, retry, self.setup().caller());
        let reply = (&mut exchange).await;
        let polls = exchange.polls;
        if reply.is_frozen_refusal() {
            return (Reply::Ended(Outcome::Refused), polls);
        }
        let said = reply.describe(self.setup());
        self.found(FindingKind::Refusal, format!("an expired state is not refused; the reply is {said}"));
        (reply, polls)
    }
}
