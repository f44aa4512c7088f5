//! A task is due when it can run and nobody runs it: then, and not before.

use std::time::Duration;

use super::subject::{Event, HALF, Life};
use super::subject::{LEASE, MANY, TICK, TTL, TaskSubject, expect, release, runner};
use crate::task::{TaskKey, TaskLimits, TaskNext, TaskState};

/// A task: its life so far, and the moment from which it is due.
type Row = (&'static str, &'static [Event], Due);

#[derive(Clone, Copy, Debug)]
enum Due {
    Now,
    In(Duration),
    Never,
}

const MINUTE: Duration = Duration::from_secs(60);
const WAITS: TaskNext = TaskNext::Waits(None);
const MINUTE_AT_MOST: TaskNext = TaskNext::Waits(Some(MINUTE));
const FINAL: TaskNext = TaskNext::Final(TTL);

const TABLE: &[Row] = &[
    ("a new task", &[], Due::Now),
    ("a claimed task", &[Event::Claim], Due::In(LEASE)),
    ("a renewed lease", &[Event::Claim, Event::Wait(HALF), Event::Renew(MINUTE)], Due::In(MINUTE)),
    (
        "a shortened lease",
        &[Event::Claim, Event::Renew(TICK.saturating_mul(1_000))],
        Due::In(TICK.saturating_mul(1_000)),
    ),
    ("a lease that ended", &[Event::Claim, Event::Wait(LEASE)], Due::Now),
    ("it runs", &[Event::Claim, Event::Release(0, TaskNext::Runs)], Due::Now),
    ("it runs on", &[Event::Claim, Event::Wait(HALF), Event::Keep(0, TaskNext::Runs)], Due::In(HALF)),
    ("it pauses", &[Event::Claim, Event::Release(0, TaskNext::Pauses(MINUTE))], Due::In(MINUTE)),
    (
        "a message does not end a pause",
        &[Event::Claim, Event::Release(0, TaskNext::Pauses(MINUTE)), Event::Send],
        Due::In(MINUTE),
    ),
    ("it waits", &[Event::Claim, Event::Release(0, WAITS)], Due::Never),
    ("it waits for a minute", &[Event::Claim, Event::Release(0, MINUTE_AT_MOST)], Due::In(MINUTE)),
    (
        "the minute counts from the update",
        &[Event::Claim, Event::Wait(HALF), Event::Release(0, MINUTE_AT_MOST), Event::Wait(HALF)],
        Due::In(Duration::from_secs(45)),
    ),
    (
        "it waits for no time",
        &[Event::Claim, Event::Release(0, TaskNext::Waits(Some(Duration::ZERO)))],
        Due::Now,
    ),
    ("it waits under its lease", &[Event::Claim, Event::Keep(0, WAITS)], Due::Never),
    ("it waits for longer than its lease", &[Event::Claim, Event::Keep(0, MINUTE_AT_MOST)], Due::In(MINUTE)),
    (
        "it waits for less than its lease",
        &[Event::Claim, Event::Keep(0, TaskNext::Waits(Some(HALF)))],
        Due::In(LEASE),
    ),
    (
        "a claim does not end a wait",
        &[Event::Claim, Event::Release(0, MINUTE_AT_MOST), Event::Claim, Event::Wait(LEASE)],
        Due::In(LEASE),
    ),
    ("a message", &[Event::Claim, Event::Release(0, WAITS), Event::Send], Due::Now),
    ("a message before the time", &[Event::Claim, Event::Release(0, MINUTE_AT_MOST), Event::Send], Due::Now),
    (
        "a message, then a run that takes nothing",
        &[Event::Claim, Event::Release(0, WAITS), Event::Send, Event::Claim, Event::Release(0, WAITS)],
        Due::Now,
    ),
    (
        "a message that is taken",
        &[Event::Claim, Event::Release(0, WAITS), Event::Send, Event::Claim, Event::Release(1, WAITS)],
        Due::Never,
    ),
    (
        "a message that is taken, and a minute",
        &[Event::Send, Event::Claim, Event::Release(1, MINUTE_AT_MOST)],
        Due::In(MINUTE),
    ),
    (
        "one message of two is taken",
        &[Event::Send, Event::Claim, Event::Send, Event::Release(1, MINUTE_AT_MOST)],
        Due::Now,
    ),
    ("a message to a held task", &[Event::Claim, Event::Send], Due::In(LEASE)),
    (
        "a message to a held task that waits",
        &[Event::Claim, Event::Keep(0, WAITS), Event::Wait(HALF), Event::Send],
        Due::In(HALF),
    ),
    (
        "a message to a held task, which then waits",
        &[Event::Claim, Event::Send, Event::Release(0, WAITS)],
        Due::Now,
    ),
    (
        "a message to a held task, which runs on",
        &[Event::Claim, Event::Send, Event::Keep(0, WAITS), Event::Wait(HALF)],
        Due::In(HALF),
    ),
    (
        "a message to a task that waits and is claimed",
        &[Event::Claim, Event::Release(0, WAITS), Event::Claim, Event::Send, Event::Wait(LEASE)],
        Due::Now,
    ),
    (
        "a message after the lease",
        &[Event::Claim, Event::Keep(0, WAITS), Event::Wait(LEASE), Event::Send],
        Due::Now,
    ),
    ("final", &[Event::Claim, Event::Release(0, FINAL)], Due::Never),
    ("final with messages", &[Event::Send, Event::Claim, Event::Release(0, FINAL)], Due::Never),
    ("final under its lease", &[Event::Claim, Event::Keep(0, FINAL)], Due::Never),
];

