//! The keys in the JSON Web Key Set of an issuer.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
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

/// Reads one public key, for an algorithm that it must fit.
pub(crate) fn read_key(key: Value, algorithm: Algorithm) -> Option<PublicKey> {
    let key = serde_json::from_value::<WrittenKey>(key).ok()?.read()?;
    let fits = key.algorithm.is_none_or(|only| only == algorithm) && algorithm.fits(&key.public);
    fits.then_some(key.public)
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

// Signature algorithms, all of them asymmetric: with a shared secret, or without a signature, no header of a token is
// accepted.

/// A signature algorithm of JWS, by its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519, also written `Ed25519`.
    EdDsa,
}

/// A public key that verifies.
pub(super) enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// Uncompressed points.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// The required members of the key as JSON, in their order by name: RFC 7638 hashes this text.
    pub(crate) fn canonical(&self) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let curve = |name: &str, point: &[u8]| {
            // One byte says that the point is not compressed.
            let (x, y) = point[1..].split_at(point.len() / 2);
            format!(r#"{{"crv":"{name}","kty":"EC","x":"{}","y":"{}"}}"#, text(x), text(y))
        };
        match self {
            Self::Rsa { modulus, exponent } => {
                format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, text(exponent), text(modulus))
            }
            Self::P256(point) => curve("P-256", point),
            Self::P384(point) => curve("P-384", point),
            Self::Ed25519(x) => format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, text(x)),
        }
    }
}

impl Algorithm {
    pub(crate) const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The name in JWS.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }

    /// Returns whether a key of this type fits the algorithm. The key decides, never the token alone.
    fn fits(self, key: &PublicKey) -> bool {
        match key {
            PublicKey::Rsa { .. } => self.rsa().is_some(),
            PublicKey::P256(_) => self == Self::Es256,
            PublicKey::P384(_) => self == Self::Es384,
            PublicKey::Ed25519(_) => self == Self::EdDsa,
        }
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &RSA_PSS_2048_8192_SHA512,
            Self::Es256 | Self::Es384 | Self::EdDsa => return None,
        })
    }

    /// Returns whether this key made this signature with this algorithm.
    pub(crate) fn verifies(self, key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
        match (key, self) {
            (PublicKey::Rsa { modulus, exponent }, _) => self.rsa().is_some_and(|parameters| {
                RsaPublicKeyComponents { n: modulus, e: exponent }
                    .verify(parameters, message, signature)
                    .is_ok()
            }),
            (PublicKey::P256(point), Self::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            (PublicKey::P384(point), Self::Es384) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature).is_ok()
            }
            (PublicKey::Ed25519(point), Self::EdDsa) => {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    /// Tokens and keys of RFC 7515, appendices A.2 and A.3.
    #[test]
    fn the_examples_of_jws() {
        let claims =
            "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        for (header, signature, key) in [
            (
                "eyJhbGciOiJSUzI1NiJ9",
                "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9\
                 uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB\
                 _eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq\
                 Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
                r#"{"kty": "RSA", "e": "AQAB", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}"#,
            ),
            (
                "eyJhbGciOiJFUzI1NiJ9",
                "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
                r#"{"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            ),
        ] {
            let keys = KeySet::parse(&format!("{{\"keys\": [{key}]}}")).unwrap();
            let text = format!("{header}.{claims}.{signature}");
            let token = verify::parse(&text).unwrap();
            assert_eq!(token.claims["iss"], "joe");
            let [key] = keys.candidates(token.algorithm, None)[..] else { panic!("{header}: no key") };
            assert!(token.algorithm.verifies(&key.public, token.message, &token.signature), "{header}");
            assert!(!token.algorithm.verifies(&key.public, b"other claims", &token.signature), "{header}");
        }
    }

    /// RFC 8037, appendix A.4.
    #[test]
    fn the_example_of_ed25519() {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let key = PublicKey::Ed25519(decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"));
        let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let signature =
            decode("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
        assert!(Algorithm::EdDsa.verifies(&key, message, &signature));
        assert!(!Algorithm::Es256.verifies(&key, message, &signature));
    }
}
