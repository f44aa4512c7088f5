//! Tests of a tracker in every interleaving, and of the model's ability to detect wrong trackers.

use antiphon_loom::{
    Tracking,
    driver::{
        self,
        Sender::{Forgets, Sends},
    },
    one_poll::{
        self,
        WakerAction::{self, Drop, Wake, WakeByRef, WakeTwice},
    },
    real, real_counted,
    wrong::{
        protocol::{DROPPED_FIRST, FLAG_FIRST, Faulty, SILENT, UNCOUNTED},
        relaxed_drop, relaxed_flag,
    },
};

/// Checks that no wake is lost, that all possible verdicts occur, and that `Nobody` occurs only without wakes.
fn judged<T: Tracking>(actions: &'static [WakerAction]) {
    let seen = one_poll::explore::<T>(actions);
    println!("{actions:?}: {seen:?}");
    let wakes = actions.iter().any(|action| *action != Drop);
    assert_eq!((seen.nobody > 0, seen.woken > 0), (!wakes, wakes));
    assert_eq!(seen.kept > 0, !actions.is_empty());
}

fn judged_all<T: Tracking>() {
    judged::<T>(&[]);
    for actions in [&[Drop] as &[WakerAction], &[Wake], &[WakeByRef], &[WakeTwice]] {
        judged::<T>(actions);
    }
    judged::<T>(&[Drop, Drop]);
    judged::<T>(&[Wake, Drop]);
    judged::<T>(&[WakeByRef, Drop]);
    judged::<T>(&[Wake, Wake]);
    judged::<T>(&[Wake, WakeByRef]);
}

#[test]
fn a_poll_is_judged_rightly() {
    judged_all::<real::Tracker>();
}

#[test]
fn a_poll_is_judged_rightly_counted_by_hand() {
    judged_all::<real_counted::Tracker>();
}

fn drive<T: Tracking>(yields: usize, senders: &'static [driver::Sender]) {
    let seen = driver::explore::<T>(yields, senders);
    println!("{yields} yields, {senders:?}: {seen:?}");
    assert!(seen.by_rule > 0, "the rule decides in some order");
    assert_eq!(seen.by_grace > 0, senders.contains(&Forgets), "the grace decides only where one forgets");
}

fn drive_all<T: Tracking>() {
    drive::<T>(0, &[]);
    drive::<T>(3, &[]);
    drive::<T>(0, &[Sends]);
    drive::<T>(2, &[Sends]);
    drive::<T>(0, &[Sends, Sends]);
    drive::<T>(0, &[Forgets]);
    drive::<T>(0, &[Sends, Forgets]);
}

#[test]
fn the_driver_ends_with_all_that_was_sent() {
    drive_all::<real::Tracker>();
}

#[test]
fn the_driver_ends_with_all_that_was_sent_counted_by_hand() {
    drive_all::<real_counted::Tracker>();
}

#[test]
#[should_panic(expected = "nobody was said to be left")]
fn a_flag_looked_at_first_misses_a_wake() {
    let _ = one_poll::explore::<Faulty<FLAG_FIRST>>(&[Wake]);
}

#[test]
#[should_panic(expected = "nobody was said to be left")]
fn a_reference_dropped_before_the_flag_is_set_misses_a_wake() {
    let _ = one_poll::explore::<Faulty<DROPPED_FIRST>>(&[Wake]);
}

#[test]
#[should_panic(expected = "nobody was said to be left")]
fn without_a_count_a_wake_to_come_is_missed() {
    let _ = one_poll::explore::<Faulty<UNCOUNTED>>(&[Wake]);
}

#[test]
#[should_panic(expected = "nobody was said to be left")]
fn a_relaxed_drop_misses_a_wake() {
    let _ = one_poll::explore::<relaxed_drop::Tracker>(&[Wake]);
}

#[test]
#[should_panic(expected = "woken before what was written")]
fn a_relaxed_flag_loses_what_was_written() {
    let _ = one_poll::explore::<relaxed_flag::Tracker>(&[Wake]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_that_is_not_passed_on_hangs_the_driver() {
    let _ = driver::explore::<Faulty<SILENT>>(0, &[Sends]);
}

#[test]
#[should_panic(expected = "had yet to send")]
fn a_flag_looked_at_first_loses_a_round() {
    let _ = driver::explore::<Faulty<FLAG_FIRST>>(0, &[Sends]);
}
