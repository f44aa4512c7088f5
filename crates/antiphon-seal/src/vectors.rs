//! Tests with known answers. The expected values come from an independent implementation (Python: hmac,
//! hashlib, AESGCMSIV), so they also fix the byte layout that the crate's documentation draws.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aes_gcm_siv::aead::inout::InOutBuf;
use aes_gcm_siv::{AeadInOut as _, KeyInit as _, Nonce};

use crate::canonical::canonical;
use crate::cipher::Aes256GcmSiv;
use crate::secret::Digest;
use crate::{Binding, Call, CallId, CallSecret, KeyRing, Principal, Sealer, SecretKey};

const TOKEN: &str = "r1.Hc-bE6ChoqOkpaanqKmqq4y7YKP_biWhTIZVvaaMgVdcqXgEYxD4mf2l_Q8rZmGpEIffUUoilPdHC7KO0KSh-W-LrkOFBqx6EGCLqHyIQ5sy\
                     --oC1LwdyY8tpAhH730WPelzcOvEAzrNGAIHtGD8aFD-dLs9TXTzl7iFiI_FxFRS7eA0VZ6FYiAIN6SKCQGAAVR3oSW_EzBNgSt206-sKQ";
/// The same in format 1, with the digest of the audience.
const TOKEN_OF_FORMAT_1: &str = "r1.Hc-bE6ChoqOkpaanqKmqq0iJd-mD_C024y6BVcdlw-x2ff8zCUI3WvcFczGj5n4pz39d5edE_yv83Fg9WqdCmoLNyVmf2EiKZvAmPPqm\
     FYERcYnwqDchoG4z_CdCCeeDoVOEBG3ODGLgw4xGBHaxL8dc09ul5fG3oWPprovYK8yqIhmY7urcLpw_glQdcqLQFoZs-f1aOX0en8JR5qoQjQ";
const ARGUMENTS: &str = r#"{"b":[1.50,true,null],"a":"\u00e9"}"#;
const PAYLOAD: &[u8] = br#"{"n":1}"#;
const ISSUED_AT: u64 = 1_800_000_000;

fn sealer() -> Sealer {
    let key = SecretKey::from_bytes(std::array::from_fn(|index| index as u8));
    Sealer::new(&KeyRing::new(vec![key]).unwrap(), "greeter")
}

fn call() -> Call {
    Call {
        id: CallId::from_bytes([0x11; 16]),
        secret: CallSecret::from_bytes([0x22; 16]),
        born: ISSUED_AT - 10,
        deadline: Some(ISSUED_AT + 86_400),
        leg: 2,
        nonce: None,
    }
}

fn alice() -> Principal {
    Principal::user("alice").with_issuer("https://issuer.example").with_client_id("client-1")
}

fn binding(principal: &Principal) -> Binding<'_> {
    Binding {
        method: "tools/call",
        target: "greet",
        arguments: Some(ARGUMENTS),
        principal: Some(principal),
        tool_version: 7,
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn a_token_has_exactly_these_bytes() {
    let alice = alice();
    let nonce = std::array::from_fn(|index| 0xa0 + index as u8);
    let ttl = Duration::from_secs(600);
    let token =
        sealer().seal_with_nonce(nonce, &call(), &binding(&alice), PAYLOAD, ttl, at(ISSUED_AT)).unwrap();
    assert_eq!(token, TOKEN);
}

#[test]
fn a_known_token_of_each_format_opens() {
    let alice = alice();
    let check = |token: &str| {
        let opened = sealer().open(token, &binding(&alice), at(ISSUED_AT + 5)).unwrap();
        assert_eq!(opened.payload, PAYLOAD);
        assert_eq!(opened.call.id().to_string(), "11".repeat(16));
        assert_eq!(opened.call.secret().as_bytes(), &[0x22; 16]);
        assert_eq!((opened.call.born(), opened.call.leg(), opened.tool_version), (ISSUED_AT - 10, 2, 7));
        assert_eq!(opened.call.deadline(), Some(ISSUED_AT + 86_400));
        assert_eq!((opened.expired, opened.accepted_until), (false, ISSUED_AT + 600));
    };
    check(TOKEN);
    check(TOKEN_OF_FORMAT_1);
}

/// The first vectors of RFC 8452, appendix C.2, through the same cipher and call as tokens.
#[test]
fn the_cipher_is_that_of_rfc_8452() {
    let mut key = [0; 32];
    key[0] = 1;
    let mut nonce = [0; 12];
    nonce[0] = 3;
    let check = |associated: &[u8], plaintext: &[u8], expected: &str| {
        let mut sealed = plaintext.to_vec();
        let tag = Aes256GcmSiv::new(&key.into())
            .encrypt_inout_detached(&Nonce::from(nonce), associated, InOutBuf::from(&mut *sealed))
            .unwrap();
        sealed.extend_from_slice(&tag);
        assert_eq!(hex(&sealed), expected);
    };
    check(b"", b"", "07f5f4169bbf55a8400cd47ea6fd400f");
    check(b"", &[1, 0, 0, 0, 0, 0, 0, 0], "c2ef328e5c71c83b843122130f7364b761e0b97427e3df28");
    check(b"\x01", &[2, 0, 0, 0, 0, 0, 0, 0], "1de22967237a813291213f267e3b452f02d01ae33e4ec854");
}

#[test]
fn digests_have_exactly_these_bytes() {
    let secret = CallSecret::from_bytes([0x22; 16]);
    let check = |digest: Digest, expected: &str| assert_eq!(hex(&digest.to_bytes()), expected);
    check(
        secret.request_digest("tools/call", "greet", Some(ARGUMENTS)).unwrap(),
        "628509f951b9088b4cf1b860c12f9e93",
    );
    for none in [None, Some("null"), Some(" null\n"), Some("{}"), Some(" { } ")] {
        let digest = secret.request_digest("tools/call", "greet", none).unwrap();
        check(digest, "9912e2dd3cd60348b166fc2943f72907");
    }
    check(secret.principal_digest(&alice()), "66b3bb4478d98f9da65a3295272efe7a");
    check(secret.principal_digest(&Principal::client("client-1")), "db719b29427bc98538d1507447ed9abf");
    check(secret.pin(b"Which region?"), "2898278abc9964e0bc584e0142607c3d");
    check(secret.fingerprint(b"Which region?"), "40c94293d5e72697afe955ad9aa317ef");
    assert_eq!(secret.idempotency_key("", "charge"), "3421b0e36a4612ef1d3520b5bf23cf61");
    assert_eq!(secret.random_u64("", "dice"), 0x4345_37e3_d17e_ca20);
}

#[test]
fn the_canonical_form_has_exactly_these_bytes() {
    assert_eq!(
        hex(&canonical(ARGUMENTS).unwrap()),
        "6f000000000000000273000000000000000161730000000000000002c3a9\
         730000000000000001626100000000000000036400000000000000053135652d31746e",
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
