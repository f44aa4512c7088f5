//! `demo`: a server and a client in one process, connected by a socket.

use crate::{
    answer_flags::AnswerFlags,
    args::{AnswerArgs, ConnectionArgs, StoreArgs},
    ask::{self, RoundError},
    console,
    drive::{Driving, Start, drive},
    failure::{Exit, Failure},
    leg_observer::LegObserver,
    outcome::Outcome,
    store_file,
    target::Target,
};
use antiphon::{
    client::{Call, CallProgress, Client, PendingCall},
    seal::{KeyRing, SecretKey},
    serve::http::{HttpOptions, serve_http},
};
use serde_json::json;
use std::time::Duration;
use tokio::{net::TcpListener, sync::oneshot};

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
