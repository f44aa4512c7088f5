//! The same trees without a server: on a table of answers, in memory.

use crate::{
    handler::Decided,
    tree::{Ask, At, Node, Stop, done, heard, letter, mix, said, together},
};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// What a call has come to, leg by leg, for trees in which nothing waits but questions.
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
    /// Which error was the first, where several answers came at once: that is nobody's to say.
    pub(crate) tried: BTreeMap<String, Decided>,
}

/// What one leg comes to.
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

    /// One leg, on the answers that are there.
    pub(crate) fn leg(&self, tree: &Node) -> Leg {
        let mut running = self.run(tree, At::default(), 0);
        let mut cx = Context::from_waker(Waker::noop());
        // What is known comes first, then what is new.
        let knows_nothing = self.answers.borrow().is_empty()
            && self.steps.borrow().is_empty()
            && self.winners.borrow().is_empty();
        self.may_begin.set(knows_nothing);
        loop {
            let before = (self.changes.get(), self.may_begin.get());
            self.asked.borrow_mut().clear();
            if let Poll::Ready(result) = running.as_mut().poll(&mut cx) {
                return Leg::Done(result);
            }
            self.may_begin.set(true);
            if before == (self.changes.get(), true) {
                return Leg::Asks(self.asked.borrow().clone());
            }
        }
    }

    fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    fn run<'a>(&'a self, node: &'a Node, at: At, value: u64) -> Running<'a> {
        Box::pin(async move {
            match node {
                Node::Ask(ask) => self.ask(ask, &at, value).await,
                Node::Step(step) => {
                    let path = at.path(letter(step.name), step.name);
                    poll_fn(|_| self.step(&path)).await;
                    done(&path, step, value)
                }
                Node::Raw(_) => Ok(mix("raw", "", value)),
                Node::Seq(nodes) => {
                    let mut value = value;
                    for node in nodes {
                        value = self.run(node, at.clone(), value).await?;
                    }
                    Ok(value)
                }
                Node::Join(_, nodes) => together(join(self.branches(nodes, &at, value), |_| false).await),
                Node::Try(name, nodes) => {
                    let tried = self.tried.get(&format!("try {}", at.path(letter(*name), *name)));
                    let stops = |error| match tried {
                        Some(Decided::Tried(Some(first))) => *first == error,
                        _ => true,
                    };
                    let results = join(self.branches(nodes, &at, value), stops).await;
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

    fn branches<'a>(&'a self, nodes: &'a [Node], at: &At, value: u64) -> Vec<Running<'a>> {
        let branch = |(n, node)| self.run(node, at.clone(), mix("branch", "", value ^ n));
        (0..).zip(nodes).map(branch).collect()
    }

    async fn ask(&self, ask: &Ask, at: &At, value: u64) -> Result<u64, Stop> {
        let path = ask.path(at);
        poll_fn(|_| {
            let given = self.answers.borrow().get(&path).copied();
            match given {
                Some(true) => return Poll::Ready(()),
                Some(false) => {
                    self.answers.borrow_mut().remove(&path);
                    self.changed();
                }
                None => {}
            }
            self.asked.borrow_mut().insert(path.clone());
            Poll::Pending
        })
        .await;
        heard(said_by_form(self.seed, &path, ask), &path, ask, value)
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

pub(crate) fn said_by_form(seed: u64, path: &str, ask: &Ask) -> crate::tree::Said {
    use crate::tree::{Form, Said};
    match (said(seed, path), ask.form) {
        (Said::Accept(n), Form::Sure) => Said::Accept(n % 2),
        (said, _) => said,
    }
}

/// All results in order, or what there is at the first error.
async fn join(mut running: Vec<Running<'_>>, stops: impl Fn(Stop) -> bool) -> Vec<Result<u64, Stop>> {
    let mut results: Vec<Option<Result<u64, Stop>>> = vec![None; running.len()];
    poll_fn(|cx| {
        for (running, result) in running.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(ready) = running.as_mut().poll(cx)
            {
                *result = Some(ready);
                if ready.is_err_and(&stops) {
                    return Poll::Ready(vec![ready]);
                }
            }
        }
        if results.iter().all(Option::is_some) {
            return Poll::Ready(results.iter().flatten().copied().collect());
        }
        Poll::Pending
    })
    .await
}

/// What a tree comes to, given what came first; `None` if that is not known.
pub(crate) fn result(
    tree: &Node,
    at: &At,
    value: u64,
    seed: u64,
    decided: &BTreeMap<String, Decided>,
) -> Option<Result<u64, Stop>> {
    let branch =
        |nodes: &[Node], n: usize| result(&nodes[n], at, mix("branch", "", value ^ n as u64), seed, decided);
    Some(match tree {
        Node::Ask(ask) => {
            let path = ask.path(at);
            heard(said_by_form(seed, &path, ask), &path, ask, value)
        }
        Node::Step(step) => done(&at.path(letter(step.name), step.name), step, value),
        Node::Raw(_) => Ok(mix("raw", "", value)),
        Node::Seq(nodes) => {
            let mut value = Ok(value);
            for node in nodes {
                let Ok(so_far) = value else { break };
                value = result(node, at, so_far, seed, decided)?;
            }
            value
        }
        Node::Join(_, nodes) => {
            let all: Option<Vec<_>> = (0..nodes.len()).map(|n| branch(nodes, n)).collect();
            together(all?)
        }
        Node::Try(name, nodes) => {
            let all: Vec<_> = (0..nodes.len()).map(|n| branch(nodes, n)).collect();
            let path = at.path(letter(*name), *name);
            let Some(Decided::Tried(tried)) = decided.get(&format!("try {path}")) else { return None };
            match tried {
                Some(stop) => {
                    assert!(all.contains(&Some(Err(*stop))), "`try {path}` ended with somebody's error");
                    Err(*stop)
                }
                None => together(all.into_iter().collect::<Option<Vec<_>>>()?),
            }
        }
        Node::Select(name, nodes) => {
            let path = at.path(letter(*name), *name);
            let Some(Decided::Won(winner)) = decided.get(&format!("select {path}")) else { return None };
            branch(nodes, *winner)?.map(|result| mix("won", "", result ^ *winner as u64))
        }
        Node::Scope(name, node) => result(node, &at.scope(*name).1, value, seed, decided)?,
        Node::Loop { name, scoped, most, body } => {
            let mut value = value;
            for round in 0..*most {
                match result(body, &at.looped(*name, *scoped, round).1, value, seed, decided)? {
                    Ok(next) => value = next,
                    Err(stop) => return Some(Err(stop)),
                }
                if value.is_multiple_of(5) {
                    break;
                }
            }
            Ok(value)
        }
        Node::If(yes, no) => {
            let node = if value.is_multiple_of(2) { yes } else { no };
            result(node, at, value, seed, decided)?
        }
        Node::Catch(node) => {
            let result = result(node, at, value, seed, decided)?;
            Ok(result.unwrap_or_else(|Stop(why)| mix("caught", "", why)))
        }
        Node::Helper(node) => result(node, at, value, seed, decided)?,
    })
}
