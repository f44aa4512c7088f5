//! `serve-demo`: serves the demo tools over HTTP or standard input and output. `demo`: a server and a client in one process,
//! connected by a socket.

use crate::{
    answer_flags::AnswerFlags,
    args::{AnswerArgs, ConnectionArgs, ServeArgs, StoreArgs},
    ask::{self, RoundError},
    commands::keygen,
    console,
    drive::{Driving, LegObserver, Start, drive},
    failure::{Exit, Failure},
    outcome::Outcome,
    store_file,
    target::Target,
};
use antiphon::{
    client::{Call, CallProgress, Client, PendingCall},
    seal::{KeyRing, Principal, SecretKey},
    serve::{
        http::{
            HttpOptions,
            auth::{ResourceServer, StaticTokens},
            serve_http,
        },
        stdio::serve_stdio,
    },
    server::{
        Bearer, Server,
        operations::{KeyFileWatch, KeysError},
    },
};
use serde_json::json;
use std::{
    env,
    error::Error as _,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{net::TcpListener, sync::oneshot};

/// The environment variable with keys, separated by commas.
const KEYS: &str = "ANTIPHON_KEYS";

pub(super) async fn serve(args: ServeArgs) -> Result<Exit, Failure> {
    let store = store_file::open(&args.store).await?;
    let build = if args.draft_tasks { antiphon_demo::draft_server } else { antiphon_demo::server_with_store };
    let server = build(keys(args.key_file.as_deref())?, store);
    let server = server.map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(file) = &args.key_file {
        spawn(&server, file);
    }
    if args.stdio {
        let served = serve_stdio(server).await;
        return served
            .map(|()| Exit::Done)
            .map_err(|fault| Failure::io("standard input or output failed", &fault));
    }
    serve_on(&args, server).await
}

async fn serve_on(args: &ServeArgs, server: Server) -> Result<Exit, Failure> {
    let (listen, path) = (&args.listen, &args.path);
    let cannot = |fault| Failure::usage(format!("cannot listen on {listen}: {fault}"));
    let listener = TcpListener::bind(listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let options = options(args, &format!("http://{address}{path}"))?;
    // The signal handler is installed before the line is printed, so that a reader of the line can send a signal.
    let stopped = stopped();
    console::hint(&format!("listening on http://{address}{path}"));
    serve_http(listener, server, options)
        .with_graceful_shutdown(stopped)
        .await
        .map_err(|fault| Failure::io("the server failed", &fault))?;
    Ok(Exit::Done)
}

/// Returns the options of the endpoint with this URL.
fn options(args: &ServeArgs, url: &str) -> Result<HttpOptions, Failure> {
    let options = HttpOptions::default()
        .path(&args.path)
        .max_body(args.max_body)
        .health_path("/health")
        .session_prefix(&args.session_prefix);
    let options = args.allow_host.iter().fold(options, |options, host| options.allow_host(host));
    let options = args.allow_origin.iter().fold(options, |options, origin| options.allow_origin(origin));
    if let Some(name) = options.ineffective_names().first() {
        let name = console::line(name);
        return Err(Failure::usage(format!(
            "no request has the host or origin `{name}`: --allow-host is a name, --allow-origin a scheme, a name and a port"
        )));
    }
    if args.tokens.is_empty() {
        return Ok(options);
    }
    let tokens = args.tokens.iter().fold(StaticTokens::new(), |tokens, (token, user)| {
        tokens.token(token, Bearer::new(Principal::user(user)))
    });
    let auth = ResourceServer::builder(url).verifier(tokens).build();
    Ok(options.authorize(auth.map_err(|error| Failure::usage(error.to_string()))?))
}

/// Returns the keys of the file, or else of the environment. `None` lets the server make a random key.
fn keys(file: Option<&Path>) -> Result<Option<KeyRing>, Failure> {
    if let Some(file) = file {
        return keygen::ring(file).map(Some);
    }
    match env::var(KEYS) {
        Ok(list) => {
            KeyRing::parse_list(&list).map(Some).map_err(|error| Failure::usage(format!("{KEYS}: {error}")))
        }
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Failure::usage(format!("{KEYS}: not text"))),
    }
}

/// Returns a future that resolves at SIGTERM or Ctrl-C. The signal handlers are installed at once.
#[cfg(unix)]
fn stopped() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async move {
        match signals {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            // Without a handler, a signal ends the process.
            _ => std::future::pending().await,
        }
    }
}

/// Resolves at Ctrl-C.
#[cfg(not(unix))]
async fn stopped() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

// The keys of a running server: the file is read again when it changes, and at SIGHUP.

/// Begins to watch the file. The handler of the signal is installed at once: without it, the signal ends the process.
pub(super) fn spawn(server: &Server, file: &Path) {
    let (watch, file) = (server.watch_keys(file), file.to_owned());
    tokio::spawn(reload(watch, file, Hangups::new()));
}

