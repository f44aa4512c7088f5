//! A fleet of servers with faults, and the rules that must hold in it: `./drill/run.sh`, docs/drill.md.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program prints its findings and its faults"
)]

mod changes;
mod checker;
mod checks;
mod clock;
mod error;
mod fault;
mod findings;
mod fleet;
mod handler;
mod history;
mod keys;
mod ledger;
mod leg;
mod level;
mod load;
mod log;
mod options;
mod person;
mod plan;
mod progress;
mod proxy;
mod random;
mod report;
mod request;
mod rows;
mod schedule;
mod server;
mod session;
mod store;
mod store_server;
mod task_findings;
mod tasks;
mod tools;
mod touch;
mod trace;
mod wire;

use crate::{
    changes::Changes,
    checker::Checker,
    clock::ClockSteps,
    error::Result,
    fault::Faults,
    fleet::Fleet,
    keys::Keys,
    ledger::Ledger,
    load::{Load, Script},
    options::Options,
    progress::Progress,
    schedule::Schedule,
    server::{ServerSettings, TASK, serve},
    store::Store,
};
use std::{
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::signal::unix::{SignalKind, signal};

/// The time for which the state of a round is accepted, in seconds.
const ANSWER_TIMEOUT: u64 = 180;
/// The longest time for which the store keeps a row after that, in seconds: three times the difference that clocks may have, the
/// steps of the clocks, and some more.
const KEPT_LONGER: u64 = 300;
/// The time for which a state of a task is accepted after the task's own time, in seconds.
const STATE_OF_TASK: u64 = 3600;

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let end = match words.next().as_deref() {
        Some("server") => match serde_json::from_str::<ServerSettings>(&words.next().unwrap_or_default()) {
            Ok(settings) => serve(settings).await.map(|()| true),
            Err(error) => Err(error.into()),
        },
        _ => match Options::parse(std::env::args().skip(1)) {
            Ok(options) => tokio::select! {
                end = drill(options) => end,
                // The servers and the store end with the driver.
                () = interrupted() => Err("interrupted".into()),
            },
            Err(error) => Err(error),
        },
    };
    match end {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("drill: {error}");
            ExitCode::from(2)
        }
    }
}

/// Waits for SIGINT or SIGTERM.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = terminate.recv() => (),
    }
}

/// A folder of this run, removed with its value.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the drill, and returns true if no rule was broken.
async fn drill(options: Options) -> Result<bool> {
    let folder = Folder(std::env::temp_dir().join(format!("antiphon-drill-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0)?;
    println!("{options}");
    let store = Store::start(&options.store, &folder.0)?;
    let (faults, load) = (Arc::new(Faults::default()), Load::of(&options));
    let (clocks, keys) = (ClockSteps::open(&folder.0)?, Keys::create(&folder.0)?);
    let wire = store.carry(Arc::clone(&faults))?;
    let settings = ServerSettings {
        store: store.address.clone(),
        folder: folder.0.clone(),
        keys: keys.path().to_owned(),
        place: 0,
        version: 1,
        lease: options.lease,
        slow: options.lease * 3 / 2,
        answer_timeout: ANSWER_TIMEOUT,
    };
    let size = if store.address.is_memory() { 1 } else { 3 };
    let kept = if options.tasks { TASK.as_secs() + STATE_OF_TASK } else { ANSWER_TIMEOUT };
    let checker = Arc::new(Checker {
        log: load.log(),
        faults: Arc::clone(&faults),
        ledger: Ledger::open(&folder.0)?,
        store: store.direct.clone(),
        kept: Duration::from_secs(kept + KEPT_LONGER),
        rule: load.rule_about_rows(),
        findings: Mutex::default(),
    });
    let fleet = Fleet::start(settings, options.mutant.clone(), size, load.log(), Arc::clone(&faults)).await?;
    let fleet = Arc::new(fleet);
    let progress = Progress::begin(&options);
    let script = Arc::new(load.script(&options, &fleet));
    let store = Arc::new(tokio::sync::Mutex::new(store));
    let schedule = Schedule {
        options: options.clone(),
        fleet: Arc::clone(&fleet),
        faults: Arc::clone(&faults),
        history: load.log(),
        store: Arc::clone(&store),
        wire,
        clocks: clocks.clone(),
        keys,
        progress: progress.clone(),
    };
    // A store in memory has one instance, and nobody to report to.
    let changes = (fleet.size() > 1).then(|| Changes::start(&fleet, options.seed));
    let checks = tokio::spawn(Arc::clone(&checker).run());
    let tasks = schedule.start();
    // Faults end with the last call that begins. Each call must then come to its end.
    run_calls(&script, &options, &progress, || tasks.iter().for_each(|task| task.abort())).await;
    let time = progress.elapsed();
    let ended = Instant::now();
    while load.log().is_busy() && ended.elapsed() < Duration::from_secs(30) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A restart of the store that has begun comes to its end.
    drop(store.lock().await);
    let changed = match changes {
        Some(changes) => Some(changes.conclude().await?),
        None => None,
    };
    fleet.stop().await?;
    checks.abort();
    let mut findings = checker.conclude(&clocks).await?;
    load.conclude(&mut findings);
    if let Some(changed) = changed {
        changed.note(&mut findings);
    }
    print!("{}", load.report(&findings, &faults, time));
    if !findings.holds() {
        println!("FAILED: run again with --seed {}", options.seed);
    }
    Ok(findings.holds())
}

/// Makes calls or tasks until their number or the time is reached.
async fn run_calls(script: &Arc<Script>, options: &Options, progress: &Progress, last_begun: impl FnOnce()) {
    let people: Vec<_> = (0..options.people)
        .map(|_| {
            let (script, progress) = (Arc::clone(script), progress.clone());
            tokio::spawn(async move {
                while let Some(number) = progress.next_call() {
                    script.run(number).await;
                }
            })
        })
        .collect();
    let mut last_begun = Some(last_begun);
    for person in people {
        let _ = person.await;
        // This person found no more call to begin.
        if let Some(last_begun) = last_begun.take() {
            last_begun();
        }
    }
}
