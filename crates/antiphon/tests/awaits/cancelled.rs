//! Requests that nobody waits for any more: a step that runs then has its effect, and nothing else happens.

use crate::common::{
    gate::{LONGEST, soon},
    leak_check::load,
    lines,
    socket::{self, Client, text_of},
    *,
};
use antiphon::{
    Result,
    serve::http::HttpOptions,
    server::{Caller, Ctx, Limits, NoArguments, Server, Tool, flow::Winner},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use std::time::Instant;
use tokio::sync::{mpsc, watch};

/// A handler's channel to the test, and the gate that lets its step continue.
#[derive(Clone)]
struct HandlerEvents {
    events: mpsc::UnboundedSender<&'static str>,
    open: watch::Receiver<bool>,
}

impl HandlerEvents {
    fn send(&self, event: &'static str) {
        let _ = self.events.send(event);
    }

    async fn opened(&self) -> Result<()> {
        self.open.clone().wait_for(|open| *open).await?;
        Ok(())
    }

    /// Does the work of the step.
    async fn work(&self, ctx: &Ctx) -> Result<()> {
        self.send("begun");
        self.opened().await?;
        ctx.report_progress(2.0, None, None);
        self.send("done");
        Ok(())
    }
}

/// Sends an event when the handler is dropped.
struct Guard(HandlerEvents);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.send("dropped");
    }
}

/// A handler whose step is at one place of its body.
type Handler = for<'a> fn(&'a Ctx, &'a HandlerEvents) -> BoxFuture<'a, Result<()>>;

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<()>>>(handler: F) -> F {
    handler
}

struct Rig {
    server: Server,
    events: mpsc::UnboundedReceiver<&'static str>,
    open: watch::Sender<bool>,
}

fn rig(handler: Handler, change: impl FnOnce(Limits) -> Limits) -> Rig {
    let (sender, events) = mpsc::unbounded_channel();
    let (open, opened) = watch::channel(false);
    let handler_events = HandlerEvents { events: sender, open: opened };
    let tool = Tool::new(
        "t",
        lent(move |ctx, _| {
            let events = handler_events.clone();
            Box::pin(async move {
                let guard = Guard(events.clone());
                handler(ctx, &events).await?;
                guard.0.send("behind");
                Ok(())
            })
        }),
    );
    let limits = change(Limits::default().step_grace(LONGEST * 2));
    let server = Server::builder("cancelled", "1").tool(tool).keys(ring(7)).limits(limits).build().unwrap();
    Rig { server, events, open }
}

impl Rig {
    async fn receive(&mut self, expected: &str) {
        assert_eq!(soon(self.events.recv()).await, Some(expected));
    }

    /// No further event arrives: the handler owns the last sender besides the tool's own, and has sent all its events.
    fn receive_no_more(&mut self) {
        assert_eq!(self.events.try_recv().ok(), None);
    }

    /// Waits until so many steps run for nobody.
    async fn detached(&self, steps: usize) {
        let began = Instant::now();
        while !format!("{:?}", self.server).contains(&format!("detached_steps: {steps}")) {
            assert!(began.elapsed() < LONGEST, "{:?}", self.server);
            tokio::task::yield_now().await;
        }
    }
}

fn call() -> Value {
    let meta = with(&meta(), json!({"progressToken": "p"}));
    request(1, "tools/call", json!({"name": "t", "arguments": {}, "_meta": meta}))
}

fn one_step<'a>(ctx: &'a Ctx, events: &'a HandlerEvents) -> BoxFuture<'a, Result<()>> {
    Box::pin(async { Ok(ctx.step("work", async |_| events.work(ctx).await).await?) })
}

fn no_step<'a>(_: &'a Ctx, events: &'a HandlerEvents) -> BoxFuture<'a, Result<()>> {
    Box::pin(async {
        events.send("begun");
        std::future::pending().await
    })
}

/// A way in which a request ends early.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Dropped,
    Disconnected,
    Cancelled,
    InputEnds,
    Shutdown,
}

