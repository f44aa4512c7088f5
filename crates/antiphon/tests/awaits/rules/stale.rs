//! Recorded steps behind a question, after a change of the program.

use super::*;

/// `create` rests on the answer to `place`.
macro_rules! creating {
    ($text:literal, $step:ident($($pinned:tt)*)) => {
        Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
            let place: Place = ctx.elicit($text).await?;
            let id: String =
                ctx.$step("create", $($pinned)* async |_| Ok(format!("db-{}", place.region))).await?;
            ctx.elicit::<Confirm>("Keep it?").await?;
            Ok(id)
        })
    };
    ($text:literal) => { creating!($text, step()) };
    ($text:literal, pinned) => { creating!($text, step_with(&1,)) };
}

#[tokio::test]
async fn a_reworded_question_makes_the_steps_behind_it_stale_for_good() {
    for (old, new, expected) in [
        (creating!("Where?"), creating!("In which region?"), "flow_diverged"),
        (creating!("Where?", pinned), creating!("In which region?", pinned), "db-eu"),
    ] {
        let mut talk = ToolCall::new(json!({}));
        legs(&server(old), &mut talk, &[Value::Null, json!({"place": place("eu")})]).await;
        // Asked again, in other words: the person may mean another place.
        let new = server(new);
        let reply = talk.leg(&new, json!({"confirm": yes()})).await;
        assert_eq!(keys(reply.to_string().as_bytes()), ["place"], "{reply}");
        let mut reply = talk.leg(&new, json!({"place": place("us")})).await;
        if expected == "flow_diverged" {
            // The answer leaves first.
            assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
            reply = talk.leg(&new, Value::Null).await;
        } else {
            // It was given behind another answer.
            assert_eq!(keys(reply.to_string().as_bytes()), ["confirm"], "{reply}");
            reply = talk.leg(&new, json!({"confirm": yes()})).await;
        }
        assert!(reply.to_string().contains(expected), "{reply}");
    }
}
