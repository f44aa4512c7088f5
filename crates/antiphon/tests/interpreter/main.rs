//! Random handlers before random clients, against a plain interpreter of the same handlers.
//!
//! A handler is a tree of questions, steps, joins, races, scopes, loops and branches. A client answers in any split over
//! the rounds, badly at first, with answers nobody asked for; it goes away, loses replies and comes back with older
//! states; each request meets another instance. `PROPTEST_CASES` says how many there are.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test")]

mod client;
mod handler;
mod plain;
mod tree;

use client::{Case, case, check};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::sync::atomic::{AtomicU64, Ordering};

fn all(waits: bool, cases: u32) {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    TestRunner::new(config).run(&case(waits), |case| one(&case)).unwrap();
}

fn one(case: &Case) -> Result<(), TestCaseError> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        // Hours of the runtime's clock, no time of ours.
        let checked = tokio::time::timeout(std::time::Duration::from_secs(3600), check(case, call)).await;
        checked.unwrap_or_else(|_| Err(TestCaseError::fail("it hangs")))
    })
}

#[test]
fn handlers_that_only_ask_and_step_do_as_a_plain_interpreter_says() {
    all(false, 800);
}

#[test]
fn handlers_that_wait_for_other_things_too_come_to_what_a_plain_interpreter_says() {
    all(true, 800);
}
