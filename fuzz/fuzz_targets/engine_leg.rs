//! Property: a program that calls a leg in any order, also with stale slots, causes no panic, and each resulting record is
//! equal after encoding and decoding.

#![no_main]

use antiphon_engine::Record;
use libfuzzer_sys::fuzz_target;

// The tests of the engine run such programs too.
#[path = "../../crates/antiphon-engine/tests/calls/mod.rs"]
mod calls;

fuzz_target!(|bytes: &[u8]| {
    // The length of the record, the record, the program.
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (record, program) = rest.split_at(length);
    calls::run(Record::decode(record).ok(), program);
});
