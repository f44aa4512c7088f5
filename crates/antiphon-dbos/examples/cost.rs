//! Measures the engine: the creation of a task, `get`, and the time from an answer to its end, beside an INSERT and a SELECT of the
//! same bytes. The argument is the URL of a database. The task waits for one message and ends.
//!
//! With a number as the second argument it measures as many tasks that wait: the memory of each in the process, and the time from an
//! answer to one of them until it has ended.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for the command line, which reports its own numbers"
)]

use antiphon_dbos::{DbosOptions, DbosTasks};
use antiphon_store::{
    LegControl, NewTask, Owner, TaskAction, TaskDecision, TaskEngine, TaskFuture, TaskKey, TaskLimits,
    TaskMessage, TaskProgram, TaskState,
};
use sqlx::{Connection as _, PgConnection};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::Notify, task::JoinSet, time::sleep};

const ROUNDS: u32 = 200;
const SNAPSHOT: usize = 2000;
/// The creations at the same time of tasks that wait.
const AT_ONCE: usize = 16;

struct OneMessage;

impl TaskProgram for OneMessage {
    fn decide(&self, _: TaskKey, snapshot: &[u8], messages: &[TaskMessage]) -> TaskDecision {
        let action = match messages {
            [] => TaskAction::Wait(None),
            _ => TaskAction::Finish(Duration::from_secs(60)),
        };
        let taken = messages.last().map_or(0, |message| message.number);
        TaskDecision::new(snapshot, action).with_taken(taken)
    }

    fn run<'a>(&'a self, _: TaskKey, snapshot: &'a [u8], _: &'a LegControl) -> TaskFuture<'a, TaskDecision> {
        let snapshot = snapshot.to_vec();
        Box::pin(async { TaskDecision::new(snapshot, TaskAction::Continue) })
    }
}

/// Prints the middle one of the times.
fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{name}: {:.2} ms", times[times.len() / 2].as_secs_f64() * 1000.0);
}

/// Returns a task with a new key.
fn new_task(number: u32) -> NewTask {
    let mut key = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos().to_be_bytes();
    key[..4].copy_from_slice(&number.to_be_bytes());
    let owner = Owner::from_bytes([1; 16]);
    NewTask::new(TaskKey::from_bytes(key), owner, [b'a'; SNAPSHOT])
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    let waiting: Option<u32> = std::env::args().nth(2).map(|number| number.parse().unwrap());
    let engine = DbosTasks::connect(&url, DbosOptions::default().schema("antiphon_cost")).await.unwrap();
    let engine = Arc::new(engine);
    let changed = Arc::new(Notify::new());
    let notified = Arc::clone(&changed);
    engine.subscribe(Box::new(move |_| notified.notify_one()));
    let program: Arc<dyn TaskProgram> = Arc::new(OneMessage);
    engine.begin(Arc::downgrade(&program));
    match waiting {
        Some(number) => wait(&engine, &changed, number).await,
        None => {
            one_by_one(&*engine, &changed).await;
            raw(&url).await;
        }
    }
    engine.drain();
    engine.idle().await;
}

/// Returns limits that an earlier run of this program, whose tasks still wait, has not reached.
fn unlimited() -> TaskLimits {
    TaskLimits::default().tasks_of_owner(usize::MAX).tasks(usize::MAX)
}

