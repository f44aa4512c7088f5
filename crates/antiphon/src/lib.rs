#![doc = include_str!("../README.md")]

pub mod client;
mod clock;
mod error;
mod form;
mod schema;
pub mod server;
pub mod testing;
pub mod transport;

pub use antiphon_seal as seal;
pub use antiphon_wire as wire;
pub use clock::{Clock, ManualClock};
pub use error::{Error, Result};
#[doc(hidden)]
pub use form::expanded as __expanded;
pub use form::{Form, FormChoice};

#[cfg(feature = "macros")]
pub use antiphon_macros::Form;

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
