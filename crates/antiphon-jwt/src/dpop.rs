//! Proofs of possession: RFC 9449. A bound token names the thumbprint of a key, and each request proves that it has this key.
//! The proofs that were accepted are kept for as long as they could be sent again.

use crate::{
    key_set::{self, Algorithm},
    verify,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    hmac,
};
use serde_json::{Map, Value};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    error::Error,
    fmt,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use url::Url;

/// The maximum length of a proof in bytes.
const MAX_PROOF: usize = 8 * 1024;

/// The age up to which a proof without a nonce is accepted.
const PROOF_TIME: Duration = Duration::from_secs(60);

/// The age up to which a nonce is accepted.
const NONCE_TIME: Duration = Duration::from_secs(5 * 60);

/// The members of a key that only a private or a shared key has.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Verifies the proofs of the requests to one resource. It remembers the proofs that it accepted, so that each is good for one request.
pub struct DpopVerifier {
    /// Normalized, without a query and a fragment.
    url: String,
    nonces: Option<Nonces>,
    clock_skew: Duration,
    replays: Replays,
}

/// The request that a proof must belong to.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ProvenRequest<'a> {
    method: &'a str,
    token: &'a str,
    thumbprint: &'a str,
}

impl<'a> ProvenRequest<'a> {
    /// A request with this method and access token. `thumbprint` is the member `jkt` of the token's claim `cnf`.
    #[must_use]
    pub fn new(method: &'a str, token: &'a str, thumbprint: &'a str) -> Self {
        Self { method, token, thumbprint }
    }
}

/// The reason why a proof is refused: a text for the log, which holds nothing of the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpopError {
    /// The proof is not valid for this request.
    Invalid(&'static str),
    /// The proof needs a nonce of this server: another one, or one at all.
    NeedsNonce,
    /// The key has made too many requests within the life of a proof: they cannot all be remembered.
    TooMany,
}

impl DpopVerifier {
    /// Returns the verifier of proofs for the resource with this URL. The clocks of clients may differ from the one of this machine by
    /// `clock_skew`, in either direction.
    ///
    /// # Errors
    /// If the URL is none.
    pub fn new(url: &str, clock_skew: Duration) -> Result<Self, String> {
        let url = normalized(url).ok_or_else(|| "it is no URL".to_owned())?;
        let replays = Replays::new(PROOF_TIME + 2 * clock_skew);
        Ok(Self { url, nonces: None, clock_skew, replays })
    }

    /// Demands that proofs have a nonce that this key made within five minutes. All instances of a server share the key.
    #[must_use]
    pub fn with_nonces(self, key: &[u8; 32]) -> Self {
        let nonces = Nonces { key: hmac::Key::new(hmac::HMAC_SHA256, key), url: self.url.clone() };
        let replays = Replays::new(NONCE_TIME + 2 * self.clock_skew);
        Self { nonces: Some(nonces), replays, ..self }
    }

    /// Returns a nonce for the next proofs; `None` if proofs need none.
    #[must_use]
    pub fn nonce(&self, now: SystemTime) -> Option<String> {
        self.nonces.as_ref().map(|nonces| nonces.make(now))
    }

    /// The names of the signature algorithms of proofs: all are asymmetric.
    pub fn algorithms() -> impl Iterator<Item = &'static str> {
        Algorithm::ALL.into_iter().map(Algorithm::name)
    }

    /// Verifies the proof of one request, whose token is valid. The order is that of RFC 9449, section 4.3; only a proof that is right
    /// otherwise is remembered.
    ///
    /// # Errors
    /// [`DpopError`].
    pub fn verify(&self, proof: &str, request: ProvenRequest<'_>, now: SystemTime) -> Result<(), DpopError> {
        let Proof { claims, thumbprint } = Proof::read(proof).map_err(DpopError::Invalid)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let fault = |why| Err(DpopError::Invalid(why));
        if text("htm") != Some(request.method) {
            return fault("its method is another one (htm)");
        }
        if text("htu").and_then(normalized).as_ref() != Some(&self.url) {
            return fault("its URL is another one (htu)");
        }
        if text("ath") != Some(&*hash(request.token)) {
            return fault("it is for another token (ath)");
        }
        if thumbprint != request.thumbprint {
            return fault("its key is another one than the token's (cnf)");
        }
        let id = text("jti").filter(|id| !id.is_empty());
        let Some(id) = id else { return fault("it has no name (jti)") };
        let issued = claims.get("iat").and_then(Value::as_f64);
        let Some(issued) = issued else { return fault("it has no time (iat)") };
        match &self.nonces {
            // > the server can rely on the nonce .. and the client's clock does not matter
            Some(nonces) => {
                let is_known = text("nonce").is_some_and(|nonce| nonces.is_own(nonce, now, self.clock_skew));
                if !is_known {
                    return Err(DpopError::NeedsNonce);
                }
            }
            None => {
                let age = seconds(now) as f64 - issued;
                let skew = self.clock_skew.as_secs_f64();
                if !(-skew..=PROOF_TIME.as_secs_f64() + skew).contains(&age) {
                    return fault("its time is not now (iat)");
                }
            }
        }
        match self.replays.add(request.thumbprint, id, seconds(now)) {
            Ok(true) => Ok(()),
            Ok(false) => fault("it was there before (jti)"),
            Err(Full) => Err(DpopError::TooMany),
        }
    }
}

