//! The same programs without a server: on a table of answers, in memory.

use crate::{
    stop::Stop,
    trace::BranchResult,
    tree::{Ask, BranchPosition, Joined, Node, Program, Stage, letter},
    user::{after_answer, after_step, in_branch, mix, together, user_answer},
};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// The state of a call, leg by leg, for programs in which nothing waits but questions.
#[derive(Clone, Default)]
pub(crate) struct Plain {
    seed: u64,
    /// Answers that have come; `false` if it does not fit its form.
    pub(crate) answers: RefCell<BTreeMap<String, bool>>,
    steps: RefCell<BTreeSet<String>>,
    winners: RefCell<BTreeMap<String, usize>>,
    /// Steps that ran, each time.
    pub(crate) ran: RefCell<Vec<String>>,
    may_begin: Cell<bool>,
    changes: Cell<u32>,
    asked: RefCell<BTreeSet<String>>,
    /// The handler has returned questions.
    by_hand: Cell<bool>,
    /// The first error of each `try_join`: where several answers come at once, no rule says which it is.
    pub(crate) tried: BTreeMap<String, BranchResult>,
}

/// The outcome of one leg.
#[derive(Debug, PartialEq)]
pub(crate) enum Leg {
    Done(Result<u64, Stop>),
    Asks(BTreeSet<String>),
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<u64, Stop>> + 'a>>;

impl Plain {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// A call of its own, with the same list of steps that ran.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self { seed: self.seed, ran: RefCell::new(self.ran.take()), ..Self::default() };
    }

    /// The same, where each `try_join` ended like this.
    pub(crate) fn tried(&self, tried: BTreeMap<String, BranchResult>) -> Self {
        Self { tried, ..self.clone() }
    }

    /// One leg, on the answers that are there.
    pub(crate) fn leg(&self, program: &Program) -> Leg {
        let mut running = self.program(program);
        let mut cx = Context::from_waker(Waker::noop());
        // What is known comes first, then what is new.
        let knows_nothing = self.answers.borrow().is_empty()
            && self.steps.borrow().is_empty()
            && self.winners.borrow().is_empty();
        self.may_begin.set(knows_nothing);
        self.by_hand.set(false);
        loop {
            let before = (self.changes.get(), self.may_begin.get());
            self.asked.borrow_mut().clear();
            if let Poll::Ready(result) = running.as_mut().poll(&mut cx) {
                return Leg::Done(result);
            }
            self.may_begin.set(true);
            if self.by_hand.get() || before == (self.changes.get(), true) {
                return Leg::Asks(self.asked.borrow().clone());
            }
        }
    }

    fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    fn program<'a>(&'a self, program: &'a Program) -> Running<'a> {
        Box::pin(async move {
            match program {
                Program::Awaits(node) => self.run(node, BranchPosition::default(), 0).await,
                Program::ByHand(stages, last) => {
                    let mut value = 0;
                    for (number, stage) in stages.iter().enumerate() {
                        value = self.run(&stage.before, BranchPosition::default(), value).await?;
                        value = self.stage(number, stage, value).await?;
                    }
                    self.run(last, BranchPosition::default(), value).await
                }
                Program::Resolved([first, second, third], last) => {
                    let then = async {
                        let value = self.run(first, BranchPosition::in_resolver(0), 0).await?;
                        self.run(second, BranchPosition::in_resolver(1), value).await
                    };
                    let beside = self.run(third, BranchPosition::in_resolver(2), 1);
                    let resolved = join(vec![Box::pin(then), beside], usize::MAX, |_| false).await;
                    self.run(last, BranchPosition::default(), together(resolved)?).await
                }
            }
        })
    }

    /// Questions that the handler returns until all have an answer.
    async fn stage(&self, number: usize, stage: &Stage, value: u64) -> Result<u64, Stop> {
        let paths = (0..stage.asks.len()).map(|n| Ask::by_hand(number, n));
        let missing: BTreeSet<String> = paths.filter(|path| !self.has_answer(path)).collect();
        if !missing.is_empty() {
            self.by_hand.set(true);
            *self.asked.borrow_mut() = missing;
            std::future::pending::<()>().await;
        }
        stage.asks.iter().enumerate().try_fold(value, |value, (n, ask)| {
            let path = Ask::by_hand(number, n);
            after_answer(user_answer(self.seed, &path, 0, ask.form), &path, ask.unwraps, value)
        })
    }

    /// Returns `true` if there is an answer that fits. An answer that does not fit is removed.
    fn has_answer(&self, path: &str) -> bool {
        let given = self.answers.borrow().get(path).copied();
        if given == Some(false) {
            self.answers.borrow_mut().remove(path);
            self.changed();
        }
        given == Some(true)
    }

