//! The open questions of a task while its leg runs: they are only added, and an acknowledged answer is never lost or asked again.

use crate::client::{TaskClient, accept, client, keys_of, text_of};
use antiphon::{
    Error, Form,
    server::{Ctx, State},
    tool,
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// What comes before the first question, and is no step.
#[derive(Clone, Copy, Debug)]
enum Before {
    Lookup,
    Yield,
    Set,
}

impl Before {
    async fn wait(self) {
        match self {
            Self::Lookup => tokio::time::sleep(Duration::from_millis(40)).await,
            Self::Yield => tokio::task::yield_now().await,
            // A set polls its first branch once more.
            Self::Set => {
                let set = [0, 1].map(|_| tokio::task::yield_now());
                let mut set: FuturesUnordered<_> = set.into_iter().collect();
                while set.next().await.is_some() {}
            }
        }
    }
}

async fn works(ctx: &Ctx) -> Result<(), Error> {
    let work = ctx.step("work", async |_| {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(())
    });
    Ok(work.await?)
}

/// Asks two people; a step of five seconds is behind the second answer.
#[tool(task = "required")]
async fn two(ctx: &Ctx, before: State<Before>) -> Result<String, Error> {
    let (a, b) = tokio::join!(
        async {
            before.wait().await;
            ctx.elicit::<Name>("A?").key("a").await
        },
        async {
            let b = ctx.elicit::<Name>("B?").key("b").await?;
            works(ctx).await?;
            Ok::<_, Error>(b)
        }
    );
    Ok(format!("{} {}", a?.name, b?.name))
}

/// Becomes a task beside a question, and then works.
#[tool(task = "optional")]
async fn promoted(ctx: &Ctx, before: State<Before>) -> Result<String, Error> {
    let (a, worked) = tokio::join!(
        async {
            before.wait().await;
            ctx.elicit::<Name>("A?").key("a").await
        },
        async {
            ctx.into_task().await?;
            works(ctx).await
        }
    );
    worked?;
    Ok(a?.name)
}

const SHAPES: [Before; 3] = [Before::Lookup, Before::Yield, Before::Set];

/// Before, within and after the lookup and the step.
const TIMES: [u64; 13] = [0, 1, 5, 20, 39, 40, 41, 60, 100, 1_000, 4_990, 5_010, 6_000];

fn tools(before: Before) -> TaskClient {
    client(|server| server.state(before).tool(two).tool(promoted))
}

fn named(name: &str) -> Value {
    accept(json!({"name": name}))
}

/// Follows the task to its end: no question is asked any more.
async fn ends(client: &TaskClient, id: &str, what: &str) -> Value {
    client
        .until(id, |task| {
            assert!(keys_of(task).is_empty(), "{what}: it asks again: {task}");
            task["status"] == "completed"
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn a_question_stays_under_its_key_while_a_step_runs() {
    for before in SHAPES {
        let client = tools(before);
        let id = client.task("two", json!({})).await;
        client.asked(&id, &["a", "b"]).await;
        client.update(&id, json!({"b": named("Bert")})).await;
        for time in TIMES {
            tokio::time::sleep(Duration::from_millis(time)).await;
            let task = client.get(&id).await;
            assert_eq!(keys_of(&task), ["a"], "{before:?} after {time} ms: {task}");
        }
        client.update(&id, json!({"a": named("Anna")})).await;
        assert_eq!(text_of(&ends(&client, &id, "in the end").await), "Anna Bert");
    }
}

#[tokio::test(start_paused = true)]
async fn an_acknowledged_answer_is_not_lost_whenever_it_comes() {
    for before in SHAPES {
        for time in TIMES {
            let (client, what) = (tools(before), format!("{before:?} after {time} ms"));
            let id = client.task("two", json!({})).await;
            client.asked(&id, &["a", "b"]).await;
            client.update(&id, json!({"b": named("Bert")})).await;
            tokio::time::sleep(Duration::from_millis(time)).await;
            client.update(&id, json!({"a": named("Anna")})).await;
            // What comes to an answered key is ignored.
            client.update(&id, json!({"a": named("Zoe"), "b": named("Zoe"), "a~2": named("Zoe")})).await;
            assert_eq!(text_of(&ends(&client, &id, &what).await), "Anna Bert", "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_open_at_the_promotion_stays_under_its_key() {
    for before in SHAPES {
        for time in TIMES {
            let (client, what) = (tools(before), format!("{before:?} after {time} ms"));
            let id = client.task("promoted", json!({})).await;
            let open = client.until(&id, |task| !keys_of(task).is_empty()).await;
            assert_eq!(keys_of(&open), ["a"], "{what}");
            tokio::time::sleep(Duration::from_millis(time)).await;
            let task = client.get(&id).await;
            assert_eq!(keys_of(&task), ["a"], "{what}: {task}");
            client.update(&id, json!({"a": named("Anna")})).await;
            assert_eq!(text_of(&ends(&client, &id, &what).await), "Anna", "{what}");
        }
    }
}
