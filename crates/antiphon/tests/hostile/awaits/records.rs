//! A recorded entry counts for the ask or step that it was recorded for, and for no other.

use super::*;
use antiphon::server::flow::{Migration, Winner};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_winner_that_is_not_there_any_more_ends_the_call() {
    macro_rules! racing {
        ($version:literal, $($more:expr)?) => {
            tool!(|ctx| {
                let never = std::future::pending::<()>;
                let go = ctx.elicit::<Confirm>("Go?").key("go");
                let won = ctx.select("first", (never(), go, $($more)?)).await;
                let won = matches!(won, Winner::A(_) | Winner::B(_));
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(won.to_string())
            })
            .version($version)
        };
    }
    let mut talk = ToolCall::new(json!({}));
    let old = server(racing!(1, async {}));
    assert!(asks(&talk.leg(&old, Value::Null).await));
    let new = server(racing!(2,));
    let reply =
        tokio::time::timeout(Duration::from_secs(60), talk.leg(&new, json!({"confirm": yes(), "go": yes()})))
            .await;
    assert_eq!(reason(&reply.expect("it ends")), "flow_diverged");
}

#[tokio::test]
async fn a_checkpoint_of_a_loser_silences_nothing() {
    let tool = tool!(|ctx| {
        let asks = ctx.elicit::<Confirm>("Go?").key("go");
        let pauses = async {
            ctx.checkpoint().now().await;
            std::future::pending::<()>().await;
        };
        let (Winner::A(_) | Winner::B(())) = ctx.select("first", (asks, pauses)).await;
        // It ends a leg, for nothing that was recorded is still to come.
        ctx.checkpoint().key("later").now().await;
        ok("done").await
    });
    let server = server(tool);
    let mut talk = ToolCall::new(json!({}));
    let reply = legs(&server, &mut talk, &[Value::Null, json!({"go": yes()})]).await;
    assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
    assert_eq!(result_text(&talk.leg(&server, Value::Null).await), "done");
}

