//! Property: any bytes decode as a record or are refused. A decoded record is equal after encoding and decoding, also after a
//! migration.

#![no_main]

use antiphon_engine::{Migration, Record};
use libfuzzer_sys::fuzz_target;

/// Encodes and decodes the record.
fn again(record: &Record) -> Record {
    let bytes = record.encode().expect("what was read can be written");
    let again = Record::decode(&bytes).expect("what was written can be read");
    assert_eq!(again.encode().expect("it can be written again"), bytes);
    assert_eq!(format!("{again:?}"), format!("{record:?}"));
    assert_eq!(again.size(), record.size());
    again
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut record) = Record::decode(bytes) else { return };
    let before = again(&record);
    assert!(record.largest().len() <= 3);
    assert!(!record.decides_more_than(&before));
    let migration =
        Migration::new().added("n").rename("a", "b").forget("c").keep_stale("b").rename("b#1", "d");
    record.migrate(&migration);
    again(&record);
    again(&record.begun_again());
});
