//! Authorization over HTTP: this server as an OAuth resource server.
//!
//! ```
//! # #[cfg(feature = "auth")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use antiphon::serve::http::{HttpOptions, auth::{Issuer, ResourceServer}};
//!
//! let auth = ResourceServer::builder("https://api.example.com/mcp")
//!     .issuer(Issuer::new("https://issuer.example.com"))
//!     .scopes_supported(["mcp", "orders:write"])
//!     .required_scopes(["mcp"])
//!     .build()?;
//! let options = HttpOptions::default().authorize(auth);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "auth"))]
//! # fn main() {}
//! ```
//!
//! The token of each request is checked after the rest of its head, and before its body is read: on every leg, with every
//! HTTP method. The result is a [`Bearer`](crate::Bearer); its issuer, subject and client id are the principal that sealed
//! state is bound to.
//!
//! | the request has | status | `WWW-Authenticate: Bearer` |
//! |---|---|---|
//! | no token | 401 | `scope`, `resource_metadata` |
//! | two `Authorization` headers, or one with `Bearer` and no token | 400 | `error="invalid_request"` .. |
//! | a token that is forged, expired, of another issuer, for another resource, or without a user | 401 | `error="invalid_token"` .. |
//! | a token without the [required scopes](ResourceServerBuilder::required_scopes) | 403 | `error="insufficient_scope"` .. |
//! | a token without the scopes of this tool, prompt or resource | 403, in JSON | `error="insufficient_scope"` .. |
//! | a token that cannot be checked now, because no keys can be fetched | 503 | none, but `Retry-After` |
//!
//! The log has the reason why a token was refused, but not the token. The client does not get the reason.
//!
//! JWTs need the feature `auth`: `Issuer`. A [`BearerVerifier`] of your own checks other tokens.

mod authorize;
mod clock_skew;
mod resource;
mod resource_server;
mod verifier;

#[cfg(feature = "auth")]
#[doc(inline)]
pub use antiphon_jwt::{Algorithm, Issuer};
pub use resource_server::{ResourceServer, ResourceServerBuilder, ResourceServerError};
pub use verifier::{BearerError, BearerVerifier, StaticTokens};

pub(crate) use authorize::{Authorized, authorize, metadata, scope_challenge, token_expired};
