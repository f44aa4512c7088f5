//! Keys from text, and what a bad one is told.

use antiphon_seal::{KeyRing, SecretKey};

const ONE: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
const TWO: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI";

#[test]
fn a_key_has_one_text() {
    assert_eq!(*SecretKey::from_bytes([1; 32]).to_base64url(), ONE);
    assert_eq!(*SecretKey::parse(ONE).unwrap().to_base64url(), ONE);
    let made = SecretKey::random().unwrap().to_base64url();
    assert_eq!(*SecretKey::parse(&made).unwrap().to_base64url(), *made);
}

#[test]
fn other_texts_are_no_keys_and_are_not_repeated() {
    let short = &ONE[..42];
    let long = format!("{ONE}A");
    let padded = format!("{ONE}=");
    let trailing_bits = format!("{short}F");
    let spaced = format!(" {ONE}");
    let other_alphabet = "+".repeat(42) + "A";
    for text in ["", short, &long, &padded, &trailing_bits, &spaced, &other_alphabet, "secret", "AQEB"] {
        let error = SecretKey::parse(text).unwrap_err().to_string();
        assert_eq!(
            error,
            "not a key: expected 43 characters of base64url without padding (32 bytes); \
             make one with `antiphon keygen`",
            "{text}",
        );
    }
}

/// The expected keys come from an independent implementation of HKDF-SHA256 (Python: hmac, hashlib).
#[test]
fn keys_are_derived_from_secrets() {
    let text = "a secret of an older system, 32 bytes or more";
    let bytes: [u8; 64] = std::array::from_fn(|index| index as u8);
    for (secret, expected) in [
        (&bytes[..32], "aSksT7rlJWl7Sy68B4kBfpGYzYnXmPXKUFNfw9VbOsM"),
        (&bytes, "4dTxZEMpLiGVdzbK2ES6p1DN59F6I4WLEK-IFUtK4hs"),
        (text.as_bytes(), "MpOgsF-Q0ZgCkay9hIY-CGavcB6fLpLHQ9eFKRmjrus"),
    ] {
        assert_eq!(*SecretKey::derive(secret).unwrap().to_base64url(), expected);
    }
    let derived = SecretKey::parse(&format!("derive:{text}")).unwrap().to_base64url();
    assert_eq!(*derived, *SecretKey::derive(text.as_bytes()).unwrap().to_base64url());
    // The derived key and the secret are the same key, which a ring holds once.
    let file = KeyRing::parse_file(&format!("derive:{text} # old\n{}\n", *derived));
    let list = KeyRing::parse_list(&format!("derive:{ONE},{ONE}, derive:{ONE}"));
    for (ring, expected) in [(file, "line 2: the same key as line 1"), (list, "key 3: the same key as key 1")]
    {
        let error = ring.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn short_secrets_are_refused() {
    let fault = "the secret after `derive:` is shorter than 32 bytes";
    let short = "derive:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
    for (error, place) in [
        (SecretKey::derive(&[1; 31]).err(), ""),
        (SecretKey::derive(b"").err(), ""),
        (SecretKey::parse(short).err(), ""),
        (SecretKey::parse("derive:").err(), ""),
        (KeyRing::parse_list(&format!("{ONE},{short}")).err(), "key 2: "),
        (KeyRing::parse_file(&format!("# ours\n{ONE}\n\n{short}\n")).err(), "line 4: "),
    ] {
        let error = error.unwrap().to_string();
        assert!(error.starts_with(&format!("{place}{fault}")) && !error.contains("AQEB"), "{error}");
    }
}

#[test]
fn keys_are_not_printed() {
    let ring = KeyRing::parse_list(&format!("{ONE},{TWO}")).unwrap();
    let printed = format!("{:?} {ring:?}", SecretKey::from_bytes([1; 32]));
    assert!(!printed.contains("AQEB") && !printed.contains("1, 1"), "{printed}");
}

#[test]
fn the_error_of_a_ring_names_the_line() {
    let check = |ring: Result<KeyRing, antiphon_seal::KeyError>, expected: &str| {
        let error = ring.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(!error.contains("AQEB"), "{error}");
    };
    check(KeyRing::new(Vec::new()), "no key given; make one with `antiphon keygen`");
    check(KeyRing::parse_list(" "), "no key given");
    check(KeyRing::parse_list(&format!("{ONE},")), "key 2: not a key");
    check(KeyRing::parse_list(&format!("{ONE}, {ONE}")), "key 2: the same key as key 1; remove one of them");
    check(KeyRing::parse_file("# nothing\n\n"), "no key given");
    check(KeyRing::parse_file(&format!("# ours\n{ONE}\n\nAQEB\n")), "line 4: not a key");
    check(KeyRing::parse_file(&format!("{ONE}\n{TWO}\n{ONE} # again\n")), "line 3: the same key as line 1");
    check(KeyRing::parse_file(&format!("{ONE} {TWO}\n")), "line 1: not a key");
    let twice = || {
        vec![SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]), SecretKey::from_bytes([2; 32])]
    };
    check(KeyRing::new(twice()), "key 3: the same key as key 2");
}

#[test]
fn two_keys_with_one_id_are_refused() {
    // Found by search: the ids of these two keys are both 5f433645.
    let key = |number: u64| {
        let mut bytes = [0; 32];
        bytes[24..].copy_from_slice(&number.to_be_bytes());
        SecretKey::from_bytes(bytes)
    };
    let file = format!("{}\n{}\n", *key(87_840).to_base64url(), *key(103_521).to_base64url());
    let error = KeyRing::parse_file(&file).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 2: a different key with the same key id as line 1; replace the newer one, with `antiphon keygen`"
    );
}

#[test]
fn a_key_file_may_hold_comments_and_foreign_line_ends() {
    let text = format!("\u{feff}# new\r\n  {ONE}  # since May\r\n\r\n# old\r\n{TWO}");
    assert!(!KeyRing::parse_file(&text).unwrap().is_ephemeral());
    assert!(KeyRing::random().unwrap().is_ephemeral());
}
