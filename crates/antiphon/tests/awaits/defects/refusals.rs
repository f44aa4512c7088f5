//! A refusal that the handler does not ask for any more stops new steps, unless a sibling of its round explains it.

use super::*;
use crate::common::one_tool::built;
use antiphon::server::{
    ServerBuilder,
    flow::{Migration, Winner},
};

/// The version that asks before it deletes. `name` comes later, so that the refusal is recorded by then.
fn asking() -> Server {
    server(tool(|ctx| {
        async {
            let sure = ctx.elicit::<Sure>("Delete all?").outcome().await?.accepted();
            let Pick { name } = ctx.elicit("Who are you?").await?;
            Ok(format!("{name} {}", sure.is_some()))
        }
        .boxed()
    }))
}

/// The version that does not, and asks for the name only if `names`.
fn deleting(names: bool, effects: &Effects) -> Tool {
    let effects = effects.clone();
    tool(move |ctx| {
        let effects = effects.clone();
        async move {
            if names {
                let _: Pick = ctx.elicit("Who are you?").await?;
            }
            ctx.step("delete", async |s| Ok(effects.note("delete", s.key()))).await?;
            ok("deleted").await
        }
        .boxed()
    })
}

fn refusal(action: &str) -> Value {
    json!({ "action": action })
}

#[tokio::test]
async fn a_refusal_that_just_came_stops_a_version_that_does_not_ask() {
    for action in ["decline", "cancel"] {
        let effects = Effects::default();
        let new = server(deleting(false, &effects));
        let mut talk = ToolCall::new(json!({}));
        talk.leg(&asking(), Value::Null).await;
        let reply = settled(&mut talk, &new, json!({"sure": refusal(action)})).await;
        assert_eq!((refused(&reply), effects.runs("delete")), ((-32603, "flow_diverged"), 0), "{reply}");
    }
}

#[tokio::test]
async fn a_recorded_refusal_stops_a_version_that_does_not_ask() {
    for action in ["decline", "cancel"] {
        for names in [true, false] {
            let effects = Effects::default();
            let new = server(deleting(names, &effects));
            let mut talk = ToolCall::new(json!({}));
            legs(&asking(), &mut talk, &[Value::Null, json!({"sure": refusal(action)})]).await;
            let reply = settled(&mut talk, &new, json!({"pick": pick("ada")})).await;
            let came_to = (refused(&reply), effects.runs("delete"));
            assert_eq!(came_to, ((-32603, "flow_diverged"), 0), "{action} {names}: {reply}");
        }
    }
}

#[tokio::test]
async fn a_question_may_be_asked_before_an_unmet_refusal_stops_a_step() {
    let effects = Effects::default();
    let new = server(deleting(true, &effects));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&asking(), Value::Null).await;
    let reply = settled(&mut talk, &new, json!({"sure": refusal("decline")})).await;
    assert_eq!(asked(&reply), ["pick"], "{reply}");
    let reply = settled(&mut talk, &new, json!({"pick": pick("ada")})).await;
    assert_eq!((refused(&reply), effects.runs("delete")), ((-32603, "flow_diverged"), 0), "{reply}");
}

#[tokio::test]
async fn an_unmet_consent_stops_nothing() {
    let effects = Effects::default();
    let new = server(deleting(false, &effects));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&asking(), Value::Null).await;
    let reply = settled(&mut talk, &new, json!({"sure": yes()})).await;
    assert_eq!((result_text(&reply).as_str(), effects.runs("delete")), ("deleted", 1));
}

#[tokio::test]
async fn a_version_that_declares_a_forgotten_question_continues() {
    let effects = Effects::default();
    let forgets = deleting(false, &effects).version(1).migrate(Migration::new().forget("sure"));
    let new = built(forgets, |builder: ServerBuilder| builder);
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&asking(), Value::Null).await;
    let reply = settled(&mut talk, &new, json!({"sure": refusal("decline")})).await;
    assert_eq!((result_text(&reply).as_str(), effects.runs("delete")), ("deleted", 1));
}

/// Two questions of one round, of which the second is refused and dropped; then a step.
async fn check_sibling(handler: for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>, answers: Value) {
    let server = server(tool(handler));
    for action in ["decline", "cancel"] {
        let mut talk = ToolCall::new(json!({}));
        let reply = settled(&mut talk, &server, Value::Null).await;
        assert_eq!(asked(&reply), ["pick", "sure"], "{reply}");
        let answers = with(&answers, json!({"sure": refusal(action)}));
        let reply = settled(&mut talk, &server, answers).await;
        // The refusal is recorded, and not met, on this leg too.
        assert_eq!(asked(&reply), ["more"], "{action}: {reply}");
        assert_eq!(
            result_text(&settled(&mut talk, &server, json!({"more": yes()})).await),
            "done",
            "{action}"
        );
    }
}

/// Does two things, with a question in between.
async fn acts(ctx: &Ctx) -> Result<String> {
    ctx.step("first", async |_| ok("").await).await?;
    ctx.elicit::<Sure>("More?").key("more").await?;
    ctx.step("second", async |_| ok("done").await).await.map_err(Into::into)
}

