//! No limit strikes between an effect and its record.

use super::*;
use antiphon::server::flow::Winner;

/// A tool that fills its record with `fill`, has an effect, and then records more in the same leg.
macro_rules! behind_an_effect {
    (|$ctx:ident| $behind:expr) => {{
        static FILL: AtomicUsize = AtomicUsize::new(0);
        static EFFECTS: AtomicUsize = AtomicUsize::new(0);
        let tool = tool!(|$ctx| {
            let fill = FILL.load(SeqCst);
            $ctx.step("fill", async |_| ok(&"x".repeat(fill)).await).await?;
            $ctx.elicit::<Confirm>("Go?").await?;
            $ctx.step("effect", async |_| {
                EFFECTS.fetch_add(1, SeqCst);
                ok(&"x".repeat(900)).await
            })
            .await?;
            $behind;
            $ctx.elicit::<Confirm>("Sure?").key("sure").await?;
            ok("done").await
        });
        (tool, &FILL, &EFFECTS)
    }};
}

#[tokio::test]
async fn what_is_recorded_behind_an_effect_does_not_cost_its_record() {
    let races = behind_an_effect!(|ctx| for n in 0..40 {
        let asks = ctx.elicit::<Confirm>("Never asked.").key("never").nth(n);
        let (Winner::A(()) | Winner::B(_)) = ctx.select(("race", n), (async {}, asks)).await;
    });
    let urls = behind_an_effect!(|ctx| {
        let asks = (0..8).map(|n| ctx.elicit_url("Open.", |r| format!("https://e.example/{r}")).nth(n));
        ctx.join_all(asks).await
    });
    for (what, (tool, fill, effects)) in [("races", races), ("urls", urls)] {
        let server = limited(tool, |limits| limits.state(2500).step_result(1000));
        let (mut left, mut refused) = (0, 0);
        for room in (0..1000).step_by(25) {
            fill.store(room, SeqCst);
            effects.store(0, SeqCst);
            let mut talk = ToolCall::new(json!({}));
            let reply = legs(&server, &mut talk, &[Value::Null, json!({"confirm": yes()})]).await;
            let reply = talk.settled(&server, reply).await;
            if effects.load(SeqCst) == 1 {
                assert!(asks(&reply), "{what}, {room}: {reply}");
                left += 1;
            } else {
                assert_eq!(reason(&reply), "limit", "{what}, {room}: {reply}");
                refused += 1;
            }
        }
        assert!(left > 3 && refused > 3, "{what}: {left} {refused}");
    }
}

#[tokio::test]
async fn a_question_is_given_up_once_the_record_of_an_effect_has_left() {
    static EFFECTS: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        let works = async {
            ctx.elicit::<Confirm>("Go?").key("go").await?;
            Ok::<_, antiphon::Error>(ctx.step("effect", async |_| Ok(EFFECTS.fetch_add(1, SeqCst))).await?)
        };
        let late = async {
            for _ in 0..9 {
                tokio::task::yield_now().await;
            }
            ctx.elicit::<Confirm>("Sure?").key("sure").await
        };
        let (works, late) = tokio::join!(works, late);
        Ok(format!("{} {}", works?, late?.ok))
    }));
    let bad = accept(json!({"ok": "perhaps"}));
    let mut talk = ToolCall::new(json!({}));
    let before = json!({"sure": bad});
    legs(&server, &mut talk, &[Value::Null, before.clone(), before]).await;
    let reply = talk.leg(&server, json!({"sure": bad, "go": yes()})).await;
    assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
    // An answer that nobody asked for does not count.
    for answers in [json!({"sure": yes()}), Value::Null] {
        let reply = talk.leg(&server, answers).await;
        assert_eq!(
            reply["error"]["data"],
            json!({"reason": "limit", "limit": "times_asked", "done": ["effect"]}),
            "{reply}"
        );
        assert!(reply.to_string().contains("asked 3 times"), "{reply}");
    }
    assert_eq!(EFFECTS.load(SeqCst), 1);
}

#[tokio::test]
async fn more_steps_at_once_than_the_record_has_room_for_wait_for_each_other() {
    static EFFECTS: AtomicUsize = AtomicUsize::new(0);
    // So many that seven at a time may run, and in the record they stand in another order than in the handler.
    let server = server(tool!(|ctx| {
        let steps = (0..200).map(|n| {
            ctx.step(("s", n), async move |_| {
                for _ in 0..n * 7919 % 13 {
                    tokio::task::yield_now().await;
                }
                Ok(EFFECTS.fetch_add(1, SeqCst))
            })
        });
        let all: Vec<usize> = ctx.join_all(steps).await.into_iter().collect::<Result<_, _>>()?;
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(format!("{all:?}"))
    }));
    let mut talk = ToolCall::new(json!({}));
    let reply = legs(&server, &mut talk, &[Value::Null, json!({})]).await;
    assert!(asks(&reply), "{reply}");
    let reply = result_text(&talk.leg(&server, json!({"confirm": yes()})).await);
    assert!(reply.starts_with('[') && reply.contains("199"), "{reply}");
    assert_eq!(EFFECTS.load(SeqCst), 200);
}

