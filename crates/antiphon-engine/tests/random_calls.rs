//! Method calls on a leg in random order, also with slots that do not exist any more. No call panics, and each record
//! encodes and decodes to itself.

use antiphon_engine::{Leg, Setup};
use antiphon_seal::Call;
use proptest::{collection::vec, prelude::*};
use std::{task::Waker, time::UNIX_EPOCH};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_any_order(bytes in vec(any::<u8>(), 0..600)) {
        crate::random_program::run(None, &bytes);
    }
}

#[test]
fn a_select_without_branches_has_no_branch() {
    let mut leg = Leg::begin(Setup::default());
    let site = std::panic::Location::caller();
    let (_, branch) = leg.select("a".into(), 0, site).expect("it is the first");
    let scope = leg.in_branch(branch, false);
    leg.enter(scope);
    leg.select("b".into(), 2, site);
    assert!(!leg.is_over());
}

#[test]
fn a_recorded_select_is_gone_after_the_end() {
    let (mut leg, site) = (Leg::begin(Setup::default()), std::panic::Location::caller());
    leg.call(|| Call::begin(UNIX_EPOCH, None).map_err(|fault| fault.to_string())).expect("it begins");
    leg.begin_poll(Waker::noop(), Waker::noop());
    let (select, first) = leg.select("a".into(), 2, site).expect("it is the first");
    assert_eq!(leg.decide(select, first, 2, |branch| branch == 0), Some(0));
    leg.end_select(select);
    let (_, left) = leg.suspend();
    let mut leg = *Leg::resume(left.call.expect("it has begun"), left.record, None, Setup::default());
    let (select, _) = leg.select("a".into(), 2, site).expect("it is the first");
    assert_eq!(leg.recorded_winner(select), Some(0));
    leg.finish();
    assert_eq!(leg.recorded_winner(select), None);
}
