//! Tasks whose process stops: another one continues them. Each server has a runtime of its own, and a stopped process is a runtime
//! that nobody drives.

use crate::client::{TaskClient, accept, keys_of, text_of};
use antiphon::{
    Error, Form,
    seal::{KeyRing, SecretKey},
    server::{AskError, Ctx, Server, State},
    store::{ManualStoreClock, MemoryStore, StoreClock, calls::Micros},
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};
use tokio::{runtime::Runtime, sync::Semaphore};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// The effects of all processes, and a gate of each.
#[derive(Clone)]
struct Effects {
    done: Arc<Mutex<Vec<(&'static str, String)>>>,
    gate: Arc<Semaphore>,
    /// The gate before the first step.
    entry: Arc<Semaphore>,
}

async fn work(ctx: &Ctx, effects: &Effects) -> Result<String, Error> {
    for name in ["one", "two"] {
        work_once(ctx, effects, name).await?;
    }
    let Name { name } = ctx.elicit("Whose?").await?;
    Ok(name)
}

async fn work_once(ctx: &Ctx, effects: &Effects, name: &'static str) -> Result<(), Error> {
    let step = ctx.step(name, async |step| {
        effects.done.lock().unwrap().push((name, step.key().to_owned()));
        if name != "one" {
            effects.gate.acquire().await.unwrap().forget();
        }
        Ok(())
    });
    Ok(step.await?)
}

/// Runs an interrupted step again.
#[tool(task = "required", rerun_after_crash)]
async fn again(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    work(ctx, &effects).await
}

/// Does not.
#[tool(task = "required")]
async fn once(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    work(ctx, &effects).await
}

/// Has a further step, which waits for the gate as well.
#[tool(task = "required")]
async fn longer(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    for name in ["one", "two", "three"] {
        work_once(ctx, &effects, name).await?;
    }
    let Name { name } = ctx.elicit("Whose?").await?;
    Ok(name)
}

/// Waits before its first step for something that is not recorded.
#[tool(task = "required", rerun_after_crash)]
async fn slow_entry(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    effects.entry.acquire().await.unwrap().forget();
    work(ctx, &effects).await
}

/// Looks something up before each step.
#[tool(task = "required")]
async fn looks_up(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    let lookup = || tokio::time::sleep(Duration::from_millis(500));
    lookup().await;
    work_once(ctx, &effects, "one").await?;
    let Name { name } = ctx.elicit("Whose?").await?;
    lookup().await;
    work_once(ctx, &effects, "two").await?;
    Ok(name)
}

/// Asks two people, the first one behind a wait that is not recorded; the second answer has a step behind it.
#[tool(task = "required", rerun_after_crash)]
async fn beside(ctx: &Ctx, effects: State<Effects>) -> Result<String, Error> {
    let (a, b) = tokio::join!(
        async {
            effects.entry.acquire().await.unwrap().forget();
            ctx.elicit::<Name>("A?").key("a").await
        },
        async {
            let b = ctx.elicit::<Name>("B?").key("b").await?;
            work_once(ctx, &effects, "two").await?;
            Ok::<_, Error>(b)
        }
    );
    Ok(format!("{} {}", a?.name, b?.name))
}

/// A process: a server, and the runtime that drives it.
struct Process {
    runtime: Runtime,
    client: TaskClient,
    effects: Effects,
}

struct Fleet {
    store: Arc<MemoryStore>,
    clock: ManualStoreClock,
    done: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl Fleet {
    fn new() -> Self {
        let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
        Self { store: Arc::new(MemoryStore::new().clock(clock)), clock: hand, done: Arc::default() }
    }

    fn process(&self) -> Process {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let [gate, entry] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
        let effects = Effects { done: Arc::clone(&self.done), gate, entry };
        let _entered = runtime.enter();
        let server = Server::builder("fleet", "1")
            .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
            .store(self.store.clone())
            .single_instance(true)
            .state(effects.clone())
            .tool(again)
            .tool(once)
            .tool(longer)
            .tool(slow_entry)
            .tool(looks_up)
            .tool(beside)
            .build()
            .unwrap();
        drop(_entered);
        Process { client: TaskClient::of(server), runtime, effects }
    }

    fn count(&self, name: &str) -> usize {
        self.done.lock().unwrap().iter().filter(|(done, _)| *done == name).count()
    }

    fn keys(&self, name: &str) -> Vec<String> {
        let done = self.done.lock().unwrap();
        let mut keys: Vec<_> =
            done.iter().filter(|(of, _)| *of == name).map(|(_, key)| key.clone()).collect();
        keys.dedup();
        keys
    }
}

impl Process {
    /// Drives the process until it has begun the second step.
    fn until_it_works(&self, fleet: &Fleet, tool: &str) -> String {
        self.runtime.block_on(async {
            let id = self.client.task(tool, json!({})).await;
            self.client.until(&id, |_| fleet.count("two") == 1).await;
            id
        })
    }

