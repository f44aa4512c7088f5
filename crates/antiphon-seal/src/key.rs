//! Keys and the ring that holds them.

use std::collections::HashMap;
use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::base64url;
use crate::secret::same;
use crate::secret::{self, EntropyError};
use crate::utc;

/// The label under which a key is derived from a longer secret.
const DERIVED: &[u8] = b"key from a secret";

/// The beginning of a text that holds a longer secret and not a key.
const DERIVE: &str = "derive:";

/// The beginning of a word behind a key: the moment before which the key's tokens are refused.
const MIN_IAT: &str = "min_iat=";

/// The least number of bytes of a secret.
const SECRET_BYTES: usize = 32;

/// The label that separates everything derived here from other uses of the same key.
const SALT: &[u8] = b"antiphon/request-state";

/// The id of a key: the first bytes of a token. The id is derived, so it reveals nothing about the key.
pub(crate) type KeyId = [u8; 4];

/// An operator's key: 32 random bytes, as text 43 characters of base64url without padding.
///
/// A key cannot be printed or cloned, and is wiped when dropped.
pub struct SecretKey {
    bytes: Zeroizing<[u8; 32]>,
    /// The first second, in Unix seconds, whose tokens open.
    min_issued_at: u64,
}

impl SecretKey {
    /// Returns a new random key.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the system gives no random bytes.
    pub fn random() -> Result<Self, EntropyError> {
        secret::random_bytes().map(Self::from_bytes)
    }

    /// Returns the key with these bytes. They must be random: a password, or anything else that can be
    /// guessed, is not a key.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self::of(Zeroizing::new(bytes))
    }

    fn of(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self { bytes, min_issued_at: 0 }
    }

    /// Returns the same key with the first moment whose tokens open, in Unix seconds: earlier tokens of the key are
    /// refused. Default: 0.
    ///
    /// It ends tokens that others may have read, such as those in the log of a proxy, and leaves the key in use. It
    /// does not help against a person who has the key: that person can date a token as they like. Remove such a key.
    /// Receipts are not refused by their time.
    #[must_use]
    pub fn with_min_issued_at(mut self, unix_seconds: u64) -> Self {
        self.min_issued_at = unix_seconds;
        self
    }

    pub(crate) fn min_issued_at(&self) -> u64 {
        self.min_issued_at
    }

    /// Returns the key that is derived from a secret of 32 bytes or more, by HKDF-SHA256: for secrets of another
    /// system that are not exactly 32 bytes long. The same secret gives the same key everywhere.
    ///
    /// The secret must be random, as a key is: deriving makes a password no harder to guess. Text holds fewer
    /// random bits than bytes: 64 hexadecimal digits are 32 random bytes.
    ///
    /// ```
    /// use antiphon_seal::SecretKey;
    ///
    /// let secret = b"64 random bytes that two services share: a1b2c3d4e5f60718293a4b5c";
    /// let key = SecretKey::derive(secret).expect("long enough");
    /// assert!(SecretKey::derive(&secret[..31]).is_err());
    /// # let _ = key;
    /// ```
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the secret is shorter than 32 bytes.
    pub fn derive(secret: &[u8]) -> Result<Self, KeyError> {
        Self::derive_at(secret, None)
    }

    fn derive_at(secret: &[u8], place: Option<Place>) -> Result<Self, KeyError> {
        if secret.len() < SECRET_BYTES {
            return Err(KeyError(Fault::ShortSecret(place)));
        }
        Ok(Self::of(Zeroizing::new(expand(secret, &[DERIVED]))))
    }

    /// Returns the key with this text: base64url without padding, of exactly 32 bytes, in its one canonical
    /// spelling; or `derive:` and a secret of 32 bytes or more, from which the key is [derived](Self::derive).
    /// The text after `derive:` is the secret itself: it is not decoded.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the text is anything else. The error never holds the text.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        Self::from_text(text, None)
    }

    fn from_text(text: &str, place: Option<Place>) -> Result<Self, KeyError> {
        if let Some(secret) = text.strip_prefix(DERIVE) {
            return Self::derive_at(secret.as_bytes(), place);
        }
        let not_a_key = || KeyError(Fault::NotAKey(place));
        let decoded = Zeroizing::new(base64url::decode(text).ok_or_else(not_a_key)?);
        let mut bytes = Zeroizing::new([0; 32]);
        if decoded.len() != bytes.len() {
            return Err(not_a_key());
        }
        bytes.copy_from_slice(&decoded);
        Ok(Self::of(bytes))
    }

    /// Returns the key of one entry of a ring: a text as in [`parse`](Self::parse), and perhaps `min_iat=`.
    fn from_entry(entry: &str, place: Place) -> Result<Self, KeyError> {
        let last = entry.rsplit_once(char::is_whitespace);
        let Some((text, time)) = last.and_then(|(text, word)| Some((text, word.strip_prefix(MIN_IAT)?)))
        else {
            return Self::from_text(entry, Some(place));
        };
        let time = utc::parse(time).ok_or(KeyError(Fault::NotATime(place)))?;
        Ok(Self::from_text(text.trim_end(), Some(place))?.with_min_issued_at(time))
    }

    /// Returns the key as the text that [`parse`](Self::parse) reads. Show it to an operator once.
    #[must_use]
    pub fn to_base64url(&self) -> Zeroizing<String> {
        Zeroizing::new(base64url::encode(&*self.bytes))
    }

    /// Returns the key that seals receipts. It is the same for every audience, because the people who check a receipt
    /// have the key file and nothing else.
    pub(crate) fn receipt_key(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.expand(&[b"receipt"]))
    }

    pub(crate) fn id(&self) -> KeyId {
        self.expand(&[b"kid"])
    }

    /// Returns the key that seals for one audience.
    pub(crate) fn sealing_key(&self, audience: &str) -> Zeroizing<[u8; 32]> {
        let length = u32::try_from(audience.len()).unwrap_or(u32::MAX).to_be_bytes();
        Zeroizing::new(self.expand(&[b"seal", &length, audience.as_bytes()]))
    }

    fn expand<const N: usize>(&self, info: &[&[u8]]) -> [u8; N] {
        expand(&*self.bytes, info)
    }
}

