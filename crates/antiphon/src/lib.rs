#![doc = include_str!("../README.md")]

pub mod client;
mod clock;
mod error;
mod schema;
pub mod server;
pub mod transport;

pub use antiphon_seal as seal;
pub use antiphon_wire as wire;
pub use clock::{Clock, ManualClock};
pub use error::{Error, Result};

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