#[tokio::test]
async fn a_question_of_a_loser_silences_nothing() {
    let server = server(tool!(|ctx| {
        let (one, two) = (ctx.elicit::<Confirm>("One?").key("one"), ctx.elicit::<Confirm>("Two?").key("two"));
        let (Winner::A(first) | Winner::B(first)) = ctx.select("first", (one, two)).await;
        ctx.checkpoint().now().await;
        Ok(first?.ok.to_string())
    }));
    for answers in [json!({"one": yes()}), json!({"two": yes()}), json!({"one": yes(), "two": no()})] {
        let mut talk = ToolCall::new(json!({}));
        let reply = legs(&server, &mut talk, &[Value::Null, answers]).await;
        // It ends a leg, for nothing that was recorded is still to come.
        assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
        assert_eq!(result_text(&talk.leg(&server, Value::Null).await), "true");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_step_of_a_loser_came_to_is_handed_to_no_other() {
    let server = server(tool!(|ctx| {
        let waits = tokio::time::sleep(Duration::from_millis(10));
        let loses = ctx.step("s", async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            ok("loser").await
        });
        let (Winner::A(()) | Winner::B(_)) = ctx.select("first", (waits, loses)).await;
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(ctx.step("s", async |_| ok("another").await).await?)
    }));
    let mut talk = ToolCall::new(json!({}));
    let reply = legs(&server, &mut talk, &[Value::Null, json!({"confirm": yes()})]).await;
    let reply = talk.settled(&server, reply).await;
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
}

#[tokio::test]
async fn a_migration_hands_no_result_to_another_step() {
    macro_rules! two {
        ($version:literal, $first:literal, $second:literal) => {
            tool!(|ctx| {
                let first: String = ctx.step($first, async |_| ok("first").await).await?;
                let second: String = ctx.step($second, async |_| ok("second").await).await?;
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(format!("{first} {second}"))
            })
            .version($version)
        };
    }
    let rename = |from, to| Migration::new().rename(from, to);
    type ToolFactory = fn() -> Tool;
    let cases: [(Migration, ToolFactory, &str); 5] = [
        (rename("b", "c").rename("a", "b"), || two!(2, "b", "c"), "first second"),
        (rename("a", "t").rename("b", "a").rename("t", "b"), || two!(2, "b", "a"), "first second"),
        // In this order two results have one key.
        (rename("a", "b").rename("b", "c"), || two!(2, "b", "c"), "flow_diverged"),
        (rename("a", "b").rename("b", "a"), || two!(2, "b", "a"), "flow_diverged"),
        (rename("a", "b"), || two!(2, "b", "d"), "flow_diverged"),
    ];
    for (migration, new, expected) in cases {
        for lenient in [false, true] {
            let mut talk = ToolCall::new(json!({}));
            talk.leg(&server(two!(1, "a", "b")), Value::Null).await;
            let new = new().migrate(migration.clone());
            let new = server(if lenient { new.lenient_replay(true) } else { new });
            let reply = talk.leg(&new, json!({"confirm": yes()})).await;
            let reply = talk.settled(&new, reply).await;
            assert!(
                result_text(&reply) == expected || reason(&reply) == expected,
                "{migration:?} {lenient}: {reply}"
            );
        }
    }
}

/// A migration of a step in a loop applies to all its rows: the author of the next version does not know the rows.
#[tokio::test]
async fn a_migration_is_for_a_step_under_all_its_numbers() {
    macro_rules! rows {
        ($version:literal, $key:literal, $number:expr) => {
            tool!(|ctx| {
                let mut all = Vec::new();
                let below = ctx.scope("rows");
                for row in [7, 70, 8] {
                    all.push(below.step::<u32, _, _>(($key, row), async |_| Ok($number + row)).await?);
                }
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(format!("{all:?}"))
            })
            .version($version)
        };
    }
    let (then, now) = ("[107, 170, 108]", "[207, 270, 208]");
    let migration = Migration::new;
    for (migration, expected) in [
        (migration().rename("rows/charge", "rows/pay"), then),
        (migration().forget("rows/charge"), now),
        (migration().rename("rows/charge#70", "rows/pay#70").forget("rows/charge"), "flow_diverged"),
        (migration().rename("rows/charge#7", "rows/pay#7").forget("rows/charge"), "[107, 270, 208]"),
        // Neither is one of its numbers.
        (migration().rename("rows/charg", "rows/pay").forget("charge"), "flow_diverged"),
        (migration().rename("rows/charge", "rows/pay#1"), "flow_diverged"),
        (migration().rename("rows/charge", "rows/pay").rename("rows/pay#8", "rows/pay#7"), "flow_diverged"),
    ] {
        let mut talk = ToolCall::new(json!({}));
        talk.leg(&server(rows!(1, "charge", 100)), Value::Null).await;
        let new = server(rows!(2, "pay", 200).migrate(migration.clone()));
        let reply = talk.leg(&new, json!({"confirm": yes()})).await;
        assert!(result_text(&reply) == expected || reason(&reply) == expected, "{migration:?}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_rests_on_a_url_is_stale_once_that_is_another() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    macro_rules! paying {
        ($text:literal) => {
            tool!(|ctx| {
                ctx.elicit_url($text, |r| format!("https://e.example/{r}"))
                    .until(async || DONE.load(SeqCst) == 1)
                    .await?;
                let id: String = ctx.step("charge", async |_| ok($text).await).await?;
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(id)
            })
        };
    }
    for in_vain in [false, true] {
        DONE.store(usize::from(!in_vain), SeqCst);
        let (old, new) = (server(paying!("Pay one.")), server(paying!("Pay two.")));
        let mut talk = ToolCall::new(json!({}));
        legs(&old, &mut talk, &[Value::Null, json!({"url": agreed()})]).await;
        if in_vain {
            DONE.store(1, SeqCst);
            talk.leg(&old, Value::Null).await;
        }
        assert_eq!(talk.rounds.last().unwrap(), &["confirm"]);
        let reply = legs(&new, &mut talk, &[json!({"confirm": yes()}), json!({"url": agreed()})]).await;
        let reply = talk.settled(&new, reply).await;
        assert_eq!(reason(&reply), "flow_diverged", "{in_vain}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_that_is_finished_without_an_answer_is_used_once_too() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        let mut paid = 0;
        for _ in 0..2 {
            ctx.elicit_url("Pay.", |r| format!("https://e.example/{r}"))
                .until(async || DONE.load(SeqCst) == 1)
                .await?;
            paid += 1;
        }
        Ok(format!("paid {paid} times"))
    }));
    let mut talk = ToolCall::new(json!({}));
    legs(&server, &mut talk, &[Value::Null, json!({"url": agreed()})]).await;
    DONE.store(1, SeqCst);
    let reply = talk.leg(&server, Value::Null).await;
    let reply = talk.settled(&server, reply).await;
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
}