/// A proof whose signature is right.
struct Proof {
    claims: Map<String, Value>,
    /// RFC 7638, with SHA-256.
    thumbprint: String,
}

impl Proof {
    fn read(proof: &str) -> Result<Self, &'static str> {
        if proof.len() > MAX_PROOF {
            return Err("it is too long");
        }
        let mut parts = verify::parts(proof)?;
        if parts.header.get("typ").and_then(Value::as_str) != Some("dpop+jwt") {
            return Err("it is another kind of JWT (typ)");
        }
        // > a JWS asymmetric digital signature algorithm identifier .. MUST NOT be `none`
        let algorithm = parts.algorithm()?;
        let Some(Value::Object(members)) = parts.header.remove("jwk") else {
            return Err("it has no key (jwk)");
        };
        // > It MUST NOT contain a private key.
        if PRIVATE.iter().any(|name| members.contains_key(*name)) {
            return Err("its key is a private one (jwk)");
        }
        let key = key_set::read_key(members.into(), algorithm).ok_or("its key does not fit (jwk)")?;
        if !algorithm.verifies(&key, parts.message, &parts.signature) {
            return Err("its signature is wrong");
        }
        Ok(Self { claims: parts.claims, thumbprint: hash(key.canonical()) })
    }
}

/// Nonces that need no memory: a time, with a MAC of it.
struct Nonces {
    key: hmac::Key,
    url: String,
}

impl Nonces {
    fn make(&self, now: SystemTime) -> String {
        let time = seconds(now).to_be_bytes();
        let tag = hmac::sign(&self.key, &self.message(time));
        URL_SAFE_NO_PAD.encode([&time[..], tag.as_ref()].concat())
    }

    fn is_own(&self, nonce: &str, now: SystemTime, clock_skew: Duration) -> bool {
        let bytes = URL_SAFE_NO_PAD.decode(nonce).unwrap_or_default();
        let Some((time, tag)) = bytes.split_first_chunk::<8>() else { return false };
        if hmac::verify(&self.key, &self.message(*time), tag).is_err() {
            return false;
        }
        let (made, now, skew) = (u64::from_be_bytes(*time), seconds(now), clock_skew.as_secs());
        made <= now.saturating_add(skew) && now <= made.saturating_add(NONCE_TIME.as_secs() + skew)
    }

    fn message(&self, time: [u8; 8]) -> Vec<u8> {
        [&b"antiphon dpop nonce 1\0"[..], &time, self.url.as_bytes()].concat()
    }
}

/// Returns a URL without its query and fragment, in the form of RFC 3986, sections 6.2.2 and 6.2.3.
fn normalized(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    url.host_str()?;
    url.set_query(None);
    url.set_fragment(None);
    let path = unescaped(url.path());
    url.set_path(&path);
    Some(url.into())
}

/// Decodes the escapes of characters that need none, and writes the others in upper case.
fn unescaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut parts = path.split('%');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            text.push('%');
            text.push_str(part);
            continue;
        };
        match u8::from_str_radix(digits, 16).map(char::from) {
            Ok(plain) if plain.is_ascii_alphanumeric() || "-._~".contains(plain) => text.push(plain),
            _ => {
                text.push('%');
                text.push_str(&digits.to_ascii_uppercase());
            }
        }
        text.push_str(&part[2..]);
    }
    text
}

