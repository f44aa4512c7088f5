//! A claim is granted to one runner, and its fence ends when another runner takes over. A task is due when it can run and nobody
//! runs it: then, and not before.

use crate::{
    contract::tasks::subject::{
        Event, FIRST_SNAPSHOT, HALF, LEASE, Life, MANY, Outcome, TICK, TTL, TaskSubject, expect, keep,
        messages, outcome_of, release, runner,
    },
    error::StoreErrorKind,
    task::{TaskClaim, TaskFence, TaskKey, TaskLimits, TaskNext, TaskState},
};
use std::time::Duration;

const LOST: Outcome<()> = Err(StoreErrorKind::FenceLost);

/// Checks claims, leases and fences.
pub(super) async fn check(subject: &TaskSubject) {
    a_claim_needs_a_task(subject).await;
    a_claim_returns_the_row(subject).await;
    a_lease_holds_the_task(subject).await;
    a_pause_holds_the_task(subject).await;
    a_repeated_claim_gets_the_same_fence(subject).await;
    a_takeover_ends_the_old_fence(subject).await;
    a_lease_that_ended_may_be_renewed(subject).await;
    a_lease_that_was_given_back_is_lost(subject).await;
    wrong_leases_are_invalid(subject).await;
}

async fn a_claim_needs_a_task(subject: &TaskSubject) {
    let unknown = subject.new_task().task;
    assert_eq!(subject.claim(unknown, 1).await, TaskClaim::NotFound, "an unknown task");
    let gone = subject.created(Some(TTL)).await;
    subject.clock.advance(TTL);
    assert_eq!(subject.claim(gone, 1).await, TaskClaim::NotFound, "a task that is gone");
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL))).await;
    assert_eq!(subject.claim(task, 1).await, TaskClaim::Final, "by the runner that ended the task");
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Final, "by another runner");
    every_write_is_lost(subject, &fence, "after the end").await;
}

/// A task may be claimed although it is not due.
async fn a_claim_returns_the_row(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, row) = subject.granted(task, 1).await;
    assert_eq!((fence.task(), &*row.snapshot), (task, FIRST_SNAPSHOT));
    assert!(row.is_held && !row.is_final, "{row:?}");
    assert_eq!(subject.row(task).await, row, "the row of a claim is the present one");
    subject.updated(&fence, &release(b"second", 0, TaskNext::Waits(None))).await;
    let (fence, row) = subject.granted(task, 2).await;
    assert_eq!((&*row.snapshot, messages(&row)), (&b"second"[..], vec![]), "a task that waits");
    subject.updated(&fence, &release(b"third", 0, TaskNext::Runs)).await;
    assert!(!subject.row(task).await.is_held, "no lease");
}

async fn a_lease_holds_the_task(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, before) = subject.granted(task, 1).await;
    for waited in [Duration::ZERO, LEASE / 3, LEASE / 3, LEASE / 3 - TICK] {
        subject.clock.advance(waited);
        let claim = subject.claim(task, 2).await;
        assert!(matches!(claim, TaskClaim::Held { .. }), "after {waited:?} more: {claim:?}");
    }
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: TICK }, "the rest of the lease");
    assert_eq!(subject.row(task).await, before, "a refused claim");
    assert_eq!(outcome_of(subject.second.renew(&fence, LEASE * 2).await), Ok(()));
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE * 2 }, "renewed");
    assert_eq!(outcome_of(subject.first.renew(&fence, LEASE / 2).await), Ok(()));
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE / 2 }, "shortened");
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Runs)).await;
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE / 2 }, "updated");
}

/// A task that pauses runs nowhere, also if a message comes.
async fn a_pause_holds_the_task(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Pauses(LEASE * 2))).await;
    assert_eq!(subject.granted(task, 1).await.0, fence, "a claim under the lease");
    subject.clock.advance(LEASE);
    for runner in [1, 2] {
        assert_eq!(subject.claim(task, runner).await, TaskClaim::Held { retry_after: LEASE }, "it pauses");
        subject.queued(task, b"message").await;
    }
    subject.clock.advance(LEASE - TICK);
    assert_eq!(
        subject.claim(task, 2).await,
        TaskClaim::Held { retry_after: TICK },
        "it pauses with messages"
    );
    subject.clock.advance(TICK);
    let (later, row) = subject.granted(task, 2).await;
    assert!(later.number() > fence.number(), "{later:?} after {fence:?}");
    assert_eq!(messages(&row), [(1, &b"message"[..]), (2, &b"message"[..])]);
}

