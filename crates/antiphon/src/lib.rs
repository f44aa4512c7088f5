#![doc = include_str!("../README.md")]

pub mod client;
mod clock;
mod error;
mod form;
pub mod guide;
mod pacing;
mod schema;
pub mod server;
pub mod testing;
pub mod transport;

pub use antiphon_seal as seal;
pub use antiphon_wire as wire;
pub use clock::{Clock, ManualClock};
pub use error::{Error, Result};
pub use form::{Form, FormChoice, OneField};

#[cfg(feature = "macros")]
pub use antiphon_macros::{Form, prompt, resolver, resource, server, tool};

/// What expanded code calls. No part of the API: it changes with the macros.
#[doc(hidden)]
pub mod __expanded {
    pub use crate::{form::expanded::*, server::define::expanded::*, server::resolve::expanded::*};
}

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
