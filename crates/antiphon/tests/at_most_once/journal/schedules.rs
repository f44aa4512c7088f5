//! Single schedules of a call in a store: a cancelled task, first requests, takeovers, transactions, and clients that change.

use super::{Build, Ended, Fleet, LEASE, Play, World, server};
use crate::common::mortal::{Death, Process, StoreTime};
use antiphon::{
    Result,
    seal::Principal,
    server::{Caller, Ctx, State, StepError, flow::Winner},
    store::MemoryStore,
    tool,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

async fn step(ctx: &Ctx, world: &World, name: &'static str, time: u64) -> Result<String, StepError> {
    let step = ctx.step(name, async |s| {
        let did = world.does(name, &s).await?;
        world.waits(time).await;
        Ok(did)
    });
    step.reconcile(async |_| world.finds(name).await).await
}

/// The cancellation comes while `work` runs: the next step is refused, and then `work` is undone.
#[tool(task = "required")]
async fn undoes(ctx: &Ctx, world: State<World>) -> Result<String> {
    if step(ctx, &world, "work", 2_000).await.is_ok() && step(ctx, &world, "more", 5).await.is_err() {
        step(ctx, &world, "undo", 300).await?;
    }
    Ok("ended".to_owned())
}

/// The step that was refused stays refused, and the compensation is resolved.
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_undone_once_after_any_crash() {
    for takes_effect in [false, true] {
        for after in 0..30 {
            let play = Play { promotes: true, ..Play::of("undoes", |builder| builder.tool(undoes)) };
            let mut fleet = Fleet::new(play);
            let created = fleet.settled("tools/call", &json!({"name": "undoes", "arguments": {}})).await;
            fleet.dies(Death { after, takes_effect });
            let id = json!({"taskId": created["result"]["taskId"]});
            let mut status = Value::Null;
            for _ in 0..60 {
                sleep(Duration::from_millis(500)).await;
                let task = fleet.settled("tasks/get", &id).await;
                if task["result"]["status"] == "working" {
                    fleet.settled("tasks/cancel", &id).await;
                }
                status = task["result"]["status"].clone();
            }
            let ended = fleet.ended(Value::Null);
            match ended.names().as_slice() {
                // The task was cancelled before it began.
                [] => {}
                // The process died with the cancellation, which then came too late.
                [_, "more"] => assert!(ended.died, "{ended:#?}"),
                _ => {
                    ended.did(&["work", "undo"]);
                    assert_eq!(status, "cancelled", "{ended:#?}");
                }
            }
        }
    }
}

/// Two offers, the first one is booked.
async fn offers(ctx: &Ctx, world: &World, [in_x, in_y]: [u64; 2]) -> Result<String> {
    let (x, y) = (ctx.scope("x"), ctx.scope("y"));
    let offer = async |scope: &Ctx, name: &'static str, time: u64| {
        let offer = scope.step("offer", async |_| {
            world.waits(time).await;
            Ok(name.to_owned())
        });
        offer.reconcile(async |_| Ok(None)).await
    };
    let won = ctx.select("first", (offer(&x, "book x", in_x), offer(&y, "book y", in_y))).await;
    let (Winner::A(best) | Winner::B(best)) = won;
    let best = best?;
    world.notes(format!("behind the race: {best}"));
    let scope = ctx.scope(&best[5..]);
    let book = scope.step("book", async |s| Ok(world.does(&best, &s).await?));
    Ok(book.reconcile(async |_| world.finds(&best).await).await?)
}

#[tool(write_ahead)]
async fn race(ctx: &Ctx, world: State<World>) -> Result<String> {
    offers(ctx, &world, [20, 10]).await
}

fn one_books(ended: &Ended) {
    let text = ended.text().to_owned();
    ended.did(&[&text]);
}

