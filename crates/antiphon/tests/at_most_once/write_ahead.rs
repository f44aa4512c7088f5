//! The start and the end of each step are stored: a leg whose run died goes on.

use super::*;
use crate::common::late_store::{LateStore, Moment};
use antiphon::server::operations::ReplayCheck;
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

/// The place at which the first run of the leg dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    /// Behind `charge`, before `ship`.
    BetweenSteps,
    /// The step `ship`, after its effect.
    InStep,
}

/// Asks, charges and ships. The first run of the second leg stops for ever at `death`. `resolve` is called with an empty
/// key to see if the step is reconciled at all.
fn dying(
    death: Death,
    effects: &Effects,
    resolve: fn(&Effects, &str) -> Option<Result<Option<usize>>>,
) -> Tool {
    let (effects, has_died) = (effects.clone(), Arc::new(AtomicBool::new(false)));
    tool(move |ctx| {
        let (effects, has_died) = (effects.clone(), Arc::clone(&has_died));
        async move {
            let dies = |at: Death| death == at && !has_died.swap(true, SeqCst);
            ctx.elicit::<Pick>("Which?").key("pick").await?;
            let charged = ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
            if dies(Death::BetweenSteps) {
                std::future::pending::<()>().await;
            }
            let ship = ctx.step("ship", async |s| {
                effects.note("attempt", s.number().to_string());
                let shipped = effects.note("ship", s.key());
                if dies(Death::InStep) {
                    std::future::pending::<()>().await;
                }
                Ok(shipped)
            });
            let shipped = match resolve(&effects, "") {
                None => ship.await?,
                Some(_) => {
                    let effects = effects.clone();
                    ship.reconcile(async move |key| resolve(&effects, &key).unwrap()).await?
                }
            };
            Ok(format!("{charged} {shipped}"))
        }
        .boxed()
    })
}

/// Runs the call to its answer, which the first run does not survive. Returns the call at its state.
async fn dies(server: &Server, hand: &ManualStoreClock) -> ToolCall {
    let mut call = ToolCall::new(json!({}));
    call.leg(server, Value::Null).await;
    let gone = tokio::time::timeout(Duration::from_secs(2), deliver(&call, server, pick("a"))).await;
    assert!(gone.is_err(), "{gone:?}");
    // A step that goes on alone has five seconds.
    tokio::time::sleep(Duration::from_secs(10)).await;
    hand.advance(Duration::from_secs(31));
    call
}