/// Ends the call of this handler while it runs. With a step, the step then ends, and whoever serves waits for it.
async fn check(end: End, handler: Handler, has_step: bool) {
    let mut rig = rig(handler, |limits| limits);
    let server = rig.server.clone();
    let options = HttpOptions::default().drain_timeout(std::time::Duration::ZERO);
    let expected: &[&str] = if has_step { &["done", "dropped"] } else { &["dropped"] };
    // What is to be waited for once the step may go on.
    let mut rest: BoxFuture<'_, ()> = Box::pin(async {});
    match end {
        End::Dropped => {
            let message = call().to_string();
            let caller = Caller::default();
            let mut asked = Box::pin(server.respond(message.as_bytes(), &caller));
            assert!(asked.as_mut().now_or_never().is_none());
            rig.receive("begun").await;
        }
        End::Disconnected | End::Shutdown => {
            let running = socket::serve_this(server.clone(), options).await;
            let mut client = Client::new(&running).await;
            client.send(text_of(&call())).await;
            rig.receive("begun").await;
            if end == End::Disconnected {
                drop(client);
            } else {
                running.shutdown.send(()).unwrap();
                rest = Box::pin(async {
                    soon(running.ended).await.unwrap().unwrap();
                    client.expect_close().await;
                });
            }
        }
        End::Cancelled | End::InputEnds => {
            let now = std::time::Duration::ZERO;
            let mut peer = lines::serve_with(server.clone(), 1 << 16, |serving| serving.drain_timeout(now));
            peer.send(call().to_string()).await;
            rig.receive("begun").await;
            if end == End::Cancelled {
                peer.send(lines::cancelled(r#","params":{"requestId":1}"#)).await;
            }
            rest = Box::pin(async { assert_eq!(peer.ends().await, [] as [Value; 0], "nothing is sent") });
        }
    }
    let waits = async {
        if has_step {
            // Where the input ends, that is what `rest` does first.
            rig.detached(1).await;
            assert_eq!(load(&server), (0, 1), "it keeps its place");
            rig.open.send(true).unwrap();
        }
    };
    let ((), events) = tokio::join!(
        async {
            rest.await;
            if end == End::Shutdown || end == End::InputEnds {
                assert_eq!(load(&server), (0, 0), "whoever serves waits for it");
            }
        },
        waits
    );
    let () = events;
    for event in expected {
        rig.receive(event).await;
    }
    rig.detached(0).await;
    rig.server.steps_ended().await;
    assert_eq!(load(&rig.server), (0, 0));
    rig.receive_no_more();
}

#[tokio::test]
async fn a_step_in_flight_ends_and_nothing_else_happens() {
    for end in [End::Dropped, End::Disconnected, End::Cancelled, End::InputEnds, End::Shutdown] {
        check(end, one_step, true).await;
    }
}

#[tokio::test]
async fn without_a_step_the_handler_is_dropped_at_once() {
    for end in [End::Dropped, End::Disconnected, End::Cancelled, End::InputEnds, End::Shutdown] {
        check(end, no_step, false).await;
    }
}

/// The line beside the step goes on when the step does.
fn beside<'a>(ctx: &'a Ctx, events: &'a HandlerEvents) -> BoxFuture<'a, Result<()>> {
    Box::pin(async {
        let work = async { ctx.step("work", async |_| events.work(ctx).await).await };
        let next = async {
            events.opened().await?;
            let () = ctx.step("next", async |_| panic!("no step is begun")).await?;
            Ok::<_, antiphon::Error>(())
        };
        let _ = tokio::join!(work, next);
        Ok(())
    })
}

/// Its first branch is ready when the step is.
fn race<'a>(ctx: &'a Ctx, events: &'a HandlerEvents) -> BoxFuture<'a, Result<()>> {
    Box::pin(async {
        let timer = async { drop(events.opened().await) };
        let work = async { ctx.step("work", async |_| events.work(ctx).await).await };
        match ctx.select("race", (timer, work)).await {
            Winner::A(()) => events.send("the timer won"),
            Winner::B(worked) => worked?,
        }
        Ok(())
    })
}

fn panics<'a>(ctx: &'a Ctx, events: &'a HandlerEvents) -> BoxFuture<'a, Result<()>> {
    Box::pin(async {
        let work = async { ctx.step("work", async |_| events.work(ctx).await).await };
        let _ = tokio::join!(work, async { panic!("a test's own panic") });
        Ok(())
    })
}

#[tokio::test]
async fn what_stands_around_a_step_goes_no_further_either() {
    for handler in [beside as Handler, race] {
        check(End::Dropped, handler, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_time_is_over() {
    // A step that runs then has time to come to its end, and its record leaves before the failure is told.
    for (handler, then, leaves) in
        [(one_step as Handler, &["done", "dropped"][..], true), (no_step, &["dropped"], false)]
    {
        let mut rig = rig(handler, |limits| limits.step_grace(std::time::Duration::from_secs(600)));
        let server = rig.server.clone();
        let (message, caller) = (call().to_string(), Caller::default());
        let asked = async { server.respond(message.as_bytes(), &caller).await.unwrap() };
        let opened = async {
            assert_eq!(rig.events.recv().await, Some("begun"));
            tokio::time::sleep(std::time::Duration::from_secs(450)).await;
            rig.open.send(true).unwrap();
        };
        let (reply, ()) = tokio::join!(asked, opened);
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        if leaves {
            assert_eq!(reply["result"]["inputRequests"], serde_json::json!({}), "{reply}");
        } else {
            assert_eq!(reply["error"]["code"], -32603, "{reply}");
        }
        for event in then {
            rig.receive(event).await;
        }
        rig.server.steps_ended().await;
        assert_eq!(load(&rig.server), (0, 0));
        rig.receive_no_more();
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_too_long_is_dropped() {
    let mut rig = rig(one_step, |limits| limits.step_grace(std::time::Duration::from_secs(5)));
    let server = rig.server.clone();
    let task =
        tokio::spawn(async move { server.respond(call().to_string().as_bytes(), &Caller::default()).await });
    rig.receive("begun").await;
    let begun = tokio::time::Instant::now();
    task.abort();
    rig.receive("dropped").await;
    assert_eq!(begun.elapsed().as_secs(), 5);
    rig.server.steps_ended().await;
    assert_eq!(load(&rig.server), (0, 0));
    rig.open.send(true).unwrap_or_default();
    rig.receive_no_more();
}

#[tokio::test]
async fn a_handler_that_panics_takes_its_steps_along() {
    let mut rig = rig(panics, |limits| limits);
    let reply = rig.server.respond(call().to_string().as_bytes(), &Caller::default()).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
    for event in ["begun", "dropped"] {
        rig.receive(event).await;
    }
    // Nothing is left to be polled again.
    assert_eq!(format!("{:?}", rig.server).matches("detached_steps: 0").count(), 1);
    assert_eq!(load(&rig.server), (0, 0));
}