fn expand<const N: usize>(secret: &[u8], info: &[&[u8]]) -> [u8; N] {
    let mut derived = [0; N];
    #[allow(clippy::expect_used, reason = "the limit is 8160 bytes, and 32 is the most asked for")]
    Hkdf::<Sha256>::new(Some(SALT), secret)
        .expand_multi_info(info, &mut derived)
        .expect("HKDF-SHA256 gives up to 8160 bytes");
    derived
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// One or more keys: the first key seals, and all of them open.
///
/// The constructors check the ring: it is not empty, and no two keys are equal or share a key id, so every
/// token names exactly one key.
#[derive(Debug)]
pub struct KeyRing {
    /// The key that seals.
    first: SecretKey,
    others: Vec<SecretKey>,
    ephemeral: bool,
}

impl KeyRing {
    /// Returns the ring of these keys, the sealing one first.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no key, or if a key or key id occurs twice; keys are counted from 1.
    pub fn new(keys: Vec<SecretKey>) -> Result<Self, KeyError> {
        Self::placed(
            keys.into_iter().enumerate().map(|(index, key)| (Place::Entry(index + 1), key)).collect(),
        )
    }

    /// Returns a ring of one new key that exists only in this process.
    ///
    /// This ring is for a single process: a second process, or the same one after a restart, cannot open its
    /// tokens.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the system gives no random bytes.
    pub fn random() -> Result<Self, EntropyError> {
        Ok(Self { first: SecretKey::random()?, others: Vec::new(), ephemeral: true })
    }

    /// Returns the ring of the keys in `list`, separated by commas, the sealing one first: the form for an
    /// environment variable. An entry is a text as in [`SecretKey::parse`]; a secret after `derive:` has no
    /// comma. `min_iat=` may follow, as in [`parse_file`](Self::parse_file).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no entry, or if an entry is not a key or occurs twice. The error names the
    /// entry, counted from 1.
    pub fn parse_list(list: &str) -> Result<Self, KeyError> {
        if list.trim().is_empty() {
            return Err(KeyError(Fault::Empty));
        }
        Self::parse(list.split(',').enumerate().map(|(index, text)| (Place::Entry(index + 1), text.trim())))
    }

    /// Returns the ring of the keys in `text`, one a line, the sealing one first: the form for a key file.
    ///
    /// A line is a text as in [`SecretKey::parse`]; a secret after `derive:` has no `#`. Blank lines are skipped,
    /// and so is everything from a `#` to the end of its line.
    ///
    /// A word such as `min_iat=2026-05-01T12:00:00Z` behind the key is the first moment whose tokens open
    /// ([`SecretKey::with_min_issued_at`]); releases without it refuse the file.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if there is no key, or if a line is not a key or repeats one. The error names the line,
    /// counted from 1.
    pub fn parse_file(text: &str) -> Result<Self, KeyError> {
        let lines = file_lines(text).map(|(index, line)| (Place::Line(index + 1), key_of(line)));
        Self::parse(lines.filter(|(_, key)| !key.is_empty()))
    }

    /// Returns the number of keys.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a ring has at least one key")]
    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns the first moment whose tokens open under the sealing key, in Unix seconds. If it is in the future, the
    /// tokens that this ring seals do not open.
    #[must_use]
    pub fn min_issued_at(&self) -> u64 {
        self.first.min_issued_at
    }

    /// Returns `true` if [`random`](Self::random) made the key, so that another process cannot open the
    /// tokens that this one seals.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral
    }

    /// Returns the sealing key and the keys that only open.
    pub(crate) fn keys(&self) -> (&SecretKey, &[SecretKey]) {
        (&self.first, &self.others)
    }

    fn parse<'t>(texts: impl Iterator<Item = (Place, &'t str)>) -> Result<Self, KeyError> {
        let keys = texts.map(|(place, text)| Ok((place, SecretKey::from_entry(text, place)?)));
        Self::placed(keys.collect::<Result<_, _>>()?)
    }

    fn placed(keys: Vec<(Place, SecretKey)>) -> Result<Self, KeyError> {
        check_ids(&keys, SecretKey::id)?;
        let mut keys = keys.into_iter().map(|(_, key)| key);
        let first = keys.next().ok_or(KeyError(Fault::Empty))?;
        Ok(Self { first, others: keys.collect(), ephemeral: false })
    }
}

