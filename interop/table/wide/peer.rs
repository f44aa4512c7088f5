//! The connections to the server, and a relay whose connections can be cut.

use crate::{error::AnyError, target::connect};
use antiphon::client::{
    Client, ClientBuilder,
    transport::{HttpTransport, Transport},
};
use serde_json::Value;
use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

pub(crate) struct Peer {
    target: Vec<String>,
    shared: Arc<dyn Transport>,
}

impl Peer {
    pub(crate) fn new(target: Vec<String>) -> Result<Self, AnyError> {
        let shared = connect(&target)?;
        Ok(Self { target, shared })
    }

    pub(crate) fn is_http(&self) -> bool {
        self.target.len() == 1
    }

    /// A client on the connection that the cases share.
    pub(crate) fn client(&self) -> Client {
        builder().connect(Arc::clone(&self.shared))
    }

    pub(crate) fn client_from(&self, builder: ClientBuilder) -> Client {
        builder.connect(Arc::clone(&self.shared))
    }

    /// A client on a connection of its own. Over stdio it also has a server of its own.
    pub(crate) fn separate_client(&self) -> Result<Client, AnyError> {
        Ok(builder().connect(connect(&self.target)?))
    }

    /// A client over HTTP whose connections can be cut; `None` over stdio.
    pub(crate) async fn relayed_client(&self) -> Result<Option<(Client, Relay)>, AnyError> {
        let [url] = self.target.as_slice() else { return Ok(None) };
        let (address, path) =
            url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or("no URL")?;
        let relay = Relay::start(address.parse()?).await?;
        let transport = HttpTransport::new(format!("http://{}/{path}", relay.address))?;
        Ok(Some((builder().connect(transport), relay)))
    }

    pub(crate) async fn close(&self) {
        self.shared.close().await;
    }
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("antiphon-interop-wide", env!("CARGO_PKG_VERSION"))
}

/// Calls a tool and returns the first text of its result.
pub(crate) async fn call_text(client: &Client, tool: &str, arguments: Value) -> Result<String, AnyError> {
    let result = client.call_tool(tool, arguments).await?;
    let text = result.first_text().ok_or("the result has no text")?.to_owned();
    if result.failed() { Err(format!("{tool} failed: {text}").into()) } else { Ok(text) }
}

/// Forwards connections to a server until [`Self::cut`]. Dropping it stops it.
pub(crate) struct Relay {
    address: SocketAddr,
    cuts: watch::Sender<()>,
    accepting: JoinHandle<()>,
}

impl Relay {
    async fn start(server: SocketAddr) -> Result<Self, AnyError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (cuts, cut) = watch::channel(());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, server, cut.clone()));
            }
        });
        Ok(Self { address, cuts, accepting })
    }

    /// Closes the open connections. Later connections are forwarded again.
    pub(crate) fn cut(&self) {
        self.cuts.send_replace(());
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(mut from: TcpStream, server: SocketAddr, mut cut: watch::Receiver<()>) {
    cut.mark_unchanged();
    let Ok(mut to) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut from, &mut to) => {}
        // The channel is also closed when the relay is dropped.
        _ = cut.changed() => {}
    }
}
