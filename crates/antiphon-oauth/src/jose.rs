//! Keys that sign: JWT assertions of a client, and proofs of possession (DPoP, RFC 9449).

use crate::error::{Error, ErrorKind};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use http::{HeaderMap, HeaderValue};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom as _, SystemRandom},
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
        KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use url::Url;

/// A private key that signs assertions: ES256, ES384, EdDSA or RS256.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Pair>,
    id: Option<String>,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Es384(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

impl SigningKey {
    /// Reads a key of PKCS #8, as a PEM text with `BEGIN PRIVATE KEY`. `algorithm` is the name in JWS: `ES256`, `ES384`, `EdDSA`
    /// or `RS256`.
    ///
    /// # Errors
    /// [`Setting`](ErrorKind::Setting) if the text is no such key, or the algorithm is another one.
    pub fn from_pem(algorithm: &str, pem: &str) -> Result<Self, Error> {
        let unusable = |why: &str| Error::new(ErrorKind::Setting, format!("the private key {why}"));
        let body = pem
            .split_once("-----BEGIN PRIVATE KEY-----")
            .and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"))
            .map(|(body, _)| body.split_ascii_whitespace().collect::<String>())
            .ok_or_else(|| unusable("is no PEM text of PKCS #8"))?;
        let der = STANDARD.decode(body).map_err(|_| unusable("is no base64 text"))?;
        let random = SystemRandom::new();
        let wrong = |_| unusable("does not fit its algorithm");
        let pair = match algorithm {
            "ES256" => Pair::Es256(
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random).map_err(wrong)?,
            ),
            "ES384" => Pair::Es384(
                EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &der, &random).map_err(wrong)?,
            ),
            "EdDSA" | "Ed25519" => {
                Pair::EdDsa(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(wrong)?)
            }
            "RS256" => Pair::Rs256(RsaKeyPair::from_pkcs8(&der).map_err(wrong)?),
            _ => {
                return Err(unusable(
                    "is for an algorithm that is not supported: use ES256, ES384, EdDSA or RS256",
                ));
            }
        };
        Ok(Self { pair: Arc::new(pair), id: None })
    }

    /// Names the key in the header of its signatures: `kid`.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// An assertion that a client is itself, for an authorization server.
    ///
    /// RFC 7523, section 3: `iss` and `sub` are the client, `aud` is the issuer.
    pub(crate) fn client_assertion(
        &self,
        client_id: &str,
        issuer: &str,
        now: SystemTime,
    ) -> Result<String, Error> {
        let issued = seconds(now);
        let claims = json!({
            "iss": client_id, "sub": client_id, "aud": issuer, "jti": random_text(16)?,
            "iat": issued, "exp": issued + ASSERTION_TIME.as_secs(),
        });
        self.jwt(json!({"typ": "JWT"}), &claims)
    }

    /// Signs claims. The header gets the algorithm, and the name of the key if it has one.
    pub(crate) fn jwt(&self, mut header: Value, claims: &Value) -> Result<String, Error> {
        header["alg"] = self.pair.algorithm().into();
        if let Some(id) = &self.id {
            header["kid"] = id.as_str().into();
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(claims));
        let signature = self.pair.sign(message.as_bytes())?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Makes a new key for ES256. The bytes are its PKCS #8 form.
    pub(crate) fn generate() -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        Ok(document.map_err(|_| no_random())?.as_ref().to_vec())
    }

    /// Reads a key that [`generate`](Self::generate) made, with the two halves of its public point.
    pub(crate) fn restore(pkcs8: &[u8]) -> Result<(Self, [String; 2]), Error> {
        let random = SystemRandom::new();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random).map_err(|_| {
                Error::new(ErrorKind::Store, "the stored key of DPoP cannot be read: sign in again")
            })?;
        let point = pair.public_key().as_ref();
        let half = |at: usize| URL_SAFE_NO_PAD.encode(&point[at..at + 32]);
        // One byte says that the point is not compressed.
        let halves = [half(1), half(33)];
        Ok((Self { pair: Arc::new(Pair::Es256(pair)), id: None }, halves))
    }
}

