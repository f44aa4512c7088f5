//! A store that is down, slow or full: requests are refused and nothing runs, and calls go on afterwards.

use super::*;
use antiphon::store::MemoryLimits;
use antiphon::testing::store_contract::{FaultyStore, StoreFault};

fn faulty() -> (Arc<FaultyStore>, Arc<dyn CallStore>) {
    let faulty = Arc::new(FaultyStore::new(store().0));
    (Arc::clone(&faulty), faulty)
}

#[tokio::test]
async fn a_store_that_is_down_refuses_at_once_and_recovers_by_itself() {
    for level in [single_use, write_ahead] {
        let (effects, (faulty, store)) = (Effects::default(), faulty());
        let server = level(shop(&effects), &store);
        let call = at_first_question(&server).await;
        for fault in [StoreFault::Refused, StoreFault::LostRequest, StoreFault::Refused] {
            faulty.set_down(Some(fault));
            let reply = deliver(&call, &server, pick("mug")).await;
            assert_eq!(reason(&reply), "store", "{reply}");
            assert!(reply["error"]["data"]["retryAfterMs"].is_u64());
        }
        assert_eq!(effects.runs("ship"), 0, "nothing runs");
        faulty.set_down(None);
        assert_eq!(result_text(&deliver(&call, &server, pick("mug")).await), "mug");
        assert_eq!(effects.runs("ship"), 1);
    }
}

/// Fails each operation of a leg in turn, before and after it took effect. Whatever happens, each step runs once.
#[tokio::test]
async fn whichever_operation_fails_no_step_runs_twice() {
    for level in [single_use, write_ahead] {
        for fault in [StoreFault::Refused, StoreFault::LostRequest, StoreFault::LostReply] {
            for operation in 0..12 {
                let effects = Effects::default();
                let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
                let inner: Arc<dyn CallStore> = Arc::new(MemoryStore::new().clock(clock));
                let healthy = level(shop(&effects), &inner);
                let call = at_first_question(&healthy).await;
                let faulty: Arc<dyn CallStore> =
                    Arc::new(FaultyStore::new(Arc::clone(&inner)).fail(operation, fault));
                let server = level(shop(&effects), &faulty);
                let mut replies = Vec::new();
                for _ in 0..4 {
                    replies.push(deliver(&call, &server, pick("mug")).await);
                    hand.advance(std::time::Duration::from_secs(31));
                }
                let case = format!("{fault:?} of operation {operation}: {replies:?}");
                assert_eq!(effects.runs("charge"), 1, "{case}");
                assert!(effects.runs("ship") <= 1, "{case}");
                let done: Vec<&Value> = replies.iter().filter(|reply| reply["result"].is_object()).collect();
                assert!(done.windows(2).all(|two| two[0] == two[1]), "{case}");
                for reply in &replies {
                    let known = reply["result"].is_object()
                        || ["store", "outcome_unknown", "in_flight", "step_failed"].contains(&reason(reply));
                    assert!(known, "{case}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_full_store_refuses_and_loses_nothing() {
    let effects = Effects::default();
    let limits = MemoryLimits::default().rows(2);
    let store: Arc<dyn CallStore> = Arc::new(MemoryStore::new().limits(limits));
    let server = single_use(shop(&effects), &store);
    let calls = [at_first_question(&server).await, at_first_question(&server).await];
    let mut third = ToolCall::new(json!({}));
    third.leg(&server, Value::Null).await;
    assert_eq!(reason(&deliver(&third, &server, Value::Null).await), "store");
    for call in &calls {
        assert_eq!(result_text(&deliver(call, &server, pick("mug")).await), "mug");
    }
    assert_eq!((effects.runs("charge"), effects.runs("ship")), (2, 2));
}
