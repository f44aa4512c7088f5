//! Questions that stay open while a leg of a task runs that has not reached them: each keeps its key, and no acknowledged answer is
//! lost or asked again, whatever the moment of an answer, of a death or of a drain.

use crate::client::{TaskClient, accept, keys_of, text_of};
use antiphon::{
    Error, Form,
    seal::{KeyRing, SecretKey},
    server::{Ctx, Limits, Server, State, StepError},
    store::{ManualStoreClock, MemoryStore, StoreClock, calls::Micros},
    tool,
};
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::join_all,
    stream::{FuturesUnordered, iter},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Runtime, task::yield_now, time::sleep};

#[derive(Debug, Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// The number of lookups of all processes, and of failures of a step.
#[derive(Clone, Default)]
struct World {
    lookups: Arc<AtomicU64>,
    failures: Arc<AtomicU64>,
}

impl World {
    /// Looks something up. That is no step, and takes longer the second time.
    async fn look_up(&self, first: u64, later: u64) {
        let is_first = self.lookups.fetch_add(1, Ordering::SeqCst) == 0;
        sleep(ms(if is_first { first } else { later })).await;
    }
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

async fn ask(ctx: &Ctx, key: &str) -> Result<String, Error> {
    let Name { name } = ctx.elicit(format!("{key}?")).key(key).await?;
    Ok(name)
}

async fn work(ctx: &Ctx, step: &str, time: u64) -> Result<(), Error> {
    let work = ctx.step(step, async |_| {
        sleep(ms(time)).await;
        Ok(())
    });
    Ok(work.await?)
}

async fn ask_and_work(ctx: &Ctx, key: &str, time: u64) -> Result<String, Error> {
    let name = ask(ctx, key).await?;
    work(ctx, "work", time).await?;
    Ok(name)
}

/// A question behind a lookup, beside a question and a step.
#[tool(task = "required", rerun_after_crash)]
async fn lookup(ctx: &Ctx) -> Result<String, Error> {
    let first = async {
        sleep(ms(40)).await;
        ask(ctx, "a").await
    };
    let (a, b) = tokio::join!(first, ask_and_work(ctx, "b", 500));
    Ok(format!("{} {}", a?, b?))
}

/// The same, behind a set of futures that is polled twice.
#[tool(task = "required", rerun_after_crash)]
async fn set(ctx: &Ctx) -> Result<String, Error> {
    let first = async {
        let mut set: FuturesUnordered<_> = [0, 1].map(|_| yield_now()).into_iter().collect();
        while set.next().await.is_some() {}
        ask(ctx, "a").await
    };
    let (a, b) = tokio::join!(first, ask_and_work(ctx, "b", 500));
    Ok(format!("{} {}", a?, b?))
}

/// The same, behind a lookup that takes longer than the step in later legs.
#[tool(task = "required", rerun_after_crash)]
async fn long_lookup(ctx: &Ctx, world: State<World>) -> Result<String, Error> {
    let first = async {
        world.look_up(10, 900).await;
        ask(ctx, "a").await
    };
    let (a, b) = tokio::join!(first, ask_and_work(ctx, "b", 300));
    Ok(format!("{} {}", a?, b?))
}

/// The same, beside two questions: a leg ends with the second one before the lookup has ended.
#[tool(task = "required", rerun_after_crash)]
async fn two_questions(ctx: &Ctx, world: State<World>) -> Result<String, Error> {
    let first = async {
        world.look_up(10, 300).await;
        ask(ctx, "a").await
    };
    let second = async { Ok::<_, Error>((ask(ctx, "b").await?, ask(ctx, "c").await?)) };
    let (a, b) = tokio::join!(first, second);
    let (b, c) = b?;
    Ok(format!("{} {b} {c}", a?))
}

/// More questions than a round has, the first one behind a lookup.
#[tool(task = "required", rerun_after_crash)]
async fn full_round(ctx: &Ctx, world: State<World>) -> Result<String, Error> {
    let first = async {
        world.look_up(10, 100).await;
        ask(ctx, "a").await
    };
    let second = async {
        let b = ask(ctx, "b").await?;
        let (c, d, done) = tokio::join!(ask(ctx, "c"), ask(ctx, "d"), work(ctx, "work", 300));
        done?;
        Ok::<_, Error>(format!("{b} {} {}", c?, d?))
    };
    let (a, b) = tokio::join!(first, second);
    Ok(format!("{} {}", a?, b?))
}

/// A step that fails once, beside a question: the record of the leg leaves before the step runs again.
#[tool(task = "required", rerun_after_crash)]
async fn fails_once(ctx: &Ctx, world: State<World>) -> Result<String, Error> {
    let first = async {
        world.look_up(10, 40).await;
        ask(ctx, "a").await
    };
    let second = async {
        let b = ask_and_work(ctx, "b", 100).await?;
        let fails = ctx.step("fails", async |_| {
            sleep(ms(100)).await;
            match world.failures.fetch_add(1, Ordering::SeqCst) {
                0 => Err(StepError::retry("not now")),
                _ => Ok(()),
            }
        });
        fails.await?;
        work(ctx, "then", 100).await?;
        Ok::<_, Error>(b)
    };
    let (a, b) = tokio::join!(first, second);
    Ok(format!("{} {}", a?, b?))
}

/// A call becomes a task while a question is asked beside a step.
#[tool(task = "optional", rerun_after_crash)]
async fn promoted(ctx: &Ctx) -> Result<String, Error> {
    let first = async {
        yield_now().await;
        ask(ctx, "a").await
    };
    let second = async {
        ctx.into_task().await?;
        work(ctx, "work", 500).await?;
        Ok(String::new())
    };
    let mut names = join_all([first.boxed(), second.boxed()]).await.into_iter();
    names.next().unwrap()
}

/// A call becomes a task in the branch that asks.
#[tool(task = "optional", rerun_after_crash)]
async fn promoted_first(ctx: &Ctx) -> Result<String, Error> {
    let first = async {
        ctx.into_task().await?;
        yield_now().await;
        ask(ctx, "a").await
    };
    let second = async {
        work(ctx, "work", 64).await?;
        Ok(String::new())
    };
    let mut names = join_all([first.boxed(), second.boxed()]).await.into_iter();
    names.next().unwrap()
}

/// The text of the first question is another one from the second leg on.
#[tool(task = "required", rerun_after_crash)]
async fn reworded(ctx: &Ctx, world: State<World>) -> Result<String, Error> {
    let first = async {
        world.look_up(40, 40).await;
        let is_first = world.lookups.load(Ordering::SeqCst) == 1;
        let text = if is_first { "a?" } else { "Which a?" };
        Ok::<_, Error>(ctx.elicit::<Name>(text).key("a").await?.name)
    };
    let (a, b) = tokio::join!(first, ask_and_work(ctx, "b", 500));
    Ok(format!("{} {}", a?, b?))
}

/// The questions of a set of many, in the order of their answers.
#[tool(task = "required", rerun_after_crash)]
async fn unordered(ctx: &Ctx) -> Result<String, Error> {
    let asks = ["a", "b", "c"].map(|key| async move {
        let name = ask(ctx, key).await?;
        work(ctx, &format!("work-{key}"), 100).await?;
        Ok::<_, Error>(name)
    });
    let names: Vec<Result<String, Error>> = iter(asks).buffer_unordered(3).collect().await;
    let mut names = names.into_iter().collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names.join(" "))
}

