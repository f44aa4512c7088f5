//! Any bytes decode as the record of a call or are rejected. A decoded record encodes and decodes to itself, also after
//! a migration.

#![no_main]

use antiphon_engine::{Migration, Record};
use libfuzzer_sys::fuzz_target;

/// Encodes and decodes a record, and checks that it is the same.
fn again(record: &Record) -> Record {
    let bytes = record.encode().expect("a decoded record encodes");
    let again = Record::decode(&bytes).expect("an encoded record decodes");
    assert_eq!(again.encode().expect("a decoded record encodes"), bytes);
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
