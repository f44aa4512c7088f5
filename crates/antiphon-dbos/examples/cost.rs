//! Measures the engine: the creation of a task, `get`, and the time from an answer to its end, beside an INSERT and a SELECT of the
//! same bytes. The argument is the URL of a database. The task waits for one message and ends.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for the command line, which reports its own numbers"
)]

use antiphon_dbos::{DbosOptions, DbosTasks};
use antiphon_store::{
    LegControl, NewTask, Owner, TaskAction, TaskDecision, TaskEngine as _, TaskFuture, TaskKey, TaskLimits,
    TaskMessage, TaskProgram,
};
use sqlx::{Connection as _, PgConnection};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Notify;

const ROUNDS: u32 = 200;
const SNAPSHOT: usize = 2000;

struct OneMessage;

impl TaskProgram for OneMessage {
    fn decide(&self, _: TaskKey, snapshot: &[u8], messages: &[TaskMessage]) -> TaskDecision {
        let action = match messages {
            [] => TaskAction::Wait(None),
            _ => TaskAction::Finish(Duration::from_secs(60)),
        };
        let taken = messages.last().map_or(0, |message| message.number);
        TaskDecision { snapshot: snapshot.to_vec(), taken, action }
    }

    fn run<'a>(&'a self, _: TaskKey, snapshot: &'a [u8], _: &'a LegControl) -> TaskFuture<'a, TaskDecision> {
        let snapshot = snapshot.to_vec();
        Box::pin(async { TaskDecision { snapshot, taken: 0, action: TaskAction::Continue } })
    }
}

/// Prints the middle one of the times.
fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{name}: {:.2} ms", times[times.len() / 2].as_secs_f64() * 1000.0);
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    let engine = DbosTasks::connect(&url, DbosOptions::default().schema("antiphon_cost")).await.unwrap();
    let changed = Arc::new(Notify::new());
    let notified = Arc::clone(&changed);
    engine.subscribe(Box::new(move |_| notified.notify_one()));
    let program: Arc<dyn TaskProgram> = Arc::new(OneMessage);
    engine.begin(Arc::downgrade(&program));
    let limits = TaskLimits::default();
    let random = |number: u32| {
        let time = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos().to_be_bytes();
        let mut key = time;
        key[..4].copy_from_slice(&number.to_be_bytes());
        TaskKey::from_bytes(key)
    };
    let mut times = [const { Vec::new() }; 4];
    for number in 0..ROUNDS + 20 {
        let task = random(number);
        let new =
            NewTask { task, owner: Owner::from_bytes([1; 16]), snapshot: vec![b'a'; SNAPSHOT], ttl: None };
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
    raw(&url).await;
    engine.drain();
    engine.idle().await;
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
