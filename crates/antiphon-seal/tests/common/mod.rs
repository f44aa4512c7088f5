//! One call and one request, to be varied by each test.
#![allow(dead_code, unreachable_pub, reason = "every test program uses a part of this")]
#![allow(clippy::unwrap_used, reason = "a test stops where its setup fails")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antiphon_seal::{Binding, Call, KeyRing, OpenError, Opened, Sealer, SecretKey};

pub const NOW: u64 = 1_800_000_000;
pub const TTL: Duration = Duration::from_secs(600);

pub fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// A sealer whose keys are repetitions of these bytes.
pub fn sealer(keys: &[u8]) -> Sealer {
    sealer_for(keys, "greeter")
}

pub fn sealer_for(keys: &[u8], audience: &str) -> Sealer {
    let keys = keys.iter().map(|&byte| SecretKey::from_bytes([byte; 32])).collect();
    Sealer::new(&KeyRing::new(keys).unwrap(), audience)
}

pub fn call() -> Call {
    Call::begin(at(NOW), None).unwrap()
}

pub fn binding() -> Binding<'static> {
    Binding {
        method: "tools/call",
        target: "greet",
        arguments: Some(r#"{"name":"Ada"}"#),
        principal: None,
        tool_version: 1,
    }
}

pub fn token(sealer: &Sealer) -> String {
    sealer.seal(&call(), &binding(), b"state", TTL, at(NOW)).unwrap()
}

/// Returns the outcome of opening, as one word: `ok`, or the reason of the refusal.
pub fn outcome(result: &Result<Opened, OpenError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => {
            assert_eq!(error.to_string(), "Invalid or expired requestState");
            assert!(std::error::Error::source(error).is_none());
            error.reason().as_str()
        }
    }
}

pub fn check(sealer: &Sealer, token: &str, expected: &str) {
    assert_eq!(outcome(&sealer.open(token, &binding(), at(NOW))), expected, "{} bytes", token.len());
}
