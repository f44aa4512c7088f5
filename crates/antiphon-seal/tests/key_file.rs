//! The edits of a key file, and the first moment whose tokens open.

use antiphon_seal::{Binding, Call, KeyFile, KeyRing, Reason, ReceiptKeys, Sealer, SecretKey, utc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ONE: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
const TWO: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI";
const NOON: u64 = 1_777_636_800;
const DAY: Duration = Duration::from_secs(86_400);

fn key(byte: u8) -> SecretKey {
    SecretKey::from_bytes([byte; 32])
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn a_key_is_added_promoted_and_retired() {
    let mut file = KeyFile::parse(&format!("# keys of the shop\n\n{ONE} # since May\n# the end\n")).unwrap();
    assert_eq!(file.add(key(2), NOON), Ok(false));
    assert_eq!(
        *file.to_text(),
        format!("# keys of the shop\n\n{ONE} # since May\n# the end\n{TWO} # added 2026-05-01T12:00:00Z\n"),
    );
    file.promote(NOON + 60).unwrap();
    let expected = format!(
        "# keys of the shop\n\n{TWO} # added 2026-05-01T12:00:00Z; seals since 2026-05-01T12:01:00Z\n\
         {ONE} # since May; sealed until 2026-05-01T12:01:00Z\n# the end\n"
    );
    assert_eq!(*file.to_text(), expected);
    assert_eq!(*KeyFile::parse(&expected).unwrap().to_text(), expected);

    let early = file.retire(DAY, NOON + 60 + 86_400).unwrap_err();
    assert!(early.is_early());
    assert_eq!(
        early.to_string(),
        "line 4: tokens of this key may still open; remove it from 2026-05-02T12:01:01Z on",
    );
    assert_eq!(*file.to_text(), expected);
    assert_eq!(file.retire(DAY, NOON + 61 + 86_400), Ok(1));
    assert_eq!(
        *file.to_text(),
        format!(
            "# keys of the shop\n\n{TWO} # added 2026-05-01T12:00:00Z; seals since 2026-05-01T12:01:00Z\n# the end\n"
        ),
    );
}

#[test]
fn edits_keep_their_order() {
    let mut file = KeyFile::parse("# nothing yet\n").unwrap();
    assert!(file.ring().is_err());
    assert_eq!(file.add(key(1), NOON), Ok(true));
    let error = file.promote(NOON).unwrap_err().to_string();
    assert_eq!(error, "no key was added that could seal; add one first");
    let error = file.retire(DAY, NOON).unwrap_err();
    assert_eq!(error.to_string(), "no key has stopped sealing; add a key and promote it first");
    assert!(!error.is_early());
    assert_eq!(file.add(key(2), NOON), Ok(false));
    let error = file.add(key(3), NOON).unwrap_err().to_string();
    assert_eq!(error, "line 3: this key was added and does not seal yet; promote it first");
    // A key that was only added is not retired, at once neither.
    assert!(file.retire_at_once().is_err());
    file.promote(NOON).unwrap();
    assert!(file.promote(NOON).is_err());
    // A second rotation may begin before the first one has ended.
    assert_eq!(file.add(key(3), NOON + 5), Ok(false));
    assert_eq!(file.retire(DAY, NOON + 90_000), Ok(1));
    assert_eq!(file.ring().unwrap().len(), 2);
    file.promote(NOON + 90_000).unwrap();
    assert_eq!(file.retire_at_once(), Ok(1));
    assert_eq!(file.ring().unwrap().len(), 1);
}

#[test]
fn keys_that_were_written_by_hand_have_no_times() {
    let mut file = KeyFile::parse(&format!("{ONE}\n{TWO}\n")).unwrap();
    let error = file.retire(DAY, NOON).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2: no comment says when this key stopped sealing, so tokens of it may still open",
    );
    assert!(error.is_early());
    file.promote(NOON).unwrap();
    assert_eq!(
        *file.to_text(),
        format!("{TWO} # seals since 2026-05-01T12:00:00Z\n{ONE} # sealed until 2026-05-01T12:00:00Z\n"),
    );
    let mut file = KeyFile::parse(&format!("{ONE}\n{TWO}\n{}\n", *key(3).to_base64url())).unwrap();
    let error = file.promote(NOON).unwrap_err().to_string();
    assert_eq!(error, "2 keys could seal next; leave one of them behind the first key");
}

#[test]
fn a_file_with_a_bad_line_is_not_edited() {
    let error = KeyFile::parse(&format!("{ONE}\nnot a key\n")).unwrap_err().to_string();
    assert!(error.starts_with("line 2: not a key"), "{error}");
    assert!(!format!("{:?}", KeyFile::parse(ONE).unwrap()).contains("AQEB"));
}

#[test]
fn a_first_moment_stands_behind_its_key() {
    let check = |text: &str, expected: u64| {
        assert_eq!(KeyRing::parse_file(text).unwrap().min_issued_at(), expected, "{text}");
    };
    check(&format!("{ONE} min_iat=2026-05-01T12:00:00Z # stolen states\n"), NOON);
    check(&format!("{ONE}\tmin_iat=2026-05-01T12:00:00Z\n"), NOON);
    check(&format!("{ONE} # min_iat=2026-05-01T12:00:00Z\n"), 0);
    check("derive:a secret with spaces that has 32 bytes min_iat=2026-05-01T12:00:00Z", NOON);
    let list = KeyRing::parse_list(&format!("{ONE} min_iat=2026-05-01T12:00:00Z,{TWO}")).unwrap();
    assert_eq!(list.min_issued_at(), NOON);
    for (text, expected) in [
        (format!("{ONE} min_iat=\n"), "line 1: `min_iat=` needs a time in UTC"),
        (format!("{ONE} min_iat=yesterday\n"), "line 1: `min_iat=` needs a time in UTC"),
        (format!("{ONE} min_iat= 2026-05-01T12:00:00Z\n"), "line 1: not a key"),
        (format!("{ONE} max_iat=2026-05-01T12:00:00Z\n"), "line 1: not a key"),
        (format!("{ONE}\n{TWO} min_iat=2026-05-01\n"), "line 2: `min_iat=` needs a time in UTC"),
        (format!("{ONE} min_iat=2026-05-01T12:00:00Z\n{ONE}\n"), "line 2: the same key as line 1"),
    ] {
        let error = KeyRing::parse_file(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    // An edit keeps the word.
    let mut file = KeyFile::parse(&format!("{ONE} min_iat=2026-05-01T12:00:00Z\n{TWO}\n")).unwrap();
    file.promote(NOON).unwrap();
    assert!(file.to_text().contains(&format!("{ONE} min_iat=2026-05-01T12:00:00Z # sealed until")));
}

#[test]
fn earlier_tokens_of_a_key_are_refused() {
    let request =
        Binding { method: "tools/call", target: "greet", arguments: None, principal: None, tool_version: 1 };
    let seal = |key: SecretKey, now: u64| {
        let sealer = Sealer::new(&KeyRing::new(vec![key]).unwrap(), "greeter");
        let call = Call::begin(at(now), None).unwrap();
        sealer.seal(&call, &request, b"state", DAY, at(now)).unwrap()
    };
    let ring = KeyRing::new(vec![key(2), key(1).with_min_issued_at(NOON)]).unwrap();
    let sealer = Sealer::new(&ring, "greeter");
    let open = |token: &str| {
        sealer
            .open(token, &request, at(NOON + 10))
            .map_err(|error| (error.reason(), error.call_id().is_some()))
    };
    assert_eq!(open(&seal(key(1), NOON - 1)).unwrap_err(), (Reason::MinIat, true));
    assert_eq!(open(&seal(key(1), NOON)).unwrap().payload, b"state");
    // The moment belongs to its key.
    assert_eq!(open(&seal(key(2), NOON - 1)).unwrap().payload, b"state");
    // Late tokens are refused too.
    let late = sealer.open_late(&seal(key(1), NOON - 1), &request, at(NOON)).unwrap_err();
    assert_eq!(
        (late.reason(), late.to_string()),
        (Reason::MinIat, "Invalid or expired requestState".to_owned())
    );
    assert_eq!(utc::format(NOON), "2026-05-01T12:00:00Z");
}

#[test]
fn a_receipt_is_no_state_and_a_state_no_receipt() {
    let request =
        Binding { method: "tools/call", target: "greet", arguments: None, principal: None, tool_version: 1 };
    let ring = KeyRing::new(vec![key(1)]).unwrap();
    let sealer = Sealer::new(&ring, "greeter");
    let now = at(NOON);
    let token = sealer.seal(&Call::begin(now, None).unwrap(), &request, b"body", DAY, now).unwrap();
    let receipt = sealer.seal_receipt(b"body").unwrap();
    let keys = ReceiptKeys::new(&ring);
    assert_eq!(keys.open(&receipt).unwrap(), b"body");
    assert_eq!(sealer.open_receipt(&receipt).unwrap(), b"body");

    let as_state = |text: &str| sealer.open(text, &request, now).unwrap_err().reason();
    assert_eq!(as_state(&receipt), Reason::Malformed);
    assert_eq!(as_state(&receipt.replacen("receipt1.", "r1.", 1)), Reason::Seal);
    assert_eq!(keys.open(&token).unwrap_err(), Reason::Malformed);
    assert_eq!(keys.open(&token.replacen("r1.", "receipt1.", 1)).unwrap_err(), Reason::Seal);

    let other = ReceiptKeys::new(&KeyRing::new(vec![key(2)]).unwrap());
    assert_eq!(other.open(&receipt).unwrap_err(), Reason::UnknownKey);
    for at in 9..receipt.len() {
        let mut changed = receipt.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert!(keys.open(std::str::from_utf8(&changed).unwrap()).is_err(), "{at}");
    }
    for end in 0..receipt.len() {
        assert!(keys.open(&receipt[..end]).is_err(), "{end}");
    }
}

/// A codec that writes hexadecimal digits.
struct Plain;

impl antiphon_seal::Codec for Plain {
    fn seal(&self, plaintext: &[u8]) -> Result<String, antiphon_seal::CodecError> {
        Ok(plaintext.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn open(&self, token: &str) -> Result<Vec<u8>, antiphon_seal::CodecError> {
        let byte = |at: usize| u8::from_str_radix(token.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..token.len()).step_by(2).map(byte).collect();
        bytes.ok_or_else(|| antiphon_seal::CodecError::new("not hexadecimal"))
    }
}

#[test]
fn under_a_codec_the_plaintexts_differ() {
    let request =
        Binding { method: "tools/call", target: "greet", arguments: None, principal: None, tool_version: 1 };
    let sealer = Sealer::with_codec(Box::new(Plain), "greeter");
    let now = at(NOON);
    let token = sealer.seal(&Call::begin(now, None).unwrap(), &request, b"body", DAY, now).unwrap();
    let receipt = sealer.seal_receipt(b"body").unwrap();
    assert_eq!(sealer.open_receipt(&receipt).unwrap(), b"body");
    let stripped = receipt.strip_prefix("receipt1.").unwrap();
    assert_eq!(sealer.open(stripped, &request, now).unwrap_err().reason(), Reason::Claims);
    assert_eq!(sealer.open_receipt(&format!("receipt1.{token}")).unwrap_err(), Reason::Claims);
}
