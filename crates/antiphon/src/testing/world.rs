//! The replicas of one run, their clock, and the requests under way.

use super::{
    Bench, Effects,
    effects::Place,
    message::{Reply, Retry, request},
};
use crate::{
    Clock, ManualClock,
    client::Call,
    server::{
        Caller, ReplayFault, ReplyMessage, Server,
        test_hooks::{Lifetime, lifetime, on_bench},
    },
};
use antiphon_seal::{KeyRing, Principal, SecretKey};
use futures_util::future::BoxFuture;
use http::{Extensions, HeaderMap};
use std::{
    collections::BTreeMap,
    future::poll_fn,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// Where every run begins: some day in 2027.
const START: Duration = Duration::from_secs(1_800_000_000);

/// What all replicas of a run tell, each thing once.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn add(&self, text: String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.contains(&text) {
            told.push(text);
        }
    }

    pub(super) fn take(&self) -> Vec<String> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What all replicas of a run have in common.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) effects: Effects,
    /// Where a handler did not come to the same, run twice.
    pub(super) replays: Told,
    /// Why requests failed, where their senders are not told.
    pub(super) causes: Told,
    clock: Clock,
}

/// Every run has a world of its own.
pub(super) struct World<'a> {
    pub(super) bench: &'a Bench,
    pub(super) call: &'a Call,
    pub(super) common: Common,
    /// How often the request of each leg was begun, but for those that were to be refused.
    pub(super) begun: BTreeMap<u16, usize>,
    upgraded: bool,
    hand: ManualClock,
    replica: Server,
    requests: u32,
    /// Handlers of replicas that are gone: neither polled nor dropped while the run lasts.
    gone: Vec<Exchange>,
}

impl<'a> World<'a> {
    pub(super) fn new(bench: &'a Bench, call: &'a Call, upgraded: bool) -> Self {
        let (hand_alone, hand) = Clock::manual(SystemTime::UNIX_EPOCH + START);
        // What waits, waits by tokio's time, and the servers must see it pass.
        let start = Instant::now();
        let clock = Clock::from_fn(move || hand_alone.now() + start.elapsed());
        let common =
            Common { effects: Effects::default(), replays: Told::default(), causes: Told::default(), clock };
        let replica = build(bench, upgraded, &common);
        let (begun, gone) = (BTreeMap::new(), Vec::new());
        Self { bench, call, common, begun, upgraded, hand, replica, requests: 0, gone }
    }

    /// One more replica, of the present build.
    pub(super) fn another(&self) -> Server {
        build(self.bench, self.upgraded, &self.common)
    }

    /// The replica that requests go to is gone, and with it the handler that ran there; another one takes its place.
    pub(super) fn crash(&mut self, under_way: Option<Exchange>) {
        self.gone.extend(under_way);
        self.replica = self.another();
    }

    /// Requests go to this replica from now on; gives the one they went to.
    pub(super) fn go_to(&mut self, replica: Server) -> Server {
        mem::replace(&mut self.replica, replica)
    }

    /// From here on, new replicas are of the newer build.
    pub(super) fn upgrade(&mut self) {
        self.upgraded = true;
        self.crash(None);
    }

    pub(super) fn replica(&self) -> Server {
        self.replica.clone()
    }

    pub(super) fn hand(&self) -> ManualClock {
        self.hand.clone()
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        lifetime(&self.replica, self.call.name())
    }

    pub(super) fn pass(&self, time: Duration) {
        self.hand.advance(time);
    }

    /// How long the run lasts, by the servers' clock.
    pub(super) fn age(&self) -> Duration {
        self.common.clock.now().duration_since(SystemTime::UNIX_EPOCH + START).unwrap_or_default()
    }

    /// Begins a request at the present replica.
    pub(super) fn begin(&mut self, leg: u16, retry: &Retry) -> Exchange {
        self.begin_at(self.replica(), leg, retry)
    }

    pub(super) fn begin_at(&mut self, replica: Server, leg: u16, retry: &Retry) -> Exchange {
        *self.begun.entry(leg).or_insert(0) += 1;
        self.exchange(replica, leg, retry, self.bench.principal.clone())
    }

    /// Begins a request that is to be refused.
    pub(super) fn begin_refused(
        &mut self,
        leg: u16,
        retry: &Retry,
        principal: Option<Principal>,
    ) -> Exchange {
        self.exchange(self.replica(), leg, retry, principal)
    }

    fn exchange(
        &mut self,
        replica: Server,
        leg: u16,
        retry: &Retry,
        principal: Option<Principal>,
    ) -> Exchange {
        self.requests += 1;
        let message = request(self.bench, self.call, retry, self.requests);
        let future = Box::pin(async move {
            let (headers, mut extensions) = (HeaderMap::new(), Extensions::new());
            if let Some(principal) = principal {
                extensions.insert(principal);
            }
            replica.respond(&message, &Caller::http(&headers, &extensions)).await
        });
        let place = Place { leg, request: self.requests };
        Exchange { future, effects: self.common.effects.clone(), place, polls: 0 }
    }
}

/// A replica, with what all replicas of a run have in common.
fn build(bench: &Bench, upgraded: bool, common: &Common) -> Server {
    let factory =
        bench.upgrade.as_ref().filter(|_| upgraded).map_or(&bench.factory, |upgrade| &upgrade.factory);
    let (replays, causes) = (common.replays.clone(), common.causes.clone());
    let report = move |fault: &ReplayFault| {
        let mut text = fault.to_string();
        if let Some(call) = fault.place().call {
            // Every run is another call.
            text = text.replace(&format!(" (call {call})"), "");
        }
        replays.add(text);
    };
    let ring = KeyRing::new(vec![SecretKey::from_bytes([0x5a; 32])]);
    let ring = ring.unwrap_or_else(|fault| panic!("the bench's key ring is not one: {fault}"));
    let builder = factory(&common.effects);
    on_bench(builder, ring, common.clock.clone(), report, move |cause| causes.add(cause))
        .build()
        .unwrap_or_else(|fault| panic!("a replica cannot be built: {fault}"))
}

/// One request under way. It is polled by the bench alone, which counts.
pub(super) struct Exchange {
    future: BoxFuture<'static, Option<ReplyMessage>>,
    effects: Effects,
    place: Place,
    pub(super) polls: usize,
}

impl Exchange {
    /// Polls it so many times; `None` if it is not over by then.
    pub(super) async fn polls(&mut self, times: usize) -> Option<Reply> {
        poll_fn(|cx| match Pin::new(&mut *self).poll(cx) {
            Poll::Ready(reply) => Poll::Ready(Some(reply)),
            Poll::Pending if self.polls >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

impl Future for Exchange {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        self.polls += 1;
        self.effects.polling(Some(self.place));
        let polled = self.future.as_mut().poll(cx);
        self.effects.polling(None);
        polled.map(Reply::read)
    }
}
