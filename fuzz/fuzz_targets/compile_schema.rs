//! Any JSON is compiled as a schema or rejected, and any value is validated against it, without a panic, an overflow or
//! a long wait. The module is private to its crate, so the target includes its source.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

#[allow(dead_code)]
#[path = "../../crates/antiphon/src/schema/mod.rs"]
mod schema;

fuzz_target!(|bytes: &[u8]| {
    // The input is two JSON texts: the schema and the value.
    let mut texts = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let (Some(Ok(schema)), Some(Ok(value))) = (texts.next(), texts.next()) else { return };
    match schema::CompiledSchema::compile(&schema) {
        // The list of faults is not empty.
        Ok(compiled) => assert_ne!(compiled.faults(&value).as_deref(), Some("")),
        Err(fault) => assert!(fault.to_string().len() < 4096),
    }
});