/// A process: a server, and the runtime that drives it. A process that died is a runtime that nobody drives.
struct Process {
    runtime: Runtime,
    client: TaskClient,
}

struct Fleet {
    store: Arc<MemoryStore>,
    clock: ManualStoreClock,
    world: World,
}

impl Fleet {
    fn new() -> Self {
        let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
        let store = Arc::new(MemoryStore::new().clock(clock));
        Self { store, clock: hand, world: World::default() }
    }

    fn process(&self) -> Process {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let entered = runtime.enter();
        let server = Server::builder("fleet", "1")
            .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
            .store(self.store.clone())
            .single_instance(true)
            .limits(Limits::default().asks(2))
            .state(self.world.clone())
            .tool(lookup)
            .tool(set)
            .tool(long_lookup)
            .tool(two_questions)
            .tool(full_round)
            .tool(fails_once)
            .tool(promoted)
            .tool(promoted_first)
            .tool(unordered)
            .tool(reworded)
            .build()
            .unwrap();
        drop(entered);
        Process { client: TaskClient::of(server), runtime }
    }
}

/// A change of the process that runs the task.
#[derive(Clone, Copy, Debug)]
enum Change {
    Dies,
    Drains,
}

/// What happens to a task, by the milliseconds since its creation.
#[derive(Clone, Debug)]
struct Schedule {
    /// The answers, by the keys of the questions. Each is sent as soon as its question is open.
    answers: Vec<(&'static str, u64)>,
    /// The key whose answer is not valid.
    wrong: Option<&'static str>,
    change: Option<(Change, u64)>,
}

/// Runs a task. Checks at each moment that its questions have these keys only, that a question without an answer stays open, and
/// that an acknowledged one does not come back. One whose answer is not valid stays in view until it is asked again.
fn check(tool: &str, keys: &[&str], schedule: &Schedule, expected: &str) {
    let what = format!("{tool} {schedule:?}");
    let fleet = Fleet::new();
    let mut processes = vec![fleet.process()];
    let first = &processes[0];
    let id = first.runtime.block_on(first.client.task(tool, json!({})));
    let (mut shown, mut answered) = (BTreeSet::new(), BTreeSet::new());
    let mut change = schedule.change;
    for time in (0..20_000).step_by(20) {
        if let Some((how, _)) = change.filter(|(_, at)| time >= *at) {
            change = None;
            let old = processes.last().unwrap();
            match how {
                Change::Dies => fleet.clock.advance(Duration::from_secs(31)),
                Change::Drains => old.runtime.block_on(async {
                    old.client.server.drain();
                    let ended = old.client.server.steps_ended();
                    tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
                }),
            }
            processes.push(fleet.process());
        }
        let Process { runtime, client } = processes.last().unwrap();
        let task = runtime.block_on(client.get(&id));
        if task["status"] == "completed" {
            assert_eq!(text_of(&task), expected, "{what}");
            return;
        }
        let open: BTreeSet<&str> = keys_of(&task).into_iter().collect();
        for key in &open {
            let again = format!("{key}~2");
            let is_asked_again = shown.contains(&again) || open.contains(again.as_str());
            let may_stay = schedule.wrong == Some(*key) && !is_asked_again;
            let is_back = answered.contains(*key) && !may_stay;
            assert!(keys.contains(key) && !is_back, "{what}: {key} at {time}: {task}");
        }
        for key in shown.difference(&answered) {
            assert!(open.contains(String::as_str(key)), "{what}: {key} is gone at {time}: {task}");
        }
        shown.extend(open.iter().map(|key| (*key).to_owned()));
        let is_due = |key: &str, at: u64| time >= at && open.contains(key) && !answered.contains(key);
        let due: Vec<&str> =
            schedule.answers.iter().filter(|(key, at)| is_due(key, *at)).map(|(key, _)| *key).collect();
        for key in due {
            let name = if schedule.wrong == Some(key) { json!(7) } else { json!(key.to_uppercase()) };
            let answer = json!({key: accept(json!({"name": name}))});
            runtime.block_on(client.update(&id, answer));
            answered.insert(key.to_owned());
        }
        runtime.block_on(async { sleep(ms(20)).await });
        fleet.clock.advance(ms(20));
    }
    let Process { runtime, client } = processes.last().unwrap();
    panic!("{what}: {}", runtime.block_on(client.get(&id)));
}

/// Runs a task with the answer to its first question at several moments, and with a death or a drain at several moments.
fn check_all(tool: &str, keys: &[&'static str], expected: &str) {
    check_wrong(tool, keys, None, expected);
}

/// Does the same with an answer that is not valid.
fn check_wrong(tool: &str, keys: &[&'static str], wrong: Option<&'static str>, expected: &str) {
    let changes = [20, 60, 160, 400].into_iter().flat_map(|at| [(Change::Dies, at), (Change::Drains, at)]);
    for change in std::iter::once(None).chain(changes.map(Some)) {
        for at in [0, 40, 120, 400] {
            let answers = keys.iter().map(|key| (*key, if *key == "a" { at } else { 0 }));
            check(tool, keys, &Schedule { answers: answers.collect(), wrong, change }, expected);
        }
    }
}

#[test]
fn a_question_behind_a_lookup_stays_open() {
    check_all("lookup", &["a", "b"], "A B");
}

#[test]
fn a_question_behind_a_set_of_futures_stays_open() {
    check_all("set", &["a", "b"], "A B");
}

#[test]
fn a_question_behind_a_lookup_that_is_longer_than_a_step_stays_open() {
    check_all("long_lookup", &["a", "b"], "A B");
}

#[test]
fn a_question_stays_open_if_its_leg_ends_before_it() {
    check_all("two_questions", &["a", "b", "c"], "A B C");
}

#[test]
fn a_question_for_which_a_round_has_no_room_stays_open() {
    check_all("full_round", &["a", "b", "c", "d"], "A B C D");
}

#[test]
fn a_question_stays_open_if_its_leg_fails_for_now() {
    check_all("fails_once", &["a", "b"], "A B");
}

#[test]
fn a_question_of_a_call_that_becomes_a_task_stays_open() {
    check_all("promoted", &["a"], "A");
    check_all("promoted_first", &["a"], "A");
}

#[test]
fn the_questions_of_a_set_stay_open() {
    check_all("unordered", &["a", "b", "c"], "A B C");
}

#[test]
fn a_wrong_answer_while_a_leg_runs_gives_a_question_one_new_key() {
    for tool in ["lookup", "set", "long_lookup", "fails_once"] {
        check_wrong(tool, &["a", "b", "a~2"], Some("a"), "A~2 B");
    }
}

#[test]
fn a_changed_text_supersedes_a_question_while_a_leg_runs() {
    let fleet = Fleet::new();
    let Process { runtime, client } = fleet.process();
    runtime.block_on(async {
        let id = client.task("reworded", json!({})).await;
        client.asked(&id, &["a", "b"]).await;
        let named = |name: &str| accept(json!({"name": name}));
        client.update(&id, json!({"b": named("B")})).await;
        // It was read before it changed.
        client.update(&id, json!({"a": named("A")})).await;
        client.asked(&id, &["a~2"]).await;
        client.update(&id, json!({"a": named("B"), "a~2": named("C")})).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), "C B");
    });
}
