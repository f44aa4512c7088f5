#![doc = include_str!("lib.md")]

#[cfg(feature = "client")]
pub mod client;
pub mod guide;
#[cfg(all(feature = "client", feature = "server"))]
pub mod memory;
pub mod prelude;
#[cfg(feature = "server")]
pub mod seal;
#[cfg(feature = "server")]
pub mod serve;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod wire;

#[cfg(feature = "server")]
pub use antiphon_server::{Clock, Error, Form, FormChoice, ManualClock, OneField, Result, ShowError};

#[cfg(all(feature = "macros", feature = "server"))]
pub use antiphon_macros::{Form, prompt, resolver, resource, server, tool};

#[cfg(feature = "server")]
#[doc(hidden)]
pub use antiphon_server::__expanded;