async fn a_repeated_claim_gets_the_same_fence(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Runs)).await;
    subject.queued(task, b"message").await;
    subject.clock.advance(LEASE - TICK);
    let TaskClaim::Fresh(again, row) = subject.claim(task, 1).await else { panic!("a repeated claim") };
    assert_eq!(again, fence, "a repeated claim");
    assert_eq!((&*row.snapshot, messages(&row)), (&b"second"[..], vec![(1, &b"message"[..])]));
    // The repeated claim extends the lease.
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE });
    subject.clock.advance(LEASE);
    let (later, _) = subject.granted(task, 1).await;
    assert!(later.number() > fence.number(), "the lease of the first claim had ended");
    every_write_is_lost(subject, &fence, "after a later claim of the same runner").await;
}

async fn a_takeover_ends_the_old_fence(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    subject.queued(task, b"message").await;
    let (old, _) = subject.granted(task, 1).await;
    subject.clock.advance(LEASE);
    assert!(!subject.row(task).await.is_held, "the lease is over");
    let TaskClaim::Fresh(new, row) = subject.claim(task, 2).await else { panic!("the lease is over") };
    assert!(new.number() > old.number(), "{new:?} after {old:?}");
    assert_eq!(messages(&row), [(1, &b"message"[..])], "a takeover gets the messages");
    every_write_is_lost(subject, &old, "after a takeover").await;
    // The old runner is another runner now.
    assert!(matches!(subject.claim(task, 1).await, TaskClaim::Held { .. }));
    let never_given = TaskFence::new(task, new.number() + 1);
    every_write_is_lost(subject, &never_given, "a fence that was never given").await;
    subject.updated(&new, &release(b"second", 1, TaskNext::Runs)).await;
    every_write_is_lost(subject, &old, "after the second run").await;
    let (third, _) = subject.granted(task, 1).await;
    assert!(third.number() > new.number(), "{third:?} after {new:?}");
}

async fn a_lease_that_ended_may_be_renewed(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.clock.advance(LEASE * 2);
    assert_eq!(outcome_of(subject.first.renew(&fence, LEASE).await), Ok(()), "nobody took over");
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE });
    subject.clock.advance(LEASE * 2);
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Runs)).await;
    assert_eq!(&*subject.row(task).await.snapshot, b"second", "nobody took over");
    assert!(matches!(subject.claim(task, 2).await, TaskClaim::Fresh(..)), "an update extends no lease");
}

async fn a_lease_that_was_given_back_is_lost(subject: &TaskSubject) {
    for next in [TaskNext::Runs, TaskNext::Waits(None), TaskNext::Waits(Some(LEASE))] {
        let task = subject.created(Some(TTL)).await;
        let (fence, _) = subject.granted(task, 1).await;
        subject.updated(&fence, &release(b"second", 0, next)).await;
        every_write_is_lost(subject, &fence, "after the lease was given back").await;
        let (later, _) = subject.granted(task, 1).await;
        assert!(later.number() > fence.number(), "{later:?} after {fence:?}");
        every_write_is_lost(subject, &fence, "after a later claim of the same runner").await;
    }
}

/// Every write under the fence is refused, and changes nothing.
pub(super) async fn every_write_is_lost(subject: &TaskSubject, fence: &TaskFence, case: &str) {
    let state = async |task: TaskKey| (subject.load(task).await, subject.summary(task).await);
    let before = state(fence.task()).await;
    for store in [&subject.first, &subject.second] {
        for time in [LEASE, LEASE * 4] {
            assert_eq!(outcome_of(store.renew(fence, time).await), LOST, "{case}: renew");
        }
        for next in [TaskNext::Runs, TaskNext::Waits(None), TaskNext::Final(TTL * 2)] {
            for update in [keep(b"lost", 9, next), release(b"lost", 0, next)] {
                let updated = outcome_of(store.update(fence, &update).await);
                assert_eq!(updated, LOST, "{case}: {update:?}");
            }
        }
    }
    assert_eq!(state(fence.task()).await, before, "{case}: a lost fence changed the row");
}

async fn wrong_leases_are_invalid(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    let day = Duration::from_secs(24 * 60 * 60);
    for lease in [Duration::ZERO, day + LEASE] {
        let claim = outcome_of(subject.first.claim(task, runner(1), lease).await);
        assert_eq!(claim, Err(StoreErrorKind::Invalid), "a lease of {lease:?}");
        let renewed = outcome_of(subject.first.renew(&fence, lease).await);
        assert_eq!(renewed, Err(StoreErrorKind::Invalid), "a lease of {lease:?}");
    }
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE }, "a wrong lease");
}

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
pub(super) async fn check_dues(subject: &TaskSubject) {
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
