//! The built-in cipher: the choice of the key, the encryption, and the text around the bytes.

use crate::{
    base64url,
    call::Room,
    error::Reason,
    key::{KeyId, KeyRing, SecretKey},
};
use aes::Aes256Enc;
use aes_gcm_siv::{AeadInOut as _, AesGcmSiv, KeyInit as _, Nonce, Tag, aead::inout::InOutBuf};
use zeroize::Zeroizing;

/// The purpose of a sealed text. Each purpose has its own prefix and its own keys, and the tag covers the prefix: a text of
/// one purpose never opens as one of another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose<'a> {
    /// The state of a call, for this audience.
    State(&'a str),
    /// A receipt.
    Receipt,
}

impl Purpose<'_> {
    /// Returns the prefix of every text. It names the whole suite: a text never chooses an algorithm, and another suite
    /// will have another prefix.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::State(_) => "r1.",
            Self::Receipt => "receipt1.",
        }
    }

    fn key(self, key: &SecretKey) -> Zeroizing<[u8; 32]> {
        match self {
            Self::State(audience) => key.sealing_key(audience),
            Self::Receipt => key.receipt_key(),
        }
    }
}

/// AES-256-GCM-SIV without the key schedules for decryption: counter mode only encrypts.
pub(crate) type Aes256GcmSiv = AesGcmSiv<Aes256Enc>;

const ID: usize = 4;
const NONCE: usize = 12;
const TAG: usize = 16;

/// The keys of one ring, derived for one purpose.
pub(crate) struct RingCipher {
    prefix: &'static str,
    /// The key that seals.
    first: Slot,
    others: Vec<Slot>,
}

struct Slot {
    id: KeyId,
    /// The first second whose texts open.
    min_issued_at: u64,
    cipher: Aes256GcmSiv,
    /// The data that the tag covers beside the ciphertext, prefix and key id: the key id cannot be exchanged, and the
    /// text cannot be read as one of another suite.
    associated: Box<[u8]>,
}

impl Slot {
    fn new(key: &SecretKey, purpose: Purpose<'_>) -> Self {
        let (id, derived) = (key.id(), purpose.key(key));
        let associated = [purpose.prefix().as_bytes(), &id].concat().into();
        let cipher = Aes256GcmSiv::new((&*derived).into());
        Self { id, min_issued_at: key.min_issued_at(), cipher, associated }
    }
}

/// An opened text.
pub(crate) struct Plaintext {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    /// The first second whose texts open under the key, in Unix seconds.
    pub(crate) min_issued_at: u64,
}

impl RingCipher {
    /// The room for key id and nonce before the claims, and for the tag behind them.
    pub(crate) const ROOM: Room = Room { before: ID + NONCE, after: TAG };

    pub(crate) fn new(ring: &KeyRing, purpose: Purpose<'_>) -> Self {
        let (first, others) = ring.keys();
        Self {
            prefix: purpose.prefix(),
            first: Slot::new(first, purpose),
            others: others.iter().map(|key| Slot::new(key, purpose)).collect(),
        }
    }

    /// Returns the length of the token for a body without its tag.
    pub(crate) fn token_len(&self, body: &[u8]) -> usize {
        self.prefix.len() + base64url::encoded_len(body.len() + TAG)
    }

    /// Returns the token of this body: claims, with [`ROOM`](Self::ROOM) around them.
    pub(crate) fn seal(&self, nonce: [u8; NONCE], mut body: Zeroizing<Vec<u8>>) -> String {
        let slot = &self.first;
        let (head, claims) = body.split_at_mut(ID + NONCE);
        head[..ID].copy_from_slice(&slot.id);
        head[ID..].copy_from_slice(&nonce);
        #[allow(
            clippy::expect_used,
            reason = "the cipher refuses only plaintexts above 64 GiB; tokens are capped"
        )]
        let tag = slot
            .cipher
            .encrypt_inout_detached(&Nonce::from(nonce), &slot.associated, InOutBuf::from(claims))
            .expect("the cipher takes plaintexts up to 64 GiB");
        // Encrypted in place: there is nothing left to wipe.
        let mut body = std::mem::take(&mut *body);
        body.extend_from_slice(&tag);

        let mut token = String::with_capacity(self.prefix.len() + base64url::encoded_len(body.len()));
        token.push_str(self.prefix);
        base64url::push(&mut token, &body);
        token
    }

    /// Returns the plaintext of a token. The caller has checked the token's length; the key id selects one
    /// key, and no other key is tried.
    pub(crate) fn open(&self, token: &str) -> Result<Plaintext, Reason> {
        let text = token.strip_prefix(self.prefix).ok_or(Reason::Malformed)?;
        let mut body = Zeroizing::new(base64url::decode(text).ok_or(Reason::Malformed)?);

        let (head, rest) = body.split_first_chunk_mut::<{ ID + NONCE }>().ok_or(Reason::Malformed)?;
        let (sealed, tag) = rest.split_last_chunk_mut::<TAG>().ok_or(Reason::Malformed)?;
        let (id, nonce) = head.split_at(ID);
        let nonce = Nonce::try_from(nonce).map_err(|_| Reason::Malformed)?;

        let slot = self.slots().find(|slot| slot.id == id).ok_or(Reason::UnknownKey)?;
        slot.cipher
            .decrypt_inout_detached(&nonce, &slot.associated, InOutBuf::from(&mut *sealed), &Tag::from(*tag))
            .map_err(|_| Reason::Seal)?;
        let end = ID + NONCE + sealed.len();
        body.truncate(end);
        body.drain(..ID + NONCE);
        Ok(Plaintext { bytes: body, min_issued_at: slot.min_issued_at })
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        std::iter::once(&self.first).chain(&self.others)
    }
}
