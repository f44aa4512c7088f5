//! The contract of a store of tasks.

mod claims;
mod creates;
mod dues;
mod ends;
mod life;
mod lists;
mod races;
mod sends;
mod subject;
mod updates;

pub use subject::TaskSubject;

/// Checks a store of tasks.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_tasks(subject: &TaskSubject) {
    creates::check(subject).await;
    sends::check(subject).await;
    claims::check(subject).await;
    updates::check(subject).await;
    dues::check(subject).await;
    ends::check(subject).await;
    lists::check(subject).await;
    races::check(subject).await;
}