/// A client that takes no state only is known by its principal and the id of its request.
#[tokio::test(start_paused = true)]
async fn a_first_request_that_its_principal_claims_is_one_call() {
    let build: Build = |builder| {
        builder
            .tool(race)
            .accepts_state_only(|_| false)
            .bind_principal(|_: &Caller<'_>| Ok::<_, Infallible>(Some(Principal::user("anna"))))
    };
    Play::of("race", build).at_each_operation(one_books).await;
}

/// The first request of another client runs no step, so that its repetition begins a second call.
#[tokio::test(start_paused = true)]
async fn a_first_request_runs_no_step() {
    let mut fleet = Fleet::new(Play::of("race", |builder| builder.tool(race)));
    let params = json!({"name": "race", "arguments": {}});
    for _ in 0..3 {
        let reply = fleet.settled("tools/call", &params).await;
        assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
        sleep(Duration::from_secs(1)).await;
    }
    assert!(fleet.ended(Value::Null).effects.is_empty());
}

/// In the first run the one offer is faster, in the second the other one.
#[tool(write_ahead)]
async fn changing(ctx: &Ctx, world: State<World>) -> Result<String> {
    let times = if world.notes("run") == 2 { [20, 10] } else { [10, 20] };
    offers(ctx, &world, times).await
}

/// The connection of a process to its store stands for longer than the lease, from each operation on. Another process takes the
/// call over; the first one goes nowhere.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_taken_over_does_not_go_behind_its_race() {
    for operation in 0..16 {
        let (time, store) = (StoreTime::begin(), Arc::new(MemoryStore::new()));
        let store = Arc::new(Arc::into_inner(store).unwrap().clock(time.clock()));
        let build: Build = |builder| builder.tool(changing);
        let one = World { process: Process::new(), effects: Arc::default(), notes: Arc::default() };
        let two = World { process: Process::new(), ..one.clone() };
        let servers = [&one, &two].map(|world| server(build, world, &store, &time));
        let send = async |server: &antiphon::server::Server, state: &Value| {
            let mut params = json!({"name": "changing", "arguments": {}, "_meta": crate::common::meta()});
            if !state.is_null() {
                params["requestState"] = state.clone();
            }
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let reply = server.respond(message.to_string().as_bytes(), &Caller::default()).await;
            serde_json::from_slice::<Value>(&reply.expect("a request has a reply").body).unwrap()
        };
        let state = send(&servers[0], &Value::Null).await["result"]["requestState"].clone();
        one.process.stands(operation, 4 * LEASE);
        let first = timeout(Duration::from_secs(60), send(&servers[0], &state));
        let second = async || {
            sleep(2 * LEASE).await;
            let mut state = state.clone();
            loop {
                let reply = send(&servers[1], &state).await;
                match &reply["result"]["requestState"] {
                    _ if reply["error"]["data"]["reason"] == "in_flight" => {
                        sleep(Duration::from_secs(1)).await
                    }
                    Value::String(next) => state = next.clone().into(),
                    _ => return reply,
                }
            }
        };
        let (_, reply) = tokio::join!(first, second());
        sleep(Duration::from_secs(30)).await;
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
        let effects: Vec<String> = one.effects.lock().unwrap().iter().map(|(did, _)| did.clone()).collect();
        assert_eq!(effects, [text], "{operation}");
        let notes = one.notes.lock().unwrap().clone();
        let behind: BTreeSet<_> = notes.iter().filter(|note| note.starts_with("behind")).collect();
        assert_eq!(behind.len(), 1, "{operation}: {notes:?}");
    }
}

/// What the client can do decides the path of the handler.
#[tool(write_ahead)]
async fn capable(ctx: &Ctx, world: State<World>) -> Result<String> {
    let name = if ctx.can_elicit() { "asks" } else { "does not ask" };
    Ok(step(ctx, &world, name, 20).await?)
}

/// The request is sent again by a client with other capabilities: those of the first run count.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_has_the_capabilities_of_its_first_run() {
    let mut did = BTreeSet::new();
    for after in 0..12 {
        let death = Some(Death { after, takes_effect: true });
        let play = Play { death, ..Play::of("capable", |builder| builder.tool(capable)) };
        let mut fleet = Fleet::new(play);
        let mut params = json!({"name": "capable", "arguments": {}});
        let reply = fleet.settled("tools/call", &params).await;
        params["requestState"] = reply["result"]["requestState"].clone();
        let first = fleet.request("tools/call", &params).await;
        params["capabilities"] = json!({});
        fleet.lives().await;
        let reply = match first {
            Some(reply) => reply,
            None => fleet.settled("tools/call", &params).await,
        };
        let ended = fleet.ended(reply);
        ended.did_nothing_twice();
        assert_eq!(ended.names().len(), 1, "{ended:#?}");
        ended.came_to(ended.names()[0]);
        did.insert(ended.names()[0].to_owned());
    }
    assert!(did.contains("asks"));
}
