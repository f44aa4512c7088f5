//! Requests to authorization servers: no redirects, bounded bodies and times, and no address that is more private than the one
//! of the resource server.

use crate::error::{Error, ErrorKind, shown};
use antiphon_connect::{Connector, Reach};
use antiphon_wire::{check_secure, escaped};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use std::{error::Error as StdError, time::Duration};
use tokio::time::timeout;
use url::Url;

/// The maximum length of an answer in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// The maximum time to connect.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// The maximum time of a request with its answer.
const WHOLE_TIME: Duration = Duration::from_secs(10);

/// The network, as far as one resource server may lead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Net {
    pub(crate) reach: Reach,
}

/// An answer of any status.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Net {
    /// Checks a URL that a server named, or that was made of such a one.
    ///
    /// > All authorization server endpoints **MUST** be served over HTTPS.
    pub(crate) fn check(self, text: &str, what: &str) -> Result<Url, Error> {
        let fault = |why: &str| {
            Error::new(
                ErrorKind::Discovery,
                format!("{what} of the server cannot be used: {}: {why}", shown(text)),
            )
        };
        let url = Url::parse(text).map_err(|fault_of_url| fault(&fault_of_url.to_string()))?;
        check_secure(url.scheme(), url.host_str()).map_err(fault)?;
        if url.scheme() == "http" && self.reach != Reach::Loopback {
            return Err(fault("it must be https, since the server is not on this machine"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(fault("it has a user name or a fragment"));
        }
        Ok(url)
    }

    /// Gets a document.
    pub(crate) async fn get(self, url: &Url) -> Result<Answer, Error> {
        self.send(Method::GET, url, HeaderMap::new(), Bytes::new()).await
    }

    /// Posts a form.
    pub(crate) async fn post_form(
        self,
        url: &Url,
        mut headers: HeaderMap,
        form: &str,
    ) -> Result<Answer, Error> {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        self.send(Method::POST, url, headers, Bytes::copy_from_slice(form.as_bytes())).await
    }

    /// Posts a JSON document, with an access token if one is needed.
    pub(crate) async fn post_json(self, url: &Url, json: &serde_json::Value) -> Result<Answer, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(Method::POST, url, headers, Bytes::from(json.to_string())).await
    }

    async fn send(self, method: Method, url: &Url, headers: HeaderMap, body: Bytes) -> Result<Answer, Error> {
        let failed = |why: String| {
            let place = shown(url.as_str());
            Error::new(ErrorKind::Network, format!("{place} cannot be reached: {}", escaped(&why)))
        };
        let work = async {
            let uri: Uri = url.as_str().parse().map_err(|_| failed("its URL cannot be sent".into()))?;
            let connector = Connector::within(&uri, CONNECT_TIME, self.reach).map_err(failed)?;
            let mut request = Request::new(Full::new(body));
            *request.method_mut() = method;
            *request.uri_mut() = uri;
            *request.headers_mut() = headers;
            let own: [(HeaderName, HeaderValue); 2] = [
                (header::ACCEPT, HeaderValue::from_static("application/json")),
                (
                    header::USER_AGENT,
                    HeaderValue::from_static(concat!("antiphon/", env!("CARGO_PKG_VERSION"))),
                ),
            ];
            request.headers_mut().extend(own);
            if let Some(authorization) = connector.proxy_authorization() {
                request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
            }
            let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
            let response = client.request(request).await.map_err(|fault| {
                let mut cause: &dyn StdError = &fault;
                while let Some(next) = cause.source() {
                    cause = next;
                }
                failed(cause.to_string())
            })?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|fault| {
                failed(match fault.source() {
                    None => format!("its answer is longer than {MAX_ANSWER} bytes"),
                    Some(_) => "its answer broke off".to_owned(),
                })
            })?;
            Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
        };
        let late = || failed(format!("no answer within {WHOLE_TIME:?}"));
        timeout(WHOLE_TIME, work).await.unwrap_or_else(|_elapsed| Err(late()))
    }
}

impl Answer {
    /// The answer as JSON.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers() {
        for (reach, url, fits) in [
            (Reach::Public, "https://as.example/token", true),
            (Reach::Public, "http://as.example/token", false),
            (Reach::Public, "http://127.0.0.1/token", false),
            (Reach::Private, "http://localhost/token", false),
            (Reach::Loopback, "http://localhost/token", true),
            (Reach::Loopback, "http://as.example/token", false),
            (Reach::Public, "https://user@as.example/token", false),
            (Reach::Public, "https://as.example/token#x", false),
            (Reach::Public, "javascript:alert(1)", false),
            (Reach::Public, "file:///etc/passwd", false),
            (Reach::Public, "/token", false),
        ] {
            assert_eq!(Net { reach }.check(url, "an endpoint").is_ok(), fits, "{reach:?} {url}");
        }
    }
}
