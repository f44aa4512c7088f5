//! The built-in cipher: the choice of the key, the encryption, and the text around the bytes.

use aes::Aes256Enc;
use aes_gcm_siv::aead::inout::InOutBuf;
use aes_gcm_siv::{AeadInOut as _, AesGcmSiv, KeyInit as _, Nonce, Tag};
use zeroize::Zeroizing;

use crate::base64url;
use crate::claims::Room;
use crate::error::Reason;
use crate::key::{KeyId, KeyRing, SecretKey};

/// The prefix of every token. It names the whole suite: a token never chooses an algorithm, and another suite
/// will have another prefix.
const PREFIX: &str = "r1.";

/// AES-256-GCM-SIV without the key schedules for decryption: counter mode only encrypts.
pub(crate) type Aes256GcmSiv = AesGcmSiv<Aes256Enc>;

const ID: usize = 4;
const NONCE: usize = 12;
const TAG: usize = 16;

/// The keys of one ring, derived for one audience.
pub(crate) struct RingCipher {
    /// The key that seals.
    first: Slot,
    others: Vec<Slot>,
}

struct Slot {
    id: KeyId,
    cipher: Aes256GcmSiv,
}

impl Slot {
    fn new(key: &SecretKey, audience: &str) -> Self {
        let sealing_key = key.sealing_key(audience);
        Self { id: key.id(), cipher: Aes256GcmSiv::new((&*sealing_key).into()) }
    }

    /// The data that the tag covers beside the ciphertext: the key id cannot be exchanged, and the token cannot be read
    /// as a token of another suite.
    fn associated_data(&self) -> [u8; PREFIX.len() + ID] {
        let mut data = [0; PREFIX.len() + ID];
        data[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
        data[PREFIX.len()..].copy_from_slice(&self.id);
        data
    }
}

/// Returns the length of the token for a body without its tag.
pub(crate) fn token_len(body: &[u8]) -> usize {
    PREFIX.len() + base64url::encoded_len(body.len() + TAG)
}

impl RingCipher {
    /// The room for key id and nonce before the claims, and for the tag behind them.
    pub(crate) const ROOM: Room = Room { before: ID + NONCE, after: TAG };

    pub(crate) fn new(ring: &KeyRing, audience: &str) -> Self {
        let (first, others) = ring.keys();
        Self {
            first: Slot::new(first, audience),
            others: others.iter().map(|key| Slot::new(key, audience)).collect(),
        }
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
            .encrypt_inout_detached(&Nonce::from(nonce), &slot.associated_data(), InOutBuf::from(claims))
            .expect("the cipher takes plaintexts up to 64 GiB");
        // Encrypted in place: there is nothing left to wipe.
        let mut body = std::mem::take(&mut *body);
        body.extend_from_slice(&tag);

        let mut token = String::with_capacity(PREFIX.len() + base64url::encoded_len(body.len()));
        token.push_str(PREFIX);
        base64url::push(&mut token, &body);
        token
    }

    /// Returns the plaintext of a token. The caller has checked the token's length; the key id selects one
    /// key, and no other key is tried.
    pub(crate) fn open(&self, token: &str) -> Result<Zeroizing<Vec<u8>>, Reason> {
        let text = token.strip_prefix(PREFIX).ok_or(Reason::Malformed)?;
        let mut body = Zeroizing::new(base64url::decode(text).ok_or(Reason::Malformed)?);

        let (head, rest) = body.split_first_chunk_mut::<{ ID + NONCE }>().ok_or(Reason::Malformed)?;
        let (sealed, tag) = rest.split_last_chunk_mut::<TAG>().ok_or(Reason::Malformed)?;
        let (id, nonce) = head.split_at(ID);
        let nonce = Nonce::try_from(nonce).map_err(|_| Reason::Malformed)?;

        let slot = self.slots().find(|slot| slot.id == id).ok_or(Reason::UnknownKey)?;
        slot.cipher
            .decrypt_inout_detached(
                &nonce,
                &slot.associated_data(),
                InOutBuf::from(&mut *sealed),
                &Tag::from(*tag),
            )
            .map_err(|_| Reason::Seal)?;
        let end = ID + NONCE + sealed.len();
        body.truncate(end);
        body.drain(..ID + NONCE);
        Ok(body)
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        std::iter::once(&self.first).chain(&self.others)
    }
}
