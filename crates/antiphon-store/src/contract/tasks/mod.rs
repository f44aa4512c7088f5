//! The contract of a store of tasks.

mod claims;
mod ends;
mod lists;
mod model;
mod subject;
mod updates;

pub use subject::TaskSubject;

use crate::{
    claim::Owner,
    contract::races::Random,
    error::StoreErrorKind,
    task::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskNext, TaskRow, TaskSent,
        TaskStore, TaskSummary, TaskUpdate,
    },
};
use futures_util::future::{join, join_all};
use model::{Claimed, Model};
use std::{collections::HashMap, ops::Range, sync::Arc, time::Duration};
use subject::{LEASE, MANY, Outcome, TTL, expect, keep, outcome_of, runner};

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
    claims::check_dues(subject).await;
    ends::check(subject).await;
    lists::check(subject).await;
    check_races(subject).await;
    check_random_tasks(subject, 0..50, 40).await;
}

const AT_ONCE: u8 = 16;

/// Checks that operations at once have the results of some order of them.
async fn check_races(subject: &TaskSubject) {
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

/// An operation of a random order.
#[derive(Clone, Debug)]
enum Operation {
    Create { ttl: Option<Duration> },
    Send { body: Vec<u8> },
    Claim { runner: u8, lease: Duration },
    Renew { runner: u8, lease: Duration },
    Update { runner: u8, update: TaskUpdate },
    Sweep,
    Advance(Duration),
}

/// A reply, without the number of a fence and the version of a row.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Created(Outcome<TaskCreated>),
    Sent(Outcome<TaskSent>),
    Granted,
    Claim(TaskClaim),
    Done(Outcome<()>),
}

/// A fence at the store, and the same claim at the model: the creation of its row, and its number.
type Fences = (TaskFence, (Duration, i64));

/// Compares a store of tasks with a model in random orders of operations: one order for each seed.
///
/// # Panics
///
/// If a reply or a row differs. The text has the seed and the operations up to the difference.
pub async fn check_random_tasks(subject: &TaskSubject, seeds: Range<u64>, operations: usize) {
    for seed in seeds {
        let mut order = Order::new(subject);
        let mut random = Random(seed);
        for _ in 0..operations {
            let task = order.tasks[usize::from(random.small(3))];
            let operation = random.task_operation();
            order.history.push((task, operation.clone()));
            let store = if random.below(2) == 0 { &*subject.first } else { &*subject.second };
            order.run(store, task, &operation, seed).await;
            order.compare(seed).await;
        }
        for task in order.tasks {
            subject.end(task).await;
        }
    }
}

struct Order<'a> {
    subject: &'a TaskSubject,
    model: Model,
    owner: Owner,
    tasks: [TaskKey; 3],
    /// The last fence of each runner for each task.
    fences: HashMap<(TaskKey, u8), Fences>,
    /// The highest fence of each task.
    highest: HashMap<TaskKey, Fences>,
    /// The last version of each task: the creation of its row, the version at the model, and that at the store.
    versions: HashMap<TaskKey, (Duration, u64, u64)>,
    history: Vec<(TaskKey, Operation)>,
}

impl<'a> Order<'a> {
    fn new(subject: &'a TaskSubject) -> Self {
        let [first, second, third] = std::array::from_fn(|_| subject.new_task());
        Self {
            subject,
            model: Model::default(),
            owner: first.owner,
            tasks: [first.task, second.task, third.task],
            fences: HashMap::new(),
            highest: HashMap::new(),
            versions: HashMap::new(),
            history: Vec::new(),
        }
    }

    /// Runs an operation at the store and at the model.
    async fn run(&mut self, store: &dyn TaskStore, task: TaskKey, operation: &Operation, seed: u64) {
        // A client that is refused often, and a queue that is often full.
        let limits = TaskLimits::default().tasks_of_owner(2).messages(3).message_bytes(6);
        let (actual, expected) = match operation {
            Operation::Create { ttl } => {
                let new = NewTask { task, owner: self.owner, snapshot: b"new".to_vec(), ttl: *ttl };
                let actual = outcome_of(store.create(&new, &limits).await);
                (Reply::Created(actual), Reply::Created(self.model.create(&new, &limits)))
            }
            Operation::Send { body } => {
                let actual = outcome_of(store.send(task, body, &limits).await);
                (Reply::Sent(actual), Reply::Sent(self.model.send(task, body, &limits)))
            }
            Operation::Claim { runner, lease } => self.claim(store, task, *runner, *lease, seed).await,
            Operation::Renew { runner, lease } => {
                let (fence, claim) = self.fence(task, *runner);
                let actual = outcome_of(store.renew(&fence, *lease).await);
                (Reply::Done(actual), Reply::Done(self.model.renew(task, claim, *lease)))
            }
            Operation::Update { runner, update } => {
                let (fence, claim) = self.fence(task, *runner);
                let actual = outcome_of(store.update(&fence, update).await);
                (Reply::Done(actual), Reply::Done(self.model.update(task, claim, update)))
            }
            Operation::Sweep => {
                (Reply::Done(outcome_of(store.sweep(MANY).await.map(drop))), Reply::Done(Ok(())))
            }
            Operation::Advance(time) => {
                self.subject.clock.advance(*time);
                self.model.now += *time;
                return;
            }
        };
        assert_eq!(actual, expected, "the model replies otherwise: seed {seed}, {:#?}", self.history);
    }

