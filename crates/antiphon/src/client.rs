//! The client: calls tools, and answers the questions they ask. See [`Client`].

#[doc(inline)]
pub use antiphon_client::*;
