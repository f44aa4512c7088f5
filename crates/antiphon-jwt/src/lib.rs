//! JWT access tokens: signed by a trusted issuer, for this resource, valid now.
//!
//! ```
//! use antiphon_jwt::{AccessToken, Audience, Issuer, TokenError, TrustedIssuers};
//! use std::time::{Duration, SystemTime};
//!
//! # fn main() -> Result<(), String> {
//! let audience = Audience::resource("https://api.example.com/mcp");
//! let issuers = vec![Issuer::new("https://issuer.example.com")];
//! let issuers = TrustedIssuers::new(issuers, audience, Duration::from_secs(60))?;
//!
//! async fn user(issuers: &TrustedIssuers, token: &str) -> Result<Option<String>, TokenError> {
//!     let AccessToken { principal, .. } = issuers.verify(token, SystemTime::now()).await?;
//!     Ok(principal.subject().map(str::to_owned))
//! }
//! # let mut future = std::pin::pin!(user(&issuers, "not a JWT"));
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # assert!(matches!(future.as_mut().poll(&mut context), std::task::Poll::Ready(Err(TokenError::Invalid(_)))));
//! # Ok(())
//! # }
//! # use std::future::Future as _;
//! ```
//!
//! Signatures are verified with *ring*, which TLS uses too. A token selects a key of its issuer by `kid`; its other headers
//! about keys (`jwk`, `jku`, `x5u`, `x5c`) are ignored.
//!
//! A token goes through `verify`: `compact` (its three parts), `keys` (those of its issuer, from a `key_set` that `fetch` gets),
//! `algorithm` (its signature), `claims`. Only then a claim has an effect. `dpop` verifies the proof of a request with a bound token, whose
//! key is the `jwk` of its header, and remembers it.

mod dpop;
mod verify;

mod claims;
mod key_set;
mod keys;

pub use claims::{AccessToken, Audience};
pub use dpop::{DpopError, DpopVerifier, ProvenRequest};
pub use key_set::Algorithm;
pub use verify::{Issuer, TokenError, TrustedIssuers, is_jwt};