    fn answer(&self, id: &str) {
        self.runtime.block_on(async {
            self.client.asked(id, &["name"]).await;
            self.client.update(id, json!({"name": accept(json!({"name": "Anna"}))})).await;
            assert_eq!(text_of(&self.client.status(id, "completed").await), "Anna");
        });
    }
}

#[test]
fn another_process_continues_a_task_whose_process_stopped() {
    let fleet = Fleet::new();
    let (first, second) = (fleet.process(), fleet.process());
    let id = first.until_it_works(&fleet, "again");
    second.effects.gate.add_permits(1);
    // As long as the lease is valid, nobody takes the task over.
    second.runtime.block_on(async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(
            (second.client.get(&id).await["status"].clone(), fleet.count("two")),
            (json!("working"), 1)
        );
    });
    fleet.clock.advance(Duration::from_secs(31));
    second.answer(&id);
    // The step that ended did not run again; the interrupted one did, under the same key.
    assert_eq!((fleet.count("one"), fleet.count("two")), (1, 2));
    assert_eq!(fleet.keys("two").len(), 1);
    // The first process wakes up: it has lost the task.
    first.effects.gate.add_permits(1);
    first.runtime.block_on(async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(text_of(&first.client.get(&id).await), "Anna");
    });
    assert_eq!((fleet.count("one"), fleet.count("two")), (1, 2));
}

#[test]
fn a_step_whose_outcome_nobody_knows_fails_the_task() {
    let fleet = Fleet::new();
    let (first, second) = (fleet.process(), fleet.process());
    let id = first.until_it_works(&fleet, "once");
    fleet.clock.advance(Duration::from_secs(31));
    second.runtime.block_on(async {
        let failed = second.client.status(&id, "failed").await;
        assert_eq!(failed["error"]["data"]["reason"], "outcome_unknown", "{failed}");
    });
    assert_eq!((fleet.count("one"), fleet.count("two")), (1, 1));
}

#[test]
fn an_answer_to_any_process_continues_a_waiting_task() {
    let fleet = Fleet::new();
    let (first, second) = (fleet.process(), fleet.process());
    let id = first.until_it_works(&fleet, "once");
    first.effects.gate.add_permits(1);
    first.runtime.block_on(first.client.asked(&id, &["name"]));
    drop(first);
    // The task waits, so there is no lease to wait for.
    second.answer(&id);
    assert_eq!((fleet.count("one"), fleet.count("two")), (1, 1));
}

#[test]
fn a_process_that_drains_hands_its_tasks_over() {
    // In a leg that has just begun, the step that runs is the last one.
    for tool in ["once", "longer"] {
        let fleet = Fleet::new();
        let (first, second) = (fleet.process(), fleet.process());
        let id = first.until_it_works(&fleet, tool);
        first.client.server.drain();
        // The run of the task sees it while the step waits.
        first.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        first.effects.gate.add_permits(1);
        first.runtime.block_on(async {
            let ended =
                tokio::time::timeout(Duration::from_secs(10), first.client.server.steps_ended()).await;
            ended.unwrap_or_else(|_| panic!("{tool}: another step began"));
        });
        assert_eq!(fleet.count("three"), 0);
        second.effects.gate.add_permits(1);
        // No time has passed on the store's clock: the lease was given back.
        second.answer(&id);
        assert_eq!((fleet.count("one"), fleet.count("two")), (1, 1));
    }
}

#[test]
fn a_task_ends_although_each_process_lives_for_one_request() {
    // The time from the request to the drain, in milliseconds.
    for life in [5, 100, 499] {
        let fleet = Fleet::new();
        let live = |request: &dyn Fn(&Process) -> Value| {
            let process = fleet.process();
            process.effects.gate.add_permits(1);
            let seen = request(&process);
            process.runtime.block_on(async {
                tokio::time::sleep(Duration::from_millis(life)).await;
                process.client.server.drain();
                tokio::time::timeout(Duration::from_secs(10), process.client.server.steps_ended())
                    .await
                    .unwrap();
            });
            seen
        };
        let id = live(&|process| json!(process.runtime.block_on(process.client.task("looks_up", json!({})))));
        let id = id.as_str().unwrap();
        // Each process ends one leg.
        let until = |is_it: &dyn Fn(&Value) -> bool| {
            let get = |process: &Process| process.runtime.block_on(process.client.get(id));
            let seen = (0..3).map(|_| live(&get)).find(is_it);
            seen.unwrap_or_else(|| panic!("{life} ms: {:?}", fleet.done))
        };
        until(&|task| keys_of(task) == ["name"]);
        live(&|process| {
            let answer = json!({"name": accept(json!({"name": "Anna"}))});
            process.runtime.block_on(process.client.update(id, answer));
            json!(null)
        });
        assert_eq!(text_of(&until(&|task| task["status"] == "completed")), "Anna");
        assert_eq!((fleet.count("one"), fleet.count("two")), (1, 1));
    }
}