/// Checks that no two keys have the same id. Equal keys have equal ids, so each id is derived once, and keys are compared only
/// if their ids are equal.
fn check_ids(
    keys: &[(Place, SecretKey)],
    mut id_of: impl FnMut(&SecretKey) -> KeyId,
) -> Result<(), KeyError> {
    let mut known = HashMap::with_capacity(keys.len());
    for (place, key) in keys {
        let Some((first, earlier)) = known.insert(id_of(key), (*place, key)) else { continue };
        let place = *place;
        return Err(KeyError(match same(&*key.bytes, &*earlier.bytes) {
            true => Fault::Twice { place, first },
            false => Fault::SameId { place, first },
        }));
    }
    Ok(())
}

/// Returns the lines of a key file with their indices.
pub(crate) fn file_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Editors on Windows may put a byte order mark first.
    text.strip_prefix('\u{FEFF}').unwrap_or(text).lines().enumerate()
}

/// Returns the part of a line that is a key; empty if the line has none.
pub(crate) fn key_of(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// An error from reading a key or a ring. Its text names the place of the fault and the repair, and holds no
/// key material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError(Fault);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    Empty,
    NotAKey(Option<Place>),
    ShortSecret(Option<Place>),
    NotATime(Place),
    Twice { place: Place, first: Place },
    SameId { place: Place, first: Place },
}

/// The position of a key, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Entry(usize),
    Line(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(number) => write!(f, "key {number}"),
            Self::Line(number) => write!(f, "line {number}"),
        }
    }
}

fn write_place(place: Option<&Place>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    place.map_or(Ok(()), |place| write!(f, "{place}: "))
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::Empty => f.write_str("no key given; make one with `antiphon keygen`"),
            Fault::ShortSecret(place) => {
                write_place(place.as_ref(), f)?;
                write!(
                    f,
                    "the secret after `{DERIVE}` is shorter than {SECRET_BYTES} bytes; take a longer one, or a \
                     key of `antiphon keygen`"
                )
            }
            Fault::NotAKey(place) => {
                write_place(place.as_ref(), f)?;
                f.write_str(
                    "not a key: expected 43 characters of base64url without padding (32 bytes); \
                     make one with `antiphon keygen`",
                )
            }
            Fault::NotATime(place) => {
                write!(f, "{place}: `{MIN_IAT}` needs a time in UTC, such as `{MIN_IAT}2026-05-01T12:00:00Z`")
            }
            Fault::Twice { place, first } => {
                write!(f, "{place}: the same key as {first}; remove one of them")
            }
            Fault::SameId { place, first } => write!(
                f,
                "{place}: a different key with the same key id as {first}; \
                 replace the newer one, with `antiphon keygen`"
            ),
        }
    }
}

impl std::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the ids of these keys, and returns the number of ids that were derived. A key is its number, and its id is
    /// `id_of(number)`.
    fn check(numbers: &[u32], id_of: fn(u32) -> u32, expected: Result<(), &str>) -> usize {
        let number = |key: &SecretKey| u32::from_be_bytes(*key.bytes.first_chunk().unwrap());
        let key = |number: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            SecretKey::from_bytes(bytes)
        };
        let keys: Vec<_> = (1..).map(Place::Line).zip(numbers.iter().map(|&number| key(number))).collect();
        let mut derived = 0;
        let checked = check_ids(&keys, |key| {
            derived += 1;
            id_of(number(key)).to_be_bytes()
        });
        let text = checked.map_err(|error| error.to_string());
        let cause = text.as_ref().err().map(|text| &text[..text.find(';').unwrap()]);
        assert_eq!(cause, expected.err());
        derived
    }

    /// A file of 1 MiB has 24,000 keys.
    #[test]
    fn each_id_of_a_ring_is_derived_once() {
        let many: Vec<u32> = (0..24_000).collect();
        let own = |number| number;
        assert_eq!(check(&many, own, Ok(())), 24_000);
        let with_twin = [&many[..], &[7]].concat();
        assert_eq!(check(&with_twin, own, Err("line 24001: the same key as line 8")), 24_001);
        let early = [&[7, 7][..], &many].concat();
        assert_eq!(check(&early, own, Err("line 2: the same key as line 1")), 2);
        let text = "line 24000: a different key with the same key id as line 1";
        assert_eq!(check(&many, |number| number % 23_999, Err(text)), 24_000);
        assert_eq!(check(&[], own, Ok(())), 0);
    }
}
