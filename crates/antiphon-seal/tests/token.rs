//! The token's text: nothing but the text that was sealed opens.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{NOW, TTL, at, binding, call, check, outcome, sealer, sealer_for, token};
use antiphon_seal::{Codec, CodecError, KeyRing, SealError, Sealer};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[test]
fn every_changed_character_is_noticed() {
    let sealer = sealer(&[1]);
    let token = token(&sealer);
    for at in 0..token.len() {
        let original = token.as_bytes()[at];
        for other in [b'A', b'B', b'g', b'_', b'=', b' ', b'+', b'/', b'.', b'\0']
            .into_iter()
            .filter(|&b| b != original)
        {
            let mut changed = token.clone().into_bytes();
            changed[at] = other;
            let changed = String::from_utf8(changed).unwrap();
            let expected = match at {
                0..3 => "malformed",
                _ if !ALPHABET.contains(&other) => "malformed",
                // The first 32 bits of the body, and four bits of the sixth character besides, are the key
                // id.
                3..8 => "unknown_key",
                _ => "seal or malformed",
            };
            let found = outcome(&sealer.open(&changed, &binding(), crate::common::at(NOW)));
            assert!(expected.contains(found) || (at == 8 && found == "unknown_key"), "{at} {other}: {found}");
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let sealer = sealer(&[1]);
    let token = token(&sealer);
    let digits = &token.as_bytes()[3..];
    for (index, digit) in digits.iter().enumerate() {
        let value = ALPHABET.iter().position(|letter| letter == digit).unwrap();
        for bit in 0..6 {
            let mut changed = token.clone().into_bytes();
            changed[3 + index] = ALPHABET[value ^ (1 << bit)];
            let changed = String::from_utf8(changed).unwrap();
            assert_ne!(outcome(&sealer.open(&changed, &binding(), at(NOW))), "ok", "{index} {bit}");
        }
    }
}

#[test]
fn every_shorter_and_longer_text_is_noticed() {
    let sealer = sealer(&[1]);
    let token = token(&sealer);
    for end in 0..token.len() {
        let found = outcome(&sealer.open(&token[..end], &binding(), at(NOW)));
        assert!(["malformed", "seal"].contains(&found), "{end}: {found}");
    }
    for tail in ["A", "AA", "AAA", "AAAA", "-TAMPERED", "=", "==", "\n", " ", ".", "\u{e9}", &token] {
        let found = outcome(&sealer.open(&format!("{token}{tail}"), &binding(), at(NOW)));
        assert!(["malformed", "seal"].contains(&found), "{tail}: {found}");
    }
}

#[test]
fn a_token_has_one_spelling() {
    let sealer = sealer(&[1]);
    // 192 bytes of claims leave four unused bits in the last character.
    let token = sealer.seal(&call(), &binding(), &[0; 60], TTL, at(NOW)).unwrap();
    let (head, last) = token.split_at(token.len() - 1);
    let value = ALPHABET.iter().position(|&letter| letter == last.as_bytes()[0]).unwrap();
    let mut spare = 0;
    for other in (0..64).filter(|&other| other != value) {
        let text = format!("{head}{}", char::from(ALPHABET[other]));
        spare += usize::from(outcome(&sealer.open(&text, &binding(), at(NOW))) == "malformed");
    }
    assert!(spare == 48 || spare == 60, "{spare} spellings have trailing bits");
    check(&sealer, &format!("{token}="), "malformed");
    check(&sealer, &format!("{token}=="), "malformed");
    check(&sealer, &format!(" {token}"), "malformed");
    check(&sealer, &format!("R1.{}", &token[3..]), "malformed");
    check(&sealer, &format!("r2.{}", &token[3..]), "malformed");
    check(&sealer, &token[3..], "malformed");
    check(&sealer, &token, "ok");
}

#[test]
fn foreign_texts_are_refused() {
    let sealer = sealer(&[1]);
    let body = |bytes: usize| "A".repeat(bytes * 4 / 3 + usize::from(!bytes.is_multiple_of(3)));
    for (text, expected) in [
        (String::new(), "malformed"),
        ("r1.".into(), "malformed"),
        ("r1".into(), "malformed"),
        (format!("r1.{}", body(31)), "malformed"),
        (format!("r1.{}", body(32)), "unknown_key"),
        ("x".repeat(1 << 20), "too_long"),
        (format!("r1.{}", body(1 << 20)), "too_long"),
        (format!("r1.{}", "A".repeat(256 * 1024 - 4)), "unknown_key"),
        (format!("r1.{}", "A".repeat(256 * 1024 - 3)), "malformed"),
        (format!("r1.{}", "A".repeat(256 * 1024 - 2)), "too_long"),
        ("\u{0}\u{7f}\u{10ffff}".into(), "malformed"),
    ] {
        check(&sealer, &text, expected);
    }
}

#[test]
fn the_key_id_picks_the_key_and_the_audience_is_part_of_it() {
    let one = token(&sealer(&[1]));
    let two = token(&sealer(&[2]));
    // Another key's id before this key's bytes: known, but it is under the tag.
    let mut body = URL_SAFE_NO_PAD.decode(&one[3..]).unwrap();
    body[..4].copy_from_slice(&URL_SAFE_NO_PAD.decode(&two[3..]).unwrap()[..4]);
    let transplanted = format!("r1.{}", URL_SAFE_NO_PAD.encode(body));
    let both = sealer(&[2, 1]);
    check(&both, &transplanted, "seal");
    check(&both, &one, "ok");
    check(&sealer(&[2]), &one, "unknown_key");
    check(&sealer_for(&[1], "other"), &one, "seal");
    check(&sealer_for(&[1], ""), &one, "seal");
}

#[test]
fn keys_rotate_in_three_phases() {
    let phases = [&[1][..], &[1, 2], &[2, 1], &[2]];
    for (phase, pair) in phases.windows(2).enumerate() {
        let (before, after) = (sealer(pair[0]), sealer(pair[1]));
        // Both sides of a phase are live at once, and each opens what the other seals.
        if phase < 2 {
            check(&before, &token(&after), "ok");
        }
        check(&after, &token(&before), "ok");
    }
    check(&sealer(phases[3]), &token(&sealer(phases[0])), "unknown_key");
}

#[test]
fn two_tokens_of_one_state_differ() {
    let sealer = sealer(&[1]);
    let call = call();
    let make = || sealer.seal(&call, &binding(), b"state", TTL, at(NOW)).unwrap();
    assert_ne!(make(), make());
}

/// The twelve bytes behind the key id.
fn nonce(token: &str) -> [u8; 12] {
    let head = URL_SAFE_NO_PAD.decode(&token[3..27]).expect("base64url");
    head[4..16].try_into().expect("twelve bytes")
}

#[test]
fn every_token_of_a_call_has_its_own_nonce() {
    let sealer = sealer(&[1]);
    let mut call = call();
    let mut nonces = HashSet::new();
    for leg in 0..3 {
        // The second in which the call began, whose first token takes the nonce drawn with the call, and a later one.
        for now in [NOW, NOW, NOW + 1] {
            let token = sealer.seal(&call, &binding(), b"state", TTL, at(now)).unwrap();
            assert!(nonces.insert(nonce(&token)), "leg {leg}");
        }
        call = call.next_leg().unwrap();
    }
}

#[test]
fn threads_that_seal_one_call_share_no_nonce() {
    let sealer = sealer(&[1]);
    for _ in 0..50 {
        let call = call();
        let seal = || nonce(&sealer.seal(&call, &binding(), b"state", TTL, at(NOW)).unwrap());
        let nonces: HashSet<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(seal)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(nonces.len(), 4);
    }
}

#[test]
fn the_limit_holds_in_both_directions() {
    let wide = sealer(&[1]).with_max_token_len(2 << 20);
    let big = vec![7; 1 << 20];
    let token = wide.seal(&call(), &binding(), &big, TTL, at(NOW)).unwrap();
    assert_eq!(wide.open(&token, &binding(), at(NOW)).unwrap().payload, big);

    let narrow = sealer(&[1]);
    check(&narrow, &token, "too_long");
    let refused = narrow.seal(&call(), &binding(), &big, TTL, at(NOW)).unwrap_err();
    assert!(
        matches!(refused, SealError::TooLarge { limit: 262_144, actual } if actual == token.len()),
        "{refused:?}"
    );
    // Exactly the limit passes.
    let exact = sealer(&[1]).with_max_token_len(token.len());
    check(&exact, &exact.seal(&call(), &binding(), &big, TTL, at(NOW)).unwrap(), "ok");
}

#[test]
fn a_length_reveals_little() {
    let sealer = sealer(&[1]);
    let call = call();
    let length =
        |payload: usize| sealer.seal(&call, &binding(), &vec![0; payload], TTL, at(NOW)).unwrap().len();
    let lengths = |range: std::ops::Range<usize>| {
        let all: std::collections::BTreeSet<_> = range.step_by(20).map(length).collect();
        all.len()
    };
    assert!(lengths(0..900) <= 16, "below one kibibyte: a step of 64 bytes");
    assert!(lengths(4096..8192) <= 10, "above: about eight lengths from one power of two to the next");
}

#[test]
fn a_random_ring_is_ephemeral() {
    let random = Sealer::new(&KeyRing::random().unwrap(), "greeter");
    assert!(random.is_ephemeral() && !sealer(&[1]).is_ephemeral());
    check(&random, &token(&random), "ok");
    assert!(!format!("{random:?}").contains("cipher"));
}

/// Keeps plaintexts on this side and hands out their numbers.
#[derive(Clone, Default)]
struct Cloakroom(Arc<Mutex<Vec<Vec<u8>>>>);

impl Codec for Cloakroom {
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError> {
        let mut kept = self.0.lock().map_err(|_| CodecError::new("poisoned"))?;
        kept.push(plaintext.to_vec());
        Ok(format!("ticket {}", kept.len() - 1))
    }

    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError> {
        let number = token.strip_prefix("ticket ").and_then(|number| number.parse::<usize>().ok());
        let kept = self.0.lock().map_err(|_| CodecError::new("poisoned"))?;
        number.and_then(|number| kept.get(number).cloned()).ok_or_else(|| CodecError::new("no such ticket"))
    }
}

#[test]
fn a_custom_codec_is_bound_all_the_same() {
    let room = Cloakroom::default();
    let sealer = Sealer::with_codec(Box::new(room.clone()), "greeter");
    let token = token(&sealer);
    assert_eq!(token, "ticket 0");
    check(&sealer, &token, "ok");
    check(&Sealer::with_codec(Box::new(room.clone()), "other"), &token, "audience");
    let other = antiphon_seal::Binding { target: "other", ..binding() };
    assert_eq!(outcome(&sealer.open(&token, &other, at(NOW))), "request");
    assert_eq!(outcome(&sealer.open(&token, &binding(), at(NOW + 601))), "expired");

    let failed = sealer.open("ticket 9", &binding(), at(NOW)).unwrap_err();
    assert_eq!(
        (failed.reason().as_str(), failed.codec().unwrap().to_string().as_str()),
        ("codec", "no such ticket")
    );
    let narrow = Sealer::with_codec(Box::new(room), "greeter").with_max_token_len(7);
    assert!(matches!(
        narrow.seal(&call(), &binding(), b"", TTL, at(NOW)),
        Err(SealError::TooLarge { limit: 7, actual: 8 })
    ));
}

#[test]
fn a_codec_that_opens_something_else_gets_nowhere() {
    let room = Cloakroom::default();
    let sealer = Sealer::with_codec(Box::new(room.clone()), "greeter");
    token(&sealer);
    let claims = room.0.lock().unwrap()[0].clone();
    let try_claims = |claims: Vec<u8>, expected: &str| {
        let number = {
            let mut kept = room.0.lock().unwrap();
            kept.push(claims);
            kept.len() - 1
        };
        check(&sealer, &format!("ticket {number}"), expected);
    };
    try_claims(claims.clone(), "ok");
    try_claims(Vec::new(), "claims");
    try_claims(b"{}".to_vec(), "claims");
    try_claims([&claims[..], &[0; 64]].concat(), "claims");
    for end in 0..claims.len() {
        try_claims(claims[..end].to_vec(), "claims");
    }
    let changed = |at: usize, byte: u8| {
        let mut changed = claims.clone();
        changed[at] = byte;
        changed
    };
    assert_eq!(claims[..2], [0x8d, 1], "an array of thirteen, format 1");
    try_claims(changed(1, 2), "ok");
    try_claims(changed(1, 0), "format");
    try_claims(changed(1, 3), "format");
    try_claims(without_audience(&claims), "audience");
    try_claims(changed(0, 0x8e), "claims");
    try_claims(changed(0, 0x9f), "claims");
    try_claims(changed(0, 0xad), "claims");
    try_claims(changed(claims.len() - 1, 1), "claims");
}

/// Returns the claims with `null` in the place of the audience's digest, as a ring writes them.
fn without_audience(claims: &[u8]) -> Vec<u8> {
    // Head and format (2), three times and `null` (5 + 3 + 5 + 1), call id and secret (34), leg and tool version (2).
    let at = 52;
    assert_eq!(claims[at], 0x50, "the digest of 16 bytes");
    let mut changed = [&claims[..at], &[0xf6], &claims[at + 17..]].concat();
    let end = changed.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    changed.resize(end.next_multiple_of(64), 0);
    changed
}