/// Measures one task after the other.
async fn one_by_one(engine: &dyn TaskEngine, changed: &Notify) {
    let limits = unlimited();
    let mut times = [const { Vec::new() }; 4];
    for number in 0..ROUNDS + 20 {
        let new = new_task(number);
        let task = new.task;
        let begin = Instant::now();
        engine.start(&new, &limits).await.unwrap();
        let created = begin.elapsed();
        // Until the task waits.
        while engine.get(task).await.unwrap().unwrap().version < 2 {
            changed.notified().await;
        }
        let begin = Instant::now();
        engine.get(task).await.unwrap().unwrap();
        let got = begin.elapsed();
        let begin = Instant::now();
        engine.send(task, &[b'a'; 500], &limits).await.unwrap();
        let sent = begin.elapsed();
        while !engine.get(task).await.unwrap().unwrap().is_final {
            changed.notified().await;
        }
        let ended = begin.elapsed();
        // The first ones wait for the launch.
        if number >= 20 {
            for (times, time) in times.iter_mut().zip([created, got, sent, ended]) {
                times.push(time);
            }
        }
    }
    let [created, got, sent, ended] = times;
    report("create", created);
    report("get", got);
    report("answer, until it is durable", sent);
    report("answer, until the task has ended", ended);
}

/// Measures tasks that wait at the same time.
async fn wait(engine: &Arc<DbosTasks>, changed: &Notify, number: u32) {
    let limits = unlimited();
    // One task is over: dbos is launched then, and its pools have their connections.
    answer(&**engine, changed, start(engine, new_task(0), limits).await, &limits).await;
    let (before, begin) = (memory(), Instant::now());
    let (mut tasks, mut creations) = (Vec::new(), JoinSet::new());
    for at in 1..=number {
        if creations.len() == AT_ONCE {
            tasks.extend(creations.join_next().await.unwrap());
        }
        let engine = Arc::clone(engine);
        creations.spawn(async move { start(&engine, new_task(at), limits).await });
    }
    tasks.extend(creations.join_all().await);
    println!("{number} created: {:.1} s", begin.elapsed().as_secs_f64());
    let waits = async || {
        let all = engine.list(usize::MAX).await.unwrap();
        all.iter().filter(|task| task.state == TaskState::Waits).count()
    };
    while waits().await < tasks.len() {
        sleep(Duration::from_millis(500)).await;
    }
    println!("all of them wait: {:.1} s", begin.elapsed().as_secs_f64());
    println!("memory of each: {:.1} KiB", (memory() - before) / f64::from(number));
    let mut times = Vec::new();
    for task in tasks.iter().step_by(tasks.len().div_ceil(ROUNDS as usize)) {
        times.push(answer(&**engine, changed, *task, &limits).await);
    }
    report("answer to one of them, until it has ended", times);
}

async fn start(engine: &DbosTasks, new: NewTask, limits: TaskLimits) -> TaskKey {
    engine.start(&new, &limits).await.unwrap();
    new.task
}

/// Answers a task. Returns the time until it has ended.
async fn answer(engine: &dyn TaskEngine, changed: &Notify, task: TaskKey, limits: &TaskLimits) -> Duration {
    let begin = Instant::now();
    engine.send(task, &[b'a'; 500], limits).await.unwrap();
    while !engine.get(task).await.unwrap().unwrap().is_final {
        changed.notified().await;
    }
    begin.elapsed()
}

/// Returns the memory of this process that no file has, in KiB.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Measures one INSERT and one SELECT.
async fn raw(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let create = "CREATE TABLE IF NOT EXISTS antiphon_cost.raw_cost (id int PRIMARY KEY, body bytea)";
    sqlx::query(create).execute(&mut connection).await.unwrap();
    let (mut inserts, mut selects) = (Vec::new(), Vec::new());
    for number in 0..i32::try_from(ROUNDS).unwrap() {
        let begin = Instant::now();
        let insert = sqlx::query("INSERT INTO antiphon_cost.raw_cost VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = excluded.body").bind(number).bind(vec![0_u8; SNAPSHOT]);
        insert.execute(&mut connection).await.unwrap();
        inserts.push(begin.elapsed());
        let begin = Instant::now();
        let select = sqlx::query("SELECT body FROM antiphon_cost.raw_cost WHERE id = $1").bind(number);
        select.fetch_one(&mut connection).await.unwrap();
        selects.push(begin.elapsed());
    }
    report("INSERT alone", inserts);
    report("SELECT alone", selects);
}
