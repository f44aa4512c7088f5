//! The rules for a call with a store, whatever its client does and whichever processes die, compared with the plain interpreter.
//!
//! | rule | where |
//! |---|---|
//! | a step has its effect once at most, and an interrupted one again only if its tool says so | [`effects`] |
//! | a step has one idempotency key, and a key has one step | [`effects`] |
//! | no attempt begins after the handler received the step's end | `leaves::body` |
//! | the first branch of a race, and the first error of a `try_join`, are the same in each run | `Trace::decides` |
//! | each step behind the result had its effect; an effect beside it belongs to a branch that lost | [`result`] |
//! | the result is that of the interpreter, for the answers and first branches of a run | [`result`] |
//! | an answer is the one that the person gave, and a question that was answered is not asked again | [`Consents`], [`asks`] |
//! | a round asks what the interpreter asks | [`asks`] |
//! | a step is unknown only if it was interrupted and nobody can resolve it | [`unknown`] |
//! | the same request has the same reply | `stored` |
//! | every request has a reply in a minute, and every call and task ends | `fleet`, `stored`, `tasked` |

use crate::{
    case::Case,
    checks::{Allowance, Consents, effects},
    fleet::Fleet,
    outcome::Facts,
    trace::{Crash, LegTrace, Run, RunEnd},
    tree::{BranchPosition, Node, Program, letter},
    user::in_words,
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

/// Checks all runs of the handler so far: their answers and effects.
pub(crate) fn runs(fleet: &Fleet, consents: Option<&Consents>, interruptions: usize) -> Result<(), String> {
    fleet.trace.check()?;
    let legs = fleet.legs.lock().unwrap().clone();
    if let Some(consents) = consents {
        legs.iter().try_for_each(|leg| consents.check(leg))?;
    }
    let interruptions = Some(fleet.deaths + interruptions + failures(&legs));
    effects(&legs, Allowance { calls: 1, repeats: 0, cuts: true, interruptions })
}

/// Checks the questions of a round of a call. The first request runs no step, so that it may ask less.
pub(crate) fn asks(
    case: &Case,
    fleet: &Fleet,
    asked: &BTreeSet<String>,
    is_first: bool,
    interruptions: usize,
) -> Result<(), String> {
    let legs = fleet.legs.lock().unwrap().clone();
    let open = |leg: &Arc<LegTrace>| Facts::of(leg).open(&case.program);
    // The last run may be one that has just begun.
    let exactly = case.program.is_exact() && !case.program.buffers() && !asked.is_empty() && !is_first;
    // A branch may wait for a step of which nobody can find out, while another one asks.
    let is_interrupted = fleet.deaths + interruptions + failures(&legs) > 0;
    let exactly = exactly && (!is_interrupted || case.reruns || !case.program.leaves_unknown());
    let fits = |open: BTreeSet<String>| if exactly { *asked == open } else { asked.is_subset(&open) };
    match legs.iter().rev().any(|leg| fits(open(leg))) {
        true => Ok(()),
        false => {
            let open: Vec<_> = legs.iter().map(open).collect();
            Err(format!("asks {asked:?}, but should ask, in each run: {open:?}"))
        }
    }
}

/// Checks the result of a call: it is that of a run, and the effects fit it.
pub(crate) fn result(case: &Case, fleet: &Fleet, text: &str) -> Result<(), String> {
    let legs = fleet.legs.lock().unwrap().clone();
    let ends =
        |leg: &&Arc<LegTrace>| Facts::of(leg).result(&case.program).map(in_words).as_deref() == Some(text);
    let Some(leg) = legs.iter().rev().find(ends) else {
        let facts = |leg: &Arc<LegTrace>| {
            let result = Facts::of(leg).result(&case.program).map(in_words);
            format!("{result:?} where {:?}", leg.decided.lock().unwrap())
        };
        return Err(format!(
            "{text}, but should be that of a run: {:?}",
            legs.iter().map(facts).collect::<Vec<_>>()
        ));
    };
    let must = Facts::of(leg).steps(&case.program);
    let done: BTreeSet<String> = all(&legs, |run| run.end == RunEnd::Outcome);
    if let Some(missing) = must.difference(&done).next() {
        return Err(format!("`{missing}` is behind the result, and was not done"));
    }
    let may = lost(&case.program, leg);
    let foreign = done.difference(&must).find(|path| !may.contains(*path));
    foreign.map_or(Ok(()), |path| {
        let decided = leg.decided.lock().unwrap();
        Err(format!("`{path}` was done, and is in no branch that lost: {decided:?}"))
    })
}

/// Returns the number of attempts without an outcome and of panics: each ends its leg, and interrupts the steps beside it.
fn failures(legs: &[Arc<LegTrace>]) -> usize {
    let runs = legs.iter().flat_map(|leg| leg.runs.lock().unwrap().clone());
    let panics = legs.iter().filter(|leg| leg.panicked.load(Ordering::Relaxed)).count();
    runs.filter(|run| run.end == RunEnd::NoOutcome).count() + panics
}

fn all(legs: &[Arc<LegTrace>], holds: impl Fn(&Run) -> bool) -> BTreeSet<String> {
    let runs = legs.iter().flat_map(|leg| leg.runs.lock().unwrap().clone());
    runs.filter(|run| holds(run)).map(|run| run.path).collect()
}

/// Checks the error `outcome_unknown`.
pub(crate) fn unknown(case: &Case, fleet: &Fleet, interruptions: usize, error: &Value) -> Result<(), String> {
    if case.reruns || !case.program.leaves_unknown() {
        return Err(format!("{error}, though each step can be resolved"));
    }
    let Some(step) = error["data"]["step"].as_str() else {
        return Err(format!("no step is named: {error}"));
    };
    let legs = fleet.legs.lock().unwrap().clone();
    let resolved = all(&legs, |run| run.crash != Crash::Unresolved);
    let interruptions = fleet.deaths + interruptions + failures(&legs);
    match resolved.contains(step) || fleet.trace.has_received(step) || interruptions == 0 {
        true => Err(format!("{error}, though the step was not interrupted, or can be resolved")),
        false => Ok(()),
    }
}

/// Returns the steps of branches that lost, in one run.
fn lost(program: &Program, leg: &LegTrace) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    if let Program::Awaits(node) = program {
        walk(node, &BranchPosition::default(), false, leg, &mut lost);
    }
    lost
}