#[test]
fn a_leg_that_runs_again_does_not_end_before_the_steps_of_its_first_run() {
    let fleet = Fleet::new();
    let (first, second, third) = (fleet.process(), fleet.process(), fleet.process());
    first.effects.entry.add_permits(2);
    let id = first.until_it_works(&fleet, "slow_entry");
    fleet.clock.advance(Duration::from_secs(31));
    second.runtime.block_on(async {
        // The handler waits at its entry, and the process is to stop.
        tokio::time::sleep(Duration::from_secs(10)).await;
        second.client.server.drain();
        tokio::time::sleep(Duration::from_secs(5)).await;
        second.effects.entry.add_permits(1);
        second.effects.gate.add_permits(1);
        tokio::time::timeout(Duration::from_secs(10), second.client.server.steps_ended()).await.unwrap();
    });
    third.effects.entry.add_permits(2);
    third.effects.gate.add_permits(2);
    third.answer(&id);
    assert_eq!((fleet.count("one"), fleet.count("two")), (1, 2));
}

#[test]
fn an_answer_to_a_question_that_the_next_run_of_its_leg_has_not_reached_is_not_lost() {
    // The answer comes before the next run, or during it.
    for (comes_before, wait) in [(true, 0), (false, 0), (true, 2), (false, 2)] {
        let fleet = Fleet::new();
        let (first, second) = (fleet.process(), fleet.process());
        let id = first.runtime.block_on(async {
            let id = first.client.task("beside", json!({})).await;
            first.client.asked(&id, &["b"]).await;
            first.client.update(&id, json!({"b": accept(json!({"name": "Bert"}))})).await;
            first.client.until(&id, |_| fleet.count("two") == 1).await;
            first.effects.entry.add_permits(1);
            first.client.asked(&id, &["a"]).await;
            id
        });
        let answer = || second.client.update(&id, json!({"a": accept(json!({"name": "Anna"}))}));
        second.runtime.block_on(async {
            if comes_before {
                answer().await;
            }
            fleet.clock.advance(Duration::from_secs(31));
            tokio::time::sleep(Duration::from_secs(2)).await;
            if !comes_before {
                assert_eq!(keys_of(&second.client.get(&id).await), ["a"]);
                answer().await;
            }
            tokio::time::sleep(Duration::from_secs(20)).await;
            second.effects.gate.add_permits(1);
            tokio::time::sleep(Duration::from_secs(wait)).await;
            second.effects.entry.add_permits(9);
            let end = second.client.until(&id, |task| {
                assert!(keys_of(task).is_empty(), "it asks again: {task}");
                task["status"] == "completed"
            });
            assert_eq!(text_of(&end.await), "Anna Bert");
        });
    }
}

#[test]
fn an_answer_to_a_question_that_was_asked_again_counts_after_a_crash() {
    // The next run ends before it reaches the question with the wrong answer, or after that.
    for reaches in [false, true] {
        let fleet = Fleet::new();
        let (first, second) = (fleet.process(), fleet.process());
        let id = first.runtime.block_on(async {
            first.effects.entry.add_permits(1);
            let id = first.client.task("beside", json!({})).await;
            first.client.asked(&id, &["a", "b"]).await;
            let answers = json!({"a": accept(json!({"name": 7})), "b": accept(json!({"name": "Bert"}))});
            first.client.update(&id, answers).await;
            first.client.until(&id, |_| fleet.count("two") == 1).await;
            first.effects.entry.add_permits(1);
            first.client.asked(&id, &["a~2"]).await;
            id
        });
        fleet.clock.advance(Duration::from_secs(31));
        second.runtime.block_on(async {
            second.effects.entry.add_permits(if reaches { 9 } else { 0 });
            tokio::time::sleep(Duration::from_secs(2)).await;
            second.effects.gate.add_permits(1);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(keys_of(&second.client.get(&id).await), ["a~2"]);
            second.client.update(&id, json!({"a~2": accept(json!({"name": "Anna"}))})).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            second.effects.entry.add_permits(9);
            let end = second.client.until(&id, |task| {
                assert!(keys_of(task).is_empty(), "it asks again: {task}");
                task["status"] == "completed"
            });
            assert_eq!(text_of(&end.await), "Anna Bert");
        });
    }
}

/// Asks for an hour.
#[tool(task = "required")]
async fn hurry(ctx: &Ctx) -> Result<String, Error> {
    let answer = ctx.elicit::<Name>("Whose?").timeout(Duration::from_secs(3600)).await;
    Ok(match answer {
        Err(AskError::Expired { .. }) => "expired".to_owned(),
        _ => "answered".to_owned(),
    })
}

#[test]
fn a_question_expires_while_nothing_runs() {
    let (clock, hand) = antiphon::Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let (store_clock, store_hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let store = MemoryStore::new().clock(store_clock);
        let server = Server::builder("a", "1").clock(clock).store(store).tool(hurry).build().unwrap();
        let client = TaskClient::of(server);
        let id = client.task("hurry", json!({})).await;
        client.asked(&id, &["name"]).await;
        for time in [Duration::from_secs(3599), Duration::from_secs(3)] {
            assert_eq!(client.get(&id).await["status"], "input_required");
            hand.advance(time);
            store_hand.advance(time);
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(text_of(&client.status(&id, "completed").await), "expired");
    });
}
