//! Tests of a step's waker in every interleaving, and of the model's ability to detect wrong wakers.

use antiphon_loom::{
    real_step::StepWake,
    step::{
        Looks::{Once, Twice},
        Seen, explore,
    },
    wrong::step_protocol::{FIRST_WAKER_ONLY, Faulty, PASSED_ON_FIRST, UNCOUNTED},
};

/// Checks that the step gets its result in every interleaving, and that each check of the driver is decisive in some.
fn check(threads: usize) {
    let seen: Seen = explore::<StepWake>(threads, Twice);
    println!("{threads} threads: {seen:?}");
    assert!(seen.under_way > 0 && seen.second_looks > 0 && seen.waits > 0, "{seen:?}");
}

#[test]
fn a_step_is_polled_behind_each_wake() {
    check(1);
    check(2);
}

#[test]
#[should_panic(expected = "said not to be polled any more")]
fn without_a_count_a_wake_on_its_way_is_missed() {
    let _ = explore::<Faulty<UNCOUNTED>>(1, Twice);
}

#[test]
#[should_panic(expected = "said not to be polled any more")]
fn without_a_second_look_a_wake_that_came_between_is_missed() {
    let _ = explore::<StepWake>(1, Once);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_that_is_passed_on_first_is_lost() {
    let _ = explore::<Faulty<PASSED_ON_FIRST>>(1, Twice);
}

#[test]
#[should_panic(expected = "said not to be polled any more")]
fn a_waker_of_an_earlier_poll_misleads() {
    let _ = explore::<Faulty<FIRST_WAKER_ONLY>>(1, Twice);
}
