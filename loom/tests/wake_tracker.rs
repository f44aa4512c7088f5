//! Every order of the threads around a tracker, and the faults that the model must find.

use antiphon_loom::{
    TrackerModel,
    driver_model::{
        self,
        Sender::{DropsWaker, SendsMessage},
    },
    faulty::{
        relaxed_drop, relaxed_flag,
        tracker_protocol::{DROPPED_FIRST, FLAG_FIRST, Faulty, SILENT, UNCOUNTED},
    },
    poll_model::{
        self,
        WakerUse::{self, Drop, Wake, WakeByRef, WakeTwice},
    },
    real_counted_arc, real_tracker,
};

/// Checks that no wake is lost, and that each possible state occurs: released only if no thread wakes.
fn check_uses<T: TrackerModel>(uses: &'static [WakerUse]) {
    let outcomes = poll_model::explore::<T>(uses);
    println!("{uses:?}: {outcomes:?}");
    let wakes = uses.iter().any(|waker_use| *waker_use != Drop);
    assert_eq!((outcomes.released > 0, outcomes.woken > 0), (!wakes, wakes));
    assert_eq!(outcomes.held > 0, !uses.is_empty());
}

fn check_all_uses<T: TrackerModel>() {
    check_uses::<T>(&[]);
    for uses in [&[Drop] as &[WakerUse], &[Wake], &[WakeByRef], &[WakeTwice]] {
        check_uses::<T>(uses);
    }
    check_uses::<T>(&[Drop, Drop]);
    check_uses::<T>(&[Wake, Drop]);
    check_uses::<T>(&[WakeByRef, Drop]);
    check_uses::<T>(&[Wake, Wake]);
    check_uses::<T>(&[Wake, WakeByRef]);
}

#[test]
fn the_state_of_a_poll_is_right() {
    check_all_uses::<real_tracker::WakeTracker>();
}

#[test]
fn the_state_of_a_poll_is_right_with_the_counted_arc() {
    check_all_uses::<real_counted_arc::WakeTracker>();
}

fn drive<T: TrackerModel>(yields: usize, senders: &'static [driver_model::Sender]) {
    let outcomes = driver_model::explore::<T>(yields, senders);
    println!("{yields} yields, {senders:?}: {outcomes:?}");
    assert!(outcomes.by_rule > 0, "the rule suspends in some order");
    assert_eq!(
        outcomes.by_grace > 0,
        senders.contains(&DropsWaker),
        "the grace period suspends only if a waker was dropped"
    );
}

fn drive_all<T: TrackerModel>() {
    drive::<T>(0, &[]);
    drive::<T>(3, &[]);
    drive::<T>(0, &[SendsMessage]);
    drive::<T>(2, &[SendsMessage]);
    drive::<T>(0, &[SendsMessage, SendsMessage]);
    drive::<T>(0, &[DropsWaker]);
    drive::<T>(0, &[SendsMessage, DropsWaker]);
}

#[test]
fn the_driver_ends_with_every_message() {
    drive_all::<real_tracker::WakeTracker>();
}

#[test]
fn the_driver_ends_with_every_message_with_the_counted_arc() {
    drive_all::<real_counted_arc::WakeTracker>();
}

#[test]
#[should_panic(expected = "released although")]
fn reading_the_flag_first_misses_a_wake() {
    let _ = poll_model::explore::<Faulty<FLAG_FIRST>>(&[Wake]);
}

#[test]
#[should_panic(expected = "released although")]
fn dropping_the_reference_first_misses_a_wake() {
    let _ = poll_model::explore::<Faulty<DROPPED_FIRST>>(&[Wake]);
}

#[test]
#[should_panic(expected = "released although")]
fn uncounted_references_miss_a_wake() {
    let _ = poll_model::explore::<Faulty<UNCOUNTED>>(&[Wake]);
}

#[test]
#[should_panic(expected = "released although")]
fn a_relaxed_drop_misses_a_wake() {
    let _ = poll_model::explore::<relaxed_drop::WakeTracker>(&[Wake]);
}

#[test]
#[should_panic(expected = "woken before what was written")]
fn a_relaxed_flag_loses_a_write() {
    let _ = poll_model::explore::<relaxed_flag::WakeTracker>(&[Wake]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_without_the_parent_hangs_the_driver() {
    let _ = driver_model::explore::<Faulty<SILENT>>(0, &[SendsMessage]);
}

#[test]
#[should_panic(expected = "before a sender has sent")]
fn reading_the_flag_first_suspends_too_early() {
    let _ = driver_model::explore::<Faulty<FLAG_FIRST>>(0, &[SendsMessage]);
}
