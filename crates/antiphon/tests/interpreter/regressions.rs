//! Programs that have failed once, shrunk. A row is a program and a client, as the failed test prints them.

use crate::{
    case::{
        A, B, C, Carrier, Case, Move, MoveKind, answers, ask, catch, feed, join, raw, repeat, select, seq,
        stage, step, try_join, unwind,
    },
    generate::Family,
    harness::{one, samples},
    shapes::ServerKind,
    tree::{Form, Joined, Kind, Node, Program, Raw, Text},
};
use Carrier::{Memory, Pushed, Sealed};
use std::sync::Arc;

fn row(carrier: Carrier, node: Node, moves: Vec<Move>) -> Case {
    whole(carrier, Program::Awaits(node), moves)
}

fn whole(carrier: Carrier, program: Program, moves: Vec<Move>) -> Case {
    Case {
        carrier,
        program: Arc::new(program.named()),
        seed: 0,
        server: ServerKind::Usual,
        reruns: false,
        moves,
    }
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

/// A race waits for a value that comes from another branch of the set, behind a question and a step.
#[test]
fn a_race_waits_for_another_branch() {
    let first = seq([step(B, Kind::Done).waits_for(Raw::Sleeps(5)), ask(A, Form::Sure), step(B, Kind::Done)]);
    let race = select(A, [seq([step(C, Kind::Done), Node::Takes]), raw(Raw::Never)]);
    let second = join(Joined::Macro, [step(A, Kind::Done).waits_for(Raw::Sleeps(20)), race]);
    let case = row(Sealed, feed(Joined::Unordered, first, second), vec![]);
    holds("the second leg hangs", &case);
}

/// Races in sets of futures in a race must not wake each other without end.
#[test]
fn races_within_sets_within_a_race() {
    let inner = select(B, [step(A, Kind::Done).waits_for(Raw::Sleeps(18)), ask(A, Form::Pick)]);
    let waits = || join(Joined::Unordered, [ask(B, Form::Pick), raw(Raw::Yields(1))]);
    let set = join(Joined::Unordered, [repeat(A, true, 2, inner), waits(), waits()]);
    let race = select(A, [set, step(B, Kind::Done).waits_for(Raw::Sleeps(87))]);
    holds("it spins", &row(Sealed, race.clone(), vec![]));
    holds("it spins in a session", &row(Pushed, race, vec![]));
}

/// The person confirms one thing; then the question before it changes. The confirmation does not hold for another
/// thing.
#[test]
fn a_confirmation_is_for_what_was_shown() {
    let which = || ask(A, Form::Pick).text(Text::World).unwraps();
    let really = || ask(A, Form::Sure).text(Text::Same).unwraps();
    let changes = vec![answers(0xff), answers(0xff), answers(0xff).world(1)];
    let drops = seq([which(), really(), step(A, Kind::Done)]);
    holds("another thing is confirmed", &row(Sealed, drops, changes.clone()));
    let pinned = seq([which(), step(B, Kind::Pinned), really(), step(A, Kind::Done)]);
    holds("with a step between the two", &row(Sealed, pinned, changes));
}

/// A finished step must not run again because a step beside it failed: the record leaves first.
#[test]
fn what_was_done_leaves_before_a_failure() {
    let flaky = || step(B, Kind::Flaky { panics: false });
    for (what, fails) in [("a step fails", flaky()), ("the handler panics", Node::Panics(A))] {
        let charged = seq([step(A, Kind::Done), fails.clone(), ask(A, Form::Sure)]);
        holds(what, &row(Sealed, charged, vec![]));
        let behind = seq([ask(B, Form::Sure), step(A, Kind::Done), fails]);
        holds(what, &row(Sealed, behind, vec![]));
    }
}

/// A step that a store has as begun, and that is dropped because its leg fails, is not forgotten: it would run twice.
#[test]
fn a_step_that_is_dropped_by_a_failure_has_begun() {
    let slow = || step(A, Kind::Done).waits_for(Raw::Sleeps(996)).reconciles();
    for fails in
        [step(B, Kind::Flaky { panics: false }), step(B, Kind::Flaky { panics: true }), Node::Panics(B)]
    {
        let quick = || seq([step(C, Kind::Pinned).waits_for(Raw::Yields(1)), fails.clone()]);
        for joined in [Joined::Ours, Joined::Unordered] {
            holds("beside a step", &row(Memory, join(joined, [slow(), quick()]), vec![]));
            let asks = join(joined, [slow(), quick(), ask(A, Form::Sure)]);
            holds("beside a question", &row(Memory, asks, vec![answers(0xff)]));
            // Between two attempts, the one that has ended had no effect: nobody needs to find out.
            let retried = step(A, Kind::Retried { fails: 2, panics: false });
            holds("between two attempts", &row(Memory, join(joined, [retried, quick()]), vec![]));
            let dies = MoveKind::Dies { after: 3, takes_effect: true };
            holds(
                "after a crash",
                &row(Memory, join(joined, [slow(), quick()]), vec![answers(0xff).what(dies)]),
            );
        }
    }
}

/// Steps end behind the end of a leg, which another one has failed, so the handler receives none of them. On the next leg, the first
/// one decides a race. On the leg behind it the race is decided before its other branches are polled.
#[test]
fn a_step_that_was_not_delivered_is_dropped_by_a_race() {
    let inner = || select(A, [step(B, Kind::Done).waits_for(Raw::Sleeps(1)), step(C, Kind::Done)]);
    for panics in [false, true] {
        let race = select(A, [step(A, Kind::Flaky { panics }), step(A, Kind::Done), inner()]);
        let asks = seq([race, ask(A, Form::Pick), step(A, Kind::Done)]);
        holds("behind a question", &row(Memory, asks.clone(), vec![]));
        holds("without a store", &row(Sealed, asks, vec![]));
        let into = catch(try_join(A, [step(A, Kind::Flaky { panics }), seq([inner(), Node::IntoTask])]));
        holds("behind a task", &row(Memory, seq([into, step(A, Kind::Done)]), vec![answers(0xff)]));
    }
}

/// A leg finds out about a step of an earlier leg, and dies behind that: it has stored the end, without a start.
#[test]
fn a_step_of_an_earlier_leg_is_reconciled_and_its_leg_dies() {
    let race = select(A, [seq([step(A, Kind::Pinned), ask(A, Form::Pick)]), raw(Raw::Sleeps(51))]);
    let before = join(Joined::Ours, [race, select(B, [step(B, Kind::Done), step(C, Kind::Done)])]);
    let program = seq([before, step(A, Kind::Done), step(A, Kind::Pinned).reconciles(), step(B, Kind::Done)]);
    for after in 9..16 {
        for then in
            [MoveKind::Cuts { polls: 5, rests: false }, MoveKind::Dies { after: 3, takes_effect: true }]
        {
            let dies = MoveKind::Dies { after, takes_effect: false };
            let moves = vec![answers(0xff), answers(0xff).what(dies), answers(0xff).what(then)];
            holds("its input has changed", &row(Memory, program.clone(), moves));
        }
    }
}

/// A wait has won a race against a question, beside long steps. On the next leg the wait is not over when the handler asks.
#[test]
fn a_question_is_not_asked_if_the_record_has_another_winner() {
    let race = || select(A, [seq([ask(A, Form::Pick), ask(A, Form::Pick)]), raw(Raw::Sleeps(51))]);
    for long in [Raw::Sleeps(980), Raw::Sleeps(400)] {
        let beside = join(Joined::Ours, [race(), step(A, Kind::Done), step(B, Kind::Done).waits_for(long)]);
        let behind = seq([beside, join(Joined::Ours, [step(C, Kind::Done), ask(B, Form::Pick)])]);
        for carrier in [Carrier::TaskMemory, Memory] {
            holds("it is asked again", &row(carrier, behind.clone(), vec![]));
        }
    }
}

/// A question stays open in a task until its race is over. Then a person refuses it: too late, and no reason to stop.
#[test]
fn a_refusal_that_comes_after_its_race_stops_nothing() {
    for before in [Raw::Yields(1), Raw::Yields(3), Raw::Sleeps(30)] {
        let asks = seq([raw(before), ask(C, Form::Note)]);
        let races =
            select(A, [seq([step(A, Kind::Pinned), step(A, Kind::Done)]), seq([step(B, Kind::Done)])]);
        let into = select(B, [seq([Node::IntoTask]), asks]);
        let program = seq([ask(A, Form::Pick), join(Joined::Ours, [races, into]), step(C, Kind::Done)]);
        for what in [MoveKind::Sends, MoveKind::Returns(0), MoveKind::Cuts { polls: 0, rests: false }] {
            let moves = vec![answers(0xff), answers(0xff), answers(0xff).what(what)];
            holds("it diverges", &row(Memory, program.clone(), moves));
        }
    }
}

/// A task shows a question, its leg fails, and the next run of the leg panics behind the question: its answer is not lost.
#[test]
fn a_question_that_a_panic_drops_stays_open_in_its_task() {
    for panics in [seq([step(A, Kind::Flaky { panics: false }), Node::Panics(A)]), Node::Panics(A)] {
        let beside = join(Joined::Ours, [ask(A, Form::Pick), panics.clone(), Node::IntoTask]);
        let moves = vec![answers(0xff), answers(0xff).pause(4), answers(0xff), answers(0xff)];
        let program = seq([beside, ask(B, Form::Pick)]);
        for carrier in [Memory, Carrier::TaskMemory] {
            holds("it is asked again", &row(carrier, program.clone(), moves.clone()));
        }
    }
}

/// A step behind a wait fails, and the question beside it is dropped. On a later leg the wait is not over when the handler asks.
#[test]
fn a_question_is_not_asked_before_the_failure_that_dropped_it() {
    for wait in [51, 200, 900] {
        let fails = seq([raw(Raw::Sleeps(wait)), step(A, Kind::Fails)]);
        let tried = catch(try_join(A, [fails, seq([ask(A, Form::Pick)])]));
        let race =
            select(A, [seq([step(B, Kind::Pinned).waits_for(Raw::Yields(1))]), seq([step(C, Kind::Done)])]);
        let behind = select(B, [seq([ask(B, Form::Pick)]), seq([ask(C, Form::Pick)])]);
        let program =
            seq([ask(A, Form::Sure), join(Joined::Ours, [tried, race]), behind, step(A, Kind::Done)]);
        for carrier in [Memory, Carrier::TaskMemory] {
            for after in [7, 10, 13] {
                let dies = MoveKind::Dies { after, takes_effect: false };
                holds(
                    "it is asked again",
                    &row(carrier, program.clone(), vec![answers(0xff), answers(0xff).what(dies)]),
                );
            }
        }
    }
}

/// A race is over and waits for the step of a loser, which fails: nothing is decided. A task has shown the question of the other loser.
#[test]
fn a_question_of_a_race_that_is_not_decided_stays_open_in_its_task() {
    for wait in [700, 1000, 1300] {
        let slow = seq([step(A, Kind::Flaky { panics: false }).waits_for(Raw::Sleeps(wait))]);
        let race = select(A, [seq([ask(A, Form::Pick)]), seq([raw(Raw::Task(0))]), slow]);
        let before = join(Joined::Ours, [seq([step(A, Kind::Pinned), ask(A, Form::Pick)]), Node::IntoTask]);
        let program = seq([before, race, step(B, Kind::Done)]);
        for carrier in [Memory, Carrier::TaskMemory] {
            holds("it is asked again", &row(carrier, program.clone(), vec![]));
        }
    }
}

/// A step ends in a branch of a race after its leg is over. On the next leg the race is over before that branch is polled.
#[test]
fn a_step_that_was_not_delivered_is_not_reached_behind_a_race() {
    let checkpoint = || seq([Node::Checkpoint { name: A, now: true }]);
    let late = || seq([step(A, Kind::Done).waits_for(Raw::Yields(1))]);
    for panics in [false, true] {
        for (carrier, first) in
            [(Sealed, checkpoint()), (Memory, checkpoint()), (Memory, seq([Node::IntoTask]))]
        {
            let flaky = try_join(A, [seq([step(B, Kind::Flaky { panics })]), seq([ask(A, Form::Pick)])]);
            let beside = join(Joined::Ours, [select(A, [first, late()]), ask(A, Form::Pick), catch(flaky)]);
            let program = seq([beside, step(C, Kind::Done), ask(A, Form::Pick)]);
            holds("it diverges", &row(carrier, program, vec![]));
        }
    }
}

/// The last entry before a recorded race is an answer in a branch that lost, whose next step never began.
#[test]
fn a_race_is_due_when_the_branch_that_lost_has_its_answer() {
    let race = select(
        A,
        [seq([ask(A, Form::Pick), Node::IntoTask]), seq([ask(A, Form::Pick), step(A, Kind::Done)])],
    );
    let program = seq([race, step(B, Kind::Done), ask(B, Form::Pick)]);
    for carrier in [Memory, Carrier::TaskMemory] {
        holds("it diverges", &row(carrier, program.clone(), vec![]));
    }
}

/// The attempt under way may end when the request has gone; no other one begins.
#[test]
fn no_attempt_begins_after_the_request_has_gone() {
    let retried = step(A, Kind::Retried { fails: 2, panics: false }).waits_for(Raw::Yields(1));
    let gone = MoveKind::Cuts { polls: 1, rests: true };
    holds("an attempt begins", &row(Sealed, retried.clone(), vec![answers(0xff).what(gone)]));
    let asks = join(Joined::Ours, [retried.waits_for(Raw::Sleeps(60)), ask(A, Form::Pick)]);
    holds("an attempt begins in a session", &row(Pushed, asks, vec![answers(0).what(gone)]));
}

/// A branch of a race panics, and the panic is caught: later steps run.
#[test]
fn a_race_that_panics() {
    let race = || unwind(A, select(A, [Node::Throws, ask(A, Form::Pick)]));
    holds("the step does not begin", &row(Sealed, seq([race(), step(A, Kind::Done)]), vec![]));
    let beside = join(Joined::Ours, [race(), seq([step(A, Kind::Done), ask(B, Form::Pick)])]);
    holds("the step beside does not begin", &row(Pushed, beside, vec![]));
}

/// A race is decided, and waits for a step of the branch that lost; another step ends meanwhile. Replayed, that step
/// comes before the race again, which ends what both are in.
#[test]
fn a_step_ends_while_a_race_waits_for_a_loser() {
    let race = select(A, [step(A, Kind::Done).waits_for(Raw::Task(0)), step(A, Kind::Fails)]);
    let tried = catch(try_join(A, [race, step(A, Kind::Done)]));
    let asks = seq([tried, ask(A, Form::Pick), step(B, Kind::Done)]);
    holds("it diverges", &row(Sealed, asks, vec![]));
}

/// Two questions side by side; one is answered in the first round, the other in the second. Then the first one
/// changes: the answer of the second round was given beside another one.
#[test]
fn an_answer_of_a_later_round_beside_a_change() {
    let both = join(Joined::Ours, [ask(A, Form::Pick), ask(A, Form::Pick).text(Text::World)]);
    let moves = vec![answers(0xff), answers(0x2), answers(0xff).world(1)];
    holds("the later answer counts", &row(Sealed, seq([both, step(A, Kind::Done)]), moves));
}

/// One handler awaits a question, returns one by hand, and awaits one more. The answer by hand is there on all later
/// legs.
#[test]
fn awaited_and_by_hand_in_one_call() {
    for carrier in [Sealed, Pushed] {
        let before = seq([ask(A, Form::Pick), step(A, Kind::Done)]);
        let behind = seq([ask(B, Form::Sure), step(B, Kind::Pinned), ask(C, Form::Note)]);
        let program = Program::ByHand(vec![stage(before, [ask(A, Form::Pick), ask(A, Form::Sure)])], behind);
        holds("a call asks in both ways", &whole(carrier, program, vec![answers(0xff), answers(0x1)]));
    }
}

/// Two steps end behind the end of a leg, which a third one has failed: the handler receives neither. Replayed, the
/// error of the first makes the handler drop the second.
#[test]
fn a_step_that_was_never_delivered_may_be_dropped() {
    let tried = || {
        try_join(
            A,
            [
                step(A, Kind::Done).waits_for(Raw::Yields(3)),
                step(A, Kind::Fails).waits_for(Raw::Task(1)),
                step(A, Kind::Flaky { panics: false }),
            ],
        )
    };
    let second = seq([step(A, Kind::Done), ask(A, Form::Pick)]);
    let program = Program::Resolved([ask(A, Form::Pick), second.clone(), tried()], ask(A, Form::Pick));
    holds("it diverges", &whole(Sealed, program, vec![]));
    holds("the same without resolvers", &row(Sealed, seq([catch(tried()), second]), vec![]));
}

/// A handler in a session comes to another end than before, and a set of futures keeps a waker: the handler is stopped when
/// its time is over, with the reason.
#[test]
fn a_set_of_futures_that_waits_for_a_step_that_may_not_begin() {
    let branch = Node::If(Box::new(step(A, Kind::Done)), Box::new(ask(A, Form::Pick)));
    let first = seq([ask(B, Form::Pick).text(Text::World), branch]);
    let set = [ask(A, Form::Pick), try_join(A, [step(A, Kind::Done), ask(A, Form::Pick)])];
    let stages =
        vec![stage(first, [ask(A, Form::Pick)]), stage(join(Joined::Unordered, set), [ask(A, Form::Pick)])];
    let moves = vec![answers(0xff), answers(0xff), answers(0xff).world(1)];
    let case = whole(Pushed, Program::ByHand(stages, ask(A, Form::Pick)), moves);
    if let Err(fault) = one(&Case { seed: 41367195047866607, ..case }) {
        panic!("it hangs: {fault}");
    }
}

/// A handler catches a panic that drops the branches beside it. A panic is no entry of the record, so that the next run decides
/// again, and may come to another end: here the call has become a task meanwhile. That is a fault of the program, and no program
/// with a store is built like this.
#[test]
fn a_panic_in_a_race_is_decided_again() {
    let decides_again = |node: &Node| matches!(node, Node::Unwind(_, node) if node.panics_in_a_race());
    let waits = || step(A, Kind::Done).waits_for(Raw::Task(1));
    assert!(decides_again(&unwind(A, select(A, [Node::IntoTask, Node::Throws]))));
    assert!(decides_again(&unwind(A, join(Joined::Ours, [raw(Raw::Sleeps(5)), Node::Panics(A)]))));
    assert!(decides_again(&unwind(A, catch(try_join(A, [Node::Throws, waits()])))));
    // Nothing is dropped, or nothing but what the record has.
    assert!(!decides_again(&unwind(A, seq([Node::IntoTask, Node::Throws]))));
    assert!(!decides_again(&unwind(A, select(A, [ask(A, Form::Pick), Node::Throws]))));
    assert!(!decides_again(&unwind(A, select(A, [Node::IntoTask, ask(A, Form::Pick)]))));
    for waits in [true, false] {
        let family = Family { fails: true, waits, ..crate::STORED };
        for case in samples("stored_with_failures", 1_000, family) {
            assert!(!case.program.any(|node| node.any(&decides_again)), "{case:?}");
        }
    }
}
