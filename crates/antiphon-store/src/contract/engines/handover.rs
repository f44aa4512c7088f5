//! An instance that drains gives its tasks to another one, and answers requests.

use super::subject::EngineSubject;

/// Drains the first instance.
pub(super) async fn check(subject: &EngineSubject) {
    let (first, second) = (&subject.first, &subject.second);
    let runs = subject.started("hold leg wait").await;
    let waits = subject.started("leg wait").await;
    first.until_log(runs, "shown").await;
    first.until_log(waits, "leg:1").await;
    first.until(waits, |row| !row.is_held).await;
    second.begin();
    first.engine.drain();
    first.engine.idle().await;
    second.until_log(runs, "hold:1 leg:2").await;
    // Through the drained instance.
    first.send(runs, "a").await;
    first.send(waits, "b").await;
    assert_eq!(second.ended(runs).await, "hold:1 leg:2 a");
    assert_eq!(second.ended(waits).await, "leg:1 b");
    let late = subject.started("leg").await;
    assert_eq!(second.ended(late).await, "leg:2");
    assert_eq!(first.program.legs(late) + first.program.legs(waits), 1, "a drained instance begins no leg");
    assert_eq!(first.row(late).await, second.row(late).await);
}
