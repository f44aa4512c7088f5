//! Bearer tokens from a provider, which is called for each request. An OAuth client can be such a provider.

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::{error::Error as StdError, fmt, sync::Arc};

/// A bearer token. Its text is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Returns a token with this text.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// `Bearer` and the token, hidden from logs. `None` if it has characters that no header can hold.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl From<&str> for Token {
    fn from(token: &str) -> Self {
        Self(token.to_owned())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The request of a transport for a token, before it sends a request to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRequest {
    /// `None` before a request is sent. Otherwise the server refused the request with the last token, and another token is
    /// needed. The value is then its `WWW-Authenticate` (several joined by `, `), empty if the server sent none.
    ///
    /// > Clients **MUST** treat the scopes provided in the challenge as authoritative for the current operation.
    pub challenge: Option<String>,
}

impl TokenRequest {
    pub(crate) fn new(challenge: Option<String>) -> Self {
        Self { challenge }
    }
}

/// The provider's reason why there is no token.
pub(crate) type NoToken = Arc<dyn StdError + Send + Sync>;

pub(crate) type Provider =
    Arc<dyn Fn(TokenRequest) -> BoxFuture<'static, Result<Option<Token>, NoToken>> + Send + Sync>;

/// The challenges that a request has received. Each kind is answered once.
#[derive(Default)]
pub(crate) struct Challenges {
    token: bool,
    scope: bool,
}

impl Challenges {
    /// Returns `true` if another token may help, and has not been tried yet.
    ///
    /// > **Retry the original request** with the new authorization no more than a few times and treat this as a
    /// > permanent authorization failure
    pub(crate) fn first(&mut self, status: StatusCode, challenge: Option<&str>) -> bool {
        match status {
            StatusCode::UNAUTHORIZED => !std::mem::replace(&mut self.token, true),
            StatusCode::FORBIDDEN if challenge.is_some_and(wants_more_scope) => {
                !std::mem::replace(&mut self.scope, true)
            }
            _ => false,
        }
    }
}

/// > `error="insufficient_scope"` - indicating the specific type of authorization failure
fn wants_more_scope(challenge: &str) -> bool {
    let compact: String = challenge.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    compact.contains("error=\"insufficient_scope\"") || compact.contains("error=insufficient_scope")
}

/// Returns the scopes that a challenge about them requires.
///
/// > `scope="required_scope1 required_scope2"` - specifying the scope(s) needed for the operation
pub(crate) fn required_scope(challenge: &str) -> Option<String> {
    if !wants_more_scope(challenge) {
        return None;
    }
    // Between the quotes of a scope are no other quotes.
    let after = challenge.match_indices("scope=\"").find_map(|(at, found)| {
        let is_name = challenge[..at].ends_with([' ', ',', '\t']);
        is_name.then(|| &challenge[at + found.len()..])
    })?;
    after.split_once('"').map(|(scope, _)| scope.to_owned())
}

/// The values of `WWW-Authenticate`, as far as they are text.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<String> {
    let values: Vec<_> =
        headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}
