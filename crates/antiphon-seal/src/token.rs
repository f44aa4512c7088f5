//! The sealer: claims become token text, and token text that passes every check becomes claims again.
//!
//! ```text
//! seal   binding -> digests ── claims ── encode, pad ──┬─ ring: encrypt, base64url ──┬─> token
//!                                                      └─ codec                      │
//! open   token ── length ──┬─ ring: prefix, base64url, key id, tag ──┬─ claims ── times ── request ── principal -> Opened
//!                          └─ codec                                  ┘
//! ```

use crate::{
    binding::{AudienceProof, Binding, Late, verify},
    call::{Call, Claims, NewClaims, Opened, Room, unix_seconds},
    cipher::{Plaintext, Purpose, RingCipher},
    error::{Codec, OpenError, Reason, SealError},
    key::KeyRing,
    secret,
};
use std::{
    fmt,
    time::{Duration, SystemTime},
};
use zeroize::Zeroizing;

/// Seals and opens the tokens of one audience.
///
/// A server makes one sealer; every method takes `&self` and the present moment.
pub struct Sealer {
    pub(crate) seal: Seal,
    audience: String,
    ephemeral: bool,
    max_token_len: usize,
}

pub(crate) enum Seal {
    Ring(Box<Rings>),
    Codec(Box<dyn Codec>),
}

/// The keys of one ring, for each purpose.
pub(crate) struct Rings {
    state: RingCipher,
    pub(crate) receipts: RingCipher,
}

impl Sealer {
    /// The default limit for the length of a token, in bytes of text;
    /// [`with_max_token_len`](Self::with_max_token_len) sets another one.
    pub const DEFAULT_MAX_TOKEN_LEN: usize = 256 * 1024;

    /// Returns a sealer with the built-in cipher. Tokens open only under the same `audience`: usually the
    /// server's name.
    ///
    /// The sealer derives its own keys from the ring and keeps none of the ring's keys.
    #[must_use]
    pub fn new(ring: &KeyRing, audience: &str) -> Self {
        let rings = Rings {
            state: RingCipher::new(ring, Purpose::State(audience)),
            receipts: RingCipher::new(ring, Purpose::Receipt),
        };
        Self::with(Seal::Ring(Box::new(rings)), audience, ring.is_ephemeral())
    }

    /// Returns a sealer whose tokens `codec` makes and opens. The sealer still writes and verifies everything
    /// that a token is bound to, `audience` included.
    #[must_use]
    pub fn with_codec(codec: Box<dyn Codec>, audience: &str) -> Self {
        Self::with(Seal::Codec(codec), audience, false)
    }

    fn with(seal: Seal, audience: &str, ephemeral: bool) -> Self {
        Self { seal, audience: audience.to_owned(), ephemeral, max_token_len: Self::DEFAULT_MAX_TOKEN_LEN }
    }

    /// Returns the same sealer with another limit for tokens, in bytes of text. The limit holds for both
    /// directions.
    #[must_use]
    pub fn with_max_token_len(mut self, bytes: usize) -> Self {
        self.max_token_len = bytes;
        self
    }

