//! Many operations at once, through both handles.

use std::sync::Arc;

use futures_util::future::{join, join_all};

use super::subject::{LEASE, TTL, TaskSubject, expect, keep, outcome_of, runner};
use crate::error::StoreErrorKind;
use crate::task::{NewTask, TaskClaim, TaskCreated, TaskLimits, TaskNext, TaskSent, TaskStore};

const AT_ONCE: u8 = 16;

/// Checks that operations at once have the results of some order of them.
pub(super) async fn check(subject: &TaskSubject) {
    for _ in 0..4 {
        creations_at_once(subject).await;
        claims_at_once(subject).await;
        messages_at_once(subject).await;
        messages_at_the_limit_at_once(subject).await;
        messages_beside_updates(subject).await;
        an_update_and_a_takeover_at_once(subject).await;
    }
}

impl TaskSubject {
    /// Returns both handles in turn.
    fn in_turn(&self, number: u8) -> &Arc<dyn TaskStore> {
        if number.is_multiple_of(2) { &self.first } else { &self.second }
    }
}

/// Exactly one of many creations of one task is the first; and no more tasks are created than the limit allows.
async fn creations_at_once(subject: &TaskSubject) {
    let (new, limits) = (subject.new_task(), TaskLimits::default());
    let created = join_all((0..AT_ONCE).map(|number| subject.in_turn(number).create(&new, &limits))).await;
    let created: Vec<_> = created.into_iter().map(|created| expect("create", created)).collect();
    let first = created.iter().filter(|created| **created == TaskCreated::First).count();
    assert_eq!(first, 1, "one task at once: {created:?}");

    let limits = TaskLimits::default().tasks_of_owner(3);
    let owner = subject.new_task().owner;
    let tasks: Vec<_> = (0..AT_ONCE).map(|_| NewTask { owner, ..subject.new_task() }).collect();
    let created = join_all(
        (0..AT_ONCE).zip(&tasks).map(|(number, task)| subject.in_turn(number).create(task, &limits)),
    )
    .await;
    let mut first = 0;
    for created in created {
        match outcome_of(created) {
            Ok(TaskCreated::First) => first += 1,
            Err(StoreErrorKind::Full) => {}
            other => panic!("tasks of one owner at once: {other:?}"),
        }
    }
    assert_eq!(first, 3, "tasks of one owner at once");
}

/// Exactly one of many claims is granted, and then one of many takeovers.
async fn claims_at_once(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    for round in 0..2 {
        let claims = join_all(
            (0..AT_ONCE)
                .map(|number| subject.in_turn(number).claim(task, runner(number + round * AT_ONCE), LEASE)),
        )
        .await;
        let mut granted = 0;
        for claim in claims {
            match claim {
                Ok(TaskClaim::Fresh(..)) => granted += 1,
                Ok(TaskClaim::Held { retry_after }) => assert_eq!(retry_after, LEASE),
                other => panic!("claims at once: {other:?}"),
            }
        }
        assert_eq!(granted, 1, "claims at once");
        subject.clock.advance(LEASE);
    }
}

/// Messages at once are all in the queue, with the numbers from 1.
async fn messages_at_once(subject: &TaskSubject) {
    let (task, limits) = (subject.created(Some(TTL)).await, TaskLimits::default());
    let bodies: Vec<_> = (0..AT_ONCE).map(|number| [number]).collect();
    let sent = join_all(
        (0..AT_ONCE).zip(&bodies).map(|(number, body)| subject.in_turn(number).send(task, body, &limits)),
    );
    for sent in sent.await {
        assert_eq!(outcome_of(sent), Ok(TaskSent::Queued));
    }
    let messages = subject.row(task).await.messages;
    let numbers: Vec<_> = messages.iter().map(|message| message.number).collect();
    assert_eq!(numbers, (1..=u64::from(AT_ONCE)).collect::<Vec<_>>(), "messages at once");
    let mut sent: Vec<_> = messages.into_iter().flat_map(|message| message.body).collect();
    sent.sort_unstable();
    assert_eq!(sent, (0..AT_ONCE).collect::<Vec<_>>(), "messages at once");
}

async fn messages_at_the_limit_at_once(subject: &TaskSubject) {
    let (task, limits) = (subject.created(Some(TTL)).await, TaskLimits::default().messages(5));
    let sent =
        join_all((0..AT_ONCE).map(|number| subject.in_turn(number).send(task, b"message", &limits))).await;
    let queued = sent.into_iter().filter(|sent| matches!(sent, Ok(TaskSent::Queued))).count();
    assert_eq!((queued, subject.row(task).await.messages.len()), (5, 5), "messages at the limit at once");
}

/// A runner takes messages while clients send more: it gets each message once.
async fn messages_beside_updates(subject: &TaskSubject) {
    let (task, limits) = (subject.created(Some(TTL)).await, TaskLimits::default());
    let (fence, _) = subject.granted(task, 1).await;
    let clients = join_all((0..AT_ONCE).map(|number| async move {
        for _ in 0..4 {
            let sent = subject.in_turn(number).send(task, &[number], &limits).await;
            assert_eq!(outcome_of(sent), Ok(TaskSent::Queued));
        }
    }));
    let run = async {
        let mut got = Vec::new();
        for _ in 0..AT_ONCE {
            let messages = subject.row(task).await.messages;
            let taken = messages.last().map_or(0, |message| message.number);
            got.extend(messages.into_iter().map(|message| message.number));
            subject.updated(&fence, &keep(b"snapshot", taken, TaskNext::Waits(None))).await;
        }
        got
    };
    let (_, mut got) = join(clients, run).await;
    got.extend(subject.row(task).await.messages.into_iter().map(|message| message.number));
    assert_eq!(got, (1..=4 * u64::from(AT_ONCE)).collect::<Vec<_>>(), "messages beside updates");
}

/// Either the update is in the row that the next runner gets, or it is refused.
async fn an_update_and_a_takeover_at_once(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, before) = subject.granted(task, 1).await;
    subject.clock.advance(LEASE);
    let update = keep(b"second", 0, TaskNext::Runs);
    let (updated, claim) =
        join(subject.first.update(&fence, &update), subject.second.claim(task, runner(2), LEASE)).await;
    let Ok(TaskClaim::Fresh(_, row)) = claim else { panic!("an update and a takeover at once: {claim:?}") };
    match outcome_of(updated) {
        Ok(()) => assert_eq!(&*row.snapshot, b"second"),
        Err(StoreErrorKind::FenceLost) => assert_eq!(row.snapshot, before.snapshot),
        other => panic!("an update and a takeover at once: {other:?}"),
    }
    assert_eq!(subject.row(task).await, row, "the row of the takeover is the present one");
}
