//! Connections of an HTTP client: TCP, TLS for `https` URLs with the feature `tls`, and the HTTP proxy from the environment.
//! Without the feature, an `https` URL is an error before anything is connected.

mod reach;
#[cfg(feature = "tls")]
mod tls;

pub use reach::Reach;

use http::{HeaderValue, Uri, uri::Scheme};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use reach::Resolver;
use std::{
    future::Future,
    io,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tls::{Tls, TlsStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tower_service::Service;

/// The idle time before the first TCP keep-alive probe, and the time between probes.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A connector to one server.
#[derive(Clone)]
pub struct Connector {
    tcp: HttpConnector<Resolver>,
    tls: Option<Tls>,
    proxy: Option<Intercept>,
    limit: Duration,
}

impl Connector {
    /// Creates a connector for `uri`, which must have a scheme and a host. Root certificates are loaded only for `https`.
    /// `limit` is the maximum time to connect.
    ///
    /// # Errors
    /// TLS cannot be set up or is not compiled in, or the proxy is not an `http` proxy.
    pub fn new(uri: &Uri, limit: Duration) -> Result<Self, String> {
        Self::with_reach(uri, limit, None)
    }

    /// Creates a connector for a `uri` that another server named: it connects to addresses of the class `reach` and of less
    /// private ones only. The addresses are checked where names are resolved. A proxy resolves names itself, so that behind a
    /// proxy only hosts that are addresses are checked.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the host is an address of a more private class.
    pub fn within(uri: &Uri, limit: Duration, reach: Reach) -> Result<Self, String> {
        reach.check_host(uri.host().unwrap_or_default())?;
        Self::with_reach(uri, limit, Some(reach))
    }

    fn with_reach(uri: &Uri, limit: Duration, reach: Option<Reach>) -> Result<Self, String> {
        let host = uri.host().unwrap_or_default();
        let proxy = if is_loopback(host) { None } else { Matcher::from_env().intercept(uri) };
        // The address of a proxy is the user's own choice.
        let reach = reach.filter(|_| proxy.is_none());
        let mut tcp = HttpConnector::new_with_resolver(Resolver { reach });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // A stream may be idle for hours. Without keep-alive, a lost peer would not be detected.
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE));
        tcp.set_keepalive_retries(Some(4));
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let tls = if secure { Some(Tls::to(host)?) } else { None };
        match &proxy {
            Some(proxy) if proxy.uri().scheme() != Some(&Scheme::HTTP) => {
                let scheme = proxy.uri().scheme_str().unwrap_or("?");
                Err(format!("a proxy of scheme `{scheme}` is set, but only `http` proxies are supported"))
            }
            _ => Ok(Self { tcp, tls, proxy, limit }),
        }
    }

    /// The `Proxy-Authorization` header for requests through a proxy without a tunnel. A tunnel sends the header itself.
    pub fn proxy_authorization(&self) -> Option<&HeaderValue> {
        self.proxy.as_ref().filter(|_| self.tls.is_none())?.basic_auth()
    }

    async fn open(mut self, uri: Uri) -> io::Result<Channel> {
        let (tcp, proxied) = match (self.proxy, &self.tls) {
            (None, _) => (self.tcp.call(uri).await.map_err(io::Error::other)?, false),
            (Some(proxy), None) => {
                (self.tcp.call(proxy.uri().clone()).await.map_err(io::Error::other)?, true)
            }
            (Some(proxy), Some(_)) => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp);
                if let Some(authorization) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                (tunnel.call(uri).await.map_err(io::Error::other)?, false)
            }
        };
        let stream = match self.tls {
            None => Stream::Plain(tcp.into_inner()),
            Some(tls) => Stream::Tls(Box::new(tls.connect(tcp.into_inner()).await?)),
        };
        Ok(Channel { io: TokioIo::new(stream), proxied })
    }
}

impl Service<Uri> for Connector {
    type Response = Channel;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Channel>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connector, limit) = (self.clone(), self.limit);
        Box::pin(async move {
            tokio::time::timeout(limit, connector.open(uri)).await.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, format!("not connected within {limit:?}")))
            })
        })
    }
}

/// Returns true for loopback hosts, which are always connected to directly.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A connection for the HTTP client.
pub struct Channel {
    io: TokioIo<Stream>,
    /// True if the peer is a proxy, which needs absolute URLs.
    proxied: bool,
}

impl Connection for Channel {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.proxied)
    }
}

impl hyper::rt::Read for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl hyper::rt::Write for Channel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The place of TLS in a build without the feature `tls`: no host can be connected to with it.
#[cfg(not(feature = "tls"))]
mod tls {
    use std::io;
    use tokio::net::TcpStream;

    /// A connection with TLS, which cannot exist here.
    pub(crate) type TlsStream = TcpStream;

    /// The settings of TLS to one host, which cannot exist here.
    #[derive(Clone)]
    pub(crate) enum Tls {}

    impl Tls {
        /// Returns the error of a URL with `https`. The URL is never tried without TLS.
        pub(crate) fn to(_: &str) -> Result<Self, String> {
            Err("an https URL needs TLS, which this program was built without: enable the feature `https` of the crate `antiphon`".into())
        }

        pub(crate) async fn connect(self, _: TcpStream) -> io::Result<TlsStream> {
            match self {}
        }
    }
}

#[cfg(all(test, not(feature = "tls")))]
mod tests {
    use super::Connector;
    use std::time::Duration;

    #[test]
    fn an_https_url_is_refused_with_the_name_of_the_feature() {
        let refused = Connector::new(&"https://a.example/mcp".parse().unwrap(), Duration::from_secs(1)).err();
        assert!(refused.unwrap().contains("enable the feature `https` of the crate `antiphon`"));
        assert!(Connector::new(&"http://127.0.0.1/mcp".parse().unwrap(), Duration::from_secs(1)).is_ok());
    }
}
