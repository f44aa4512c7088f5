//! The contract of an engine of tasks.

mod life;
mod messages;
mod script;
mod subject;

use self::subject::EngineSubject;
use crate::task::program::TaskEngine;
use std::sync::Arc;

/// Runs every check of an engine of tasks, on two instances that have the same tasks. Neither of them has begun; the first one has
/// no tasks to give back afterwards, and the second one has a task that pauses.
///
/// The checks wait for changes that the engine reports, and for pauses of 50 milliseconds. They need a runtime of tokio that
/// drives the engine, and a limit of their time is the caller's. An instance that dies is not among them: that is for tests of the
/// engine's own.
///
/// # Panics
///
/// If the engine breaks a rule. The text names the case.
pub async fn check_task_engine(first: Arc<dyn TaskEngine>, second: Arc<dyn TaskEngine>) {
    let subject = EngineSubject::new(first, second);
    life::check(&subject).await;
    messages::check(&subject).await;
    messages::check_lists(&subject).await;
    life::check_handover(&subject).await;
}