/// Checks when tasks are due, and in which order.
pub(super) async fn check(subject: &TaskSubject) {
    for row in TABLE {
        check_row(subject, row).await;
    }
    the_longest_wait_is_first(subject).await;
}

async fn check_row(subject: &TaskSubject, (name, events, due): &Row) {
    let task = Life::of(subject, Some(TTL), events, name).await.task();
    match *due {
        Due::Now => {}
        Due::In(time) => {
            assert!(!subject.is_due(task).await, "{name}: due at once");
            subject.clock.advance(time - TICK);
            assert!(!subject.is_due(task).await, "{name}: due too early");
            subject.clock.advance(TICK);
        }
        Due::Never => {
            for _ in 0..5 {
                assert!(!subject.is_due(task).await, "{name}: due");
                subject.clock.advance(MINUTE);
            }
            return;
        }
    }
    assert!(subject.is_due(task).await, "{name}: not due");
    let state = subject.summary(task).await.map(|summary| summary.state);
    assert_eq!(state, Some(TaskState::Due), "{name}");
    // Nobody ran it: it is still due, until it is claimed.
    subject.clock.advance(LEASE);
    assert!(subject.is_due(task).await, "{name}: not due later");
    subject.granted(task, 9).await;
    assert!(!subject.is_due(task).await, "{name}: due under a lease");
}

async fn the_longest_wait_is_first(subject: &TaskSubject) {
    // In the reverse order of their keys too, so that no order of keys fits.
    for reverse in [false, true] {
        let mut tasks: Vec<TaskKey> = Vec::new();
        for _ in 0..5 {
            tasks.push(subject.created(Some(TTL)).await);
        }
        tasks.sort_unstable();
        if reverse {
            tasks.reverse();
        }
        let [by_message, waits, by_lease, by_time, runs] = *tasks else { panic!("{} tasks", tasks.len()) };
        let mut fences = Vec::new();
        for task in [by_message, waits, by_time, runs] {
            fences.push(subject.granted(task, 1).await.0);
        }
        // One task is due each second, in this order: by its lease, by a message, by its time, because it runs on.
        let claim = subject.first.claim(by_lease, runner(1), SECOND).await;
        expect("claim", claim);
        subject.updated(&fences[0], &release(b"", 0, TaskNext::Waits(Some(MINUTE)))).await;
        subject.updated(&fences[1], &release(b"", 0, WAITS)).await;
        subject.updated(&fences[2], &release(b"", 0, TaskNext::Waits(Some(SECOND * 3)))).await;
        subject.clock.advance(SECOND * 2);
        subject.queued(by_message, b"message").await;
        subject.clock.advance(SECOND * 2);
        subject.updated(&fences[3], &release(b"", 0, TaskNext::Runs)).await;
        // A second message, and a message to a task that is due anyway, change no place.
        subject.clock.advance(SECOND);
        subject.queued(by_message, b"message").await;
        subject.queued(by_lease, b"message").await;
        subject.queued(by_time, b"message").await;

        let all = expect("due", subject.first.due(MANY).await);
        let own: Vec<_> = all.iter().copied().filter(|task| tasks.contains(task)).collect();
        assert_eq!(own, [by_lease, by_message, by_time, runs], "the order of due tasks");
        for limit in [0, 1, all.len() - 1, all.len(), all.len() + 1, usize::MAX] {
            let due = expect("due", subject.second.due(limit).await);
            assert_eq!(due, all[..limit.min(all.len())], "at most {limit}");
        }
        let limits = TaskLimits::default();
        expect("send", subject.first.send(waits, b"message", &limits).await);
        let last = expect("due", subject.first.due(MANY).await).pop();
        assert_eq!(last, Some(waits), "the task that became due now");
    }
}

const SECOND: Duration = Duration::from_secs(1);
