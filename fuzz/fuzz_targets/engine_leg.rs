//! A record, and a program that calls a leg of it in any order, with slots that are gone: nothing panics, and each record
//! that the program leaves is the same when it is written and read again.

#![no_main]

use antiphon_engine::Record;
use libfuzzer_sys::fuzz_target;

// The tests of the engine run such programs too.
#[path = "../../crates/antiphon-engine/tests/random_program/mod.rs"]
mod random_program;

fuzz_target!(|bytes: &[u8]| {
    // The length of the record, the record, the program.
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (record, program) = rest.split_at(length);
    random_program::run(Record::decode(record).ok(), program);
});
