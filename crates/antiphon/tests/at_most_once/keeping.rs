//! The store keeps a leg as long as its state can be accepted, with the difference of two clocks, and no longer.

use super::*;
use antiphon::{Clock, ManualClock, server::operations::OnExpired};
use std::time::{Duration, SystemTime};

/// The difference that the clocks of two instances may have, on either side of the end of a state.
const SKEWS: u64 = 120;

/// A server, its clock, and its store with the store's clock.
struct Shop {
    server: Server,
    clock: ManualClock,
    store: Arc<MemoryStore>,
    hand: ManualStoreClock,
}

impl Shop {
    fn new(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let (clock, server_hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        let (store_clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
        let store = Arc::new(MemoryStore::new().clock(store_clock));
        let shared: Arc<dyn CallStore> = Arc::clone(&store) as _;
        let server = built(shop(&Effects::default()), &shared, |builder| {
            change(builder.single_use(true).clock(clock))
        });
        Self { server, clock: server_hand, store, hand }
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.hand.advance(Duration::from_secs(seconds));
    }

    /// Returns the number of rows after expired ones were removed.
    async fn rows(&self) -> usize {
        self.store.sweep(100).await.unwrap();
        self.store.rows()
    }
}

/// `answered_at` is the time of the answer, in seconds from the question; `ends_at` that until which its state is
/// accepted.
async fn check(answered_at: u64, ends_at: u64, change: impl FnOnce(ServerBuilder) -> ServerBuilder) {
    let shop = Shop::new(change);
    let call = at_first_question(&shop.server).await;
    shop.advance(answered_at);
    let reply = deliver(&call, &shop.server, pick("mug")).await;
    assert_eq!(result_text(&reply), "mug");
    // At the last second at which another instance may accept the state, the same request has the same reply.
    shop.advance(ends_at - answered_at);
    assert_eq!(deliver(&call, &shop.server, pick("mug")).await, reply, "at its end");
    shop.advance(SKEWS - 1);
    assert_eq!(shop.rows().await, 1, "another clock may be behind");
    shop.advance(2);
    assert_eq!(shop.rows().await, 0);
    assert!(reason(&deliver(&call, &shop.server, pick("mug")).await).contains("state"));
}

#[tokio::test]
async fn a_leg_is_kept_until_its_state_ends() {
    check(10, 300, |builder| builder.answer_timeout(Duration::from_secs(300))).await;
}

#[tokio::test]
async fn a_deadline_of_the_call_ends_it_earlier() {
    let (timeout, deadline) = (Duration::from_secs(300), Duration::from_secs(200));
    check(10, 200, move |builder| builder.answer_timeout(timeout).call_timeout(deadline)).await;
}

/// A late state is accepted until the deadline of its call, and asks again. Its leg is kept as long.
#[tokio::test]
async fn a_leg_that_may_ask_again_is_kept_until_the_deadline() {
    let shop = Shop::new(|builder| {
        let builder = builder.on_expired(OnExpired::AskAgain);
        builder.answer_timeout(Duration::from_secs(100)).call_timeout(Duration::from_secs(600))
    });
    let mut call = at_first_question(&shop.server).await;
    let before = call.state.clone();
    shop.advance(250);
    // Late: the question is asked again.
    let again = deliver(&call, &shop.server, pick("mug")).await;
    assert!(again["result"]["inputRequests"]["pick"].is_object(), "{again}");
    assert_eq!(deliver(&call, &shop.server, pick("mug")).await, again);
    call.state = again["result"]["requestState"].as_str().map(str::to_owned);
    let reply = deliver(&call, &shop.server, pick("mug")).await;
    assert_eq!(result_text(&reply), "mug");
    // The earlier state does not begin the call again, as long as it is accepted.
    call.state = before;
    shop.advance(349);
    assert_eq!(reason(&deliver(&call, &shop.server, pick("mug")).await), "used");
    shop.advance(SKEWS);
    assert_eq!(shop.rows().await, 1);
    shop.advance(2);
    assert_eq!(shop.rows().await, 0);
}
