//! Injects the fault of a run. The faults that are tried on a call are each injected at every boundary.

use crate::server::{Server, test_hooks::AfterCrash};
use crate::testing::{
    CallRun, DuplicateTiming, Fault, Outcome,
    call_run::FindingKind,
    run::{Run, unsolicited},
    setup::Setup,
    simulation::{Reply, Retry},
};
use futures_util::future::join;
use std::time::Duration;
use tokio::time::Instant;

/// The time for which a request is sent again because its reply says when, beside two leases of the store.
const PATIENCE: Duration = Duration::from_secs(300);

/// The shortest pause before that.
const SHORTEST: Duration = Duration::from_millis(10);

impl Run<'_> {
    /// Sends the request of this leg and injects the fault, if it is due. Returns the reply to continue with, and its number
    /// of polls.
    pub(super) async fn leg(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        match self.fault.cloned() {
            Some(Fault::Crash { leg: at, polls: 0 }) if at == leg => {
                self.simulation.crash(None);
                self.fault_occurred = true;
            }
            Some(Fault::Crash { leg: at, polls }) if at == leg => {
                let mut exchange = self.simulation.begin(leg, retry);
                if let Some(reply) = exchange.polls(polls).await {
                    return (reply, exchange.polls);
                }
                self.simulation.crash(Some(exchange));
                self.fault_occurred = true;
            }
            Some(Fault::Disconnect { leg: at, polls }) if at == leg => {
                let mut exchange = self.simulation.begin(leg, retry);
                if let Some(reply) = exchange.polls(polls).await {
                    return (reply, exchange.polls);
                }
                drop(exchange);
                self.fault_occurred = true;
            }
            Some(Fault::Duplicate { leg: at, timing }) if at == leg => {
                return self.twice(leg, retry, timing).await;
            }
            Some(Fault::Move) => self.take_turns(leg),
            Some(Fault::Upgrade { leg: at }) if at == leg => {
                self.simulation.upgrade();
                self.fault_occurred = true;
            }
            Some(Fault::Drain { leg: at }) if at == leg => {
                self.fault_occurred = true;
                let next = self.simulation.another();
                self.simulation.replica().drain();
                let answered = self.undisturbed(leg, retry).await;
                self.simulation.go_to(next);
                return answered;
            }
            Some(Fault::Tamper { leg: at }) if at == leg => self.tamper(leg, retry).await,
            Some(Fault::Expire { leg: at }) if at == leg => return self.expire(leg, retry).await,
            Some(Fault::InvalidAnswers { leg: at }) if at == leg && self.fault_occurred => {
                return self.asks_again(leg, retry).await;
            }
            Some(Fault::SlowUser) if leg > 1 && retry.state.is_some() => self.delay_answers(),
            Some(Fault::UnsolicitedAnswer { leg: 1 }) if leg == 1 => {
                self.fault_occurred = true;
                let retry = Retry { answers: Some(unsolicited()), ..retry.clone() };
                return self.undisturbed(leg, &retry).await;
            }
            _ => {}
        }
        self.undisturbed(leg, retry).await
    }

    /// Sends the request of this leg without a fault.
    pub(super) async fn undisturbed(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        let replica = self.simulation.replica();
        let mut exchange = self.simulation.begin(leg, retry);
        let reply = (&mut exchange).await;
        self.followed(&replica, leg, retry, (reply, exchange.polls)).await
    }

    /// Sends the request again after the time that its reply names (`retryAfterMs`), as a client does, until there is
    /// another reply.
    async fn followed(
        &mut self,
        replica: &Server,
        leg: u16,
        retry: &Retry,
        (mut reply, mut polls): (Reply, usize),
    ) -> (Reply, usize) {
        let (begin, patience) = (Instant::now(), PATIENCE + 2 * self.simulation.lease());
        while let Some(wait) = reply.retry_after().filter(|_| begin.elapsed() < patience) {
            tokio::time::sleep(wait.max(SHORTEST)).await;
            let mut exchange = self.simulation.begin_at(replica.clone(), leg, retry);
            reply = (&mut exchange).await;
            polls = exchange.polls;
        }
        (reply, polls)
    }

    /// Sends the request of this leg twice. Returns the second reply, and its number of polls.
    async fn twice(&mut self, leg: u16, retry: &Retry, timing: DuplicateTiming) -> (Reply, usize) {
        let mut one = self.simulation.begin(leg, retry);
        let at = if timing == DuplicateTiming::ConcurrentOnAnotherReplica {
            self.simulation.another()
        } else {
            self.simulation.replica()
        };
        let mut two = self.simulation.begin_at(at.clone(), leg, retry);
        let (first, second) = match timing {
            DuplicateTiming::AfterReply => {
                let first = (&mut one).await;
                (first, (&mut two).await)
            }
            DuplicateTiming::Concurrent | DuplicateTiming::ConcurrentOnAnotherReplica => {
                join(&mut one, &mut two).await
            }
        };
        self.fault_occurred = true;
        let (of_one, of_two) = (one.polls, two.polls);
        let replica = self.simulation.replica();
        let (first, _) = self.followed(&replica, leg, retry, (first, of_one)).await;
        let (reply, polls) = self.followed(&at, leg, retry, (second, of_two)).await;
        self.agree(leg, &first, &reply, "the two replies to one request differ");
        (reply, polls)
    }

    /// Checks that two replies to the same request are equal. A first request that is sent twice makes two calls with
    /// different secrets, so their asks are compared by key and kind only, and not at all if there are effects before the
    /// first ask.
    fn agree(&mut self, leg: u16, one: &Reply, other: &Reply, what: &str) {
        let has_effects = self.simulation.shared.effects.all().iter().any(|effect| effect.leg == 1);
        let differ = match (one, other) {
            (Reply::Asks { .. }, Reply::Asks { .. }) if leg == 1 => one.asked() != other.asked(),
            _ => one.comparable(self.setup()) != other.comparable(self.setup()),
        };
        if differ && (leg > 1 || !has_effects) {
            let (one, other) = (one.describe(self.setup()), other.describe(self.setup()));
            self.found(FindingKind::Result, format!("{what}: {one} and {other}"));
        }
    }

    /// Returns true if a server that claims its legs refused an older leg, because the call has gone on.
    fn is_refused_as_used(&self, outcome: &Outcome) -> bool {
        outcome.is_used() && self.simulation.after_crash() != AfterCrash::RunsAgain
    }

    /// Switches to the other one of two replicas.
    fn take_turns(&mut self, leg: u16) {
        let next = match (leg, self.other.take()) {
            (1, _) => return self.other = Some(self.simulation.another()),
            (_, Some(next)) => next,
            (_, None) => self.simulation.another(),
        };
        self.other = Some(self.simulation.go_to(next));
        self.fault_occurred = true;
    }

    /// Sends an older leg again between two legs, and checks that its reply is the same.
    pub(super) async fn replay_in_between(&mut self) {
        let Some(Fault::Replay { leg, after }) = self.fault.cloned() else { return };
        let ended = matches!(self.sent.last().map(|sent| &sent.reply), Some(Reply::Ended(_)) | None);
        if ended || self.sent.len() != usize::from(after) {
            return;
        }
        let old = self.sent[usize::from(leg) - 1].clone();
        let (reply, _) = self.undisturbed(leg, &old.retry).await;
        self.fault_occurred = true;
        if leg < after && matches!(&reply, Reply::Ended(outcome) if self.is_refused_as_used(outcome)) {
            return;
        }
        self.agree(leg, &old.reply, &reply, "the replies to the older leg differ");
    }

    /// Sends an older leg again after the end of the call, continues from there, and checks that the end is the same.
    pub(super) async fn after_the_end(&mut self, outcome: &Outcome) {
        let Some(Fault::Replay { leg, after }) = self.fault.cloned() else { return };
        if self.fault_occurred || self.sent.len() != usize::from(after) {
            return;
        }
        let (legs, asked) = (self.sent.clone(), self.asked.clone());
        let old = self.sent[usize::from(leg) - 1].clone();
        self.sent.truncate(usize::from(leg) - 1);
        self.asked = old.asked.clone();
        self.fault_occurred = true;
        let again = self.continue_from(old.retry).await;
        (self.sent, self.asked) = (legs, asked);
        if leg < after && self.is_refused_as_used(&again) {
            return;
        }
        if outcome.comparable(self.setup()) != again.comparable(self.setup()) {
            let (outcome, again) = (outcome.disregarded(self.setup()), again.disregarded(self.setup()));
            let text =
                format!("continued again from that leg, the call ends differently: {outcome} and {again}");
            self.found(FindingKind::Result, text);
        }
    }

    /// Sends invalid answers, and checks that the server asks the same questions again.
    async fn asks_again(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        let expected = self.sent.last().map(|sent| sent.reply.asked()).unwrap_or_default();
        let (reply, polls) = self.undisturbed(leg, retry).await;
        if reply.asked() != expected {
            let reply = reply.describe(self.setup());
            self.found(
                FindingKind::Result,
                format!("invalid answers are not asked again; the reply is {reply}"),
            );
        }
        (reply, polls)
    }

    /// Advances the clock by almost the lifetime of the round, unless the call would expire.
    fn delay_answers(&mut self) {
        let lifetime = self.simulation.lifetime();
        let time = lifetime.round.saturating_sub(Duration::from_secs(1));
        if lifetime.call.is_none_or(|limit| self.simulation.age() + time < limit) {
            self.simulation.pass(time);
            self.fault_occurred = true;
        }
    }
}

