//! The transports of a server: HTTP, standard input and output, any pair of streams.

#[doc(inline)]
pub use antiphon_server::serve::*;