/// The time for which an assertion is valid.
const ASSERTION_TIME: Duration = Duration::from_secs(5 * 60);

impl Pair {
    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Es384(_) => "ES384",
            Self::EdDsa(_) => "EdDSA",
            Self::Rs256(_) => "RS256",
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        let failed = |_| Error::new(ErrorKind::Setting, "the private key cannot sign");
        match self {
            Self::Es256(pair) | Self::Es384(pair) => {
                Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec())
            }
            Self::EdDsa(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Self::Rs256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("algorithm", &self.pair.algorithm()).finish_non_exhaustive()
    }
}

/// Random bytes as base64url text.
pub(crate) fn random_text(length: usize) -> Result<String, Error> {
    let mut bytes = vec![0; length];
    SystemRandom::new().fill(&mut bytes).map_err(|_| no_random())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn no_random() -> Error {
    Error::new(ErrorKind::Setting, "the operating system gave no random bytes")
}

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The name of the header with a proof.
pub(crate) const DPOP: &str = "dpop";

/// The name of the header with a nonce of a server.
const DPOP_NONCE: &str = "dpop-nonce";

/// The maximum number of servers of which a nonce is stored, and the maximum length of one.
const MAX_NONCES: usize = 32;
const MAX_NONCE: usize = 1024;

/// The key that tokens are bound to.
pub(crate) struct DpopKey {
    key: SigningKey,
    public: Value,
    pkcs8: Vec<u8>,
}

impl DpopKey {
    pub(crate) fn generate() -> Result<Self, Error> {
        Self::restore(SigningKey::generate()?)
    }

    pub(crate) fn restore(pkcs8: Vec<u8>) -> Result<Self, Error> {
        let (key, [x, y]) = SigningKey::restore(&pkcs8)?;
        Ok(Self { key, public: json!({"kty": "EC", "crv": "P-256", "x": x, "y": y}), pkcs8 })
    }

    /// The private key, for the store.
    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// A new proof for one request. `token` is the access token that the request has.
    pub(crate) fn proof(
        &self,
        method: &str,
        url: &Url,
        token: Option<&str>,
        nonce: Option<&str>,
        now: SystemTime,
    ) -> Result<HeaderValue, Error> {
        // > The HTTP target URI .. without query and fragment parts
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let mut claims = json!({
            "jti": random_text(16)?, "htm": method, "htu": target.as_str(), "iat": seconds(now),
        });
        if let Some(token) = token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())).into();
        }
        if let Some(nonce) = nonce {
            claims["nonce"] = nonce.into();
        }
        let proof = self.key.jwt(json!({"typ": "dpop+jwt", "jwk": self.public}), &claims)?;
        // Base64url and dots.
        let mut value = HeaderValue::try_from(proof).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DpopKey(..)")
    }
}

/// The last nonce of each server.
#[derive(Default)]
pub(crate) struct Nonces(Mutex<HashMap<String, String>>);

impl Nonces {
    /// Stores the nonce of an answer. Returns `true` if it is another one than before.
    pub(crate) fn keep(&self, url: &Url, headers: &HeaderMap) -> bool {
        let Some(nonce) = headers.get(DPOP_NONCE).and_then(|value| value.to_str().ok()) else { return false };
        if nonce.is_empty() || nonce.len() > MAX_NONCE {
            return false;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = url.origin().ascii_serialization();
        if kept.len() >= MAX_NONCES && !kept.contains_key(&place) {
            kept.clear();
        }
        kept.insert(place, nonce.to_owned()).as_deref() != Some(nonce)
    }

    /// The nonce for the next request to this server.
    pub(crate) fn get(&self, url: &Url) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&url.origin().ascii_serialization()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use std::time::{Duration, UNIX_EPOCH};

    fn pem(der: &[u8]) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
    }

