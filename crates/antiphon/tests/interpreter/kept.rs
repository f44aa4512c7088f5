//! Programs that have failed once, shrunk. A row is a program and a client, as the failed test prints them.

use crate::{
    case::{A, B, C, Carrier, Case, Move, answers, ask, join, pipe, raw, repeat, select, seq, step},
    harness::one,
    shapes::ServerKind,
    tree::{Form, Joined, Kind, Node, Program, Raw, Text},
};
use Carrier::{Pushed, Sealed};
use std::sync::Arc;

fn row(carrier: Carrier, node: Node, moves: Vec<Move>) -> Case {
    let program = Arc::new(Program::Awaits(node).named());
    Case { carrier, program, seed: 0, server: ServerKind::Usual, moves }
}

/// Runs a row before many people, some of whom refuse.
fn holds(why: &str, case: &Case) {
    for seed in 0..40 {
        let case = Case { seed, ..case.clone() };
        if let Err(fault) = one(&case) {
            panic!("{why}: {fault}\n{case:?}");
        }
    }
}

/// A race shares the waker of a set of futures with the question beside it: the answer to that question must reach it.
#[test]
fn a_question_beside_a_race_in_a_set() {
    let race = select(A, [step(A, Kind::Done), ask(A, Form::Sure)]);
    let beside = join(Joined::Macro, [ask(A, Form::Pick), race]);
    let set = join(Joined::Unordered, [beside, raw(Raw::Yields(1))]);
    holds("the answer is lost", &row(Pushed, set.clone(), vec![]));
    holds("the same in requests", &row(Sealed, set, vec![]));
}

/// A race waits for a value that comes from another branch of the set, behind a question.
#[test]
fn a_race_waits_for_another_branch() {
    let race = select(A, [step(C, Kind::Done), raw(Raw::Sleeps(200))]);
    let slow = join(Joined::Macro, [step(A, Kind::Done).waits_for(Raw::Sleeps(20)), race]);
    let first = seq([step(B, Kind::Done).waits_for(Raw::Sleeps(5)), ask(A, Form::Sure), step(B, Kind::Done)]);
    let set = join(Joined::Unordered, [slow, pipe(first, step(C, Kind::Done))]);
    holds("the second leg hangs", &row(Sealed, set, vec![]));
}

/// Races in sets of futures in a race must not wake each other without end.
#[test]
fn races_within_sets_within_a_race() {
    let inner = select(B, [step(A, Kind::Done).waits_for(Raw::Sleeps(18)), ask(A, Form::Pick)]);
    let waits = || seq([ask(B, Form::Pick), raw(Raw::Yields(1))]);
    let set = join(Joined::Unordered, [repeat(A, true, 2, inner), waits(), waits()]);
    let race = select(A, [set, step(B, Kind::Done).waits_for(Raw::Sleeps(87))]);
    holds("it spins", &row(Sealed, race.clone(), vec![]));
    holds("it spins in a session", &row(Pushed, race, vec![]));
}

/// The person confirms one thing; then the question before it changes. The confirmation does not hold for another thing.
#[test]
fn a_confirmation_is_for_what_was_shown() {
    let which = || ask(A, Form::Pick).text(Text::World).unwraps();
    let really = || ask(A, Form::Sure).text(Text::Same).unwraps();
    let changes = vec![answers(0xff), answers(0xff), answers(0xff).world(1)];
    let drops = seq([which(), really(), step(A, Kind::Done)]);
    holds("D3", &row(Sealed, drops, changes.clone()));
    let pinned = seq([which(), step(B, Kind::Pinned), really(), step(A, Kind::Done)]);
    holds("with a step between the two", &row(Sealed, pinned, changes));
}
