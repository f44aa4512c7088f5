//! A row is there until its time is over, and then gone for every operation.

use std::time::Duration;

use super::claims::every_write_is_lost;
use super::subject::{Event, HALF, Life};
use super::subject::{FIRST_SNAPSHOT, LEASE, MANY, TICK, TTL, TaskSubject, expect, messages, release};
use crate::error::StoreErrorKind;
use crate::task::{NewTask, TaskClaim, TaskCreated, TaskFence, TaskLimits, TaskNext, TaskSent};

/// A row: its `ttl`, its life so far, and the time that is left of it.
type Row = (&'static str, Option<Duration>, &'static [Event], Duration);

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const FINAL: TaskNext = TaskNext::Final(MINUTE);

const TABLE: &[Row] = &[
    ("a new task", Some(TTL), &[], TTL),
    ("the shortest time", Some(Duration::from_millis(1)), &[], Duration::from_millis(1)),
    ("a message", Some(TTL), &[Event::Wait(MINUTE), Event::Send], Duration::from_secs(540)),
    ("a held task", Some(TTL), &[Event::Claim, Event::Renew(HOUR)], TTL),
    ("a task that waits", Some(TTL), &[Event::Claim, Event::Release(0, TaskNext::Waits(None))], TTL),
    (
        "a task that waits for longer",
        Some(TTL),
        &[Event::Claim, Event::Release(0, TaskNext::Waits(Some(HOUR)))],
        TTL,
    ),
    (
        "a task that runs",
        Some(TTL),
        &[Event::Claim, Event::Wait(HALF), Event::Keep(0, TaskNext::Runs)],
        Duration::from_secs(585),
    ),
    ("final, with more ttl left", Some(TTL), &[Event::Send, Event::Claim, Event::Release(0, FINAL)], TTL),
    (
        "final, with less ttl left",
        Some(LEASE),
        &[Event::Claim, Event::Wait(HALF), Event::Release(0, FINAL)],
        MINUTE,
    ),
    ("final, without a ttl", None, &[Event::Claim, Event::Wait(HALF), Event::Release(0, FINAL)], MINUTE),
    (
        "final, long after the lease",
        None,
        &[Event::Claim, Event::Wait(HOUR), Event::Release(0, FINAL)],
        MINUTE,
    ),
    ("final under a lease", None, &[Event::Claim, Event::Renew(HOUR), Event::Keep(0, FINAL)], MINUTE),
];

/// Checks when rows are gone, and that nothing is left of them.
pub(super) async fn check(subject: &TaskSubject) {
    for row in TABLE {
        check_row(subject, row, false).await;
        check_row(subject, row, true).await;
    }
    without_a_ttl_a_row_stays(subject).await;
    wrong_times_are_invalid(subject).await;
    a_sweep_removes_the_rest(subject).await;
}

async fn check_row(subject: &TaskSubject, (name, ttl, events, rest): &Row, swept: bool) {
    let life = Life::of(subject, *ttl, events, name).await;
    let (task, fence) = (life.task(), life.last_fence());
    let summary = subject.summary(task).await;
    assert_eq!(summary.and_then(|summary| summary.rest), Some(*rest), "{name}: the rest of its time");
    subject.clock.advance(*rest - TICK);
    sweep(subject, swept).await;
    assert!(subject.load(task).await.is_some(), "{name}: gone too early");
    assert_eq!(subject.summary(task).await.and_then(|summary| summary.rest), Some(TICK), "{name}");
    subject.clock.advance(TICK);
    sweep(subject, swept).await;
    nothing_is_left(subject, &fence, name).await;
    a_new_task_has_the_key(subject, life.new, &fence, name).await;
}

async fn nothing_is_left(subject: &TaskSubject, fence: &TaskFence, name: &str) {
    let task = fence.task();
    assert_eq!(subject.load(task).await, None, "{name}: load after the end");
    assert_eq!(subject.send(task, b"message").await, Ok(TaskSent::NotFound), "{name}: send after the end");
    assert_eq!(subject.claim(task, 1).await, TaskClaim::NotFound, "{name}: claim after the end");
    assert!(!subject.is_due(task).await, "{name}: due after the end");
    assert_eq!(subject.summary(task).await, None, "{name}: listed after the end");
    every_write_is_lost(subject, fence, name).await;
}