/// Adds the steps below a node that is in a branch that lost; in one that did not, those of the branches that did.
fn walk(node: &Node, at: &BranchPosition, has_lost: bool, leg: &LegTrace, lost: &mut BTreeSet<String>) {
    use crate::trace::BranchResult::{Tried, Unwound, Winner};
    let mut each = |nodes: &[Node], lose: &dyn Fn(usize) -> bool| {
        for (n, node) in nodes.iter().enumerate() {
            walk(node, at, has_lost || lose(n), leg, lost);
        }
    };
    let decided = |what: &str, name| {
        leg.decided.lock().unwrap().get(&format!("{what} {}", at.path(letter(name), name))).copied()
    };
    match node {
        Node::Step(step) if has_lost => drop(lost.insert(at.path(letter(step.name), step.name))),
        Node::Seq(nodes) | Node::Join(_, nodes) => each(nodes, &|_| false),
        Node::Try(name, nodes) => {
            let failed = !matches!(decided("try", *name), Some(Tried(None)));
            each(nodes, &|_| failed);
        }
        Node::Select(name, nodes) => {
            let winner = decided("select", *name);
            each(nodes, &|n| winner != Some(Winner(n)));
        }
        Node::Pipe(one, two) | Node::Feed(_, one, two) | Node::If(one, two) => {
            walk(one, at, has_lost, leg, lost);
            walk(two, at, has_lost, leg, lost);
        }
        Node::Scope(name, node) => walk(node, &at.scope(*name).1, has_lost, leg, lost),
        Node::Loop { name, scoped, most, body } => {
            for round in 0..*most {
                walk(body, &at.looped(*name, *scoped, round).1, has_lost, leg, lost);
            }
        }
        Node::Unwind(name, node) => {
            let is_unwound = matches!(decided("unwind", *name), Some(Unwound(true)));
            walk(node, at, has_lost || is_unwound, leg, lost);
        }
        Node::Catch(node) | Node::Helper(node) => walk(node, at, has_lost, leg, lost),
        _ => {}
    }
}
