//! The server: tools, prompts and resources as plain async functions, any of which may ask. See [`Server`].

#[doc(inline)]
pub use antiphon_server::*;
