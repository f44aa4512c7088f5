//! Canonicalization does not panic, gives the same text twice, and accepts exactly the JSON that serde_json accepts.

#![no_main]

use antiphon_seal::TextFault;
use antiphon_seal::canonical::{canonical, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let form = canonical(text);
    assert_eq!(form.as_ref().err(), check(text).as_ref().err());

    // serde_json checks raw text without decoding it, so it accepts unpaired surrogates too.
    let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text);
    match &form {
        Ok(_) => assert!(theirs.is_ok(), "only serde_json refuses: {theirs:?}"),
        Err(TextFault::Malformed) => assert!(theirs.is_err(), "only serde_json accepts"),
        // serde_json allows white space on both sides.
        Err(_) => {}
    }

    // A decoded value is the same after another round trip, except for floats and unpaired surrogates.
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

/// serde_json may use a float for numbers of more than 18 digits.
fn has_long_number(text: &str) -> bool {
    text.split(|character: char| !character.is_ascii_digit()).any(|digits| digits.len() > 18)
}
