//! Random calls on a small fleet, on one thread and one clock: processes die and pause at any operation of the store
//! and beside any effect, requests are sent again, twice at once, and with other answers, and the store's clock is
//! changed. What the rules of `docs/drill.md` say must hold for each seed.
//!
//! | variable | meaning |
//! |---|---|
//! | `ANTIPHON_SEEDS` | the number of calls; 400 without it |
//! | `ANTIPHON_SEED` | the first seed; a fixed one without it |

mod driver;
mod handler;
mod process;
mod random;
mod rules;

use self::{driver::Driver, random::Random};

/// The first seed.
const SEED: u64 = 20_261_123;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_calls_keep_the_rules() {
    let first = number("ANTIPHON_SEED").unwrap_or(SEED);
    for seed in first..first + number("ANTIPHON_SEEDS").unwrap_or(400) {
        check(seed);
    }
}

/// Seeds that have broken a rule: two steps of a set of which one is behind a lookup, interrupted, and ended.
#[test]
fn seeds_that_failed_once_keep_the_rules() {
    [20_261_520, 20_262_340].into_iter().for_each(check);
}

/// The rules can be broken: with steps that are not tied to the store, a run must show it.
#[test]
fn a_fleet_without_a_store_breaks_the_rules() {
    let broken = (SEED..SEED + 200).any(|seed| !run(seed, true).is_empty());
    assert!(broken, "no seed has a step that runs twice");
}

fn check(seed: u64) {
    let broken = run(seed, false);
    assert!(
        broken.is_empty(),
        "{broken:#?}\nagain: ANTIPHON_SEED={seed} ANTIPHON_SEEDS=1 cargo test -p antiphon --test at_most_once random_calls"
    );
}

/// Runs the call of one seed to its end. Returns the rules that were broken.
fn run(seed: u64, without_store: bool) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut driver = Driver::new(Random::new(seed), without_store);
        driver.run().await;
        rules::broken(&driver)
    })
}
