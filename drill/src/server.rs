//! The role of a server: the tools under test over HTTP, with the shared keys and the shared store.

use crate::{
    clock::ClockSteps, error::Result, keys::modified, ledger::Ledger, store::Address, tools::tools,
    touch::touch, trace::Printer,
};
use antiphon::{
    Clock,
    seal::{KeyRing, Principal},
    serve::http::{HttpOptions, serve_http},
    server::{
        Caller, ClaimOptions, Limits, Server, TaskOptions,
        operations::{KeyFileWatch, ReplayCheck},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    convert::Infallible,
    future::Future,
    io::Write as _,
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

/// The time between two looks at the key file.
const KEYS_INTERVAL: Duration = Duration::from_millis(250);
/// The size from which on a record moves to the store, in bytes: three steps and their answers exceed it.
const STATE: usize = 1500;
/// The time for which a task exists.
pub(crate) const TASK: Duration = Duration::from_secs(900);
/// The time for which a process that starts tries to reach the store.
const CONNECT: Duration = Duration::from_secs(30);

/// The settings of a server process, as the first argument behind its role.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ServerSettings {
    pub(crate) store: Address,
    pub(crate) folder: PathBuf,
    pub(crate) keys: PathBuf,
    /// The place of the process, which has a clock of its own.
    pub(crate) place: usize,
    /// The version of the tools.
    pub(crate) version: u32,
    /// The lease, in milliseconds.
    pub(crate) lease: u64,
    /// The time of a slow step, in milliseconds.
    pub(crate) slow: u64,
    /// The time for which the state of a round is accepted, in seconds.
    pub(crate) answer_timeout: u64,
}

/// Serves until SIGTERM, and then ends the requests under way. The first line of the output is the address.
pub(crate) async fn serve(settings: ServerSettings) -> Result<()> {
    tracing::subscriber::set_global_default(Printer::new())?;
    // The server does not outlive the driver, however that ends.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let ledger = Ledger::open(&settings.folder)?;
    let clocks = ClockSteps::open(&settings.folder)?;
    let lease = Duration::from_millis(settings.lease);
    let options = ClaimOptions::default().lease(lease).wait_timeout(Duration::from_secs(2));
    // A step that goes on without its request ends before the lease, which is not renewed any more.
    let limits = Limits::default().step_grace(lease / 2).state(STATE);
    let (place, own) = (settings.place, clocks.clone());
    let mut builder = Server::builder("drill", "1")
        .keys(KeyRing::parse_file(&std::fs::read_to_string(&settings.keys)?)?)
        .clock(Clock::from_fn(move || own.place(place)))
        .replay_check(ReplayCheck::Off)
        .limits(limits)
        .answer_timeout(Duration::from_secs(settings.answer_timeout))
        .claim_options(options)
        .task_options(TaskOptions::default().lease(lease).ttl(TASK).keep(TASK))
        .store(reached(|| settings.store.open(&clocks)).await?)
        .spill(true)
        .resource_updates(true)
        .tool(touch())
        .bind_principal(|caller: &Caller<'_>| {
            let name = caller.headers.and_then(|headers| headers.get("x-person")?.to_str().ok());
            Ok::<_, Infallible>(name.map(Principal::user))
        });
    if settings.store.is_memory() {
        builder = builder.single_instance(true);
    }
    if let Some(engine) = reached(|| settings.store.engine(lease)).await? {
        builder = builder.task_engine(engine);
    }
    let slow = Duration::from_millis(settings.slow);
    for tool in tools(&ledger, slow, settings.version, settings.store.has_tasks()) {
        builder = builder.tool(tool);
    }
    let server = builder.build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut stdout = tokio::io::stdout();
    stdout.write_all(format!("{}\n", listener.local_addr()?).as_bytes()).await?;
    stdout.flush().await?;
    tokio::spawn(watch_keys(
        server.watch_keys(&settings.keys).interval(KEYS_INTERVAL),
        settings.keys.clone(),
    ));
    let stopped = async move {
        terminate.recv().await;
    };
    serve_http(listener, server, HttpOptions::default()).with_graceful_shutdown(stopped).await?;
    Ok(())
}

/// Loads the key file whenever it changes, and prints the moment of the file that was loaded, or of an earlier one.
async fn watch_keys(mut watch: KeyFileWatch, file: PathBuf) {
    while watch.changed().await.is_some() {
        let Ok(moment) = modified(&file) else { continue };
        if watch.load().await.is_ok() {
            // A process that is stopped here has the new keys already.
            let _ = std::io::stdout().write_all(format!("keys {moment}\n").as_bytes());
        }
    }
}

/// Reaches the store. The process may start while the store does not run.
async fn reached<T, F: Future<Output = Result<T>>>(reach: impl Fn() -> F) -> Result<T> {
    let begin = Instant::now();
    loop {
        match reach().await {
            Err(_) if begin.elapsed() < CONNECT => tokio::time::sleep(Duration::from_millis(100)).await,
            reached => return reached,
        }
    }
}
