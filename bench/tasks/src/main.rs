//! Prints the cost of a task on each engine, beside the raw operations of its store, and of many tasks that wait.
//!
//! `bench-tasks [--calls N] [--waiting N] [--polls N] [--sqlite FILE]`: the engine in memory is always measured. One task after the other
//! is created, read, answered and run to its end; after each request the raw operations of that request are done on a row of
//! their own, with a snapshot of the same length, so that a slow moment of the machine or of the disk meets both. Then as many
//! tasks wait as `--waiting` says, and one of them is answered. At the end, tasks with large records, questions and results are
//! polled `--polls` times each.

mod client;
mod engine;
mod measured;
mod polls;
mod raw;
mod waiting;

use crate::{
    client::TaskClient,
    engine::Engine,
    measured::{Result, median},
    raw::Raw,
};
use std::time::Instant;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<()> {
    let arguments = Arguments::parse()?;
    println!("| engine | request | µs | raw operations, µs |\n|---|---|--:|--:|");
    for engine in arguments.engines().await? {
        measure(&engine, arguments.calls).await?;
    }
    println!(
        "\n| engine | tasks that wait | KiB each, resident | answer to result, ms | with no other task, ms |"
    );
    println!("|---|--:|--:|--:|--:|");
    for engine in arguments.engines().await? {
        waiting::measure(&engine, arguments.waiting).await?;
    }
    for engine in arguments.engines().await? {
        polls::measure(&engine, arguments.polls).await?;
    }
    Ok(())
}

/// Measures the life of single tasks, and prints a line for each request.
async fn measure(engine: &Engine, calls: usize) -> Result<()> {
    let client = TaskClient::new(engine)?;
    let raw = Raw::new(engine, client.snapshot_bytes().await?);
    let mut times: [(Vec<f64>, Vec<f64>); 4] = Default::default();
    for round in 0..calls + calls / 10 {
        let (create, id) = timed(client.create()).await?;
        let (raw_create, row) = timed(raw.create()).await?;
        client.until_asked(&id).await?;
        let (get, _) = timed(client.get(&id)).await?;
        let (raw_get, ()) = timed(raw.load(row)).await?;
        let begin = Instant::now();
        let (answer, ()) = timed(client.answer(&id)).await?;
        client.until_completed(&id).await?;
        let end = micros(begin);
        let (raw_answer, ()) = timed(raw.send(row)).await?;
        let (raw_run, ()) = timed(raw.run(row)).await?;
        // The first ones warm up.
        if round >= calls / 10 {
            let found =
                [(create, raw_create), (get, raw_get), (answer, raw_answer), (end, raw_answer + raw_run)];
            for (all, (one, raw)) in times.iter_mut().zip(found) {
                all.0.push(one);
                all.1.push(raw);
            }
        }
    }
    for (name, (mut all, mut raws)) in
        ["create", "get", "answer", "answer, until its result"].iter().zip(times)
    {
        println!("| {} | {name} | {:.1} | {:.1} |", engine.name, median(&mut all), median(&mut raws));
    }
    Ok(())
}

/// Returns the time of a future, in microseconds, and its value.
async fn timed<T>(future: impl Future<Output = Result<T>>) -> Result<(f64, T)> {
    let begin = Instant::now();
    let value = future.await?;
    Ok((micros(begin), value))
}

fn micros(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e6
}

/// The arguments of the program.
struct Arguments {
    calls: usize,
    waiting: usize,
    polls: usize,
    sqlite: Option<std::path::PathBuf>,
}

impl Arguments {
    fn parse() -> Result<Self> {
        use lexopt::prelude::*;

        let mut arguments = Self { calls: 1000, waiting: 10_000, polls: 100, sqlite: None };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("calls") => arguments.calls = parser.value()?.parse()?,
                Long("waiting") => arguments.waiting = parser.value()?.parse()?,
                Long("polls") => arguments.polls = parser.value()?.parse()?,
                Long("sqlite") => arguments.sqlite = Some(parser.value()?.into()),
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(arguments)
    }

    /// The engines, without the tasks of an earlier part. Here is the place of an engine on PostgreSQL.
    async fn engines(&self) -> Result<Vec<Engine>> {
        let mut engines = vec![Engine::in_memory()];
        if let Some(file) = &self.sqlite {
            engines.push(Engine::sqlite(file).await?);
        }
        Ok(engines)
    }
}
