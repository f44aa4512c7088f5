//! Random programs as tasks on DBOS, before random clients, against the plain interpreter: those of `crates/antiphon/tests/interpreter`,
//! on the wall clock. All of them share a PostgreSQL server that the test starts, and instances that are killed one after the other.
//!
//! | variable | |
//! |---|---|
//! | `ANTIPHON_PROGRAMS` | programs; 48 without it |
//! | `ANTIPHON_SEED` | a number, or `random` for a fresh one, which is printed; a fixed one without it |
//! | `ANTIPHON_CASE` | only the program of this number |
//! | `ANTIPHON_FAILURES` | goes on until so many programs have failed; 1 without it |

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    dead_code,
    missing_docs,
    reason = "a failed unwrap fails the test, and this program needs a part of each file"
)]

// The database server of the tests of `antiphon-store`.
mod folder;
mod postgres_server;
mod programs;

// The programs, their clients and their rules, with a fleet of its own.
mod branch;
mod case;
mod checks;
mod fleet;
mod generate;
mod handler;
mod leaves;
mod mortal;
mod outcome;
mod reference;
mod reply;
mod rules;
mod sealed;
mod shapes;
mod stop;
mod stored;
mod tasked;
mod trace;
mod tree;
mod user;

use case::{Carrier, Case};
use generate::{Family, Shape};
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use std::{
    env,
    io::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use trace::Trace;

/// The seed of every run that asks for no other.
const SEED: u64 = 20_261_128;
/// The programs of a run that asks for no other number.
const PROGRAMS: u64 = 48;
/// The programs at a time.
const AT_ONCE: u64 = 96;
/// The time in which each program ends.
const LIMIT: Duration = Duration::from_secs(300);

/// As tasks: all programs wait, and their instances are killed.
const TASKS: Family = Family {
    shape: Shape::Awaits,
    carriers: &[Carrier::TaskMemory],
    waits: true,
    fails: false,
    changes: false,
    store: true,
};

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}: `{text}`")))
}

fn seed() -> u64 {
    if env::var("ANTIPHON_SEED").is_ok_and(|text| text == "random") {
        let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos();
        return u64::try_from(now % u128::from(u64::MAX)).expect("less than its most");
    }
    number("ANTIPHON_SEED").unwrap_or(SEED)
}

/// Returns the program of this number, with its client.
fn case_of(seed: u64, number: u64) -> Case {
    let mut bytes = [0; 32];
    for (n, part) in [seed, number, 0, 0].into_iter().enumerate() {
        bytes[n * 8..][..8].copy_from_slice(&part.to_le_bytes());
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    generate::case(TASKS).new_tree(&mut runner).expect("a strategy without conditions").current()
}

/// Runs one program to its end. Returns the number of its requests.
fn one(case: &Case) -> Result<u64, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let trace = Arc::new(Trace::default());
    let checked = stored::check(case, Arc::clone(&trace));
    let end = runtime.block_on(async { tokio::time::timeout(LIMIT, checked).await });
    end.map_err(|_| format!("it does not end in {LIMIT:?}"))??;
    Ok(trace.requests.load(Ordering::Relaxed))
}

#[test]
fn random_programs_are_what_the_interpreter_says() {
    let (seed, only) = (seed(), number("ANTIPHON_CASE"));
    let count = only.map_or_else(|| number("ANTIPHON_PROGRAMS").unwrap_or(PROGRAMS), |_| 1);
    let most_failures = number("ANTIPHON_FAILURES").unwrap_or(1);
    let (began, next, requests) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
    let failures = Mutex::new(Vec::new());
    let work = || {
        while (failures.lock().unwrap().len() as u64) < most_failures {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let number = only.unwrap_or(number);
            let case = case_of(seed, number);
            match one(&case) {
                Ok(more) => drop(requests.fetch_add(more, Ordering::Relaxed)),
                Err(why) => failures.lock().unwrap().push(format!(
                    "{why}\n{case:?}\nagain: ANTIPHON_SEED={seed} ANTIPHON_CASE={number} cargo test -p antiphon-dbos --test random_programs\n"
                )),
            }
        }
    };
    let deaths = fleet::run(|| {
        thread::scope(|scope| (0..count.min(AT_ONCE)).for_each(|_| drop(scope.spawn(work))));
    });
    // Past the capture of the test harness.
    let requests = requests.into_inner();
    let _ = writeln!(
        std::io::stderr(),
        "{count} programs from the seed {seed} in {:.1?}: {requests} requests, {deaths} deaths",
        began.elapsed()
    );
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {count} programs:\n{}", failures.len(), failures.join("\n"));
}