/// A later call of a tool begins its leg in a poll that is tracked.
#[tokio::test(start_paused = true)]
async fn the_first_leg_of_each_call_ends_before_its_step_at_once() {
    let (effects, (store, _)) = (Effects::default(), store());
    let server =
        built(shop(&effects), &store, |builder| builder.write_ahead(true).replay_check(ReplayCheck::Off));
    for call in 0..3 {
        let begun = tokio::time::Instant::now();
        let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
        assert!(is_state_only(&reply), "{reply}");
        assert_eq!(begun.elapsed(), Duration::ZERO, "call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn steps_that_ended_before_a_crash_do_not_run_again() {
    let (effects, (store, hand)) = (Effects::default(), store());
    let tool = dying(Death::BetweenSteps, &effects, |_, _| None);
    let server = write_ahead(tool, &store);
    let call = dies(&server, &hand).await;
    let reply = deliver(&call, &server, pick("a")).await;
    assert_eq!(result_text(&reply), "1 1", "{reply}");
    assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, 1));
    assert_eq!(deliver(&call, &server, pick("a")).await, reply);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_a_crash_interrupted_is_unknown_and_named() {
    let (effects, (store, hand)) = (Effects::default(), store());
    let server = write_ahead(dying(Death::InStep, &effects, |_, _| None), &store);
    let call = dies(&server, &hand).await;
    for _ in 0..2 {
        let reply = deliver(&call, &server, pick("a")).await;
        assert_eq!(reason(&reply), "outcome_unknown", "{reply}");
        assert_eq!(reply["error"]["data"]["step"], "ship");
    }
    assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_step_runs_again_if_the_tool_says_so() {
    let (effects, (store, hand)) = (Effects::default(), store());
    let tool = dying(Death::InStep, &effects, |_, _| None).rerun_after_crash(true);
    let server = write_ahead(tool, &store);
    let call = dies(&server, &hand).await;
    let reply = deliver(&call, &server, pick("a")).await;
    assert_eq!(result_text(&reply), "1 1", "{reply}");
    assert_eq!((effects.runs("charge"), effects.runs("ship"), effects.distinct_keys("ship")), (1, 2, 1));
    assert_eq!(effects.distinct_keys("attempt"), 2, "attempts count over runs");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_step_is_resolved_by_its_author() {
    // It happened, it did not, and nobody knows yet.
    let (effects, (store_of, hand)) = (Effects::default(), store());
    let happened = dying(Death::InStep, &effects, |effects, key| {
        effects.note("asked", key);
        Some(Ok(Some(41)))
    });
    let server = write_ahead(happened, &store_of);
    let call = dies(&server, &hand).await;
    let reply = deliver(&call, &server, pick("a")).await;
    assert_eq!(result_text(&reply), "1 41", "{reply}");
    assert_eq!((effects.runs("ship"), effects.distinct_keys("ship")), (1, 1));

    let (effects, (store_of, hand)) = (Effects::default(), store());
    let did_not = dying(Death::InStep, &effects, |_, _| Some(Ok(None)));
    let server = write_ahead(did_not, &store_of);
    let call = dies(&server, &hand).await;
    assert_eq!(result_text(&deliver(&call, &server, pick("a")).await), "1 1");
    assert_eq!((effects.runs("ship"), effects.distinct_keys("ship")), (2, 1));

    let (effects, (store_of, hand)) = (Effects::default(), store());
    let fails = dying(Death::InStep, &effects, |effects, key| {
        if key.is_empty() {
            return Some(Ok(None));
        }
        effects.note("asked", key);
        Some(if effects.runs("asked") < 2 { Err(antiphon::Error::user_facing("later")) } else { Ok(Some(7)) })
    });
    let server = write_ahead(fails, &store_of);
    let call = dies(&server, &hand).await;
    let reply = deliver(&call, &server, pick("a")).await;
    assert_eq!(reason(&reply), "step_failed", "{reply}");
    let reply = deliver(&call, &server, pick("a")).await;
    assert_eq!((result_text(&reply), effects.runs("ship")), ("1 7".to_owned(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_taken_over_neither_replies_nor_commits() {
    let (effects, (store, hand)) = (Effects::default(), store());
    let slow = {
        let effects = effects.clone();
        tool(move |ctx| {
            let effects = effects.clone();
            async move {
                effects.note("run", "");
                let number = effects.runs("run");
                ctx.step("charge", async |s| {
                    effects.note("charge", s.key());
                    if number == 2 {
                        tokio::time::sleep(Duration::from_secs(25)).await;
                    }
                    Ok(number)
                })
                .reconcile(async |_| Ok(None))
                .await
                .map(|number| number.to_string())
                .map_err(Into::into)
            }
            .boxed()
        })
    };
    let server = write_ahead(slow, &store);
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    let zombie = deliver(&call, &server, Value::Null);
    let other = async {
        // Before the first run renews its lease, the clock of the store jumps.
        tokio::time::sleep(Duration::from_secs(1)).await;
        hand.advance(Duration::from_secs(31));
        deliver(&call, &server, Value::Null).await
    };
    let (zombie, other) = tokio::join!(zombie, other);
    assert_eq!(result_text(&other), "3", "{other}");
    assert_eq!(reason(&zombie), "in_flight", "{zombie}");
    assert_eq!(deliver(&call, &server, Value::Null).await, other);
    assert_eq!(effects.distinct_keys("charge"), 1);
}

#[tokio::test(start_paused = true)]
async fn attempts_that_failed_are_stored_and_the_step_goes_on_in_the_next_request() {
    use antiphon::server::StepError;
    let (effects, (store, _)) = (Effects::default(), store());
    let failing = {
        let effects = effects.clone();
        tool(move |ctx| {
            let effects = effects.clone();
            async move {
                ctx.elicit::<Pick>("Which?").key("pick").await?;
                ctx.step("charge", async |s| {
                    effects.note("charge", s.key());
                    if effects.runs("charge") < 3 {
                        return Err(StepError::retry(antiphon::Error::user_facing("not now")));
                    }
                    Ok(s.number())
                })
                .await
                .map(|number| number.to_string())
                .map_err(Into::into)
            }
            .boxed()
        })
    };
    let server = built(failing, &store, |builder| {
        builder.write_ahead(true).accepts_state_only(|_| false).bind_principal(
            |_: &antiphon::server::Caller<'_>| {
                Ok::<_, std::convert::Infallible>(Some(antiphon::seal::Principal::user("anna")))
            },
        )
    });
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    for _ in 0..2 {
        assert_eq!(reason(&deliver(&call, &server, pick("a")).await), "step_failed");
    }
    assert_eq!(result_text(&deliver(&call, &server, pick("a")).await), "3", "attempts count over runs");
    assert_eq!((effects.runs("charge"), effects.distinct_keys("charge")), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_state_only_is_known_by_its_principal_and_request_id() {
    use antiphon::{seal::Principal, server::Caller};
    let (effects, (store, _)) = (Effects::default(), store());
    let server = built(shop(&effects), &store, |builder| {
        builder
            .write_ahead(true)
            .accepts_state_only(|_| false)
            .bind_principal(|_: &Caller<'_>| Ok::<_, std::convert::Infallible>(Some(Principal::user("anna"))))
    });
    let (mut one, mut two) = (ToolCall::new(json!({})), ToolCall::new(json!({})));
    let first = one.leg(&server, Value::Null).await;
    assert!(first["result"]["inputRequests"]["pick"].is_object(), "{first}");
    assert_eq!(two.leg(&server, Value::Null).await, first);
    assert_eq!(effects.runs("charge"), 1);
    assert_eq!(result_text(&deliver(&one, &server, pick("a")).await), "a");
}

/// The first request of such a client has no state that could hold the call: its runs find it in the store.
#[tokio::test(start_paused = true)]
async fn a_first_request_that_runs_again_has_the_same_keys() {
    use antiphon::{seal::Principal, server::Caller};
    for death in [Death::BetweenSteps, Death::InStep] {
        let (effects, (store, hand)) = (Effects::default(), store());
        let (noted, has_died) = (effects.clone(), Arc::new(AtomicBool::new(false)));
        let charging = tool(move |ctx| {
            let (effects, has_died) = (noted.clone(), Arc::clone(&has_died));
            async move {
                let dies = |at: Death| death == at && !has_died.swap(true, SeqCst);
                ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
                if dies(Death::BetweenSteps) {
                    std::future::pending::<()>().await;
                }
                ctx.step("ship", async |s| {
                    effects.note("ship", s.key());
                    if dies(Death::InStep) {
                        std::future::pending::<()>().await;
                    }
                    Ok(())
                })
                .await?;
                Ok("shipped".to_owned())
            }
            .boxed()
        });
        let server = built(charging.rerun_after_crash(true), &store, |builder| {
            builder.write_ahead(true).accepts_state_only(|_| false).bind_principal(|_: &Caller<'_>| {
                Ok::<_, std::convert::Infallible>(Some(Principal::user("anna")))
            })
        });
        let call = ToolCall::new(json!({}));
        let gone = tokio::time::timeout(Duration::from_secs(2), deliver(&call, &server, Value::Null)).await;
        assert!(gone.is_err(), "{gone:?}");
        tokio::time::sleep(Duration::from_secs(10)).await;
        hand.advance(Duration::from_secs(31));
        assert_eq!(result_text(&deliver(&call, &server, Value::Null).await), "shipped");
        let ships = if death == Death::InStep { 2 } else { 1 };
        assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, ships));
        for effect in ["charge", "ship"] {
            assert_eq!(effects.distinct_keys(effect), 1, "{effect}");
        }
    }
}

/// Two callers send the same bytes as their first request.
#[tokio::test]
async fn the_outcome_of_a_first_request_is_its_principals_own() {
    use antiphon::{seal::Principal, server::Caller};
    let (effects, (store, _)) = (Effects::default(), store());
    let server_for = |name: &'static str| {
        built(shop(&effects), &store, move |builder| {
            let principal =
                move |_: &Caller<'_>| Ok::<_, std::convert::Infallible>(Some(Principal::user(name)));
            builder.write_ahead(true).accepts_state_only(|_| false).bind_principal(principal)
        })
    };
    let (mut one, mut two) = (ToolCall::new(json!({})), ToolCall::new(json!({})));
    let first = one.leg(&server_for("anna"), Value::Null).await;
    let second = two.leg(&server_for("bert"), Value::Null).await;
    assert_ne!(first, second);
    assert_eq!((effects.runs("charge"), effects.distinct_keys("charge")), (2, 2));
}

/// The first run has ended its last step when another run takes the leg over: only the commit shows it.
#[tokio::test(start_paused = true)]
async fn a_reply_that_cannot_be_committed_does_not_leave() {
    let (effects, (store, hand)) = (Effects::default(), store());
    let slow = {
        let effects = effects.clone();
        tool(move |ctx| {
            let effects = effects.clone();
            async move {
                effects.note("run", "");
                let number = effects.runs("run");
                ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
                if number == 2 {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                Ok(number.to_string())
            }
            .boxed()
        })
    };
    let server = write_ahead(slow, &store);
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    let other = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        hand.advance(Duration::from_secs(31));
        deliver(&call, &server, Value::Null).await
    };
    let (first, other) = tokio::join!(deliver(&call, &server, Value::Null), other);
    assert_eq!(result_text(&other), "3", "{other}");
    assert_eq!(reason(&first), "in_flight", "{first}");
    assert_eq!(effects.runs("charge"), 1);
}

/// A store whose confirmations of [`append`](CallStore::append) and [`renew`](CallStore::renew) arrive after 40 seconds.
fn late(store: Arc<dyn CallStore>) -> Arc<dyn CallStore> {
    LateStore::new(store, async |moment| {
        if matches!(moment, Moment::AfterAppend | Moment::AfterRenew) {
            tokio::time::sleep(Duration::from_secs(40)).await;
        }
    })
}

/// The first run has stored the start of its step, and its connection is too slow: until it knows that, its lease has ended,
/// and another run has resolved the step and had its effect.
#[tokio::test(start_paused = true)]
async fn a_step_whose_start_is_confirmed_after_the_lease_does_not_run() {
    let (effects, (store, hand)) = (Effects::default(), store());
    let charging = |effects: &Effects| {
        let effects = effects.clone();
        tool(move |ctx| {
            let effects = effects.clone();
            async move {
                ctx.elicit::<Pick>("Which?").key("pick").await?;
                let charge = ctx.step("charge", async |s| Ok(effects.note("charge", s.key())));
                let charged = charge.reconcile(async |_| Ok(None)).await?;
                Ok(charged.to_string())
            }
            .boxed()
        })
    };
    let other = write_ahead(charging(&effects), &store);
    let slow = write_ahead(charging(&effects), &late(store));
    let mut call = ToolCall::new(json!({}));
    call.leg(&other, Value::Null).await;
    let takes_over = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        hand.advance(Duration::from_secs(31));
        deliver(&call, &other, pick("a")).await
    };
    let (slow, over) = tokio::join!(deliver(&call, &slow, pick("a")), takes_over);
    assert_eq!(result_text(&over), "1", "{over}");
    assert_eq!(reason(&slow), "in_flight", "{slow}");
    assert_eq!(effects.runs("charge"), 1, "{slow}");
}

/// The clock of this store goes on with the runtime's.
fn running_store() -> Arc<dyn CallStore> {
    let begin = tokio::time::Instant::now();
    let clock = StoreClock::from_fn(move || Micros::new(1_800_000_000_000_000).after(begin.elapsed()));
    Arc::new(MemoryStore::new().clock(clock))
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_a_step_runs() {
    let (effects, store) = (Effects::default(), running_store());
    let of_tool = effects.clone();
    let slow = tool(move |ctx| {
        let effects = of_tool.clone();
        async move {
            ctx.elicit::<Pick>("Which?").key("pick").await?;
            let charge = ctx.step("charge", async |s| {
                let charged = effects.note("charge", s.key());
                tokio::time::sleep(Duration::from_secs(100)).await;
                Ok(charged)
            });
            Ok(charge.await?.to_string())
        }
        .boxed()
    });
    let server = single_use(slow, &store);
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    let again = async {
        // Three leases later.
        tokio::time::sleep(Duration::from_secs(95)).await;
        deliver(&call, &server, pick("a")).await
    };
    let (first, again) = tokio::join!(deliver(&call, &server, pick("a")), again);
    assert_eq!(result_text(&first), "1", "{first}");
    assert_eq!(again, first, "the second delivery waits for the first one");
    assert_eq!(effects.runs("charge"), 1);
}
