//! A record, and a program that calls methods of a leg in any order, also with slots that do not exist any more. No
//! call panics, and each record encodes and decodes to itself.

#![no_main]

use antiphon_engine::Record;
use libfuzzer_sys::fuzz_target;

// The tests of the engine run the same programs.
#[path = "../../crates/antiphon-engine/tests/random_program/mod.rs"]
mod random_program;

fuzz_target!(|bytes: &[u8]| {
    // The input is the length of the record, the record, and the program.
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (record, program) = rest.split_at(length);
    random_program::run(Record::decode(record).ok(), program);
});
