//! The role of a server: the tools under test over HTTP, with the shared keys and the shared store.

use crate::{Result, ledger::Ledger, store::Address, tools::tools};
use antiphon::{
    seal::{KeyRing, Principal},
    serve::http::{HttpOptions, serve_http},
    server::{Caller, ClaimOptions, Limits, ReplayCheck, Server},
};
use serde::{Deserialize, Serialize};
use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// The settings of a server process, as the first argument behind its role.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ServerSettings {
    pub(crate) store: Address,
    pub(crate) folder: PathBuf,
    pub(crate) keys: String,
    /// The lease, in milliseconds.
    pub(crate) lease: u64,
    /// The time of a slow step, in milliseconds.
    pub(crate) slow: u64,
}

/// Serves until SIGTERM, and then ends the requests under way. The first line of the output is the address.
pub(crate) async fn serve(settings: ServerSettings) -> Result<()> {
    let ledger = Arc::new(Ledger::open(&settings.folder)?);
    let lease = Duration::from_millis(settings.lease);
    let options = ClaimOptions::default().lease(lease).wait(Duration::from_secs(2));
    // A step that goes on without its request ends before the lease, which is not renewed any more.
    let limits = Limits::default().step_grace(lease / 2);
    let mut builder = Server::builder("drill", "1")
        .keys(KeyRing::parse_list(&settings.keys)?)
        .replay_check(ReplayCheck::Off)
        .limits(limits)
        .claim_options(options)
        .shared_store(settings.store.open().await?)
        .bind_principal(|caller: &Caller<'_>| {
            let name = caller.headers.and_then(|headers| headers.get("x-person")?.to_str().ok());
            Ok::<_, Infallible>(name.map(Principal::user))
        });
    if settings.store.is_memory() {
        builder = builder.single_instance();
    }
    for tool in tools(ledger, Duration::from_millis(settings.slow)) {
        builder = builder.tool(tool);
    }
    let server = builder.build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut stdout = tokio::io::stdout();
    stdout.write_all(format!("{}\n", listener.local_addr()?).as_bytes()).await?;
    stdout.flush().await?;
    let stopped = async move {
        terminate.recv().await;
    };
    serve_http(listener, server, HttpOptions::default()).with_graceful_shutdown(stopped).await?;
    Ok(())
}
