//! The contract of a store of tasks.

mod claims;
mod dues;
mod ends;
mod lists;
mod model;
mod races;
mod random;
mod subject;
mod updates;

pub use random::check_random_tasks;
pub use subject::TaskSubject;

/// Runs every check of a store of tasks, and 50 random orders of 40 operations.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_tasks(subject: &TaskSubject) {
    lists::check_creates(subject).await;
    updates::check_sends(subject).await;
    claims::check(subject).await;
    updates::check(subject).await;
    dues::check(subject).await;
    ends::check(subject).await;
    lists::check(subject).await;
    races::check(subject).await;
    check_random_tasks(subject, 0..50, 40).await;
}
