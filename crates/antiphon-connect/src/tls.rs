//! TLS to one host.

use rustls_platform_verifier::BuilderVerifierExt as _;
use std::{io, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector, client,
    rustls::{ClientConfig, crypto::ring, pki_types::ServerName},
};

/// A connection with TLS.
pub(crate) type TlsStream = client::TlsStream<TcpStream>;

/// The settings of TLS to one host.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// Sets up TLS with a crypto provider of its own; the process-wide provider is neither used nor set.
    pub(crate) fn to(host: &str) -> Result<Self, String> {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|_| format!("`{host}` is not a host name that a certificate can hold"))?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_platform_verifier())
            .map_err(|fault| format!("TLS cannot be set up: {fault}"))?
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    pub(crate) async fn connect(self, tcp: TcpStream) -> io::Result<TlsStream> {
        self.connector.connect(self.name, tcp).await
    }
}
