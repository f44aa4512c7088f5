//! Property: `open` does not panic, and opens only sealed text: as a token, as a body after a known key id, and as the claims
//! of a custom codec.

#![no_main]

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use antiphon_seal::{Binding, Codec, CodecError, KeyRing, Sealer, SecretKey};
use libfuzzer_sys::fuzz_target;

static RING: LazyLock<Sealer> = LazyLock::new(|| {
    let keys = vec![SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32])];
    Sealer::new(&KeyRing::new(keys).expect("two different keys"), "fuzz")
});
static TRUSTING: LazyLock<Sealer> = LazyLock::new(|| Sealer::with_codec(Box::new(Hex), "fuzz"));

/// Authenticates nothing, so that the fuzzer reaches the decoder of claims.
struct Hex;

impl Codec for Hex {
    fn seal(&self, plaintext: &[u8]) -> Result<String, CodecError> {
        Ok(plaintext.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn open(&self, token: &str) -> Result<Vec<u8>, CodecError> {
        let nibble = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
        let pairs = token.as_bytes().chunks_exact(2);
        let bytes = pairs.map(|pair| Some(nibble(&pair[0])? << 4 | nibble(&pair[1])?));
        bytes.collect::<Option<_>>().ok_or_else(|| CodecError::new("not hexadecimal"))
    }
}

fn binding() -> Binding<'static> {
    Binding { method: "tools/call", target: "t", arguments: None, principal: None, tool_version: 1 }
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(RING.open(text, &binding(), now()).is_err());
        assert!(RING.open(&format!("r1.{text}"), &binding(), now()).is_err());
    }
    let claims = Hex.seal(data).expect("hexadecimal never fails");
    // A fuzzer that finds claims with the right keyed digests has broken HMAC.
    assert!(TRUSTING.open_late(&claims, &binding(), now()).is_err());
});
