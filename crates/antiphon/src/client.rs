//! The client: calls tools, and passes their questions to callbacks. See [`Client`].

#[doc(inline)]
pub use antiphon_client::*;
