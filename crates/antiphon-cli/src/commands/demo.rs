//! `demo`: a server and a client in one process, connected by a socket.

use crate::{
    answer_flags::AnswerFlags,
    args::AnswerArgs,
    console,
    drive::{Start, drive},
    failure::{Exit, Failure},
    leg_observer::LegObserver,
    outcome::Outcome,
    target::Target,
};
use antiphon::{
    client::{Call, Mode},
    seal::{KeyRing, SecretKey},
    serve::http::{HttpOptions, serve_http},
};
use serde_json::json;
use std::time::Duration;
use tokio::{net::TcpListener, sync::oneshot};

pub(super) async fn demo(args: AnswerArgs) -> Result<Exit, Failure> {
    let mut answers = AnswerFlags::new(args.answers)?;
    let listener =
        TcpListener::bind("127.0.0.1:0").await.map_err(|fault| Failure::io("no free port", &fault))?;
    let address = listener.local_addr().map_err(|fault| Failure::io("no address", &fault))?;
    let server =
        antiphon_demo::server(Some(own_ring()?)).map_err(|error| Failure::usage(error.to_string()))?;
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
    let client = Target::url(url).connect(60, Mode::Auto, &legs, |builder| builder)?;
    let call = Call::tool("provision", json!({"name": "orders"}))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let outcome = drive(&client, Start::New(call), &mut answers, false, Duration::from_secs(60)).await;

    client.close().await;
    drop(stop);
    let _ = serving.await;
    answers.warn_unused();
    match outcome {
        // The process holds the only key, so the call cannot be resumed.
        Outcome::Pending { missing, .. } => Err(Failure::usage(missing.unwrap_or_default())),
        outcome => {
            outcome.print(None);
            Ok(outcome.exit())
        }
    }
}

/// Returns a key for this process. With an explicit key ring the server does not warn that calls end with the process,
/// which is intended here.
fn own_ring() -> Result<KeyRing, Failure> {
    let key = SecretKey::random().map_err(|error| Failure::protocol("key", error.to_string()))?;
    KeyRing::new(vec![key]).map_err(|error| Failure::protocol("key", error.to_string()))
}
