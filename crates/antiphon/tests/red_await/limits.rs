//! No limit strikes between an effect and its record.

use super::*;
use antiphon::server::Won;

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
    let mut talk = Talk::new(json!({}));
    let reply = legs(&server, &mut talk, &[Value::Null, json!({})]).await;
    assert!(asks(&reply), "{reply}");
    let reply = said(&talk.leg(&server, json!({"confirm": yes()})).await);
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
    let mut talk = Talk::new(json!({}));
    let reply = talk.leg(&server, Value::Null).await;
    assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
    let effects = EFFECTS.load(SeqCst);
    for _ in 0..3 {
        assert_eq!(reason(&talk.leg(&server, Value::Null).await), "limit");
    }
    assert_eq!(EFFECTS.load(SeqCst), effects, "each of them once");
}
