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

#[cfg(feature = "oauth")]
mod oauth {
    //! OAuth as the authorizer of a transport.

    use crate::transport::{
        HttpTransportBuilder, TransportError,
        http::token::{self, Authorizer, NoToken},
    };
    use antiphon_oauth::{Attempt, OAuth, Session};
    use antiphon_wire::header::{MCP_METHOD, MCP_NAME};
    use futures_util::{FutureExt as _, future::BoxFuture};
    use http::{HeaderMap, Request, StatusCode};
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Bytes;
    use serde::Deserialize;
    use std::sync::Arc;

    impl HttpTransportBuilder {
        /// Signs in by itself when the server demands authorization: every request then has a token of this OAuth client, which is
        /// renewed in time. It takes the place of [`bearer_provider`](Self::bearer_provider).
        ///
        /// Requests that meet a challenge at the same time wait for one sign-in. After a refused token, a request is sent once more
        /// with a renewed one; after that with one of a new sign-in. If the server requires more scopes, one sign-in asks for them,
        /// at most twice within ten minutes for one method and name. If there is no token, the refusal is the request's error, and its
        /// cause is an `antiphon_oauth::Error`. The time of a sign-in does not count for the time limit of a request: a person has ten
        /// minutes, or as long as the code for another device is valid.
        ///
        /// The guide's chapter `sign_in` has an example.
        pub fn oauth(mut self, oauth: &OAuth) -> Self {
            let session = oauth.session(&self.url);
            self.authorizer = Some(match session {
                Ok(session) => Ok(Arc::new(session) as Arc<dyn Authorizer>),
                Err(fault) => Err(fault.to_string()),
            });
            self
        }
    }

    impl Authorizer for Arc<Session> {
        fn attempt(&self) -> Box<dyn token::Attempt> {
            Box::new(Session::attempt(self))
        }
    }

    impl token::Attempt for Attempt {
        fn headers<'a>(
            &'a mut self,
            request: &'a Request<Full<Bytes>>,
        ) -> BoxFuture<'a, Result<HeaderMap, TransportError>> {
            Box::pin(async {
                let (method, uri) = (request.method().as_str(), request.uri().to_string());
                Self::headers(self, method, &uri).await.map_err(|fault| token::no_token(Arc::new(fault)))
            })
        }

        fn is_challenged(
            &mut self,
            request: &Request<Full<Bytes>>,
            status: StatusCode,
            headers: &HeaderMap,
        ) -> bool {
            Self::is_challenged(self, status, headers, || operation(request))
        }

        fn asks_people(&self) -> bool {
            true
        }

        fn renew(&mut self) -> BoxFuture<'_, Result<bool, NoToken>> {
            Box::pin(async {
                Self::renew(self).await.map_err(|fault| NoToken::from(Box::new(fault) as Box<_>))?;
                Ok(true)
            })
        }
    }

    /// The method and the name of a request. A request of a session has them in its body only.
    fn operation(request: &Request<Full<Bytes>>) -> String {
        #[derive(Deserialize)]
        struct Message {
            method: Option<String>,
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        struct Params {
            name: Option<String>,
            uri: Option<String>,
        }
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(method) = header(MCP_METHOD) {
            return format!("{method} {}", header(MCP_NAME).unwrap_or_default());
        }
        let body = request.body().clone().collect().now_or_never().and_then(Result::ok);
        let message = body.and_then(|body| serde_json::from_slice::<Message>(&body.to_bytes()).ok());
        let Some(Message { method, params }) = message else { return String::new() };
        let name = params.and_then(|params| params.name.or(params.uri)).unwrap_or_default();
        format!("{} {name}", method.unwrap_or_default())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn operations_of_requests() {
            let request = |method: Option<&str>, name: Option<&str>, body: &str| {
                let mut request = Request::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
                for (header, value) in [(MCP_METHOD, method), (MCP_NAME, name)] {
                    value.map(|value| request.headers_mut().insert(header, value.parse().unwrap()));
                }
                operation(&request)
            };
            for (method, name, body, expected) in [
                (Some("tools/call"), Some("a"), "", "tools/call a"),
                (Some("tools/list"), None, "", "tools/list "),
                (
                    None,
                    None,
                    r#"{"method":"tools/call","params":{"name":"b","arguments":{}}}"#,
                    "tools/call b",
                ),
                (None, None, r#"{"method":"resources/read","params":{"uri":"x:y"}}"#, "resources/read x:y"),
                (None, None, r#"{"method":"ping"}"#, "ping "),
                (None, None, "no", ""),
            ] {
                assert_eq!(request(method, name, body), expected);
            }
        }
    }
}
