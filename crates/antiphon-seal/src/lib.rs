#![doc = include_str!("lib.md")]

mod token;

mod binding;
mod call;
mod claims;

mod cipher;
mod codec;
mod key;

mod principal;
mod secret;

pub mod canonical;

mod base64url;
mod error;
mod random;

#[cfg(test)]
mod vectors;

pub use binding::{Binding, CLOCK_SKEW};
pub use call::{Call, Opened};
pub use canonical::TextFault;
pub use codec::{Codec, CodecError};
pub use error::{OpenError, Reason, SealError};
pub use key::{KeyError, KeyRing, SecretKey};
pub use principal::Principal;
pub use random::EntropyError;
pub use secret::{CallId, CallSecret, Digest};
pub use token::Sealer;
