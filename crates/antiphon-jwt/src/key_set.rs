//! The keys in the JSON Web Key Set of an issuer.

use crate::algorithm::{Algorithm, PublicKey};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::Value;

/// The maximum number of keys in a set.
const MAX_KEYS: usize = 100;

/// The minimum length of an RSA modulus in bytes: 2,048 bits.
const MIN_RSA: usize = 256;

pub(crate) struct KeySet(Vec<Key>);

pub(crate) struct Key {
    id: Option<String>,
    /// `None` for any algorithm that fits the key.
    algorithm: Option<Algorithm>,
    pub(crate) public: PublicKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// A key as JSON. Other members are ignored, certificates and their URLs among them.
#[derive(Deserialize)]
struct WrittenKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a set. Keys for other purposes or algorithms are left out.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let document: Document =
            serde_json::from_str(text).map_err(|fault| format!("not a JSON Web Key Set: {fault}"))?;
        if document.keys.len() > MAX_KEYS {
            return Err(format!("{} keys are too many", document.keys.len()));
        }
        let keys: Vec<Key> = document
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value::<WrittenKey>(key).ok()?.read())
            .collect();
        if keys.is_empty() {
            return Err("none of its keys can verify a token".to_owned());
        }
        Ok(Self(keys))
    }

    /// Returns the keys that can have signed a token: those with its `kid`; without a `kid`, the only key that fits.
    pub(crate) fn candidates(&self, algorithm: Algorithm, id: Option<&str>) -> Vec<&Key> {
        let fits =
            |key: &&Key| key.algorithm.is_none_or(|only| only == algorithm) && algorithm.fits(&key.public);
        let fitting = self.0.iter().filter(fits);
        match id {
            Some(id) => fitting.filter(|key| key.id.as_deref() == Some(id)).collect(),
            None => {
                let fitting: Vec<&Key> = fitting.collect();
                if fitting.len() == 1 { fitting } else { Vec::new() }
            }
        }
    }
}

impl WrittenKey {
    fn read(self) -> Option<Key> {
        if self.used_for.is_some_and(|used_for| used_for != "sig")
            || self.key_ops.is_some_and(|all| !all.iter().any(|one| one == "verify"))
        {
            return None;
        }
        let algorithm = match self.alg {
            None => None,
            Some(name) => Some(Algorithm::parse(&name)?),
        };
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let coordinate =
            |text: Option<String>, length: usize| bytes(text).filter(|bytes| bytes.len() == length);
        let point = |x: Option<String>, y: Option<String>, length| {
            let (x, y) = (coordinate(x, length)?, coordinate(y, length)?);
            Some([&[4][..], &x, &y].concat())
        };
        let public = match (&*self.kty, self.crv.as_deref()) {
            ("RSA", _) => {
                let (modulus, exponent) = (without_zeros(bytes(self.n)?), without_zeros(bytes(self.e)?));
                if modulus.len() < MIN_RSA {
                    return None;
                }
                PublicKey::Rsa { modulus, exponent }
            }
            ("EC", Some("P-256")) => PublicKey::P256(point(self.x, self.y, 32)?),
            ("EC", Some("P-384")) => PublicKey::P384(point(self.x, self.y, 48)?),
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(coordinate(self.x, 32)?),
            _ => return None,
        };
        Some(Key { id: self.kid, algorithm, public })
    }
}

fn without_zeros(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}
