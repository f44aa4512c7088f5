//! Calls on a leg in any order, with slots that are gone and branches of other legs: no panic, and each record that is left
//! is written and read as the same.

mod calls;

use proptest::{collection::vec, prelude::*};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_any_order(bytes in vec(any::<u8>(), 0..600)) {
        calls::run(None, &bytes);
    }
}