    fn run<'a>(&'a self, node: &'a Node, at: BranchPosition, value: u64) -> Running<'a> {
        Box::pin(async move {
            match node {
                Node::Ask(ask) => self.ask(ask, &at, value).await,
                Node::Step(step) => {
                    let path = at.path(letter(step.name), step.name);
                    poll_fn(|_| self.step(&path)).await;
                    after_step(&path, step.kind, value)
                }
                Node::Raw(_) => Ok(mix("raw", "", value)),
                // Not in programs whose legs are known beforehand.
                Node::Takes | Node::Panics(_) | Node::IntoTask => Ok(value),
                Node::Feed(joined, first, second) => {
                    let first = self.run(first, at.clone(), in_branch(value, 0));
                    let second = self.run(second, at, in_branch(value, 1));
                    together(join(vec![first, second], width(*joined), |_| false).await)
                }
                Node::Checkpoint { .. } => Ok(value),
                Node::Throws => std::panic::resume_unwind(Box::new("as the program says")),
                Node::Unwind(_, node) => {
                    let mut running = self.run(node, at, value);
                    let ran = poll_fn(|cx| {
                        let may_begin = self.may_begin.get();
                        let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
                        self.may_begin.set(may_begin);
                        match polled {
                            Ok(polled) => polled.map(Some),
                            Err(_) => {
                                // What it asked is asked no more.
                                self.changed();
                                Poll::Ready(None)
                            }
                        }
                    });
                    ran.await.unwrap_or_else(|| Ok(mix("unwound", "", value)))
                }
                Node::Seq(nodes) => {
                    let mut value = value;
                    for node in nodes {
                        value = self.run(node, at.clone(), value).await?;
                    }
                    Ok(value)
                }
                Node::Join(joined, nodes) => {
                    together(join(self.branches(nodes, &at, value), width(*joined), |_| false).await)
                }
                Node::Try(name, nodes) => {
                    let tried = self.tried.get(&format!("try {}", at.path(letter(*name), *name)));
                    let stops = |error| match tried {
                        Some(BranchResult::Tried(Some(first))) => *first == error,
                        _ => true,
                    };
                    let results = join(self.branches(nodes, &at, value), usize::MAX, stops).await;
                    match results.iter().find(|result| result.is_err()) {
                        Some(error) => *error,
                        None => together(results),
                    }
                }
                Node::Select(name, nodes) => {
                    let path = at.path(letter(*name), *name);
                    let (winner, result) = self.select(path, self.branches(nodes, &at, value)).await;
                    Ok(mix("won", "", result? ^ winner as u64))
                }
                Node::Pipe(first, second) => {
                    let value = self.run(first, at.clone(), value).await?;
                    self.run(second, at, mix("piped", "", value)).await
                }
                Node::Scope(name, node) => self.run(node, at.scope(*name).1, value).await,
                Node::Loop { name, scoped, most, body } => {
                    let mut value = value;
                    for round in 0..*most {
                        value = self.run(body, at.looped(*name, *scoped, round).1, value).await?;
                        if value.is_multiple_of(5) {
                            break;
                        }
                    }
                    Ok(value)
                }
                Node::If(yes, no) => {
                    let node = if value.is_multiple_of(2) { yes } else { no };
                    self.run(node, at, value).await
                }
                Node::Catch(node) => {
                    let result = self.run(node, at, value).await;
                    Ok(result.unwrap_or_else(|Stop(why)| mix("caught", "", why)))
                }
                Node::Helper(node) => self.run(node, at, value).await,
            }
        })
    }

    fn branches<'a>(&'a self, nodes: &'a [Node], at: &BranchPosition, value: u64) -> Vec<Running<'a>> {
        let branch = |(n, node)| self.run(node, at.clone(), in_branch(value, n));
        nodes.iter().enumerate().map(branch).collect()
    }

    async fn ask(&self, ask: &Ask, at: &BranchPosition, value: u64) -> Result<u64, Stop> {
        let path = ask.path(at);
        poll_fn(|_| {
            if self.has_answer(&path) {
                return Poll::Ready(());
            }
            self.asked.borrow_mut().insert(path.clone());
            Poll::Pending
        })
        .await;
        after_answer(user_answer(self.seed, &path, 0, ask.form), &path, ask.unwraps, value)
    }

    fn step(&self, path: &str) -> Poll<()> {
        if self.steps.borrow().contains(path) {
            return Poll::Ready(());
        }
        if !self.may_begin.get() {
            return Poll::Pending;
        }
        self.steps.borrow_mut().insert(path.to_owned());
        self.ran.borrow_mut().push(path.to_owned());
        self.changed();
        Poll::Ready(())
    }

    /// Answers first, in source order; then steps begin in source order.
    async fn select<'a>(
        &'a self,
        path: String,
        mut branches: Vec<Running<'a>>,
    ) -> (usize, Result<u64, Stop>) {
        poll_fn(|cx| {
            let known = self.winners.borrow().get(&path).copied();
            if let Some(winner) = known {
                return branches[winner].as_mut().poll(cx).map(|result| (winner, result));
            }
            let may_begin = self.may_begin.get();
            for begins in [false, may_begin] {
                for (n, branch) in branches.iter_mut().enumerate() {
                    self.may_begin.set(begins);
                    let polled = branch.as_mut().poll(cx);
                    self.may_begin.set(may_begin);
                    if let Poll::Ready(result) = polled {
                        self.winners.borrow_mut().insert(path.clone(), n);
                        self.changed();
                        return Poll::Ready((n, result));
                    }
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The number of branches that are polled at once.
fn width(joined: Joined) -> usize {
    match joined {
        Joined::Buffered(most) => most.into(),
        _ => usize::MAX,
    }
}

/// All results in order, so many branches at once, or the first error that stops the others.
async fn join(
    mut running: Vec<Running<'_>>,
    width: usize,
    stops: impl Fn(Stop) -> bool,
) -> Vec<Result<u64, Stop>> {
    let mut results: Vec<Option<Result<u64, Stop>>> = vec![None; running.len()];
    poll_fn(|cx| {
        let mut pending = 0;
        for (running, result) in running.iter_mut().zip(&mut results) {
            if result.is_some() {
                continue;
            }
            if pending == width {
                break;
            }
            match running.as_mut().poll(cx) {
                Poll::Ready(ready) => {
                    *result = Some(ready);
                    if ready.is_err_and(&stops) {
                        return Poll::Ready(vec![ready]);
                    }
                }
                Poll::Pending => pending += 1,
            }
        }
        if results.iter().all(Option::is_some) {
            return Poll::Ready(results.iter().flatten().copied().collect());
        }
        Poll::Pending
    })
    .await
}