async fn reload(mut watch: KeyFileWatch, file: PathBuf, mut hangups: Hangups) {
    // The server has begun with these keys; a change since then counts.
    if let Err(error) = watch.load().await {
        failed(&error, &file);
    }
    loop {
        let changed = tokio::select! {
            loaded = watch.changed() => Some(loaded),
            () = hangups.next() => None,
        };
        let (loaded, cause) = match changed {
            Some(loaded) => (loaded, "it changed"),
            None => (Some(watch.load().await), "SIGHUP"),
        };
        match loaded {
            Some(Ok(())) => {
                console::hint(&console::line(&format!("keys read again from {}: {cause}", file.display())));
            }
            Some(Err(error)) => failed(&error, &file),
            None => return,
        }
    }
}

fn failed(error: &KeysError, file: &Path) {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = format!("error: key file {}: {error}{cause}. The keys stay as they were", file.display());
    console::note(&console::line(&text));
}

/// The SIGHUPs that this process gets.
#[cfg(unix)]
struct Hangups(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Hangups {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(signal(SignalKind::hangup()).ok())
    }

    /// Resolves at the next one.
    async fn next(&mut self) {
        let received = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if received.is_none() {
            std::future::pending().await
        }
    }
}

/// A system without SIGHUP.
#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}

/// The lines after a demo that succeeded. They are true in a clone of the repository.
const NEXT: &str = "
Next: cargo run -p antiphon-cli -- serve-demo   these tools at http://127.0.0.1:8000/mcp, for your own client
      examples/hello_ask/main.rs                the smallest server that asks, to copy
      cargo doc --open -p antiphon              the guide: which code runs twice, and which never does";

pub(super) async fn demo(args: AnswerArgs, store: &StoreArgs) -> Result<Exit, Failure> {
    let mut answers = AnswerFlags::new(args.answers)?;
    let listener =
        TcpListener::bind("127.0.0.1:0").await.map_err(|fault| Failure::io("no free port", &fault))?;
    let address = listener.local_addr().map_err(|fault| Failure::io("no address", &fault))?;
    let store = store_file::open(store).await?;
    let sends_twice = store.is_some();
    let server = antiphon_demo::server_with_store(Some(own_ring()?), store)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let (stop, stopped) = oneshot::channel::<()>();
    // Dropping the sender stops the server as well.
    let serving = serve_http(listener, server, HttpOptions::default())
        .with_graceful_shutdown(async { drop(stopped.await) });
    let serving = tokio::spawn(serving.into_future());

    let url = format!("http://{address}/mcp");
    console::out(&format!(
        "A server listens on {url}; a client calls its tool `provision` for a database, \"orders\"."
    ));
    let legs = LegObserver::new(Some(console::out));
    let client = Target::url(url).connect(&ConnectionArgs::default(), &legs, |builder| builder)?;
    let call = Call::tool("provision", json!({"name": "orders"}))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let wait = Duration::from_secs(60);
    let driving = Driving { once: sends_twice, detach: false, wait, page_wait: wait };
    let mut outcome = drive(&client, Start::New(call), &mut answers, driving).await;
    if let Outcome::Pending { pending, missing: None } = outcome {
        outcome = twice(&client, *pending, &mut answers).await.unwrap_or_else(Outcome::Failed);
    }

    client.close().await;
    drop(stop);
    let _ = serving.await;
    answers.warn_unused();
    match outcome {
        // The process holds the only key, so the call cannot be resumed.
        Outcome::Pending { missing, .. } => Err(Failure::usage(missing.unwrap_or_default())),
        outcome => {
            outcome.print(None);
            if outcome.exit() == Exit::Done {
                console::hint(NEXT);
            }
            Ok(outcome.exit())
        }
    }
}

/// Answers the questions of a call, and sends the same answered request twice.
async fn twice(
    client: &Client,
    mut pending: PendingCall,
    answers: &mut AnswerFlags,
) -> Result<Outcome, Failure> {
    // A prompt blocks this thread until the person answers. Other tasks continue on other threads.
    match tokio::task::block_in_place(|| ask::answer_round(&mut pending, answers)) {
        Ok(()) => {}
        Err(RoundError::Missing(missing)) => {
            return Ok(Outcome::Pending { pending: Box::new(pending), missing: Some(missing) });
        }
        Err(RoundError::Failed(failure)) => return Err(failure),
    }
    let first = client.resume(pending.clone()).await?;
    console::out("The same request again. Its reply comes from the store, and the tool does not run again:");
    let second = client.resume(pending).await?;
    match (first, second) {
        (CallProgress::Done(first), CallProgress::Done(second))
            if format!("{first:?}") == format!("{second:?}") =>
        {
            Ok(Outcome::Done(second))
        }
        _ => Err(Failure::protocol("store", "the second reply differs from the first one")),
    }
}

/// Returns a key for this process. With an explicit key ring the server does not warn that calls end with the process,
/// which is intended here.
fn own_ring() -> Result<KeyRing, Failure> {
    let key = SecretKey::random().map_err(|error| Failure::protocol("key", error.to_string()))?;
    KeyRing::new(vec![key]).map_err(|error| Failure::protocol("key", error.to_string()))
}
