//! Property: any JSON compiles as a schema or is refused, and any value can be validated, without a panic, an overflow or a
//! long run.

#![no_main]

use antiphon_schema::CompiledSchema;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    // The schema, then the value: two JSON texts, one after the other.
    let mut texts = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let (Some(Ok(schema)), Some(Ok(value))) = (texts.next(), texts.next()) else { return };
    match CompiledSchema::compile(&schema) {
        // The message is not empty.
        Ok(compiled) => assert_ne!(compiled.faults(&value).as_deref(), Some("")),
        Err(fault) => assert!(fault.to_string().len() < 4096),
    }
});
