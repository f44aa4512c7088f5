//! What was recorded counts for what it was recorded for, and for nothing else.

use super::*;
use antiphon::server::{Migration, Won};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_winner_that_is_not_there_any_more_ends_the_call() {
    macro_rules! racing {
        ($version:literal, $($more:expr)?) => {
            tool!(|ctx| {
                let never = std::future::pending::<()>;
                let go = ctx.elicit::<Confirm>("Go?").key("go");
                let won = ctx.select("first", (never(), go, $($more)?)).await;
                let won = matches!(won, Won::A(_) | Won::B(_));
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(won.to_string())
            })
            .version($version)
        };
    }
    let mut talk = Talk::new(json!({}));
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
        let (Won::A(_) | Won::B(())) = ctx.select("first", (asks, pauses)).await;
        // It ends a leg, for nothing that was recorded is still to come.
        ctx.checkpoint().key("later").now().await;
        ok("done").await
    });
    let server = server(tool);
    let mut talk = Talk::new(json!({}));
    let reply = legs(&server, &mut talk, &[Value::Null, json!({"go": yes()})]).await;
    assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
    assert_eq!(said(&talk.leg(&server, Value::Null).await), "done");
}