/// The maximum number of polls of one leg that are tried. In longer legs they are spread evenly.
const POLLS: usize = 64;

/// Returns every fault that applies to a call whose run without faults was `plain`.
pub(super) fn faults_of(setup: &Setup, plain: &CallRun) -> Vec<Fault> {
    let mut faults = vec![Fault::Move, Fault::ReversedAnswers, Fault::SlowUser];
    if plain.has_sessions {
        faults.push(Fault::Session);
    }
    let last = plain.legs.len() as u16;
    for leg in 1..=last {
        faults.push(Fault::Crash { leg, polls: 0 });
        let times = plain.legs[usize::from(leg) - 1].polls.saturating_sub(1);
        for polls in spread(times) {
            faults.extend([Fault::Crash { leg, polls }, Fault::Disconnect { leg, polls }]);
        }
        for timing in [
            DuplicateTiming::AfterReply,
            DuplicateTiming::Concurrent,
            DuplicateTiming::ConcurrentOnAnotherReplica,
        ] {
            faults.push(Fault::Duplicate { leg, timing });
        }
        faults.extend([Fault::Drain { leg }, Fault::UnsolicitedAnswer { leg }]);
        if leg > 1 {
            faults.extend((leg..=last).map(|after| Fault::Replay { leg, after }));
            faults.extend(of_later(setup, plain, leg));
        }
    }
    faults.retain(|fault| (setup.chosen)(fault));
    faults
}

/// Returns the crashes of an instance whose session makes the call. `whole`: the polls of the call in a session.
pub(super) fn session_crashes(setup: &Setup, whole: usize) -> Vec<Fault> {
    let crashes = spread(whole.saturating_sub(1)).map(|polls| Fault::SessionCrash { polls });
    crashes.filter(|fault| (setup.chosen)(fault)).collect()
}

/// Returns [`POLLS`] of the numbers of polls up to `times`.
fn spread(times: usize) -> impl Iterator<Item = usize> {
    (1..=times).step_by(times.div_ceil(POLLS).max(1))
}

/// Returns the faults that apply only to a leg with request state.
fn of_later(setup: &Setup, plain: &CallRun, leg: u16) -> Vec<Fault> {
    let mut faults = vec![Fault::Tamper { leg }, Fault::Expire { leg }];
    let asked = plain.legs[usize::from(leg) - 2].asked.len();
    if asked > 0 {
        faults.push(Fault::InvalidAnswers { leg });
    }
    if asked > 1 {
        faults.push(Fault::PartialAnswers { leg });
    }
    if setup.upgrade.is_some() {
        faults.push(Fault::Upgrade { leg });
    }
    faults
}
