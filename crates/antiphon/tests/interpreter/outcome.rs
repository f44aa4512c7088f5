//! The result of a program, given its answers and what came first.

use crate::{
    stop::Stop,
    trace::{BranchResult, LegTrace},
    tree::{Ask, BranchPosition, Node, Program, letter},
    user::{UserAnswer, after_answer, after_step, in_branch, mix, together},
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

/// The answers and the winners of one request of a call.
pub(crate) struct Facts {
    decided: BTreeMap<String, BranchResult>,
    answers: BTreeMap<String, UserAnswer>,
    /// The steps that must have ended, and the questions that wait, of the last walk.
    steps: RefCell<BTreeSet<String>>,
    open: RefCell<BTreeSet<String>>,
}

impl Facts {
    pub(crate) fn of(leg: &LegTrace) -> Self {
        let answers =
            leg.answered.lock().unwrap().iter().map(|(path, link)| (path.clone(), link.said)).collect();
        let decided = leg.decided.lock().unwrap().clone();
        Self { decided, answers, steps: RefCell::default(), open: RefCell::default() }
    }

    /// Returns the steps behind the result, without those of branches that lost.
    pub(crate) fn steps(&self, program: &Program) -> BTreeSet<String> {
        self.steps.borrow_mut().clear();
        self.result(program);
        self.steps.take()
    }

    /// Returns the questions to which the handler may have come, and which have no answer.
    pub(crate) fn open(&self, program: &Program) -> BTreeSet<String> {
        self.open.borrow_mut().clear();
        self.result(program);
        self.open.take()
    }

    /// The result; `None` if the handler cannot have come to its end on these facts.
    pub(crate) fn result(&self, program: &Program) -> Option<Result<u64, Stop>> {
        match program {
            Program::Awaits(node) => self.node(node, &BranchPosition::default(), 0),
            Program::ByHand(stages, last) => {
                let mut value = 0;
                for (number, stage) in stages.iter().enumerate() {
                    match self.node(&stage.before, &BranchPosition::default(), value)? {
                        Ok(next) => value = next,
                        Err(stop) => return Some(Err(stop)),
                    }
                    for (n, ask) in stage.asks.iter().enumerate() {
                        let path = Ask::by_hand(number, n);
                        match after_answer(*self.answers.get(&path)?, &path, ask.unwraps, value) {
                            Ok(next) => value = next,
                            Err(stop) => return Some(Err(stop)),
                        }
                    }
                }
                self.node(last, &BranchPosition::default(), value)
            }
            Program::Resolved([first, second, third], last) => {
                let then = match self.node(first, &BranchPosition::in_resolver(0), 0)? {
                    Ok(value) => self.node(second, &BranchPosition::in_resolver(1), value)?,
                    Err(stop) => Err(stop),
                };
                let beside = self.node(third, &BranchPosition::in_resolver(2), 1)?;
                match together([then, beside]) {
                    Ok(value) => self.node(last, &BranchPosition::default(), value),
                    Err(stop) => Some(Err(stop)),
                }
            }
        }
    }

    fn node(&self, node: &Node, at: &BranchPosition, value: u64) -> Option<Result<u64, Stop>> {
        let branch = |nodes: &[Node], n: usize| self.node(&nodes[n], at, in_branch(value, n));
        Some(match node {
            Node::Ask(ask) => {
                let path = ask.path(at);
                if !self.answers.contains_key(&path) {
                    self.open.borrow_mut().insert(path.clone());
                }
                after_answer(*self.answers.get(&path)?, &path, ask.unwraps, value)
            }
            Node::Step(step) => {
                let path = at.path(letter(step.name), step.name);
                self.steps.borrow_mut().insert(path.clone());
                after_step(&path, step.kind, value)
            }
            Node::Raw(_) => Ok(mix("raw", "", value)),
            Node::Checkpoint { .. } | Node::Panics(_) | Node::IntoTask => Ok(value),
            Node::Throws => return None,
            Node::Unwind(name, node) => match self.decided("unwind", *name, at) {
                Some(BranchResult::Unwound(true)) => Ok(mix("unwound", "", value)),
                Some(_) => self.node(node, at, value)?,
                None => {
                    // It may ask.
                    let _ = self.node(node, at, value);
                    return None;
                }
            },
            Node::Seq(nodes) => {
                let mut value = Ok(value);
                for node in nodes {
                    let Ok(so_far) = value else { break };
                    value = self.node(node, at, so_far)?;
                }
                value
            }
            Node::Join(_, nodes) => {
                // All of them, also behind one that waits.
                let all: Vec<_> = (0..nodes.len()).map(|n| branch(nodes, n)).collect();
                together(all.into_iter().collect::<Option<Vec<_>>>()?)
            }
            Node::Try(name, nodes) => {
                let before = (self.steps.borrow().clone(), self.open.borrow().clone());
                let all: Vec<_> = (0..nodes.len()).map(|n| branch(nodes, n)).collect();
                let BranchResult::Tried(tried) = self.decided("try", *name, at)? else { return None };
                if let Some(stop) = tried {
                    // The others may have been dropped.
                    self.steps.replace(before.0);
                    self.open.replace(before.1);
                    let mut failed = (0..nodes.len()).filter(|n| all[*n] == Some(Err(stop)));
                    branch(nodes, failed.next()?);
                }
                match tried {
                    // The error of one of them.
                    Some(stop) if all.contains(&Some(Err(stop))) => Err(stop),
                    Some(_) => return None,
                    None => together(all.into_iter().collect::<Option<Vec<_>>>()?),
                }
            }
            Node::Select(name, nodes) => {
                let Some(BranchResult::Winner(winner)) = self.decided("select", *name, at) else {
                    // Each of them may ask.
                    for n in 0..nodes.len() {
                        let _ = branch(nodes, n);
                    }
                    return None;
                };
                branch(nodes, winner)?.map(|result| mix("won", "", result ^ winner as u64))
            }
            Node::Feed(_, first, second) => {
                let first = self.node(first, at, in_branch(value, 0));
                let second_at = BranchPosition { feed: first, ..at.clone() };
                let second = self.node(second, &second_at, in_branch(value, 1));
                together([first?, second?])
            }
            Node::Takes => together([Ok(value), at.feed?]),
            Node::Pipe(first, second) => match self.node(first, at, value)? {
                Ok(value) => self.node(second, at, mix("piped", "", value))?,
                Err(stop) => Err(stop),
            },
            Node::Scope(name, node) => self.node(node, &at.scope(*name).1, value)?,
            Node::Loop { name, scoped, most, body } => {
                let mut value = value;
                for round in 0..*most {
                    match self.node(body, &at.looped(*name, *scoped, round).1, value)? {
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
                self.node(node, at, value)?
            }
            Node::Catch(node) => {
                let result = self.node(node, at, value)?;
                Ok(result.unwrap_or_else(|Stop(why)| mix("caught", "", why)))
            }
            Node::Helper(node) => self.node(node, at, value)?,
        })
    }

    fn decided(&self, what: &str, name: crate::tree::Name, at: &BranchPosition) -> Option<BranchResult> {
        self.decided.get(&format!("{what} {}", at.path(letter(name), name))).copied()
    }
}