/// The SHA-256 of a text, as base64url text.
fn hash(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_ref()))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl fmt::Display for DpopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid(cause) => cause,
            Self::NeedsNonce => "the proof has no nonce of this server, or an old one",
            Self::TooMany => "the key made too many requests at a time",
        })
    }
}

impl Error for DpopError {}

impl fmt::Debug for ProvenRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvenRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

impl fmt::Debug for DpopVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopVerifier").field("url", &self.url).finish_non_exhaustive()
    }
}

/// The maximum number of proofs that are remembered of one key, and of all keys in one part.
const MAX_OF_KEY: usize = 16 * 1024;
const MAX_OF_PART: usize = 32 * 1024;

/// The number of parts, each with a lock of its own.
const PARTS: usize = 16;

/// The part of a hash that names a proof.
type Name = [u8; 16];

/// The error for a proof that cannot be remembered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The names of accepted proofs.
pub(crate) struct Replays {
    /// The time in seconds for which a proof is remembered.
    kept: u64,
    /// Nobody can choose a key for a part.
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

#[derive(Default)]
struct Part {
    keys: HashMap<Box<str>, Proofs>,
    count: usize,
}

/// The proofs of one key.
#[derive(Default)]
struct Proofs {
    names: HashSet<Name>,
    /// The names with their times, the oldest first.
    order: VecDeque<(u64, Name)>,
}

impl Replays {
    /// Returns a memory of proofs that could be accepted for so long.
    pub(crate) fn new(kept: Duration) -> Self {
        Self { kept: kept.as_secs(), hasher: RandomState::new(), parts: Default::default() }
    }

    /// Adds the proof `id` of this key. Returns `false` if it is there already, and an error if there is no room for this key, or in
    /// its part.
    pub(crate) fn add(&self, key: &str, id: &str, now: u64) -> Result<bool, Full> {
        let mut name = Name::default();
        name.copy_from_slice(&digest(&SHA256, id.as_bytes()).as_ref()[..16]);
        let mut part = self.part(key).lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = now.saturating_sub(self.kept);
        if part.count >= MAX_OF_PART {
            part.keys.retain(|_, proofs| {
                proofs.forget(oldest);
                !proofs.names.is_empty()
            });
            part.count = part.keys.values().map(|proofs| proofs.names.len()).sum();
        }
        let is_full = part.count >= MAX_OF_PART;
        let Part { keys, count } = &mut *part;
        let proofs = match keys.get_mut(key) {
            Some(proofs) => proofs,
            None if is_full => return Err(Full),
            None => keys.entry(key.into()).or_default(),
        };
        *count -= proofs.forget(oldest);
        if proofs.names.contains(&name) {
            return Ok(false);
        }
        if is_full || proofs.names.len() >= MAX_OF_KEY {
            return Err(Full);
        }
        proofs.names.insert(name);
        proofs.order.push_back((now, name));
        *count += 1;
        Ok(true)
    }

