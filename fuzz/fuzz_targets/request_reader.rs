//! A request that is read in one walk has the values that the other readers find, and no object in it has a name twice.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/antiphon-wire/tests/agreement/mod.rs"]
mod agreement;

fuzz_target!(|bytes: &[u8]| {
    if let Err(fault) = agreement::agrees(bytes) {
        panic!("{fault}");
    }
});
