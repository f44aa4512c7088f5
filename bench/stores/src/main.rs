//! Prints the time of one answered leg with each store, beside the same leg without a store and the raw operations of
//! that store.
//!
//! `bench-stores [--calls N] [--sqlite FILE] [--postgres URL] [--redis URL]`: the store in memory is always measured.
//! The leg has an answer, one step and a result. Per round, each of the three is done once, one after the other, so that
//! a slow moment of the machine or of the disk meets all three.

mod call;
mod counted;
mod level;
mod raw;

use crate::{
    call::Shop,
    counted::Counted,
    level::{Level, Result},
};
use antiphon::store::{
    CallStore, MemoryStore, PostgresOptions, PostgresStore, RedisOptions, RedisStore, SqliteOptions,
    SqliteStore,
};
use std::{sync::Arc, time::Instant};

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<()> {
    let arguments = Arguments::parse()?;
    println!(
        "| store | level | operations | leg µs | without a store | raw operations | leg / (without + raw) |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    measure("memory", Arc::new(MemoryStore::new()), arguments.calls).await?;
    if let Some(file) = &arguments.sqlite {
        let store = SqliteStore::open(file, SqliteOptions::default()).await?;
        measure("SQLite", Arc::new(store), arguments.calls).await?;
    }
    if let Some(url) = &arguments.postgres {
        let store = PostgresStore::connect(url, PostgresOptions::default()).await?;
        measure("PostgreSQL", Arc::new(store), arguments.calls).await?;
    }
    if let Some(url) = &arguments.redis {
        let store = RedisStore::connect(url, RedisOptions::default()).await?;
        measure("Redis", Arc::new(store), arguments.calls).await?;
    }
    Ok(())
}

/// Measures both levels with one store, and prints a line for each.
async fn measure(name: &str, store: Arc<dyn CallStore>, calls: usize) -> Result<()> {
    for level in [Level::SingleUse, Level::WriteAhead] {
        let counted = Arc::new(Counted::new(Arc::clone(&store)));
        let without = Shop::new(None, level)?;
        let with = Shop::new(Some(Arc::clone(&counted) as Arc<dyn CallStore>), level)?;
        let (mut legs, mut bare, mut raws) = (Vec::new(), Vec::new(), Vec::new());
        let mut operations = 0;
        for round in 0..calls + calls / 10 {
            let (first, second) = (without.asked().await?, with.asked().await?);
            let before = counted.operations();
            let times = [timed(without.answered(&first)).await?, timed(with.answered(&second)).await?];
            operations = counted.operations() - before;
            let raw = timed(raw::leg(&*store, level, &counted.sizes())).await?;
            // The first ones warm up.
            if round >= calls / 10 {
                bare.push(times[0]);
                legs.push(times[1]);
                raws.push(raw);
            }
        }
        let [leg, bare, raw] = [median(&mut legs), median(&mut bare), median(&mut raws)];
        println!(
            "| {name} | `{}` | {operations} | {leg:.1} | {bare:.1} | {raw:.1} | {:.2} |",
            level.name(),
            leg / (bare + raw)
        );
    }
    Ok(())
}

/// Returns the time of a future, in microseconds.
async fn timed(future: impl Future<Output = Result<()>>) -> Result<f64> {
    let begin = Instant::now();
    future.await?;
    Ok(begin.elapsed().as_secs_f64() * 1e6)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The arguments of the program.
struct Arguments {
    calls: usize,
    sqlite: Option<std::path::PathBuf>,
    postgres: Option<String>,
    redis: Option<String>,
}

impl Arguments {
    fn parse() -> Result<Self> {
        use lexopt::prelude::*;

        let mut arguments = Self { calls: 1000, sqlite: None, postgres: None, redis: None };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("calls") => arguments.calls = parser.value()?.parse()?,
                Long("sqlite") => arguments.sqlite = Some(parser.value()?.into()),
                Long("postgres") => arguments.postgres = Some(parser.value()?.string()?),
                Long("redis") => arguments.redis = Some(parser.value()?.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(arguments)
    }
}
