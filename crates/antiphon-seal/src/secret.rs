//! The id of a call for the log, everything that is keyed by the call's secret, and random bytes from the operating system: no other
//! module of this crate reads them.

use crate::{
    canonical::{TextFault, canonical},
    principal::Principal,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// A call's public id: 16 random bytes, written as 32 hexadecimal digits.
///
/// The id is for logs, traces and store keys. No key and no digest is derived from it; the nonce of the call's first token may
/// be its first 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId([u8; 16]);

impl CallId {
    /// Returns a new random id.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the system gives no random bytes.
    pub fn random() -> Result<Self, EntropyError> {
        random_bytes().map(Self)
    }

    /// Returns the id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The id's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallId({self})")
    }
}

/// A call's secret: 16 random bytes that key every digest of the call.
///
/// The secret travels inside the call's own tokens only, so neither a rotation of the sealing keys nor a
/// custom codec changes the values derived from it. It cannot be printed or cloned, and is wiped when
/// dropped.
pub struct CallSecret {
    bytes: Zeroizing<[u8; 16]>,
    /// HMAC-SHA256 under these bytes, before any input: the two blocks of its key are hashed once per call.
    /// The state wipes itself, by the `zeroize` features of its crates. It stands in a box because a call is moved often: the
    /// call stays small, and a move leaves no copy of the state behind.
    keyed: Box<Hmac<Sha256>>,
}

impl CallSecret {
    /// Returns a new random secret.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the system gives no random bytes.
    pub fn random() -> Result<Self, EntropyError> {
        random_bytes().map(Self::from_bytes)
    }

    /// Returns the secret with these bytes: for test vectors, and for a call that comes back from a store.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let bytes = Zeroizing::new(bytes);
        #[allow(clippy::expect_used, reason = "HMAC is defined for keys of every length")]
        let keyed = Hmac::new_from_slice(&*bytes).expect("HMAC takes a key of any length");
        Self { bytes, keyed: Box::new(keyed) }
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.bytes
    }

    /// Returns the digest of a request: its method, its target (a tool's or prompt's name, a resource's URI)
    /// and the JSON text of its arguments.
    ///
    /// The digest covers the meaning of the arguments, as [`canonical`] defines it; absent, `null` and `{}`
    /// are equal.
    ///
    /// # Errors
    ///
    /// [`TextFault`] if the arguments have no canonical form.
    pub fn request_digest(
        &self,
        method: &str,
        target: &str,
        arguments: Option<&str>,
    ) -> Result<Digest, TextFault> {
        let arguments = canonical(arguments.filter(|text| text.trim_ascii() != "null").unwrap_or("{}"))?;
        Ok(self.digest("request", &[method.as_bytes(), target.as_bytes(), &arguments]))
    }

    /// Returns the digest of a question as it was rendered: an answer counts only while the question is still
    /// the same.
    #[must_use]
    pub fn pin(&self, question: &[u8]) -> Digest {
        self.digest("pin", &[question])
    }

    /// Returns the digest of the data that came with a token. It distinguishes a second delivery of that data
    /// from different data.
    #[must_use]
    pub fn fingerprint(&self, bytes: &[u8]) -> Digest {
        self.digest("fingerprint", &[bytes])
    }

    /// Returns the idempotency key of one step: 32 lowercase hexadecimal digits, the same on every leg of the
    /// call. The call's id does not reveal it.
    #[must_use]
    pub fn idempotency_key(&self, scope: &str, key: &str) -> String {
        hex(&self.mac("idempotency", &[scope.as_bytes(), key.as_bytes()]))
    }

    /// Returns a pseudorandom number, the same on every leg of the call.
    #[must_use]
    pub fn random_u64(&self, scope: &str, key: &str) -> u64 {
        let mac = self.mac("random", &[scope.as_bytes(), key.as_bytes()]);
        mac.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// Returns the digest of the caller; an absent part differs from every present one.
    #[must_use]
    pub fn principal_digest(&self, principal: &Principal) -> Digest {
        let parts = [principal.issuer(), principal.client_id(), principal.subject()];
        let fields = parts.map(|part| match part {
            Some(part) => [b"1".as_slice(), part.as_bytes()],
            None => [b"0".as_slice(), b""],
        });
        self.digest("principal", fields.as_flattened())
    }

    /// Returns the digest of the server name or audience that a token was made for.
    pub(crate) fn audience_digest(&self, audience: &str) -> Digest {
        self.digest("audience", &[audience.as_bytes()])
    }

    fn digest(&self, label: &str, fields: &[&[u8]]) -> Digest {
        Digest(self.mac(label, fields))
    }

    /// Returns HMAC-SHA256 over the label and the fields, each behind its length (eight bytes, big-endian),
    /// cut to 16 bytes.
    fn mac(&self, label: &str, fields: &[&[u8]]) -> [u8; 16] {
        let mut mac = (*self.keyed).clone();
        for field in std::iter::once(&label.as_bytes()).chain(fields) {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        let mut cut = [0; 16];
        cut.copy_from_slice(&full[..16]);
        cut
    }
}

impl fmt::Debug for CallSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallSecret(..)")
    }
}

/// A keyed digest: the first 16 bytes of an HMAC-SHA256 under a call's secret.
///
/// Only [`matches`](Self::matches) compares digests; it takes the same time wherever they differ. `==` does
/// not compile:
///
/// ```compile_fail
/// let secret = antiphon_seal::CallSecret::from_bytes([1; 16]);
/// assert!(secret.pin(b"a") == secret.pin(b"a"));
/// ```
#[derive(Clone, Copy)]
pub struct Digest([u8; 16]);

impl Digest {
    /// Returns `true` if both digests are equal, in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        // As one number: a comparison of slices goes byte by byte.
        u128::from_ne_bytes(self.0).ct_eq(&u128::from_ne_bytes(other.0)).into()
    }

    /// Returns the digest with these bytes, as [`to_bytes`](Self::to_bytes) returned them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the digest's bytes, for a record or a store. To compare, make a digest of them again.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", hex(&self.0))
    }
}

/// Returns `true` if two secrets are equal, in time that depends on their length only.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

/// An error from the operating system: it gave no random bytes.
///
/// Keys, call secrets and nonces have no second source: the operation that needed the bytes must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntropyError(());

impl fmt::Display for EntropyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operating system gave no random bytes")
    }
}

impl std::error::Error for EntropyError {}

/// Returns fresh bytes from the system on every call. The bytes are not pooled: a snapshot of a virtual
/// machine would clone the pool.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| EntropyError(()))?;
    Ok(bytes)
}

/// Twelve random bytes that may be taken once.
///
/// The first token of a call takes its nonce from the call's id, which is as random: one request to the system
/// instead of two.
pub(crate) struct Nonce {
    bytes: [u8; 12],
    taken: AtomicBool,
}

impl Nonce {
    pub(crate) fn new(bytes: [u8; 12]) -> Self {
        Self { bytes, taken: AtomicBool::new(false) }
    }

    /// Returns the bytes to the first caller, and `None` to every other one.
    pub(crate) fn take(&self) -> Option<[u8; 12]> {
        (!self.taken.swap(true, Ordering::Relaxed)).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use sha2::Sha256;
    use zeroize::ZeroizeOnDrop;

    /// Compiles only with the `zeroize` features of the crates below: HMAC is two states and one buffer of
    /// its hash.
    #[test]
    fn the_keyed_state_wipes_itself() {
        fn wipes_itself<T: ZeroizeOnDrop>() {}
        wipes_itself::<Sha256>();
    }
}