    /// Returns `true` if the ring is [ephemeral](KeyRing::is_ephemeral).
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral
    }

    /// Returns a token that carries `payload` in `call`'s present leg and opens only with the same request,
    /// for `ttl` from now.
    ///
    /// `ttl` is cut to whole seconds, and to 136 years.
    ///
    /// # Errors
    ///
    /// [`SealError`] if the token cannot be made; its variant names the fault to repair.
    pub fn seal(
        &self,
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let nonce = || call.take_nonce(now).map_or_else(secret::random_bytes, Ok);
        self.seal_with(nonce, call, binding, payload, ttl, now, self.max_token_len)
    }

    /// Does the same as [`seal`](Self::seal), without the limit for tokens: for a token that does not leave the server.
    ///
    /// # Errors
    ///
    /// As [`seal`](Self::seal).
    pub fn seal_unlimited(
        &self,
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let nonce = || call.take_nonce(now).map_or_else(secret::random_bytes, Ok);
        self.seal_with(nonce, call, binding, payload, ttl, now, usize::MAX)
    }

    /// Returns `payload` sealed for a store, which keeps it for at most `ttl`. It opens only with
    /// [`open_stored`](Self::open_stored), the same `purpose` and the same request, and never as the state of a
    /// request. The limit for tokens does not hold here.
    ///
    /// # Errors
    ///
    /// As [`seal`](Self::seal).
    pub fn seal_stored(
        &self,
        purpose: &str,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let call = Call::begin(now, None).map_err(SealError::Entropy)?;
        let nonce = || call.take_nonce(now).map_or_else(secret::random_bytes, Ok);
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.seal_with(nonce, &call, &binding, payload, ttl, now, usize::MAX)
    }

    /// Does the same as [`seal`](Self::seal), with a nonce that a test vector gives.
    #[cfg(test)]
    pub(crate) fn seal_with_nonce(
        &self,
        nonce: [u8; 12],
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        self.seal_with(|| Ok(nonce), call, binding, payload, ttl, now, self.max_token_len)
    }

    #[allow(clippy::too_many_arguments, reason = "private; four callers")]
    fn seal_with(
        &self,
        nonce: impl FnOnce() -> Result<[u8; 12], secret::EntropyError>,
        call: &Call,
        binding: &Binding<'_>,
        payload: &[u8],
        ttl: Duration,
        now: SystemTime,
        limit: usize,
    ) -> Result<String, SealError> {
        let audience = self.audience_proof().digest(&call.secret);
        let claims = NewClaims {
            issued_at: unix_seconds(now),
            ttl: u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX),
            call,
            tool_version: binding.tool_version,
            bound: binding.digest(&call.secret, audience).map_err(SealError::Arguments)?,
            payload,
        };
        match &self.seal {
            Seal::Ring(rings) => {
                let body = claims.encode(RingCipher::ROOM);
                // The length is computed before the encryption, so nothing is encrypted in vain.
                fits(rings.state.token_len(&body), limit)?;
                Ok(rings.state.seal(nonce().map_err(SealError::Entropy)?, body))
            }
            Seal::Codec(codec) => {
                let token = codec.seal(&claims.encode(Room::NONE)).map_err(SealError::Codec)?;
                fits(token.len(), limit)?;
                Ok(token)
            }
        }
    }

    /// Returns the state in `token`, if the token is authentic, in time, and was made for exactly this
    /// request.
    ///
    /// # Errors
    ///
    /// [`OpenError`], one text for every reason. Nothing panics and nothing larger than the limit is
    /// allocated, whatever the text.
    pub fn open(&self, token: &str, binding: &Binding<'_>, now: SystemTime) -> Result<Opened, OpenError> {
        self.open_until(token, binding, Late::Refused, now)
    }

    /// Does the same as [`open`](Self::open), but a token whose own time is over still opens until its call's
    /// deadline, marked as [`expired`](Opened::expired): for a server that keeps the sealed state, drops the
    /// data that came with the token, and sends its question again.
    ///
    /// Only a call with a deadline has such tokens; without a deadline they would open for ever.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_late(
        &self,
        token: &str,
        binding: &Binding<'_>,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        self.open_until(token, binding, Late::Allowed, now)
    }

    /// Does the same as [`open`](Self::open), or with `late` as [`open_late`](Self::open_late), without the limit for tokens: for a
    /// token of [`seal_unlimited`](Self::seal_unlimited), which comes from the server's own store.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_unlimited(
        &self,
        token: &str,
        binding: &Binding<'_>,
        late: bool,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        self.open_whole(token, binding, if late { Late::Allowed } else { Late::Refused }, now)
    }

    /// Returns the payload that [`seal_stored`](Self::seal_stored) sealed for this purpose and this request.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_stored(
        &self,
        stored: &str,
        purpose: &str,
        binding: &Binding<'_>,
        now: SystemTime,
    ) -> Result<Vec<u8>, OpenError> {
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.open_whole(stored, &binding, Late::Refused, now).map(|opened| opened.payload)
    }

    /// Returns a call sealed for a store, in its present leg: for a run of the same request that has no token of it. It opens only
    /// with [`open_call`](Self::open_call), the same `purpose` and the same request.
    ///
    /// # Errors
    ///
    /// As [`seal`](Self::seal).
    pub fn seal_call(
        &self,
        purpose: &str,
        binding: &Binding<'_>,
        call: &Call,
        ttl: Duration,
        now: SystemTime,
    ) -> Result<String, SealError> {
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.seal_with(secret::random_bytes, call, &binding, &[], ttl, now, usize::MAX)
    }

    /// Returns the call that [`seal_call`](Self::seal_call) sealed for this purpose and this request.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_call(
        &self,
        stored: &str,
        purpose: &str,
        binding: &Binding<'_>,
        now: SystemTime,
    ) -> Result<Call, OpenError> {
        let method = stored_method(purpose, binding);
        let binding = Binding { method: &method, ..*binding };
        self.open_whole(stored, &binding, Late::Refused, now).map(|opened| opened.call)
    }

    /// Returns the proof of the audience: a ring has a key for each audience, a codec knows none.
    fn audience_proof(&self) -> AudienceProof<'_> {
        match &self.seal {
            Seal::Ring(_) => AudienceProof::Key,
            Seal::Codec(_) => AudienceProof::Digest(&self.audience),
        }
    }

    fn open_until(
        &self,
        token: &str,
        binding: &Binding<'_>,
        late: Late,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        if token.len() > self.max_token_len {
            return Err(Reason::TooLong.into());
        }
        self.open_whole(token, binding, late, now)
    }

    fn open_whole(
        &self,
        token: &str,
        binding: &Binding<'_>,
        late: Late,
        now: SystemTime,
    ) -> Result<Opened, OpenError> {
        let plaintext = match &self.seal {
            Seal::Ring(rings) => rings.state.open(token)?,
            Seal::Codec(codec) => Plaintext { bytes: Zeroizing::new(codec.open(token)?), min_issued_at: 0 },
        };
        let claims = Claims::decode(&plaintext.bytes)?;
        if claims.issued_at < plaintext.min_issued_at {
            return Err(OpenError::of_call(Reason::MinIat, claims.call.id));
        }
        verify(claims, binding, self.audience_proof(), late, now)
    }
}

fn fits(actual: usize, limit: usize) -> Result<(), SealError> {
    if actual > limit { Err(SealError::TooLarge { limit, actual }) } else { Ok(()) }
}

/// Returns the method that sealed data for a store are bound to: no method of a request contains a zero character.
fn stored_method(purpose: &str, binding: &Binding<'_>) -> String {
    format!("{purpose}\0{}", binding.method)
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("audience", &self.audience)
            .field("ephemeral", &self.ephemeral)
            .field("max_token_len", &self.max_token_len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    //! Tests with known answers. The expected values come from an independent implementation (Python: hmac,
    //! hashlib, AESGCMSIV), so they also fix the byte layout that the crate's documentation draws.

    use crate::canonical::canonical;
    use crate::cipher::Aes256GcmSiv;
    use crate::secret::Digest;
    use crate::{Binding, Call, CallId, CallSecret, KeyRing, Principal, Sealer, SecretKey};
    use aes_gcm_siv::aead::inout::InOutBuf;
    use aes_gcm_siv::{AeadInOut as _, KeyInit as _, Nonce};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
}
