//! Runs random cases from a seed, on all processors, and says how a failed one is run again.
//!
//! | variable | |
//! |---|---|
//! | `ANTIPHON_PROGRAMS` | programs of all tests together; 1,000 without it |
//! | `ANTIPHON_SEED` | a number, or `random` for a fresh one, which is printed; a fixed one without it |
//! | `ANTIPHON_CASE` | only the case of this number |
//! | `ANTIPHON_FAILURES` | goes on until so many cases have failed; 1 without it |

use crate::{
    case::{Carrier, Case},
    generate::{Family, case},
    pushed,
    sealed::{self, CallEnd},
    stored,
    trace::{Scene, Trace},
    user::mix,
};
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use std::{
    env, fmt,
    io::Write as _,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The seed of every run that asks for no other.
const SEED: u64 = 20_251_122;
/// The programs of all tests together.
const PROGRAMS: u64 = 1_000;

fn number(variable: &str) -> Option<u64> {
    env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")))
}

static RUN_SEED: LazyLock<u64> = LazyLock::new(|| {
    if env::var("ANTIPHON_SEED").is_ok_and(|text| text == "random") {
        let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos();
        return u64::try_from(now % u128::from(u64::MAX)).expect("less than its most");
    }
    number("ANTIPHON_SEED").unwrap_or(SEED)
});

/// Runs this share, in percent, of all programs.
pub(crate) fn programs(name: &'static str, percent: u64, family: Family) {
    let count = number("ANTIPHON_PROGRAMS").unwrap_or(PROGRAMS) * percent / 100;
    let only = number("ANTIPHON_CASE");
    let most_failures = number("ANTIPHON_FAILURES").unwrap_or(1);
    let seed = *RUN_SEED;
    let (next, began) = (AtomicU64::new(0), Instant::now());
    let (failures, totals) = (Mutex::new(Vec::new()), Totals::default());
    let work = || {
        let strategy = case(family);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= only.map_or(count, |_| 1) || failures.lock().unwrap().len() as u64 >= most_failures {
                break;
            }
            let number = only.unwrap_or(number);
            let test = |case: Case| {
                let ran = one(&case).map_err(TestCaseError::fail)?;
                totals.add(&ran);
                Ok(())
            };
            let mut runner = runner(name, seed, number);
            let tree = strategy.new_tree(&mut runner).expect("a strategy without conditions");
            if let Err(TestError::Fail(why, case)) = runner.run_one(tree, test) {
                failures.lock().unwrap().push(format!(
                    "{why}\n{case:?}\nagain: ANTIPHON_SEED={seed} ANTIPHON_CASE={number} cargo test -p antiphon --test interpreter {name} -- --exact\n"
                ));
            }
        }
    };
    thread::scope(|scope| {
        let threads =
            thread::available_parallelism().map_or(2, usize::from).min(if only.is_some() { 1 } else { 64 });
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    // Past the capture of the test harness: a fresh seed is known whatever happens then.
    let said =
        format!("{name}: {count} programs from the seed {seed} in {:.1?}: {totals}\n", began.elapsed());
    let _ = std::io::stderr().write_all(said.as_bytes());
    let diverged = totals.diverged.into_inner();
    assert!(
        diverged * 3 <= count,
        "{diverged} of {count} calls diverged: hardly any goes on behind a change"
    );
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} of {count} programs from the seed {seed}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn runner(name: &str, seed: u64, number: u64) -> TestRunner {
    let mut bytes = [0; 32];
    for (n, part) in [seed, mix("test", name, 0), number, 0].into_iter().enumerate() {
        bytes[n * 8..][..8].copy_from_slice(&part.to_le_bytes());
    }
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 4000,
        // One that spins takes long each time.
        max_shrink_time: 60_000,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Returns programs of a family, from the seed of all runs.
pub(crate) fn samples(name: &'static str, count: u64, family: Family) -> impl Iterator<Item = Case> {
    let strategy = case(family);
    (0..count).map(move |number| {
        strategy.new_tree(&mut runner(name, SEED, number)).expect("a strategy without conditions").current()
    })
}

/// The end of one case.
pub(crate) struct CaseRun {
    end: CallEnd,
    trace: Arc<Trace>,
}

/// Sums over all cases.
#[derive(Default)]
struct Totals {
    requests: AtomicU64,
    attempts: AtomicU64,
    diverged: AtomicU64,
    too_often: AtomicU64,
    /// The most of one case.
    polls: AtomicU64,
}

impl Totals {
    fn add(&self, CaseRun { end, trace }: &CaseRun) {
        self.requests.fetch_add(trace.requests.load(Ordering::Relaxed), Ordering::Relaxed);
        self.attempts.fetch_add(trace.attempts(), Ordering::Relaxed);
        self.diverged.fetch_add(u64::from(*end == CallEnd::Diverged), Ordering::Relaxed);
        self.too_often.fetch_add(u64::from(*end == CallEnd::TooOften), Ordering::Relaxed);
        self.polls.fetch_max(trace.polls(), Ordering::Relaxed);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [requests, attempts, diverged, too_often, polls] =
            [&self.requests, &self.attempts, &self.diverged, &self.too_often, &self.polls]
                .map(|it| it.load(Ordering::Relaxed));
        write!(
            f,
            "{requests} requests, {attempts} attempts of steps, {diverged} calls diverged, {too_often} asked too often, \
             at most {polls} polls"
        )
    }
}

/// Runs one case on a clock that stands while something can go on.
pub(crate) fn one(case: &Case) -> Result<CaseRun, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    Scene::forget_all();
    let trace = Arc::new(Trace::default());
    let end = runtime.block_on(async {
        let checked = async {
            match case.carrier {
                Carrier::Sealed => sealed::check(case, Arc::clone(&trace)).await,
                Carrier::Pushed | Carrier::PushedMemory => pushed::check(case, Arc::clone(&trace)).await,
                _ => stored::check(case, Arc::clone(&trace)).await,
            }
        };
        // Hours of the runtime's clock, no time of ours.
        tokio::time::timeout(Duration::from_secs(24 * 3600), checked).await
    });
    let end = end.unwrap_or_else(|_| Err("it hangs".to_owned()))?;
    Ok(CaseRun { end, trace })
}
