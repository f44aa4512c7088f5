//! The contract of a store, as tests: [`check_all`] runs them on a store of your own, as they run on every store of this crate.
//!
//! ```
//! use std::sync::Arc;
//!
//! use antiphon_store::contract::{Subject, check_all};
//! use antiphon_store::{Micros, MemoryStore, StoreClock};
//!
//! # fn main() {
//! # let mut future = std::pin::pin!(async {
//! let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
//! let store = Arc::new(MemoryStore::new().clock(clock));
//! // Two handles to the same rows, as two instances of a server have them.
//! check_all(&Subject::new(store.clone(), store, hand)).await;
//! # });
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # assert!(future.as_mut().poll(&mut context).is_ready());
//! # }
//! # use std::future::Future as _;
//! ```
//!
//! [`check_tasks`] does the same for a store of tasks:
//!
//! ```
//! use std::sync::Arc;
//!
//! use antiphon_store::contract::{TaskSubject, check_tasks};
//! use antiphon_store::{MemoryTasks, Micros, StoreClock};
//!
//! # fn main() {
//! # let mut future = std::pin::pin!(async {
//! let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
//! let tasks = Arc::new(MemoryTasks::new().clock(clock));
//! check_tasks(&TaskSubject::new(tasks.clone(), tasks, hand)).await;
//! # });
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # assert!(future.as_mut().poll(&mut context).is_ready());
//! # }
//! # use std::future::Future as _;
//! ```
//!
//! A store needs a clock that a test can move: moments are compared exactly, and no test waits. Every check panics with the case
//! that failed. The checks use new calls and new tasks each time, so they may run several times on the same rows.
//! [`check_task_engine`] checks an engine of tasks, in real time or in the paused time of tokio.
//! `check_tasks` expects fewer than 10,000 tasks in the store, and no other program that creates or ends tasks meanwhile.

mod changes;
mod claims;
mod crashes;
mod engines;
mod expiry;
mod races;
mod random;
mod subject;
mod tasks;

pub use changes::check_changes;
pub use claims::{check_claims, check_fences};
pub use crashes::{FaultyStore, StoreFault, check_crashes, check_store_errors};
pub use engines::check_task_engine;
pub use expiry::{check_clock_jumps, check_expiry};
pub use races::check_races;
pub use random::check_random_orders;
pub use subject::{Subject, check_blobs};
pub use tasks::{TaskSubject, check_random_tasks, check_tasks};

/// Runs every check, and 50 random orders of 40 operations.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_all(subject: &Subject) {
    check_claims(subject).await;
    check_fences(subject).await;
    check_crashes(subject).await;
    check_expiry(subject).await;
    check_blobs(subject).await;
    check_clock_jumps(subject).await;
    check_races(subject).await;
    check_store_errors(subject).await;
    check_random_orders(subject, 0..50, 40).await;
}