    async fn claim(
        &mut self,
        store: &dyn TaskStore,
        task: TaskKey,
        number: u8,
        lease: Duration,
        seed: u64,
    ) -> (Reply, Reply) {
        let actual = expect("claim", store.claim(task, runner(number), lease).await);
        let expected = self.model.claim(task, runner(number), lease);
        let ((fence, actual), (claim, expected)) = match (actual, expected) {
            (TaskClaim::Fresh(fence, actual), Claimed::Fresh(claim, expected)) => {
                ((fence, actual), (claim, expected))
            }
            (actual, Claimed::Other(expected)) => return (Reply::Claim(actual), Reply::Claim(expected)),
            (actual, Claimed::Fresh(..)) => return (Reply::Claim(actual), Reply::Granted),
        };
        self.compare_rows(task, &actual, &expected, seed);
        let fences = (fence, (self.model.created(task).unwrap_or_default(), claim));
        if let Some((highest, of_model)) = self.highest.insert(task, fences) {
            let order = fences.1.cmp(&of_model);
            let actual = fence.number().cmp(&highest.number());
            assert_eq!(actual, order, "{fence:?} after {highest:?}: seed {seed}, {:#?}", self.history);
        }
        self.fences.insert((task, number), fences);
        (Reply::Granted, Reply::Granted)
    }

    /// Returns the last fence of a runner, or one that was never given.
    fn fence(&self, task: TaskKey, runner: u8) -> Fences {
        let never_given = (TaskFence::new(task, i64::MAX), (Duration::ZERO, i64::MAX));
        self.fences.get(&(task, runner)).copied().unwrap_or(never_given)
    }

    /// Compares the row of each task, its summary, and whether it is due.
    async fn compare(&mut self, seed: u64) {
        let due = expect("due", self.subject.first.due(MANY).await);
        let list = expect("list", self.subject.second.list(MANY).await);
        for task in self.tasks {
            let row = self.subject.load(task).await;
            let summary = list.iter().find(|summary| summary.task == task);
            let is_due = due.contains(&task);
            let Some((expected_row, expected_summary, expected_due)) = self.model.view(task) else {
                let none: (Option<TaskRow>, Option<&TaskSummary>, bool) = (None, None, false);
                assert_eq!(
                    (row, summary, is_due),
                    none,
                    "a row that is gone: seed {seed}, {:#?}",
                    self.history
                );
                continue;
            };
            let Some(row) = row else { panic!("{task} is gone: seed {seed}, {:#?}", self.history) };
            self.compare_rows(task, &row, &expected_row, seed);
            assert_eq!(
                (summary, is_due),
                (Some(&expected_summary), expected_due),
                "the model lists {task} otherwise: seed {seed}, {:#?}",
                self.history
            );
        }
    }

    fn compare_rows(&mut self, task: TaskKey, actual: &TaskRow, expected: &TaskRow, seed: u64) {
        let same = TaskRow { version: actual.version, ..expected.clone() };
        assert_eq!(*actual, same, "the model has another row of {task}: seed {seed}, {:#?}", self.history);
        let created = self.model.created(task).unwrap_or_default();
        let seen = self.versions.insert(task, (created, expected.version, actual.version));
        if let Some((_, of_model, version)) = seen.filter(|(of_row, ..)| *of_row == created) {
            let (order, actual) = (expected.version.cmp(&of_model), actual.version.cmp(&version));
            assert_eq!(actual, order, "the version of {task}: seed {seed}, {:#?}", self.history);
        }
    }
}

impl Random {
    fn seconds(&mut self, range: Range<u64>) -> Duration {
        Duration::from_secs(range.start + self.below(range.end - range.start))
    }

    fn task_operation(&mut self) -> Operation {
        let runner = 1 + self.small(2);
        match self.below(16) {
            0..=2 => Operation::Create { ttl: (self.below(4) > 0).then(|| self.seconds(4..16)) },
            3..=5 => Operation::Send { body: vec![self.small(9); usize::from(self.small(4))] },
            6..=8 => Operation::Claim { runner, lease: self.seconds(1..4) },
            9 => Operation::Renew { runner, lease: self.seconds(1..8) },
            10..=12 => Operation::Update { runner, update: self.update() },
            13 => Operation::Sweep,
            _ => Operation::Advance(self.seconds(1..4)),
        }
    }

    fn update(&mut self) -> TaskUpdate {
        TaskUpdate {
            snapshot: vec![self.small(9); usize::from(self.small(4))],
            taken: self.below(5),
            next: match self.below(8) {
                0..=2 => TaskNext::Runs,
                3..=4 => TaskNext::Waits(None),
                5 => TaskNext::Waits(Some(self.seconds(0..5))),
                6 => TaskNext::Pauses(self.seconds(0..5)),
                _ => TaskNext::Final(self.seconds(1..7)),
            },
            keeps_lease: self.below(2) == 0,
        }
    }
}