/// A new task may have the same key. It has nothing of the old one, and other fences.
async fn a_new_task_has_the_key(subject: &TaskSubject, old: NewTask, fence: &TaskFence, name: &str) {
    let (task, new) = (old.task, NewTask { ttl: Some(TTL), ..old });
    assert_eq!(subject.create(&new, &TaskLimits::default()).await, Ok(TaskCreated::First), "{name}: again");
    let row = subject.row(task).await;
    assert_eq!((&*row.snapshot, messages(&row)), (FIRST_SNAPSHOT, vec![]), "{name}: again");
    every_write_is_lost(subject, fence, name).await;
    subject.queued(task, b"message").await;
    let (later, row) = subject.granted(task, 2).await;
    assert_eq!(messages(&row), [(1, &b"message"[..])], "{name}: again");
    every_write_is_lost(subject, fence, name).await;
    assert!(later.number() > fence.number(), "{name}: {later:?} after {fence:?}");
    let claims = subject.summary(task).await.map(|summary| summary.claims);
    assert_eq!(claims, Some(1), "{name}: the claims of the new task");
}

async fn without_a_ttl_a_row_stays(subject: &TaskSubject) {
    let task = subject.created(None).await;
    subject.clock.advance(Duration::from_secs(500 * 24 * 3_600));
    sweep(subject, true).await;
    assert_eq!(subject.summary(task).await.map(|summary| summary.rest), Some(None));
    assert!(subject.is_due(task).await, "a task without a ttl");
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &release(b"end", 0, FINAL)).await;
}

async fn wrong_times_are_invalid(subject: &TaskSubject) {
    let year = Duration::from_secs(365 * 24 * 3_600);
    for time in [Duration::ZERO, year * 2] {
        let new = NewTask { ttl: Some(time), ..subject.new_task() };
        let created = subject.create(&new, &TaskLimits::default()).await;
        assert_eq!(created, Err(StoreErrorKind::Invalid), "a ttl of {time:?}");
        assert_eq!(subject.load(new.task).await, None, "a ttl of {time:?}");
    }
    let task = subject.created(Some(TTL)).await;
    let (fence, before) = subject.granted(task, 1).await;
    for next in [TaskNext::Final(Duration::ZERO), TaskNext::Final(year * 2), TaskNext::Waits(Some(year * 2))]
    {
        let update = release(b"wrong", 0, next);
        assert_eq!(subject.update(&fence, &update).await, Err(StoreErrorKind::Invalid), "{next:?}");
    }
    assert_eq!(subject.row(task).await, before, "wrong times");
}

/// A sweep removes rows that are gone, in parts, and no other row.
async fn a_sweep_removes_the_rest(subject: &TaskSubject) {
    subject.clock.advance(HOUR);
    sweep(subject, true).await;
    let mut tasks = Vec::new();
    for number in 0..7 {
        let task = subject.created(Some(if number < 5 { TTL } else { TTL * 2 })).await;
        subject.queued(task, b"message").await;
        tasks.push(task);
    }
    subject.clock.advance(TTL);
    let mut swept = 0;
    for _ in 0..5 {
        let part = expect("sweep", subject.first.sweep(2).await);
        assert!(part <= 2, "{part} with a limit of 2");
        swept += part;
    }
    // A store may remove rows before any sweep.
    assert!(swept <= 5, "{swept} rows of 5 were removed");
    assert_eq!(expect("sweep", subject.first.sweep(2).await), 0, "nothing is left");
    for task in &tasks[5..] {
        assert_eq!(
            messages(&subject.row(*task).await),
            [(1, &b"message"[..])],
            "a sweep removed a row too early"
        );
    }
    subject.clock.advance(HOUR);
    sweep(subject, true).await;
    for task in &tasks {
        assert_eq!(subject.summary(*task).await, None, "listed after the sweep");
    }
}

async fn sweep(subject: &TaskSubject, swept: bool) {
    if swept {
        expect("sweep", subject.second.sweep(MANY).await);
    }
}
