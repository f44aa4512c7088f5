//! States that are to be refused.

use super::{
    Outcome,
    finding::About,
    message::{Reply, Retry},
    run::Run,
};
use crate::server::OnExpired;
use std::time::Duration;

/// Places of a state that are changed at most; of longer states, so many evenly spread ones.
const CHANGES: usize = 128;
/// So much later than its time a state still counts, for clocks that differ.
const SKEW: Duration = Duration::from_secs(antiphon_seal::CLOCK_SKEW);

impl Run<'_> {
    /// Every character of the state in turn is another one; then it is cut short, lengthened, and somebody else's.
    pub(super) async fn tamper(&mut self, leg: u16, retry: &Retry) {
        let Some(state) = &retry.state else { return };
        let changed = (0..state.len()).step_by(state.len().div_ceil(CHANGES).max(1));
        let changed = changed.filter(|at| state.is_char_boundary(*at) && state.is_char_boundary(at + 1));
        let mut forged: Vec<(String, String)> = changed
            .map(|at| {
                let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
                (format!("changed at {at}"), format!("{}{other}{}", &state[..at], &state[at + 1..]))
            })
            .collect();
        forged.push(("cut in half".to_owned(), state.chars().take(state.len() / 2).collect()));
        forged.push(("lengthened".to_owned(), format!("{state}AAAA")));
        for (how, state) in forged {
            let retry = Retry { state: Some(state), ..retry.clone() };
            self.refused(leg, &retry, true, &how).await;
        }
        if self.bench().principal.is_some() {
            self.refused(leg, retry, false, "sent by somebody else").await;
        }
        self.struck = true;
    }

    /// Sends what is to be refused; nothing may happen.
    async fn refused(&mut self, leg: u16, retry: &Retry, as_caller: bool, how: &str) {
        let before = self.world.common.effects.all().len();
        let principal = self.bench().principal.clone().filter(|_| as_caller);
        let reply = self.world.begin_refused(leg, retry, principal).await;
        if !reply.is_frozen_refusal() {
            let said = reply.in_words();
            self.found(
                About::Refusal,
                format!("a state {how} is not refused as it must be, but answered: {said}"),
            );
        }
        if self.world.common.effects.all().len() > before {
            self.found(About::Refusal, format!("a state {how} has effects"));
        }
    }

    /// The state's time is over. Late answers count for nothing: the person says the same when asked again.
    pub(super) async fn expire(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        let Some(before) = self.sent.last().filter(|_| retry.state.is_some()) else {
            return self.undisturbed(leg, retry).await;
        };
        let asked = before.asked.clone();
        let lifetime = self.world.lifetime();
        self.world.pass(lifetime.round + SKEW + Duration::from_secs(1));
        self.struck = true;
        let over = lifetime.call.is_some_and(|limit| self.world.age() > limit + SKEW);
        if lifetime.on_expired == OnExpired::AskAgain && !over {
            let (reply, polls) = self.undisturbed(leg, retry).await;
            if matches!(reply, Reply::Asks { .. }) {
                self.asked = asked;
            } else {
                let said = reply.in_words();
                self.found(
                    About::Refusal,
                    format!("what came too late is not asked again, but answered: {said}"),
                );
            }
            return (reply, polls);
        }
        let mut exchange = self.world.begin_refused(leg, retry, self.bench().principal.clone());
        let reply = (&mut exchange).await;
        let polls = exchange.polls;
        if reply.is_frozen_refusal() {
            return (Reply::Ended(Outcome::Refused), polls);
        }
        let said = reply.in_words();
        self.found(About::Refusal, format!("a state after its time is not refused, but answered: {said}"));
        (reply, polls)
    }
}
