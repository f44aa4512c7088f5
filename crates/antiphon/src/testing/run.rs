//! One call from its first request to its end, with one fault.

use super::{
    Bench, Done, Fault, Leg, Outcome,
    finding::{About, Finding},
    message::{Reply, Retry, nonsense},
    person::{Asked, no_answer},
    world::World,
};
use crate::{client::Call, server::Server};
use antiphon_wire::{InputRequests, InputResponses};
use serde_json::{Value, json};
use std::time::Duration;

/// More legs than any limit allows: a call that goes on for longer never ends.
const LEGS: usize = 200;
/// So many turns of the runtime are left to tasks when a call is over.
const SETTLING: usize = 32;

pub(super) struct Run<'a> {
    pub(super) world: World<'a>,
    pub(super) fault: Option<&'a Fault>,
    /// What was sent in each leg, and what came of it, in the order of the call.
    pub(super) sent: Vec<Sent>,
    /// How often each question was asked by now.
    pub(super) asked: Asked,
    pub(super) findings: Vec<Finding>,
    /// Whether the fault has happened.
    pub(super) struck: bool,
    /// The replica whose turn it is not.
    pub(super) other: Option<Server>,
}

/// One leg, as it was sent and answered.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) retry: Retry,
    pub(super) reply: Reply,
    pub(super) polls: usize,
    /// What was asked by the time it was sent.
    pub(super) asked: Asked,
}

/// Makes a call, in a world of its own. `upgraded`: on the newer build from the first leg on.
///
/// # Panics
/// If a newer build is to take over, and there is none.
pub(super) async fn run(bench: &Bench, call: &Call, fault: Option<&Fault>, upgraded: bool) -> Done {
    assert!(
        bench.upgrade.is_some() || !matches!(fault, Some(Fault::Upgrade { .. })),
        "`Fault::Upgrade` needs a newer build: give the bench one with `upgrade` or `upgrade_refused`"
    );
    let mut run = Run {
        world: World::new(bench, call, upgraded),
        fault,
        sent: Vec::new(),
        asked: Asked::default(),
        findings: Vec::new(),
        struck: fault.is_none(),
        other: None,
    };
    let outcome = run.walk(Retry::default()).await;
    run.after_the_end(&outcome).await;
    // A step of a cancelled request may still be on its way.
    for _ in 0..SETTLING {
        tokio::task::yield_now().await;
    }
    run.world.common.effects.close();
    run.done(outcome)
}

impl Run<'_> {
    /// Walks on from this request to the end.
    pub(super) async fn walk(&mut self, mut retry: Retry) -> Outcome {
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

    /// What the person says to a round, as the next leg brings it; `None` where nothing was asked.
    fn answered(&mut self, asks: &InputRequests) -> Result<Option<InputResponses>, String> {
        let (leg, mut said, mut took) = (self.sent.len() as u16 + 1, Vec::new(), Duration::ZERO);
        let asks_in_part = matches!(self.fault, Some(Fault::PartOfTheAnswers { leg: part }) if *part == leg);
        for (key, ask) in asks.iter() {
            let says = self.world.bench.person.answer(key, ask, &mut self.asked);
            let says = says.ok_or_else(|| no_answer(key))?;
            took = took.max(says.after);
            said.extend(says.answer.map(|answer| (key.to_owned(), answer)));
            if asks_in_part {
                self.struck = asks.len() > 1;
                break;
            }
        }
        self.world.pass(took);
        self.distort(leg, asks, &mut said);
        if asks.is_empty() && said.is_empty() { Ok(None) } else { Ok(Some(responses(&said))) }
    }

    /// What a fault makes of the answers before they are sent.
    fn distort(&mut self, leg: u16, asks: &InputRequests, said: &mut Vec<(String, Value)>) {
        match self.fault {
            Some(Fault::AnswersReversed) if said.len() > 1 => {
                said.reverse();
                self.struck = true;
            }
            Some(Fault::Nonsense { leg: at }) if *at == leg && !asks.is_empty() => {
                *said = asks.iter().map(|(key, ask)| (key.to_owned(), nonsense(ask))).collect();
                // What the person would have said counts when it is asked again.
                self.asked = self.sent.last().map(|sent| sent.asked.clone()).unwrap_or_default();
                self.struck = true;
            }
            Some(Fault::UnaskedAnswer { leg: at }) if *at == leg => {
                said.push((
                    UNASKED.to_owned(),
                    json!({ "action": "accept", "content": { "unasked": true } }),
                ));
                self.struck = true;
            }
            _ => {}
        }
    }

    pub(super) fn bench(&self) -> &Bench {
        self.world.bench
    }

    pub(super) fn found(&mut self, about: About, text: String) {
        self.findings.push(Finding::new(self.fault, about, text));
    }

    fn done(mut self, outcome: Outcome) -> Done {
        for text in self.world.common.replays.take() {
            self.found(About::Replay, text);
        }
        let legs =
            self.sent.iter().map(|sent| Leg { asked: sent.reply.asked(), polls: sent.polls }).collect();
        Done {
            outcome,
            legs,
            effects: self.world.common.effects.clone(),
            causes: self.world.common.causes.take(),
            struck: self.struck,
            begun: self.world.begun,
            findings: self.findings,
        }
    }
}

/// A key that no tool uses.
const UNASKED: &str = "antiphon-nobody-asked";

pub(super) fn responses(said: &[(String, Value)]) -> InputResponses {
    let mut responses = InputResponses::new();
    for (key, answer) in said {
        responses.insert(key, answer).unwrap_or_else(|fault| panic!("an answer is not JSON: {fault}"));
    }
    responses
}

/// The answers of a first leg, where nobody asked.
pub(super) fn unasked() -> InputResponses {
    responses(&[(UNASKED.to_owned(), json!({ "action": "accept", "content": { "unasked": true } }))])
}
