//! Cancellation: it reaches the handler at its next await, and what follows compensates.

use crate::client::{TaskClient, client, text_of};
use antiphon::{
    Error, Form,
    server::{Ctx, State},
    tool,
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Semaphore;

#[derive(Clone)]
struct Effects {
    /// The names of the effects, in order.
    done: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
}

impl Effects {
    fn new() -> Self {
        Self { done: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }

    fn does(&self, what: &str) {
        self.done.lock().unwrap().push(what.to_owned());
    }

    fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Renders parts, and deletes them if it is cancelled.
#[tool(task = "required")]
async fn render(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    for part in 0..3 {
        let rendered = ctx
            .step(("part", part), async |_| {
                effects.does(&format!("begin {part}"));
                effects.gate.acquire().await.unwrap().forget();
                effects.does(&format!("part {part}"));
                Ok(())
            })
            .await;
        if let Err(error) = rendered {
            assert_eq!(error.code.as_deref(), Some("cancelled"));
            for part in 0..part {
                ctx.step(("delete", part), async |_| {
                    effects.does(&format!("delete {part}"));
                    Ok(())
                })
                .await?;
            }
            return Err(error.into());
        }
    }
    Ok("rendered".to_owned())
}

/// Asks, and undoes what it did if the person does not agree.
#[tool(task = "required")]
async fn book(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    let step = |what: &'static str| {
        let effects = effects.clone();
        ctx.step(what, async move |_| {
            effects.does(what);
            Ok(())
        })
    };
    step("book").await?;
    match ctx.elicit::<Name>("Whose?").await {
        Ok(name) => Ok(name.name),
        Err(refused) => {
            step("unbook").await?;
            let again = ctx.elicit::<Name>("Really?").key("again").await;
            assert!(again.is_err());
            Err(refused.into())
        }
    }
}

/// Waits for something that is not recorded.
#[tool(task = "required")]
async fn sleep(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    effects.does("sleep");
    ctx.report_progress(1.0, None, None);
    let () = std::future::pending().await;
    Ok(String::new())
}

/// Pays behind a step and a lookup, which is no step; pays back if it is cancelled.
#[tool(task = "required")]
async fn buy(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    let step = |what: &'static str| {
        let effects = effects.clone();
        ctx.step(what, async move |_| {
            effects.does(what);
            Ok(())
        })
    };
    step("pay").await?;
    effects.does("look up");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    if let Err(refused) = step("order").await {
        step("repay").await?;
        return Err(refused.into());
    }
    Ok("bought".to_owned())
}

/// Does one step and returns.
#[tool(task = "required")]
async fn quick(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    ctx.step("one", async |_| {
        effects.does("begin");
        effects.gate.acquire().await.unwrap().forget();
        Ok(())
    })
    .await?;
    Ok("done".to_owned())
}

fn tools(effects: &Effects) -> TaskClient {
    client(|server| server.state(effects.clone()).tool(render).tool(book).tool(sleep).tool(quick).tool(buy))
}

async fn has_done(client: &TaskClient, effects: &Effects, id: &str, what: &str) {
    for _ in 0..100 {
        if effects.done().iter().any(|done| done == what) {
            return;
        }
        let _ = client.get(id).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}: {:?}", effects.done());
}

#[tokio::test(start_paused = true)]
async fn the_step_that_runs_ends_and_the_next_one_does_not_run() {
    let effects = Effects::new();
    let client = tools(&effects);
    let id = client.task("render", json!({})).await;
    effects.gate.add_permits(1);
    has_done(&client, &effects, &id, "begin 1").await;
    client.cancel(&id).await;
    client.cancel(&id).await;
    assert_eq!(client.get(&id).await["status"], "working");
    effects.gate.add_permits(1);
    has_done(&client, &effects, &id, "delete 1").await;
    let cancelled = client.status(&id, "cancelled").await;
    assert!(cancelled.get("result").is_none() && cancelled.get("error").is_none(), "{cancelled}");
    assert_eq!(effects.done(), ["begin 0", "part 0", "begin 1", "part 1", "delete 0", "delete 1"]);
    // The same acknowledgement for a task that is over.
    client.cancel(&id).await;
    assert_eq!(client.get(&id).await, cancelled);
}

#[tokio::test(start_paused = true)]
async fn an_open_question_is_cancelled_and_so_are_later_ones() {
    let effects = Effects::new();
    let client = tools(&effects);
    let id = client.task("book", json!({})).await;
    client.asked(&id, &["name"]).await;
    client.cancel(&id).await;
    let task = client.get(&id).await;
    assert_ne!(task["status"], "input_required", "nobody is to answer any more: {task}");
    client.status(&id, "cancelled").await;
    assert_eq!(effects.done(), ["book", "unbook"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_awaits_nothing_recorded_is_dropped() {
    let effects = Effects::new();
    let client = tools(&effects);
    let id = client.task("sleep", json!({})).await;
    client.until(&id, |task| task["statusMessage"] == "1").await;
    client.cancel(&id).await;
    client.status(&id, "cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_meets_the_cancellation_behind_a_lookup() {
    let effects = Effects::new();
    let client = tools(&effects);
    let id = client.task("buy", json!({})).await;
    has_done(&client, &effects, &id, "look up").await;
    client.cancel(&id).await;
    // Another message ends the leg that waits for the handler. The next one waits again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.cancel(&id).await;
    client.status(&id, "cancelled").await;
    assert_eq!(effects.done().first().unwrap(), "pay");
    assert_eq!(effects.done().last().unwrap(), "repay");
    assert!(!effects.done().iter().any(|done| done == "order"), "{:?}", effects.done());
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_comes_too_late_changes_nothing() {
    let effects = Effects::new();
    let client = tools(&effects);
    let id = client.task("quick", json!({})).await;
    has_done(&client, &effects, &id, "begin").await;
    client.cancel(&id).await;
    effects.gate.add_permits(1);
    assert_eq!(text_of(&client.status(&id, "completed").await), "done");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_not_begun_is_cancelled_before_its_first_step() {
    let effects = Effects::new();
    let client = tools(&effects);
    let id = client.task("render", json!({})).await;
    client.cancel(&id).await;
    client.status(&id, "cancelled").await;
    assert!(effects.done().is_empty(), "{:?}", effects.done());
}
