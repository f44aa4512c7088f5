//! Receipts: sealed records that only the holders of a key file can read, and nobody else can make.
//!
//! A receipt is not bound to a request, and does not expire. Its keys, its prefix and its plaintext differ from those of
//! a token, so a receipt never opens as a state, nor a state as a receipt, under a ring and under a codec.

use crate::{
    call::{Room, padded_len},
    canonical::{TextFault, canonical},
    cipher::{Purpose, RingCipher},
    error::{Reason, SealError},
    key::KeyRing,
    secret,
    token::{Seal, Sealer},
};
use minicbor::{Decoder, Encoder};
use sha2::{Digest as _, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// The maximum length of a receipt, in bytes of text.
const MAX_LEN: usize = 16 << 20;

/// The first element of the plaintext. The claims of a token begin with a number.
const KIND: &str = "receipt";
const FORMAT: u8 = 1;

/// The bytes before the body at most: array, kind, format, and the length of the body.
const MAX_HEAD: usize = 24;

/// Returns the digest of a request's arguments for a receipt: SHA-256 over their [canonical form](crate::canonical), so
/// that whoever has the arguments can compare. Absent, `null` and `{}` are equal.
///
/// # Errors
///
/// [`TextFault`] if the arguments have no canonical form.
pub fn arguments_digest(arguments: Option<&str>) -> Result<[u8; 32], TextFault> {
    let arguments = canonical(arguments.filter(|text| text.trim_ascii() != "null").unwrap_or("{}"))?;
    Ok(digest("arguments", &[&arguments]))
}

/// Returns the digest of an entry of a receipt, which covers the digest of the entry before it.
#[must_use]
pub fn entry_digest(previous: &[u8; 32], entry: &[u8]) -> [u8; 32] {
    digest("entry", &[previous, entry])
}

fn digest(label: &str, fields: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for field in [b"antiphon/receipt", label.as_bytes()].iter().chain(fields) {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    }
    hash.finalize().into()
}

/// The keys that open receipts, without an audience: whoever has the key file can check the receipts of all its servers.
pub struct ReceiptKeys(RingCipher);

impl ReceiptKeys {
    /// Returns the keys of this ring for receipts.
    #[must_use]
    pub fn new(ring: &KeyRing) -> Self {
        Self(RingCipher::new(ring, Purpose::Receipt))
    }

    /// Returns the body of a receipt.
    ///
    /// # Errors
    ///
    /// [`Reason`]: the text is no receipt, was changed, or was sealed under another key.
    pub fn open(&self, text: &str) -> Result<Vec<u8>, Reason> {
        short_enough(text)?;
        read(&self.0.open(text)?.bytes)
    }
}

impl fmt::Debug for ReceiptKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptKeys(..)")
    }
}

impl Sealer {
    /// Returns the receipt with this body.
    ///
    /// # Errors
    ///
    /// [`SealError`] if it is too long, without random bytes, or if the codec fails.
    pub fn seal_receipt(&self, body: &[u8]) -> Result<String, SealError> {
        let too_large = |actual: usize| SealError::TooLarge { limit: MAX_LEN, actual };
        if body.len() > MAX_LEN {
            return Err(too_large(body.len()));
        }
        let text = match &self.seal {
            Seal::Ring(rings) => {
                let nonce = secret::random_bytes().map_err(SealError::Entropy)?;
                rings.receipts.seal(nonce, write(body, RingCipher::ROOM))
            }
            Seal::Codec(codec) => {
                let sealed = codec.seal(&write(body, Room::NONE)).map_err(SealError::Codec)?;
                format!("{}{sealed}", Purpose::Receipt.prefix())
            }
        };
        if text.len() > MAX_LEN { Err(too_large(text.len())) } else { Ok(text) }
    }

    /// Returns the body of a receipt.
    ///
    /// # Errors
    ///
    /// As [`ReceiptKeys::open`].
    pub fn open_receipt(&self, text: &str) -> Result<Vec<u8>, Reason> {
        short_enough(text)?;
        match &self.seal {
            Seal::Ring(rings) => read(&rings.receipts.open(text)?.bytes),
            Seal::Codec(codec) => {
                let sealed = text.strip_prefix(Purpose::Receipt.prefix()).ok_or(Reason::Malformed)?;
                let opened = codec.open(sealed).map_err(|_| Reason::Codec)?;
                read(&Zeroizing::new(opened))
            }
        }
    }
}

fn short_enough(text: &str) -> Result<(), Reason> {
    if text.len() > MAX_LEN { Err(Reason::TooLong) } else { Ok(()) }
}

/// Returns the padded plaintext of a body.
fn write(body: &[u8], room: Room) -> Zeroizing<Vec<u8>> {
    let most = room.before + padded_len(body.len() + MAX_HEAD) + room.after;
    let mut bytes = Vec::with_capacity(most);
    bytes.resize(room.before, 0);
    let mut encoder = Encoder::new(bytes);
    #[allow(clippy::expect_used, reason = "a vector takes all bytes, and no element encodes conditionally")]
    encoder
        .array(3)
        .and_then(|to| to.str(KIND)?.u8(FORMAT)?.bytes(body))
        .expect("writing to a vector cannot fail");
    let mut bytes = Zeroizing::new(encoder.into_writer());
    let padded = padded_len(bytes.len() - room.before);
    bytes.resize(room.before + padded, 0);
    bytes
}

/// Returns the body of a padded plaintext.
fn read(bytes: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut from = Decoder::new(bytes);
    let claims = |_| Reason::Claims;
    let length = from.array().map_err(claims)?;
    if from.str().map_err(claims)? != KIND {
        return Err(Reason::Claims);
    }
    if from.u8().map_err(claims)? != FORMAT || length != Some(3) {
        return Err(Reason::Format);
    }
    let body = from.bytes().map_err(claims)?.to_vec();
    let end = from.position();
    let padding_fits = bytes.len() == padded_len(end) && bytes[end..].iter().all(|&byte| byte == 0);
    if padding_fits { Ok(body) } else { Err(Reason::Claims) }
}
