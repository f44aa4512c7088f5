//! The place of TLS in a build without the feature `tls`: no host can be connected to with it.

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

#[cfg(test)]
mod tests {
    use crate::Connector;
    use std::time::Duration;

    #[test]
    fn an_https_url_is_refused_with_the_name_of_the_feature() {
        let refused = Connector::new(&"https://a.example/mcp".parse().unwrap(), Duration::from_secs(1)).err();
        assert!(refused.unwrap().contains("enable the feature `https` of the crate `antiphon`"));
        assert!(Connector::new(&"http://127.0.0.1/mcp".parse().unwrap(), Duration::from_secs(1)).is_ok());
    }
}