    #[test]
    fn an_assertion_names_its_client_and_is_signed() {
        let der = SigningKey::generate().unwrap();
        let key = SigningKey::from_pem("ES256", &pem(&der)).unwrap().with_id("k1");
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let jwt = key.client_assertion("me", "https://as.example", now).unwrap();
        let parts: Vec<&str> = jwt.split('.').collect();
        let json =
            |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert_eq!(json(parts[0]), json!({"alg": "ES256", "kid": "k1", "typ": "JWT"}));
        let mut claims = json(parts[1]);
        let id = claims.as_object_mut().unwrap().remove("jti").unwrap();
        assert_eq!(id.as_str().unwrap().len(), 22);
        assert_eq!(
            claims,
            json!({"iss": "me", "sub": "me", "aud": "https://as.example", "iat": 1000, "exp": 1300})
        );
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &SystemRandom::new()).unwrap();
        let message = format!("{}.{}", parts[0], parts[1]);
        let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref())
            .verify(message.as_bytes(), &signature)
            .unwrap();
    }

    #[test]
    fn keys_that_cannot_be_used() {
        let good = pem(&SigningKey::generate().unwrap());
        for (algorithm, pem, why) in [
            ("HS256", &*good, "use ES256"),
            ("RS256", &good, "does not fit"),
            ("EdDSA", &good, "does not fit"),
            ("ES256", "-----BEGIN EC PRIVATE KEY-----", "no PEM text of PKCS #8"),
            ("ES256", "-----BEGIN PRIVATE KEY-----!-----END PRIVATE KEY-----", "no base64"),
        ] {
            let fault = SigningKey::from_pem(algorithm, pem).unwrap_err();
            assert!(fault.to_string().contains(why), "{algorithm}: {fault}");
            assert_eq!(fault.kind(), ErrorKind::Setting);
        }
    }

    fn part(proof: &HeaderValue, at: usize) -> Value {
        let text = proof.to_str().unwrap().split('.').nth(at).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn a_proof_is_for_one_request() {
        let key = DpopKey::generate().unwrap();
        let url = Url::parse("https://a.example/mcp?q=1#f").unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(7);
        let proof = key.proof("POST", &url, Some("token"), Some("n1"), now).unwrap();
        assert!(proof.is_sensitive());
        let header = part(&proof, 0);
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert_eq!(header["jwk"], key.public);
        assert!(header["jwk"].get("d").is_none());
        let claims = part(&proof, 1);
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["htu"], "https://a.example/mcp");
        assert_eq!((&claims["iat"], &claims["nonce"]), (&json!(7), &json!("n1")));
        // SHA-256 of `token`.
        assert_eq!(claims["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
        let other = key.proof("POST", &url, None, None, now).unwrap();
        assert_ne!(part(&other, 1)["jti"], claims["jti"]);
        assert!(part(&other, 1).get("ath").is_none() && part(&other, 1).get("nonce").is_none());
    }

    #[test]
    fn a_key_survives_its_store() {
        let key = DpopKey::generate().unwrap();
        let restored = DpopKey::restore(key.pkcs8().to_vec()).unwrap();
        assert_eq!(key.public, restored.public);
        assert!(DpopKey::restore(b"other".to_vec()).is_err());
    }

    #[test]
    fn nonces_belong_to_an_origin() {
        let nonces = Nonces::default();
        let [a, b] = ["https://a.example/x", "https://b.example/x"].map(|url| Url::parse(url).unwrap());
        let with = |nonce: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(DPOP_NONCE, HeaderValue::from_str(nonce).unwrap());
            headers
        };
        assert!(nonces.keep(&a, &with("1")));
        assert!(!nonces.keep(&a, &with("1")));
        assert!(nonces.keep(&a, &with("2")));
        assert!(!nonces.keep(&a, &HeaderMap::new()));
        assert_eq!((nonces.get(&a).as_deref(), nonces.get(&b)), (Some("2"), None));
        assert!(!nonces.keep(&b, &with(&"x".repeat(MAX_NONCE + 1))));
    }
}
