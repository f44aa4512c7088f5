//! Every order of the threads that wake the body of a step, and the faults that the model must find.

use antiphon_loom::{
    faulty::step_protocol::{FIRST_WAKER_ONLY, Faulty, PASSED_ON_FIRST, UNCOUNTED},
    real_step_waker::StepWaker,
    step_model::{
        Outcomes,
        TrackerReads::{One, Two},
        explore,
    },
};

/// Checks that the step has its result in every order, and that each read of the driver decides in some order.
fn check(threads: usize) {
    let outcomes: Outcomes = explore::<StepWaker>(threads, Two);
    println!("{threads} threads: {outcomes:?}");
    assert!(outcomes.pending_wakes > 0 && outcomes.second_looks > 0 && outcomes.waits > 0, "{outcomes:?}");
}

#[test]
fn a_step_is_polled_after_each_wake() {
    check(1);
    check(2);
}

#[test]
#[should_panic(expected = "reported as unpolled")]
fn uncounted_wakes_are_missed() {
    let _ = explore::<Faulty<UNCOUNTED>>(1, Two);
}

#[test]
#[should_panic(expected = "reported as unpolled")]
fn one_read_misses_a_wake() {
    let _ = explore::<StepWaker>(1, One);
}

#[test]
#[should_panic(expected = "deadlock")]
fn waking_the_handler_first_loses_a_wake() {
    let _ = explore::<Faulty<PASSED_ON_FIRST>>(1, Two);
}

#[test]
#[should_panic(expected = "reported as unpolled")]
fn the_waker_of_an_earlier_poll_misses_a_wake() {
    let _ = explore::<Faulty<FIRST_WAKER_ONLY>>(1, Two);
}
