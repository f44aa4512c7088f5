//! Property: the canonical text parser does not panic, is consistent with itself, and accepts the same JSON as serde_json.

#![no_main]

use antiphon_seal::TextFault;
use antiphon_seal::canonical::{canonical, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let form = canonical(text);
    assert_eq!(form.as_ref().err(), check(text).as_ref().err());

    // Raw text is what serde_json checks without decoding: it too takes surrogates that stand alone.
    let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text);
    match &form {
        Ok(_) => assert!(theirs.is_ok(), "only serde_json refuses: {theirs:?}"),
        Err(TextFault::Malformed) => assert!(theirs.is_err(), "only serde_json accepts"),
        // It allows both.
        Err(_) => {}
    }

    // A decoded value, written again, is the same value: unless a float or an unpaired surrogate lost
    // something.
    let Ok(form) = form else { return };
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
        && let Ok(again) = serde_json::to_string(&value)
        && serde_json::from_str::<serde_json::Value>(&again).ok() == Some(value)
        && !text.contains(['.', 'e', 'E'])
        && !has_long_number(text)
    {
        assert_eq!(Ok(form), canonical(&again));
    }
});

/// Beyond 18 digits serde_json may go through a float.
fn has_long_number(text: &str) -> bool {
    text.split(|character: char| !character.is_ascii_digit()).any(|digits| digits.len() > 18)
}
