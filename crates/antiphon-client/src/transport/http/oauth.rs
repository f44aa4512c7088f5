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
            (None, None, r#"{"method":"tools/call","params":{"name":"b","arguments":{}}}"#, "tools/call b"),
            (None, None, r#"{"method":"resources/read","params":{"uri":"x:y"}}"#, "resources/read x:y"),
            (None, None, r#"{"method":"ping"}"#, "ping "),
            (None, None, "no", ""),
        ] {
            assert_eq!(request(method, name, body), expected);
        }
    }
}
