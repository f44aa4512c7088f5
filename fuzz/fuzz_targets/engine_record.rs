//! Any bytes are the record of a call, or are refused. One that was read is the same when it is written and read again, also
//! behind a migration.

#![no_main]

use antiphon_engine::{Migration, Record};
use libfuzzer_sys::fuzz_target;

/// The record once more, written and read.
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
    assert!(record.largest_parts().len() <= 3);
    assert!(!record.has_new_selects_since(&before));
    let migration =
        Migration::new().added("n").rename("a", "b").forget("c").keep_stale("b").rename("b#1", "d");
    record.migrate(&migration);
    again(&record);
    again(&record.without_history());
});
