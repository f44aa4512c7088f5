//! A fleet of servers with faults, and the rules that must hold in it: `./drill/run.sh`, docs/drill.md.

#![allow(clippy::print_stdout, reason = "the program prints its findings")]

mod checks;
mod clock;
mod fleet;
mod history;
mod ledger;
mod leg;
mod options;
mod person;
mod proxy;
mod random;
mod report;
mod server;
mod store;
mod tools;

use crate::{
    fleet::{FaultKind, Fleet},
    history::History,
    options::Options,
    person::Script,
    proxy::Proxy,
    random::Random,
    server::{ServerSettings, serve},
    store::Store,
};
use antiphon::seal::SecretKey;
use std::{
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let end = match words.next().as_deref() {
        Some("server") => match serde_json::from_str::<ServerSettings>(&words.next().unwrap_or_default()) {
            Ok(settings) => serve(settings).await.map(|()| true),
            Err(error) => Err(error.into()),
        },
        _ => match Options::parse(std::env::args().skip(1)) {
            Ok(options) => drill(options).await,
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
    let settings = ServerSettings {
        store: store.address.clone(),
        folder: folder.0.clone(),
        keys: SecretKey::random()?.to_base64url().to_string(),
        lease: options.lease,
        slow: options.lease * 3 / 2,
    };
    let size = if store.address.is_memory() { 1 } else { 3 };
    let fleet = Arc::new(Fleet::start(settings, options.mutant.clone(), size).await?);
    let history = Arc::new(History::default());
    let proxy = Arc::new(Proxy::new(Arc::clone(&fleet), Arc::clone(&history), options.seed, !options.crash));
    let script = Arc::new(Script {
        seed: options.seed,
        proxy,
        history: Arc::clone(&history),
        plan: options.crash.then(|| "qss".to_owned()),
        repeats: !options.crash,
    });
    let faults = (size > 1).then(|| tokio::spawn(make_faults(Arc::clone(&fleet), options.clone())));
    let begin = Instant::now();
    // Faults end with the last call that begins. Each call must then come to its end.
    run_calls(&script, &options, || faults.iter().for_each(tokio::task::JoinHandle::abort)).await;
    let time = begin.elapsed();
    let ended = Instant::now();
    while history.deliveries() > 0 && ended.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fleet.stop().await?;
    conclude(&folder.0, &history, &fleet, &options, time)
}

/// Makes calls until their number or the time is reached.
async fn run_calls(script: &Arc<Script>, options: &Options, last_begun: impl FnOnce()) {
    let next = Arc::new(AtomicU64::new(0));
    let until = options.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let people: Vec<_> = (0..options.people)
        .map(|_| {
            let (script, next, calls) = (Arc::clone(script), Arc::clone(&next), options.calls);
            tokio::spawn(async move {
                while until.is_none_or(|until| Instant::now() < until) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if calls.is_some_and(|calls| number >= calls) {
                        return;
                    }
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

/// Makes faults of processes until it is aborted. The task that began one ends it.
async fn make_faults(fleet: Arc<Fleet>, options: Options) {
    let mut random = Random::new(options.seed, "faults", 0);
    loop {
        let (least, more) = if options.crash { (100, 400) } else { (400, 1600) };
        tokio::time::sleep(Duration::from_millis(least) + random.millis(more)).await;
        let place = usize::try_from(random.below(3)).unwrap_or_default();
        let kind = match random.below(100) {
            _ if options.crash => FaultKind::Kill,
            0..50 => FaultKind::Kill,
            50..80 => FaultKind::Pause,
            _ => FaultKind::Terminate,
        };
        let pause = Duration::from_millis(options.lease * 3 / 2);
        let fleet = Arc::clone(&fleet);
        let fault = async move { fleet.fault(place, kind, pause).await };
        // A pause does not keep other processes from their faults.
        let task = tokio::spawn(fault);
        if kind == FaultKind::Kill {
            let _ = task.await;
        }
    }
}

/// Checks the rules and prints the tables.
fn conclude(
    folder: &Path,
    history: &History,
    fleet: &Fleet,
    options: &Options,
    time: Duration,
) -> Result<bool> {
    let effects = ledger::read(folder)?;
    let faults = fleet.faults();
    let state = history.lock();
    let evidence = checks::Evidence { state: &state, effects: &effects, faults: &faults };
    let verdicts = evidence.verdicts();
    print!("{}", report::report(&evidence, &verdicts, history.count(), time));
    let holds = verdicts.iter().all(|verdict| verdict.broken.is_empty());
    if !holds {
        println!("FAILED: run again with --seed {}", options.seed);
    }
    Ok(holds)
}
