//! Where the faults happen.

use super::{
    Fault, Outcome, Second,
    finding::About,
    message::{Reply, Retry},
    run::{Run, unasked},
};
use futures_util::future::join;
use std::time::Duration;

impl Run<'_> {
    /// Sends the request of this leg, with what goes wrong in it; gives the reply that counts, and its polls.
    pub(super) async fn leg(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        match self.fault.cloned() {
            Some(Fault::Crash { leg: at, polls: 0 }) if at == leg => {
                self.world.crash(None);
                self.struck = true;
            }
            Some(Fault::Crash { leg: at, polls }) if at == leg => {
                let mut exchange = self.world.begin(leg, retry);
                if let Some(reply) = exchange.polls(polls).await {
                    return (reply, exchange.polls);
                }
                self.world.crash(Some(exchange));
                self.struck = true;
            }
            Some(Fault::Disconnect { leg: at, polls }) if at == leg => {
                let mut exchange = self.world.begin(leg, retry);
                if let Some(reply) = exchange.polls(polls).await {
                    return (reply, exchange.polls);
                }
                drop(exchange);
                self.struck = true;
            }
            Some(Fault::Duplicate { leg: at, second }) if at == leg => {
                return self.twice(leg, retry, second).await;
            }
            Some(Fault::Move) => self.take_turns(leg),
            Some(Fault::Upgrade { leg: at }) if at == leg => {
                self.world.upgrade();
                self.struck = true;
            }
            Some(Fault::Drain { leg: at }) if at == leg => {
                self.struck = true;
                let next = self.world.another();
                self.world.replica().drain();
                let answered = self.undisturbed(leg, retry).await;
                self.world.go_to(next);
                return answered;
            }
            Some(Fault::Tamper { leg: at }) if at == leg => self.tamper(leg, retry).await,
            Some(Fault::Expire { leg: at }) if at == leg => return self.expire(leg, retry).await,
            Some(Fault::Nonsense { leg: at }) if at == leg && self.struck => {
                return self.asks_again(leg, retry).await;
            }
            Some(Fault::Slow) if leg > 1 && retry.state.is_some() => self.dawdle(),
            Some(Fault::UnaskedAnswer { leg: 1 }) if leg == 1 => {
                self.struck = true;
                let retry = Retry { answers: Some(unasked()), ..retry.clone() };
                return self.undisturbed(leg, &retry).await;
            }
            _ => {}
        }
        self.undisturbed(leg, retry).await
    }

    pub(super) async fn undisturbed(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        let mut exchange = self.world.begin(leg, retry);
        let reply = (&mut exchange).await;
        (reply, exchange.polls)
    }

    async fn twice(&mut self, leg: u16, retry: &Retry, second: Second) -> (Reply, usize) {
        let mut one = self.world.begin(leg, retry);
        let at = if second == Second::AtOnceElsewhere { self.world.another() } else { self.world.replica() };
        let mut two = self.world.begin_at(at, leg, retry);
        let (first, reply) = match second {
            Second::Later => {
                let first = (&mut one).await;
                (first, (&mut two).await)
            }
            Second::AtOnce | Second::AtOnceElsewhere => join(&mut one, &mut two).await,
        };
        self.struck = true;
        self.agree(leg, &first, &reply, "the two replies to one request differ");
        (reply, two.polls)
    }

    /// Two replies to the same request must say the same. But a first request that is sent twice is two calls, each with
    /// a secret of its own: of those only what is asked must be the same, not in which words, and nothing where effects
    /// stand before the first ask.
    fn agree(&mut self, leg: u16, one: &Reply, other: &Reply, what: &str) {
        let has_effects = self.world.common.effects.all().iter().any(|effect| effect.leg == 1);
        let differ = match (one, other) {
            (Reply::Asks { .. }, Reply::Asks { .. }) if leg == 1 => one.asked() != other.asked(),
            _ => one.said(self.bench()) != other.said(self.bench()),
        };
        if differ && (leg > 1 || !has_effects) {
            self.found(About::Result, format!("{what}: {} and {}", one.in_words(), other.in_words()));
        }
    }

    fn take_turns(&mut self, leg: u16) {
        let next = match (leg, self.other.take()) {
            (1, _) => return self.other = Some(self.world.another()),
            (_, Some(next)) => next,
            (_, None) => self.world.another(),
        };
        self.other = Some(self.world.go_to(next));
        self.struck = true;
    }

    /// After this leg's reply, an older leg is repeated; its reply must say what it said.
    pub(super) async fn replay_in_between(&mut self) {
        let Some(Fault::Replay { leg, after }) = self.fault.cloned() else { return };
        let ended = matches!(self.sent.last().map(|sent| &sent.reply), Some(Reply::Ended(_)) | None);
        if ended || self.sent.len() != usize::from(after) {
            return;
        }
        let old = self.sent[usize::from(leg) - 1].clone();
        let (reply, _) = self.undisturbed(leg, &old.retry).await;
        self.struck = true;
        self.agree(leg, &old.reply, &reply, "the older leg is answered otherwise than before");
    }

    /// After the end, an older leg is repeated and walked to the end, which must be the same.
    pub(super) async fn after_the_end(&mut self, outcome: &Outcome) {
        let Some(Fault::Replay { leg, after }) = self.fault.cloned() else { return };
        if self.struck || self.sent.len() != usize::from(after) {
            return;
        }
        let (legs, asked) = (self.sent.clone(), self.asked.clone());
        let old = self.sent[usize::from(leg) - 1].clone();
        self.sent.truncate(usize::from(leg) - 1);
        self.asked = old.asked.clone();
        self.struck = true;
        let again = self.walk(old.retry).await;
        (self.sent, self.asked) = (legs, asked);
        if outcome.comparable(self.bench()) != again.comparable(self.bench()) {
            let text = format!("walked again from that leg, the call ends otherwise: {outcome} and {again}");
            self.found(About::Result, text);
        }
    }

    /// Answers that do not fit are asked again, and so are the questions themselves.
    async fn asks_again(&mut self, leg: u16, retry: &Retry) -> (Reply, usize) {
        let expected = self.sent.last().map(|sent| sent.reply.asked()).unwrap_or_default();
        let (reply, polls) = self.undisturbed(leg, retry).await;
        if reply.asked() != expected {
            let said = reply.in_words();
            self.found(
                About::Result,
                format!("answers that do not fit are not asked again, but answered: {said}"),
            );
        }
        (reply, polls)
    }

    /// The person takes almost all the time that the round has, unless the whole call has less.
    fn dawdle(&mut self) {
        let lifetime = self.world.lifetime();
        let time = lifetime.round.saturating_sub(Duration::from_secs(1));
        if lifetime.call.is_none_or(|limit| self.world.age() + time < limit) {
            self.world.pass(time);
            self.struck = true;
        }
    }
}
