//! Proofs of possession: RFC 9449.

use crate::{
    error::Error,
    jose::{SigningKey, random_text, seconds},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};
use url::Url;

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
    use std::time::{Duration, UNIX_EPOCH};

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
