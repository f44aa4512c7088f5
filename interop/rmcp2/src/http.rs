//! Streamable HTTP on hyper.

use crate::{error::AnyError, server::Peer};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService,
    streamable_http_server::session::local::LocalSessionManager,
};
use std::sync::Arc;
use tokio::net::TcpListener;

pub(crate) async fn serve(peer: Peer, address: &str, stateless: bool) -> Result<(), AnyError> {
    let config = StreamableHttpServerConfig::default();
    #[cfg(feature = "of-2026")]
    let config = config.with_legacy_session_mode(!stateless);
    #[cfg(not(feature = "of-2026"))]
    let config = config.with_stateful_mode(!stateless);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(peer.clone()), sessions, config);
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            if let Err(fault) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
                eprintln!("connection: {fault}");
            }
        });
    }
}
