//! The OAuth client: it finds the authorization server of a resource server, registers, signs a person or a machine in, and
//! renews tokens. It knows nothing of the messages of the Model Context Protocol; the rules are those of its revision 2026-07-28.
//!
//! ```text
//!  request ──▶ Attempt (session) ── 401, 403 ──▶ Flight ──▶ the store: another process may have renewed
//!     ▲                                            ├──▶ discover ──▶ refresh (obtain)
//!     │                                            ├──▶ grant: machines
//!     └────────────── another token ◀──────────────┴──▶ sign_in: register ─▶ pending ─▶ handler, or at_device ─▶ token
//! ```
//!
//! ```
//! use antiphon_oauth::{ByHand, Consent, OAuth};
//!
//! # async fn shown(_: Consent) -> std::io::Result<String> { Ok(String::new()) }
//! # fn main() -> Result<(), antiphon_oauth::Error> {
//! let oauth = OAuth::builder("my-host").handler(ByHand::new("http://127.0.0.1/callback", shown)).build()?;
//! let session = oauth.session("https://example.com/mcp")?;
//! # let _ = session;
//! # Ok(())
//! # }
//! ```
//!
//! Tokens, codes and secrets stand in no error, log or `Debug`.

mod oauth;

mod at_device;
mod obtain;
mod session;
mod sign_in;

mod flight;

mod discover;
mod register;

mod credentials;
mod device;
mod grant;
mod pending;
mod token;

mod jose;

mod handler;
mod loopback;

mod record;
pub mod store;

mod error;
mod net;

#[cfg(feature = "testing")]
pub mod testing;

pub use credentials::Credentials;
pub use device::DeviceSignIn;
pub use error::{Error, ErrorKind, Secret};
pub use grant::{Assertion, Exchange, Grant, IdentityProvider};
pub use handler::{ByHand, Consent, SignInFuture, SignInHandler, SignInPlace};
pub use jose::SigningKey;
pub use loopback::Loopback;
pub use oauth::{OAuth, OAuthBuilder, SignedIn, SignedOut};
pub use pending::PendingSignIn;
pub use register::ResourceParameter;
pub use session::{Attempt, Session};