#[tokio::test]
async fn a_leg_that_has_filled_the_record_leaves_with_it() {
    static EFFECTS: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        for n in 0..200 {
            ctx.step(("s", n), async |_| {
                EFFECTS.fetch_add(1, SeqCst);
                ok(&"x".repeat(2000)).await
            })
            .await?;
        }
        ok("done").await
    }));
    let mut talk = ToolCall::new(json!({}));
    let reply = talk.leg(&server, Value::Null).await;
    assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
    let effects = EFFECTS.load(SeqCst);
    for _ in 0..3 {
        assert_eq!(reason(&talk.leg(&server, Value::Null).await), "limit");
    }
    assert_eq!(EFFECTS.load(SeqCst), effects, "each of them once");
}

/// A short answer is not refused as too long.
#[tokio::test]
async fn a_short_answer_counts_where_the_record_is_full() {
    static EFFECTS: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        for n in 0..8 {
            let fill = async |_| ok(&"x".repeat(if n == 7 { 12_000 } else { 16_000 })).await;
            ctx.step(("fill", n), fill).await?;
        }
        ctx.elicit::<Confirm>("Sure?").await?;
        // There is no room for another effect, which is known before it.
        if ctx.elicit::<Confirm>("More?").key("more").await?.ok {
            ctx.step("effect", async |_| Ok(EFFECTS.fetch_add(1, SeqCst))).await?;
        }
        ok("done").await
    }));
    let no = accept(json!({"ok": false}));
    for (more, expected) in [(no, "done"), (yes(), "limit")] {
        let mut talk = ToolCall::new(json!({}));
        let reply =
            legs(&server, &mut talk, &[Value::Null, json!({"confirm": yes()}), json!({"more": more})]).await;
        let reply = talk.settled(&server, reply).await;
        talk.rounds.retain(|round| !round.is_empty());
        let came = if reply["error"].is_object() { reason(&reply).to_owned() } else { result_text(&reply) };
        assert_eq!((came.as_str(), talk.rounds.len()), (expected, 2));
    }
    // What is long is at fault.
    let long = json!({"action": "accept", "content": {"ok": true}, "_meta": {"x": "x".repeat(600)}});
    let reply = legs(&server, &mut ToolCall::new(json!({})), &[Value::Null, json!({"confirm": long})]).await;
    let question = &reply["result"]["inputRequests"]["confirm"]["params"]["message"];
    assert_eq!(question, "Sure?\n\nThe answers together are too long: this one may have 512 bytes.");
    assert_eq!(EFFECTS.load(SeqCst), 0);
}

/// A step that comes to no outcome ends the leg; what runs beside it comes to the end of its effect, and no line behind it
/// runs.
#[tokio::test(start_paused = true)]
async fn what_runs_beside_a_fault_is_not_cut() {
    static SECONDS: AtomicUsize = AtomicUsize::new(0);
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    static BEHIND: AtomicUsize = AtomicUsize::new(0);
    for (seconds, ended) in [(1, 1), (60, 0)] {
        ENDED.store(0, SeqCst);
        BEHIND.store(0, SeqCst);
        SECONDS.store(seconds, SeqCst);
        let tool = tool!(|ctx| {
            let slow = async {
                ctx.step("slow", async |_| {
                    let time = std::time::Duration::from_secs(SECONDS.load(SeqCst) as u64);
                    tokio::time::sleep(time).await;
                    ENDED.fetch_add(1, SeqCst);
                    ok("slow").await
                })
                .await?;
                BEHIND.fetch_add(1, SeqCst);
                ok("behind").await
            };
            let fails = ctx.step("fails", async |_| -> Result<String> {
                Err(antiphon::server::StepError::retry(antiphon::Error::user_facing("not now")))
            });
            let (slow, fails) = tokio::join!(slow, fails);
            slow?;
            fails?;
            ok("done").await
        });
        let server = limited(tool, |limits| limits);
        let mut talk = ToolCall::new(json!({}));
        let reply = talk.leg(&server, Value::Null).await;
        // A step that has ended leaves with its record; then the fault is told.
        assert_eq!(reply["result"]["inputRequests"].is_object(), ended == 1, "{reply}");
        assert_eq!((ENDED.load(SeqCst), BEHIND.load(SeqCst)), (ended, 0), "{seconds}");
        let reply = talk.settled(&server, reply).await;
        assert_eq!(reason(&reply), "step_failed", "{reply}");
    }
}
