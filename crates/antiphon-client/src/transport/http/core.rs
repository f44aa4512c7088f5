//! The connections of one transport, and the requests that go over them.

use crate::transport::{
    IncomingNotification, OutgoingNotification, OutgoingRequest, ServerReply, TransportError,
    TransportErrorKind::{Closed, Unreachable},
    http::{answer, resume, token::Authorizer},
};
use antiphon_connect::Connector;
use antiphon_wire::header::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, encode};
use antiphon_wire::lock::Lock;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming as Body};
use hyper_util::client::legacy::{Client, Error as SendError};
use std::sync::{Arc, atomic::AtomicBool};
use tokio::sync::watch;

/// The maximum number of times that one request is sent. Authorizers limit themselves to fewer.
const MAX_TRIES: usize = 8;

/// The state that requests and sessions share.
pub(crate) struct Core {
    /// `None` once closed, which also closes the connections that are idle.
    pub(crate) client: Lock<Option<Client<Connector, Full<Bytes>>>>,
    pub(crate) uri: Uri,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) max_response: usize,
    pub(crate) closed: watch::Sender<bool>,
    /// `true` if the server lets no client end a session.
    pub(crate) keeps_sessions: AtomicBool,
}

impl Core {
    pub(crate) async fn post(
        &self,
        request: OutgoingRequest,
        on_notification: &mut (dyn FnMut(IncomingNotification) + Send),
    ) -> Result<ServerReply, TransportError> {
        let id = request.id.clone();
        let mut wait = |waits| on_notification(IncomingNotification::waiting(waits));
        let response = self.send_waiting(self.write_post(request)?, &mut wait).await?;
        answer::read_answer(response, &self.uri, &id, self.max_response, on_notification).await
    }

    /// Sends a notification, and reads whether the server accepts it.
    pub(crate) async fn notify(&self, notification: OutgoingNotification) -> Result<(), TransportError> {
        let OutgoingNotification { method, version, body } = notification;
        // A notification has no id; the headers of a POST do not depend on it.
        let post = self.write_post(OutgoingRequest::new(0_u64.into(), method, version, body))?;
        // > If the server accepts it, the server **MUST** return HTTP status code `202 Accepted` with no body.
        // Some servers answer 200 or 204; the response is not read.
        let (head, body) = self.send_with_token(post).await?.into_parts();
        if head.status.is_success() { Ok(()) } else { Err(answer::read_refused(&head, body).await) }
    }