#[tokio::test]
async fn a_refused_sibling_that_a_select_dropped_stops_nothing() {
    check_sibling(
        |ctx| {
            async {
                match ctx.select("w", (ctx.elicit::<Pick>("Who?"), ctx.elicit::<Sure>("Sure?"))).await {
                    Winner::A(_) => acts(ctx).await,
                    Winner::B(_) => ok("the second won").await,
                }
            }
            .boxed()
        },
        json!({"pick": pick("ada")}),
    )
    .await;
}

#[tokio::test]
async fn a_refused_sibling_that_try_join_dropped_stops_nothing() {
    check_sibling(
        |ctx| {
            async {
                match tokio::try_join!(ctx.elicit::<Pick>("Who?"), async {
                    ctx.elicit::<Sure>("Sure?").await
                }) {
                    Ok(_) => ok("both said yes").await,
                    Err(_) => acts(ctx).await,
                }
            }
            .boxed()
        },
        json!({"pick": refusal("decline")}),
    )
    .await;
}

/// A race of two questions, of which the second one is behind a lookup that takes longer than the grace of a leg. So its leg ends
/// without the answer, and the first question is asked once more.
async fn race_with_lookup(ctx: &Ctx) -> Result<String> {
    let (first, second) = (ctx.scope("first"), ctx.scope("second"));
    let slow = async {
        let lookup = async {
            tokio::time::sleep(ms(56)).await;
            second.elicit::<Sure>("Sure?").outcome().await
        };
        let before = second.step("before", async |_| {
            tokio::time::sleep(ms(24)).await;
            ok("").await
        });
        tokio::join!(before, lookup)
    };
    match ctx.select("w", (first.elicit::<Pick>("Who?"), slow)).await {
        Winner::A(name) => name.map(|Pick { name }| name).map_err(Into::into),
        Winner::B(_) => ok("the second won").await,
    }
}

/// Two questions, of which the first one that is refused drops the other.
async fn join_with_lookup(ctx: &Ctx) -> Result<String> {
    let (first, second) = (ctx.scope("first"), ctx.scope("second"));
    let slow = async {
        let lookup = async {
            tokio::time::sleep(ms(56)).await;
            second.elicit::<Sure>("Sure?").await
        };
        let before = second.step("before", async |_| {
            tokio::time::sleep(ms(24)).await;
            ok("").await
        });
        tokio::join!(before, lookup).1
    };
    match tokio::try_join!(async { first.elicit::<Pick>("Who?").await }, slow) {
        Ok(_) => ok("both said yes").await,
        Err(_) => ok("ada").await,
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_sibling_that_was_dropped_stops_nothing_if_the_other_is_answered_later() {
    type Handler = for<'a> fn(&'a Ctx) -> BoxFuture<'a, Result<String>>;
    let handlers: [(Handler, Value); 4] = [
        (
            |ctx| {
                async {
                    let name = race_with_lookup(ctx).await?;
                    ctx.step("after", async |_| ok(&name).await).await.map_err(Into::into)
                }
                .boxed()
            },
            pick("ada"),
        ),
        (
            |ctx| {
                async {
                    let name = race_with_lookup(ctx).await?;
                    let after = ctx.step("after", async |_| ok(&name).await);
                    let mut set = futures_util::stream::FuturesUnordered::from_iter([after]);
                    futures_util::StreamExt::next(&mut set).await.unwrap().map_err(Into::into)
                }
                .boxed()
            },
            pick("ada"),
        ),
        (
            |ctx| {
                async {
                    let name = join_with_lookup(ctx).await?;
                    ctx.step("after", async |_| ok(&name).await).await.map_err(Into::into)
                }
                .boxed()
            },
            refusal("decline"),
        ),
        (
            // The record of the later answer is read once more.
            |ctx| {
                async {
                    let name = race_with_lookup(ctx).await?;
                    ctx.elicit::<Sure>("More?").key("more").await?;
                    ctx.step("after", async |_| ok(&name).await).await.map_err(Into::into)
                }
                .boxed()
            },
            pick("ada"),
        ),
    ];
    for (handler, answer) in handlers {
        let server = server(tool(handler));
        let mut talk = ToolCall::new(json!({}));
        let reply = settled(&mut talk, &server, Value::Null).await;
        assert_eq!(asked(&reply), ["first/pick", "second/sure"], "{reply}");
        let reply = settled(&mut talk, &server, json!({"second/sure": refusal("decline")})).await;
        assert_eq!(asked(&reply), ["first/pick"], "{reply}");
        let begun = tokio::time::Instant::now();
        let mut reply = settled(&mut talk, &server, json!({"first/pick": answer})).await;
        if asked(&reply) == ["more"] {
            reply = settled(&mut talk, &server, json!({"more": yes()})).await;
        }
        assert_eq!(result_text(&reply), "ada");
        assert!(begun.elapsed() < ms(200), "{:?}", begun.elapsed());
    }
}
