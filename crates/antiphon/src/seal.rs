//! The keys and identities of sealed state, as the signatures of this crate need them. The sealer itself is in the crate
//! `antiphon-seal`.

pub use antiphon_seal::{
    CallId, Codec, CodecError, Digest, EntropyError, KeyError, KeyFile, KeyFileError, KeyRing, Principal,
    SecretKey, TextFault, utc,
};
