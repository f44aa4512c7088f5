//! The redirect to this machine, RFC 8252: a server for one answer, on an address that no other machine reaches.

use crate::{
    error::{Error, ErrorKind},
    handler::{Consent, SignInFuture, SignInHandler, SignInPlace, not_signed_in},
};
use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use std::{error::Error as StdError, fmt, net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use url::Url;

/// The path of the redirect URI.
const PATH: &str = "/callback";

/// The maximum length of the head of a request, and the time in which it must arrive.
const MAX_HEAD: usize = 16 * 1024;
const HEAD_TIME: Duration = Duration::from_secs(5);

/// The maximum number of connections at the same time: browsers open more than they need.
const MAX_CONNECTIONS: usize = 16;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The page for the person. It repeats nothing of the request.
const DONE: &str = "<!doctype html><meta charset=utf-8><title>Back to the program</title><p>You may close this window: the program says if you are signed in.";

type Show = dyn Fn(Consent) -> BoxFuture<'static, Result<(), Error>> + Send + Sync;
type Paste = dyn Fn() -> BoxFuture<'static, Result<String, Error>> + Send + Sync;

/// Signs in a person who sits at this machine: the browser returns to `http://127.0.0.1:PORT/callback`. The port is a free one, or
/// that of an earlier sign-in, if it is free.
///
/// The server accepts one answer, which must have the `state` of the sign-in; everything else gets 404. Its page is constant.
///
/// ```
/// use antiphon_oauth::{Consent, Loopback};
///
/// let handler = Loopback::new(async |consent: Consent| {
///     eprintln!("{consent}\nOpen {}", consent.url);
///     Ok::<_, std::io::Error>(())
/// });
/// ```
#[derive(Clone)]
pub struct Loopback {
    show: Arc<Show>,
    paste: Option<Arc<Paste>>,
    port: Option<u16>,
    host: &'static str,
}

struct Bound {
    listener: TcpListener,
    port: u16,
    redirect_uri: String,
    handler: Loopback,
}

impl Loopback {
    /// Returns a handler that shows the sign-in to the person with this function, which opens a browser or prints the URL.
    pub fn new<F, Fut, E>(show: F) -> Self
    where
        F: Fn(Consent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let show: Arc<Show> = Arc::new(move |consent| {
            let shown = show(consent);
            Box::pin(async move { shown.await.map_err(not_signed_in) })
        });
        Self { show, paste: None, port: None, host: "127.0.0.1" }
    }

    /// Sets the port, for a client id whose redirect URI has one: a free port unless set. If it is taken, the sign-in fails.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Names the host `localhost` in the redirect URI, for a client id that was registered so; the address stays 127.0.0.1.
    #[must_use]
    pub fn localhost(mut self) -> Self {
        self.host = "localhost";
        self
    }

    /// Also accepts the address from this function, for a browser on another machine: the person pastes it. What comes first
    /// counts. The function is called once for each sign-in; its future is dropped if the browser returns first.
    #[must_use]
    pub fn or_paste<F, Fut, E>(mut self, paste: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.paste = Some(Arc::new(move || {
            let pasted = paste();
            Box::pin(async move { pasted.await.map_err(not_signed_in) })
        }));
        self
    }

    async fn bind(&self, before: Option<&str>) -> Result<Bound, Error> {
        let earlier = before.and_then(|uri| Url::parse(uri).ok()).and_then(|uri| uri.port());
        let listener = match (self.port, earlier) {
            (Some(port), _) => listen(port).await,
            (None, Some(port)) => match listen(port).await {
                Err(_) => listen(0).await,
                bound => bound,
            },
            (None, None) => listen(0).await,
        };
        let failed = |fault: std::io::Error| {
            let port = self.port.map(|port| format!(" {port}")).unwrap_or_default();
            let text =
                format!("no browser can return to this machine: the port{port} cannot be used: {fault}");
            Error::caused(ErrorKind::SignIn, text, fault)
        };
        let listener = listener.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect_uri = format!("http://{}:{port}{PATH}", self.host);
        Ok(Bound { listener, port, redirect_uri, handler: self.clone() })
    }
}

async fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

impl SignInHandler for Loopback {
    fn open<'a>(&'a self, before: Option<&'a str>) -> SignInFuture<'a, Box<dyn SignInPlace>> {
        Box::pin(async move { Ok(Box::new(self.bind(before).await?) as Box<dyn SignInPlace>) })
    }
}

impl SignInPlace for Bound {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn sign_in<'a>(self: Box<Self>, consent: &'a Consent, state: &'a str) -> SignInFuture<'a, String> {
        Box::pin(async move {
            (self.handler.show)(consent.clone()).await?;
            let pasted = async {
                match &self.handler.paste {
                    Some(paste) => paste().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                returned = self.returned(state) => returned,
                pasted = pasted => pasted,
            }
        })
    }
}

impl Bound {
    /// Serves connections until one of them brings the answer.
    async fn returned(&self, state: &str) -> Result<String, Error> {
        let mut connections = FuturesUnordered::new();
        loop {
            let has_room = connections.len() < MAX_CONNECTIONS;
            tokio::select! {
                accepted = self.listener.accept(), if has_room => match accepted {
                    Ok((connection, _)) => connections.push(self.serve(connection, state)),
                    // Such as too many open files: the next connection may be accepted.
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                Some(returned) = connections.next(), if !connections.is_empty() => {
                    if let Some(returned) = returned {
                        return Ok(returned);
                    }
                }
            }
        }
    }

    /// Reads one request. Returns the address if it is the answer.
    async fn serve(&self, mut connection: TcpStream, state: &str) -> Option<String> {
        let head = timeout(HEAD_TIME, read_head(&mut connection)).await.ok()??;
        let returned = self.address(&head).filter(|address| {
            let url = Url::parse(address).ok();
            url.is_some_and(|url| url.query_pairs().any(|(name, value)| name == "state" && value == state))
        });
        let (status, page) = match &returned {
            Some(_) => ("200 OK", DONE),
            None => ("404 Not Found", ""),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{page}",
            page.len()
        );
        let sent = async {
            connection.write_all(answer.as_bytes()).await?;
            connection.shutdown().await
        };
        // The answer counts even if the browser is gone.
        let _ = timeout(HEAD_TIME, sent).await;
        returned
    }

    /// The whole address of a request for the redirect URI: a `GET` with the right `Host`.
    fn address(&self, head: &str) -> Option<String> {
        let mut lines = head.split("\r\n");
        let target = lines.next()?.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
        let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
        let mut hosts = lines
            .filter_map(|line| line.split_once(':'))
            .filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        let (_, host) = hosts.next()?;
        let known = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        let is_here = known.iter().any(|known| known == host.trim()) && hosts.next().is_none();
        is_here.then(|| format!("{}?{query}", self.redirect_uri))
    }
}

/// Reads up to the empty line behind the fields.
async fn read_head(connection: &mut TcpStream) -> Option<String> {
    let (mut head, mut chunk) = (Vec::new(), [0; 2048]);
    while head.len() < MAX_HEAD {
        match connection.read(&mut chunk).await {
            Ok(count @ 1..) => head.extend_from_slice(&chunk[..count]),
            _ => return None,
        }
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            head.truncate(end);
            return String::from_utf8(head).ok();
        }
    }
    None
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback").field("port", &self.port).field("host", &self.host).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn consent(url: &str) -> Consent {
        Consent {
            url: url.into(),
            server: "https://a.example/mcp".into(),
            issuer: "https://as.example".into(),
            scopes: vec!["a".into()],
            redirect_uri: String::new(),
        }
    }

    async fn send(port: u16, request: &str) -> String {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn one_answer_is_accepted() {
        let handler = Loopback::new(async |_| Ok::<_, Error>(()));
        let place = Box::new(handler.bind(None).await.unwrap());
        let (port, uri) = (place.port, place.redirect_uri.clone());
        assert_eq!(uri, format!("http://127.0.0.1:{port}/callback"));
        let signed_in =
            tokio::spawn(async move { place.sign_in(&consent("https://as.example/a"), "s1").await });
        // A browser connects ahead, and sends nothing.
        let _idle = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let host = format!("Host: 127.0.0.1:{port}\r\n");
        for request in [
            format!("GET /callback?code=x&state=other HTTP/1.1\r\n{host}\r\n"),
            format!("GET /callback?code=x HTTP/1.1\r\n{host}\r\n"),
            format!("GET /favicon.ico HTTP/1.1\r\n{host}\r\n"),
            format!("GET /callbacks?code=x&state=s1 HTTP/1.1\r\n{host}\r\n"),
            format!("POST /callback?code=x&state=s1 HTTP/1.1\r\n{host}\r\n"),
            format!("GET /callback?code=x&state=s1 HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"),
            format!("GET /callback?code=x&state=s1 HTTP/1.1\r\n{host}{host}\r\n"),
            "GET /callback?code=x&state=s1 HTTP/1.1\r\n\r\n".to_owned(),
        ] {
            let answer = send(port, &request).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{request} {answer}");
        }
        let request =
            format!("GET /callback?code=%3Cb%3Ex&state=s1 HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n");
        let answer = send(port, &request).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(DONE), "{answer}");
        assert!(answer.contains("no-store") && !answer.contains("s1"));
        assert_eq!(signed_in.await.unwrap().unwrap(), format!("{uri}?code=%3Cb%3Ex&state=s1"));
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err(), "the server has ended");
    }

    #[tokio::test]
    async fn an_earlier_port_is_used_again_and_a_pinned_one_must_be_free() {
        let handler = Loopback::new(async |_| Ok::<_, Error>(())).localhost();
        let first = handler.bind(None).await.unwrap();
        let uri = first.redirect_uri.clone();
        assert!(uri.starts_with("http://localhost:"));
        // It is taken: another one.
        assert_ne!(handler.bind(Some(&uri)).await.unwrap().redirect_uri, uri);
        let pinned = handler.clone().port(first.port);
        let fault = pinned.bind(None).await.err().unwrap();
        assert!(fault.to_string().contains(&first.port.to_string()), "{fault}");
        drop(first);
        assert_eq!(handler.bind(Some(&uri)).await.unwrap().redirect_uri, uri);
    }

    #[tokio::test]
    async fn an_address_may_be_pasted() {
        let handler = Loopback::new(async |_| Ok::<_, Error>(()))
            .or_paste(async || Ok::<_, Error>("http://127.0.0.1/callback?code=x".to_owned()));
        let place = Box::new(handler.bind(None).await.unwrap());
        let pasted = place.sign_in(&consent("https://as.example/a"), "s").await.unwrap();
        assert_eq!(pasted, "http://127.0.0.1/callback?code=x");
        let failing = Loopback::new(async |_| Err::<(), _>("no terminal"));
        let place = Box::new(failing.bind(None).await.unwrap());
        let fault = place.sign_in(&consent("https://as.example/a"), "s").now_or_never();
        assert_eq!(fault.unwrap().unwrap_err().kind(), ErrorKind::SignIn);
    }
}
