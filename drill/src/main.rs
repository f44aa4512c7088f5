//! A fleet of servers with faults, and the rules that must hold in it: `./drill/run.sh`, docs/drill.md.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program prints its findings and its faults"
)]

mod checker;
mod checks;
mod clock;
mod fault;
mod findings;
mod fleet;
mod history;
mod keys;
mod ledger;
mod leg;
mod options;
mod person;
mod plan;
mod progress;
mod proxy;
mod random;
mod report;
mod rows;
mod schedule;
mod server;
mod store;
mod store_server;
mod tools;
mod trace;
mod wire;

use crate::{
    checker::Checker,
    clock::ClockSteps,
    fault::Faults,
    findings::{Findings, Rule},
    fleet::Fleet,
    history::History,
    keys::Keys,
    ledger::Ledger,
    options::Options,
    person::Script,
    progress::Progress,
    proxy::Proxy,
    report::{completed, report},
    schedule::Schedule,
    server::{ServerSettings, serve},
    store::Store,
    tools::Level,
};
use std::{
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::signal::unix::{SignalKind, signal};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The time for which the state of a round is accepted, in seconds.
const ANSWER_TIMEOUT: u64 = 180;
/// The longest time for which the store keeps a row after that, in seconds: three times the difference that clocks may have, the
/// steps of the clocks, and some more.
const KEPT_LONGER: u64 = 300;

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
    let (faults, history) = (Arc::new(Faults::default()), Arc::new(History::default()));
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
    let checker = Arc::new(Checker {
        history: Arc::clone(&history),
        faults: Arc::clone(&faults),
        ledger: Ledger::open(&folder.0)?,
        store: store.direct.clone(),
        kept: Duration::from_secs(ANSWER_TIMEOUT + KEPT_LONGER),
        findings: Mutex::default(),
    });
    let (mutant, has_faults) = (options.mutant.clone(), !options.crash);
    let fleet = Fleet::start(settings, mutant, size, Arc::clone(&history), Arc::clone(&faults)).await?;
    let fleet = Arc::new(fleet);
    let progress = Progress::begin(&options);
    let script = Arc::new(Script {
        seed: options.seed,
        proxy: Arc::new(Proxy::new(Arc::clone(&fleet), Arc::clone(&history), options.seed, has_faults)),
        history: Arc::clone(&history),
        plan: options.crash.then(|| "qss".to_owned()),
        repeats: has_faults,
        // With a mutant, calls may have no end.
        limit: Duration::from_secs(if options.mutant.is_some() { 30 } else { 60 } + options.people / 4),
        thinks: if has_faults { options.people * THINKS } else { 0 },
    });
    let store = Arc::new(tokio::sync::Mutex::new(store));
    let schedule = Schedule {
        options: options.clone(),
        fleet: Arc::clone(&fleet),
        faults: Arc::clone(&faults),
        history: Arc::clone(&history),
        store: Arc::clone(&store),
        wire,
        clocks: clocks.clone(),
        keys,
        progress: progress.clone(),
    };
    let checks = tokio::spawn(Arc::clone(&checker).run());
    let tasks = schedule.start();
    // Faults end with the last call that begins. Each call must then come to its end.
    run_calls(&script, &options, &progress, || tasks.iter().for_each(|task| task.abort())).await;
    let time = progress.elapsed();
    let ended = Instant::now();
    while history.is_busy() && ended.elapsed() < Duration::from_secs(30) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fleet.stop().await?;
    checks.abort();
    // A restart of the store that has begun comes to its end.
    drop(store.lock().await);
    let mut findings = checker.conclude(&clocks).await?;
    check_liveness(&mut findings);
    print!("{}", report(&findings, &history, &faults, time));
    if !findings.holds() {
        println!("FAILED: run again with --seed {}", options.seed);
    }
    Ok(findings.holds())
}

/// The time for which each person thinks, per person, in milliseconds: people share the processors.
const THINKS: u64 = 8;

/// Makes calls until their number or the time is reached.
async fn run_calls(script: &Arc<Script>, options: &Options, progress: &Progress, last_begun: impl FnOnce()) {
    let people: Vec<_> = (0..options.people)
        .map(|_| {
            let (script, progress) = (Arc::clone(script), progress.clone());
            tokio::spawn(async move {
                while let Some(number) = progress.next_call() {
                    script.call(number).await;
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

/// A run in which few calls complete proves nothing.
fn check_liveness(findings: &mut Findings) {
    for level in Level::ALL {
        let (done, all) = completed(findings, level);
        if all == 0 || done * 100 < all * 99 {
            findings.breaks(Rule::Liveness, format!("{}: {done} of {all} complete", level.tool()));
        }
    }
}
