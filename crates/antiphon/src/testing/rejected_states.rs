//! Requests whose state the server must reject.

use super::{
    Outcome,
    finding::FindingKind,
    message::{Reply, Retry},
    run::Run,
};
use crate::server::operations::OnExpired;
use http::Extensions;
use std::time::Duration;

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