    fn part(&self, key: &str) -> &Mutex<Part> {
        &self.parts[self.hasher.hash_one(key) as usize % PARTS]
    }
}

impl Proofs {
    /// Removes what was added before this time, and returns its number.
    fn forget(&mut self, oldest: u64) -> usize {
        let mut removed = 0;
        while let Some((_, name)) = self.order.front().filter(|(at, _)| *at < oldest) {
            self.names.remove(name);
            self.order.pop_front();
            removed += 1;
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_compared_in_their_normal_form() {
        for (one, other, is_same) in [
            ("https://a.example/mcp", "HTTPS://A.example:443/mcp", true),
            ("https://a.example", "https://a.example/", true),
            ("https://a.example/mcp", "https://a.example/mcp?q=1#f", true),
            ("https://a.example/%7Ejoe", "https://a.example/~joe", true),
            ("https://a.example/%c3%a9", "https://a.example/é", true),
            ("https://a.example/x/../mcp", "https://a.example/mcp", true),
            ("https://a.example/a%2Fb", "https://a.example/a/b", false),
            ("https://a.example/mcp", "https://a.example/mcp/", false),
            ("https://a.example/mcp", "https://a.example/MCP", false),
            ("https://a.example/mcp", "http://a.example/mcp", false),
            ("https://a.example/mcp", "https://a.example:8443/mcp", false),
            ("https://a.example/mcp", "https://b.example/mcp", false),
        ] {
            assert_eq!(normalized(one) == normalized(other), is_same, "{one} {other}");
        }
        assert_eq!((normalized("/mcp"), normalized("mailto:a@b")), (None, None));
    }

    #[test]
    fn any_instance_knows_the_nonces_of_the_key() {
        let skew = Duration::from_secs(60);
        let instance = |url: &str, key: u8| {
            DpopVerifier::new(url, skew).unwrap().with_nonces(&[key; 32]).nonces.unwrap()
        };
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let nonce = instance("https://a.example/mcp", 1).make(at(1000));
        for (url, key, now, fits) in [
            ("https://a.example/mcp", 1, 1000, true),
            ("https://a.example/mcp", 1, 940, true),
            ("https://a.example/mcp", 1, 939, false),
            ("https://a.example/mcp", 1, 1360, true),
            ("https://a.example/mcp", 1, 1361, false),
            ("https://a.example/mcp", 2, 1000, false),
            ("https://a.example/other", 1, 1000, false),
        ] {
            assert_eq!(instance(url, key).is_own(&nonce, at(now), skew), fits, "{url} {key} {now}");
        }
        let own = instance("https://a.example/mcp", 1);
        for wrong in ["", "AAAA", &nonce[1..], &format!("{nonce}AA"), &format!("B{}", &nonce[1..])] {
            assert!(!own.is_own(wrong, at(1000), skew), "{wrong}");
        }
    }

    /// The key of RFC 7638, section 3.1, and the proof of RFC 9449, figure 12 (section 7.1).
    #[test]
    fn the_examples_of_the_specifications() {
        let key = serde_json::json!({
            "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        });
        let key = key_set::read_key(key, Algorithm::Rs256).unwrap();
        assert_eq!(hash(key.canonical()), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
        let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
        let skew = Duration::from_secs(60);
        let verifier = DpopVerifier::new("https://resource.example.org/protectedresource", skew).unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(1_562_262_618);
        let request = ProvenRequest::new("GET", token, thumbprint);
        assert_eq!(verifier.verify(proof, request, now), Ok(()));
        assert_eq!(
            verifier.verify(proof, request, now),
            Err(DpopError::Invalid("it was there before (jti)"))
        );
    }

    #[test]
    fn a_proof_is_there_once_for_its_time() {
        let replays = Replays::new(Duration::from_secs(10));
        for (key, id, now, expected) in [
            ("k", "1", 100, Ok(true)),
            ("k", "1", 100, Ok(false)),
            ("k", "1", 110, Ok(false)),
            ("other", "1", 110, Ok(true)),
            ("k", "2", 110, Ok(true)),
            // It can be accepted no more.
            ("k", "1", 111, Ok(true)),
            ("k", "2", 111, Ok(false)),
        ] {
            assert_eq!(replays.add(key, id, now), expected, "{key} {id} {now}");
        }
    }

    #[test]
    fn a_key_takes_the_room_of_no_other() {
        let replays = Replays::new(Duration::from_secs(10));
        for number in 0..MAX_OF_KEY {
            assert_eq!(replays.add("greedy", &number.to_string(), 100), Ok(true));
        }
        assert_eq!(replays.add("greedy", "one more", 100), Err(Full));
        assert_eq!(replays.add("greedy", "1", 100), Ok(false));
        assert_eq!(replays.add("modest", "1", 100), Ok(true));
        assert_eq!(replays.add("greedy", "one more", 111), Ok(true));
    }

    #[test]
    fn many_keys_take_bounded_room() {
        let replays = Replays::new(Duration::from_secs(10));
        let add = |from: usize, now: u64| {
            (from..from + PARTS * MAX_OF_PART + PARTS)
                .filter(|key| replays.add(&key.to_string(), "1", now) == Ok(true))
                .count()
        };
        assert!(add(0, 100) <= PARTS * MAX_OF_PART);
        // Keys without a proof are forgotten.
        let first = replays.parts.iter().map(|part| part.lock().unwrap().keys.len()).max();
        assert_eq!(first, Some(MAX_OF_PART));
        assert_eq!(replays.add("later", "1", 111), Ok(true));
    }
}
