//! Records that are too large for a token: the store keeps them, and the token has their digest and their size.
//!
//! The stored record is sealed, for the same caller, request and call as a token. Its name in the store is the digest of
//! its sealed bytes, which the store compares.

use crate::{
    errors::refusal::{Refusal, refused, repeated},
    runtime::{Runtime, claims::owner},
};
use antiphon_engine::Record;
use antiphon_seal::{Binding, CLOCK_SKEW, CallId};
use antiphon_store::{BlobDigest, StoreErrorKind};
use antiphon_wire::escaped;
use std::time::Duration;

/// The first byte of a payload that names a stored record. A record itself is a CBOR array, and never begins with it.
const SPILLED: u8 = 0;
/// The bytes of such a payload: the first one, the digest, and the size of the record.
const LENGTH: usize = 1 + 32 + 8;

/// A record in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spilled {
    digest: BlobDigest,
    /// The size of the record, in bytes.
    size: u64,
}

impl Spilled {
    /// Returns the stored record that the payload of a token names, if it names one.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let payload: &[u8; LENGTH] = payload.try_into().ok()?;
        let (kind, rest) = payload.split_first()?;
        let (digest, size) = rest.split_first_chunk::<32>()?;
        let size = u64::from_be_bytes(size.try_into().ok()?);
        (*kind == SPILLED).then(|| Self { digest: BlobDigest::from_bytes(*digest), size })
    }

    fn encode(self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(LENGTH);
        payload.push(SPILLED);
        payload.extend_from_slice(self.digest.as_bytes());
        payload.extend_from_slice(&self.size.to_be_bytes());
        payload
    }
}

fn purpose(call: CallId) -> String {
    format!("record/{call}")
}

/// Stores a record, and returns the payload of the token that names it. `keep` is the time for which that token opens.
pub(crate) async fn put(
    server: &Runtime,
    binding: &Binding<'_>,
    call: CallId,
    record: &[u8],
    keep: Duration,
) -> Result<Vec<u8>, Refusal> {
    let Some(claims) = &server.claims else { return Err(Refusal::Internal) };
    let keep = keep + Duration::from_secs(2 * CLOCK_SKEW);
    let now = server.clock.now();
    let sealed =
        server.sealing.sealer().seal_stored(&purpose(call), binding, record, keep, now).map_err(|fault| {
            tracing::error!(cause = %escaped(&fault), "a record could not be sealed for the store");
            Refusal::Internal
        })?;
    let owner = owner(binding.principal);
    let digest = repeated(|| claims.store.put(sealed.as_bytes(), keep, owner)).await;
    let digest = digest.map_err(|error| refused(&error))?;
    tracing::debug!(call = %escaped(&call), size = record.len(), "a record moved to the store");
    Ok(Spilled { digest, size: record.len() as u64 }.encode())
}

/// Reads the record that the state of a request names. Every request passes here before its leg is claimed.
pub(crate) async fn load(
    server: &Runtime,
    binding: &Binding<'_>,
    call: CallId,
    spilled: Spilled,
) -> Result<Record, Refusal> {
    let Some(claims) = &server.claims else {
        tracing::error!(call = %escaped(&call), "a state names a record in a store, and this server has none");
        return Err(Refusal::Store);
    };
    let stored = match claims.store.get(spilled.digest).await {
        Ok(Some(stored)) => stored,
        Ok(None) => {
            tracing::error!(call = %escaped(&call), "the store has lost the record of a call");
            return Err(Refusal::State);
        }
        Err(error) => {
            let refusal = refused(&error);
            // Other bytes under the name of the record: the same request can never go on.
            return Err(if error.kind() == StoreErrorKind::Corrupt { Refusal::State } else { refusal });
        }
    };
    let text = std::str::from_utf8(&stored).map_err(|_| Refusal::State)?;
    let opened = server.sealing.sealer().open_stored(text, &purpose(call), binding, server.clock.now());
    let bytes = opened.map_err(|error| {
        tracing::error!(call = %escaped(&call), cause = %escaped(&error), "a stored record does not open");
        Refusal::State
    })?;
    if bytes.len() as u64 != spilled.size {
        tracing::error!(call = %escaped(&call), "a stored record has another size");
        return Err(Refusal::State);
    }
    Record::decode(&bytes).map_err(|fault| {
        tracing::error!(call = %escaped(&call), cause = %escaped(&fault), "a stored record cannot be read");
        Refusal::State
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_names_a_stored_record_or_is_a_record() {
        let spilled = Spilled { digest: BlobDigest::of(b"record"), size: 300_000 };
        let payload = spilled.encode();
        assert_eq!(Spilled::decode(&payload), Some(spilled));
        assert!(Record::decode(&payload).is_err(), "a server without stores refuses it");
        let record = Record::default().encode().unwrap();
        assert_eq!(Spilled::decode(&record), None);
        assert_ne!(record[0], SPILLED);
        for length in 0..LENGTH {
            assert_eq!(Spilled::decode(&payload[..length]), None);
        }
    }
}
