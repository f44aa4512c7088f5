#![doc = include_str!("lib.md")]

mod token;

mod binding;
mod call;

mod cipher;
mod key;
mod key_file;
mod receipt;

mod principal;
mod secret;

pub mod canonical;
pub mod utc;

mod base64url;
mod error;

pub use binding::{Binding, CLOCK_SKEW};
pub use call::{Call, Opened};
pub use canonical::TextFault;
pub use error::{Codec, CodecError, OpenError, Reason, SealError};
pub use key::{KeyError, KeyRing, SecretKey};
pub use key_file::{KeyFile, KeyFileError};
pub use principal::Principal;
pub use receipt::{ReceiptKeys, arguments_digest, entry_digest};
pub use secret::{CallId, CallSecret, Digest, EntropyError};
pub use token::Sealer;
