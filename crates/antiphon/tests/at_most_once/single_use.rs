//! One state, one run.

use super::*;
use tokio::sync::Notify;

#[tokio::test]
async fn the_same_request_has_the_same_reply_and_the_handler_does_not_run_again() {
    let (effects, (store, _)) = (Effects::default(), store());
    // Two instances share the store and the keys.
    let servers = [single_use(shop(&effects), &store), single_use(shop(&effects), &store)];
    let call = at_first_question(&servers[0]).await;
    let first = deliver(&call, &servers[0], pick("mug")).await;
    assert_eq!(result_text(&first), "mug");
    for server in &servers {
        // Another order of members and an unknown key are the same answers.
        let again = json!({ "other": accept(json!({})), "pick": { "content": { "name": "mug" }, "_meta": {}, "action": "accept" } });
        for answers in [pick("mug"), again] {
            assert_eq!(deliver(&call, server, answers).await, first);
        }
    }
    assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, 1));
}

#[tokio::test]
async fn a_round_is_sent_again_byte_for_byte() {
    let (effects, (store, _)) = (Effects::default(), store());
    let server = single_use(shop(&effects), &store);
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    let (one, two) = (deliver(&call, &server, Value::Null).await, deliver(&call, &server, Value::Null).await);
    assert_eq!(one, two);
    assert_eq!(effects.runs("charge"), 1);
}

#[tokio::test]
async fn other_answers_and_earlier_states_are_refused_as_used() {
    let (effects, (store, _)) = (Effects::default(), store());
    let server = single_use(shop(&effects), &store);
    let mut call = at_first_question(&server).await;
    let first = deliver(&call, &server, pick("mug")).await;
    assert_eq!(result_text(&first), "mug");
    for answers in [pick("cup"), Value::Null, json!({ "pick": { "action": "decline" } })] {
        let reply = deliver(&call, &server, answers).await;
        assert_eq!((reason(&reply), reply["error"]["code"].as_i64()), ("used", Some(-32602)), "{reply}");
        let text = reply.to_string();
        assert!(!text.contains("mug") && !text.contains("charge"), "{text}");
    }
    // The state of the leg before.
    let mut earlier = ToolCall::new(json!({}));
    earlier.leg(&server, Value::Null).await;
    let before = earlier.state.clone();
    earlier.leg(&server, Value::Null).await;
    earlier.leg(&server, pick("pen")).await;
    call.state = before;
    assert_eq!(reason(&deliver(&call, &server, Value::Null).await), "used");
    assert_eq!((effects.runs("charge"), effects.runs("ship")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_second_delivery_waits_for_the_first_one() {
    let (effects, open) = (Effects::default(), Arc::new(Notify::new()));
    let waits = {
        let (effects, open) = (effects.clone(), Arc::clone(&open));
        tool(move |ctx| {
            let (effects, open) = (effects.clone(), Arc::clone(&open));
            async move {
                ctx.step("charge", async |s| {
                    effects.note("charge", s.key());
                    open.notified().await;
                    Ok(())
                })
                .await?;
                ok("done").await
            }
            .boxed()
        })
    };
    let (store, _) = store();
    let server = single_use(waits, &store);
    let mut call = ToolCall::new(json!({}));
    assert!(is_state_only(&call.leg(&server, Value::Null).await));
    let opens = async {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        open.notify_one();
    };
    let (one, two, ()) =
        tokio::join!(deliver(&call, &server, Value::Null), deliver(&call, &server, Value::Null), opens);
    assert_eq!(one, two);
    assert_eq!((result_text(&one), effects.runs("charge")), ("done".to_owned(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_second_delivery_waits_for_a_bounded_time() {
    let (store, _) = store();
    let never = tool(|ctx| {
        async move {
            ctx.step("charge", async |_| std::future::pending::<Result<()>>().await).await?;
            ok("never").await
        }
        .boxed()
    });
    let server = single_use(never, &store);
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    let begin = tokio::time::Instant::now();
    let second = async {
        tokio::task::yield_now().await;
        let reply = deliver(&call, &server, Value::Null).await;
        (reply, begin.elapsed())
    };
    let (reply, time) = tokio::select! {
        biased;
        reply = deliver(&call, &server, Value::Null) => panic!("the step never ends: {reply}"),
        second = second => second,
    };
    assert_eq!(reason(&reply), "in_flight");
    let retry = reply["error"]["data"]["retryAfterMs"].as_u64().unwrap();
    assert!((100..=30_000).contains(&retry), "{retry}");
    assert!((9..=11).contains(&time.as_secs()), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_leg_without_a_step_runs_again_and_one_with_a_step_does_not() {
    for with_step in [false, true] {
        let (effects, (store, hand)) = (Effects::default(), store());
        let pauses = {
            let effects = effects.clone();
            tool(move |ctx| {
                let effects = effects.clone();
                async move {
                    ctx.elicit::<Pick>("Which?").key("pick").await?;
                    if with_step {
                        ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
                    }
                    if effects.runs("looked") == 0 {
                        effects.note("looked", "1");
                        std::future::pending::<()>().await;
                    }
                    ok("done").await
                }
                .boxed()
            })
        };
        let server = single_use(pauses, &store);
        let mut call = ToolCall::new(json!({}));
        call.leg(&server, Value::Null).await;
        let gone =
            tokio::time::timeout(std::time::Duration::from_secs(2), deliver(&call, &server, pick("a")));
        assert!(gone.await.is_err());
        // The task that gives the leg back.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        hand.advance(std::time::Duration::from_secs(31));
        let reply = deliver(&call, &server, pick("a")).await;
        if with_step {
            assert_eq!(reason(&reply), "outcome_unknown", "{reply}");
            assert_eq!(effects.runs("charge"), 1);
        } else {
            assert_eq!(result_text(&reply), "done");
        }
    }
}

#[tokio::test]
async fn a_stored_round_passes_the_capabilities_of_its_client() {
    let (store, _) = store();
    let server = single_use(shop(&Effects::default()), &store);
    let mut call = ToolCall::new(json!({}));
    call.leg(&server, Value::Null).await;
    deliver(&call, &server, Value::Null).await;
    let mut params = json!({ "name": "t", "arguments": {}, "requestState": call.state });
    let mut message = common::request(1, "tools/call", params.take());
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let reply = server
        .respond(message.to_string().as_bytes(), &antiphon::server::Caller::default())
        .await
        .expect("a request has a reply");
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reply["error"]["code"], -32021, "{reply}");
}
