//! The authorization of requests: an authorizer gives headers to a request, and reads the head of its response. Bearer tokens
//! from a provider are one authorizer.

use crate::transport::{TransportError, TransportErrorKind::Unreachable};
use antiphon_wire::Challenge;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use std::{error::Error as StdError, fmt, mem, sync::Arc};

/// The authorization of all requests of a transport.
pub(crate) trait Authorizer: Send + Sync {
    /// Begins one request.
    fn attempt(&self) -> Box<dyn Attempt>;
}

/// The authorization of one request, which may be sent several times.
pub(crate) trait Attempt: Send {
    /// Returns the headers for the next time that the request is sent.
    fn headers<'a>(
        &'a mut self,
        request: &'a Request<Full<Bytes>>,
    ) -> BoxFuture<'a, Result<HeaderMap, TransportError>>;

    /// Returns `true` if the response is a challenge that has not been answered yet.
    fn is_challenged(
        &mut self,
        request: &Request<Full<Bytes>>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool;

    /// Returns `true` if the answer to the challenge may need a person: then the time for it is limited elsewhere.
    fn asks_people(&self) -> bool {
        false
    }

    /// Gets what answers the challenge; `false` if there is nothing.
    fn renew(&mut self) -> BoxFuture<'_, Result<bool, NoToken>>;
}

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

/// The provider as an authorizer.
pub(crate) struct BearerProvider(pub(crate) Provider);

impl Authorizer for BearerProvider {
    fn attempt(&self) -> Box<dyn Attempt> {
        let provider = Arc::clone(&self.0);
        Box::new(BearerAttempt { provider, token: None, challenge: None, refused: false, lacks_scope: false })
    }
}

/// One request with tokens of a provider. Each kind of challenge is answered once.
struct BearerAttempt {
    provider: Provider,
    /// The token of the next try.
    token: Option<Token>,
    challenge: Option<String>,
    refused: bool,
    lacks_scope: bool,
}

impl Attempt for BearerAttempt {
    fn headers<'a>(
        &'a mut self,
        _: &'a Request<Full<Bytes>>,
    ) -> BoxFuture<'a, Result<HeaderMap, TransportError>> {
        Box::pin(async {
            let token = match self.token.take() {
                Some(token) => Some(token),
                None => (self.provider)(TokenRequest::new(None)).await.map_err(no_token)?,
            };
            let mut headers = HeaderMap::new();
            if let Some(token) = token {
                let unfit = || TransportError::new(Unreachable, "the token does not fit into a header");
                headers.insert(header::AUTHORIZATION, token.header().ok_or_else(unfit)?);
            }
            Ok(headers)
        })
    }

    /// > **Retry the original request** with the new authorization no more than a few times and treat this as a
    /// > permanent authorization failure
    fn is_challenged(&mut self, _: &Request<Full<Bytes>>, status: StatusCode, headers: &HeaderMap) -> bool {
        self.challenge = challenge(headers);
        match status {
            StatusCode::UNAUTHORIZED => !mem::replace(&mut self.refused, true),
            StatusCode::FORBIDDEN if self.challenge.as_deref().is_some_and(wants_more_scope) => {
                !mem::replace(&mut self.lacks_scope, true)
            }
            _ => false,
        }
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<bool, NoToken>> {
        let challenge = self.challenge.take().unwrap_or_default();
        Box::pin(async {
            self.token = (self.provider)(TokenRequest::new(Some(challenge))).await?;
            Ok(self.token.is_some())
        })
    }
}

/// The error for a request that was not sent, because there is no token.
pub(crate) fn no_token(fault: NoToken) -> TransportError {
    TransportError::new(Unreachable, "no token could be had for the request").caused_by(fault)
}

/// > `error="insufficient_scope"` - indicating the specific type of authorization failure
fn wants_more_scope(challenge: &str) -> bool {
    Challenge::parse_all([challenge]).iter().any(lacks_scope)
}

fn lacks_scope(challenge: &Challenge) -> bool {
    challenge.get("error") == Some("insufficient_scope")
}

/// Returns the scopes that a challenge about them requires.
///
/// > `scope="required_scope1 required_scope2"` - specifying the scope(s) needed for the operation
pub(crate) fn required_scope(challenge: &str) -> Option<String> {
    Challenge::parse_all([challenge]).iter().find(|one| lacks_scope(one))?.get("scope").map(str::to_owned)
}

/// The values of `WWW-Authenticate`, as far as they are text.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<String> {
    let values: Vec<_> =
        headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}