    /// Sends a request, with authorization if there is an authorizer.
    pub(crate) async fn send_with_token(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Body>, TransportError> {
        self.send_waiting(request, &mut |_| {}).await
    }

    /// Sends a request like [`send_with_token`](Self::send_with_token). `wait` gets `true` when a person is asked, and `false` after that.
    pub(crate) async fn send_waiting(
        &self,
        request: Request<Full<Bytes>>,
        wait: &mut (dyn FnMut(bool) + Send),
    ) -> Result<Response<Body>, TransportError> {
        match &self.authorizer {
            None => self.send(request).await,
            Some(authorizer) => self.send_authorized(&**authorizer, request, wait).await,
        }
    }

    /// Does the work, unless the transport is closed before.
    pub(crate) async fn unless_closed<T>(
        &self,
        work: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        let mut watched = self.closed.subscribe();
        tokio::select! {
            biased;
            _ = watched.wait_for(|closed| *closed) => Err(closed()),
            outcome = work => outcome,
        }
    }

    /// Sends the request with what the authorizer gives, and again if it has an answer to a challenge.
    async fn send_authorized(
        &self,
        authorizer: &dyn Authorizer,
        post: Request<Full<Bytes>>,
        wait: &mut (dyn FnMut(bool) + Send),
    ) -> Result<Response<Body>, TransportError> {
        let mut attempt = authorizer.attempt();
        let mut tries = 0;
        loop {
            let mut authorized = post.clone();
            authorized.headers_mut().extend(attempt.headers(&post).await?);
            let response = self.send(authorized).await?;
            tries += 1;
            if !attempt.is_challenged(&post, response.status(), response.headers()) || tries == MAX_TRIES {
                return Ok(response);
            }
            let (head, body) = response.into_parts();
            let body = answer::read_beginning(&resume::media_type(&head.headers), body).await;
            let refused = |advice: &str| answer::refusal(head.status, &head.headers, &body, advice);
            // A sign-in limits its time itself.
            wait(attempt.asks_people());
            let renewed = attempt.renew().await;
            wait(false);
            match renewed {
                Ok(true) => {}
                Ok(false) => return Err(refused(", and there is no other token")),
                Err(fault) => return Err(refused(", and no other token could be had").caused_by(fault)),
            }
        }
    }

    async fn send(&self, post: Request<Full<Bytes>>) -> Result<Response<Body>, TransportError> {
        let client = self.client.lock().clone().ok_or_else(closed)?;
        client.request(post).await.map_err(|fault| self.not_sent(&fault))
    }

    fn write_post(&self, request: OutgoingRequest) -> Result<Request<Full<Bytes>>, TransportError> {
        let value = |text: &str, what: &str| {
            HeaderValue::from_str(text)
                .map_err(|_| TransportError::new(Unreachable, format!("{what} does not fit into a header")))
        };
        // > Every JSON-RPC message sent from the client **MUST** be a new HTTP POST request to the MCP endpoint.
        let mut post = Request::new(Full::new(Bytes::from(request.body)));
        *post.method_mut() = Method::POST;
        *post.uri_mut() = self.uri.clone();
        *post.headers_mut() = self.headers.clone();
        // > The client **MUST** include the request metadata headers on each POST request.
        let headers = post.headers_mut();
        // > Append a `Mcp-Param-{Name}: {Value}` header to the request.
        add_headers(headers, &request.headers)?;
        headers.insert(MCP_PROTOCOL_VERSION, value(request.version.as_str(), "the protocol version")?);
        headers.insert(MCP_METHOD, value(&request.method, "the method")?);
        if let Some(name) = &request.name {
            // > clients **MUST** encode it using the Base64 sentinel format
            headers.insert(MCP_NAME, value(&encode(name), "the name")?);
        }
        Ok(post)
    }

    fn not_sent(&self, fault: &SendError) -> TransportError {
        if !fault.is_connect() {
            return resume::broken(fault);
        }
        TransportError::new(Unreachable, format!("{} cannot be reached", self.target))
            .with_source(resume::last_cause(fault))
    }
}

/// Adds the headers of a request. Those of the protocol follow, and replace them.
pub(crate) fn add_headers(headers: &mut HeaderMap, more: &[(String, String)]) -> Result<(), TransportError> {
    for (name, text) in more {
        let name = HeaderName::try_from(name)
            .map_err(|_| TransportError::new(Unreachable, "the name of a header cannot be sent"))?;
        let value = HeaderValue::from_str(text).map_err(|_| {
            TransportError::new(Unreachable, format!("the value of the header `{name}` cannot be sent"))
        })?;
        headers.insert(name, value);
    }
    Ok(())
}

pub(crate) fn host_of(uri: &Uri) -> &str {
    uri.authority().map(|authority| authority.as_str()).unwrap_or_default()
}

fn closed() -> TransportError {
    TransportError::new(Closed, "this client closed the connection").for_good()
}

// The cookies of one session: a balancer that keeps a session on one instance often marks it with one.

/// The maximum number of cookies that are kept, and the maximum length of one in bytes, its name included.
const MAX_COOKIES: usize = 32;
const MAX_COOKIE: usize = 4096;

/// All go to the one URL of the transport, so that neither domain nor path is looked at.
#[derive(Default)]
pub(crate) struct CookieJar(Lock<Vec<(String, String)>>);

impl CookieJar {
    /// Stores the cookies that a response sets.
    pub(crate) fn keep(&self, headers: &HeaderMap) {
        for cookie in headers.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok()) {
            let mut parts = cookie.split(';').map(str::trim);
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { continue };
            let (name, value) = (name.trim(), value.trim());
            let is_over = parts.any(|attribute| match attribute.split_once('=') {
                Some((key, age)) if key.eq_ignore_ascii_case("max-age") => age.starts_with('-') || age == "0",
                _ => false,
            });
            if name.is_empty() || name.len() + value.len() > MAX_COOKIE {
                continue;
            }
            let mut kept = self.0.lock();
            kept.retain(|(other, _)| other != name);
            if !is_over && kept.len() < MAX_COOKIES {
                kept.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// Adds them to a request, behind those that every request has.
    pub(crate) fn add(&self, headers: &mut HeaderMap) {
        let kept = self.0.lock();
        if kept.is_empty() {
            return;
        }
        let own = headers.get(header::COOKIE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let pairs = kept.iter().map(|(name, value)| format!("{name}={value}"));
        let all: Vec<String> = own.into_iter().chain(pairs).collect();
        if let Ok(mut value) = HeaderValue::try_from(all.join("; ")) {
            value.set_sensitive(true);
            headers.insert(header::COOKIE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_goes_back() {
        let check = |own: Option<&str>, set: &[&str], sent: Option<&str>| {
            let jar = CookieJar::default();
            for cookie in set {
                let mut headers = HeaderMap::new();
                headers.append(header::SET_COOKIE, HeaderValue::from_str(cookie).unwrap());
                jar.keep(&headers);
            }
            let mut headers = HeaderMap::new();
            if let Some(own) = own {
                headers.insert(header::COOKIE, HeaderValue::from_str(own).unwrap());
            }
            jar.add(&mut headers);
            let found = headers.get(header::COOKIE).map(|value| value.to_str().unwrap());
            assert_eq!(found, sent, "{set:?}");
        };
        check(None, &[], None);
        check(Some("a=1"), &[], Some("a=1"));
        check(None, &["SRV=s1; path=/; HttpOnly"], Some("SRV=s1"));
        check(Some("a=1"), &["SRV=s1", "x = y ; Max-Age=60"], Some("a=1; SRV=s1; x=y"));
        check(None, &["SRV=s1", "SRV=s2"], Some("SRV=s2"));
        check(None, &["SRV=s1", "SRV=; Max-Age=0"], None);
        check(None, &["no pair", "=1", &format!("a={}", "x".repeat(MAX_COOKIE))], None);
        let many: Vec<String> = (0..MAX_COOKIES + 9).map(|n| format!("c{n}=1")).collect();
        let all: Vec<String> = many[..MAX_COOKIES].to_vec();
        check(None, &many.iter().map(String::as_str).collect::<Vec<_>>(), Some(&all.join("; ")));
    }
}
