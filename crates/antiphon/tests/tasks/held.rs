//! The memory of requests that wait for tasks: no copy of a task, one task on its way to each subscription, a part of the budget.

use crate::{
    client::{TaskClient, client},
    session_client::SessionClient,
    view_tools::{Gate, gate},
};
use antiphon::{
    Error, Form,
    serve::http::{HttpOptions, HttpService, ReplyBody},
    server::{Ctx, Limits, Server, State},
    tool,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use tower_service::Service as _;

/// The length of a text. Tests seal slowly.
const LENGTH: usize = 40_000;

/// The bytes that a request takes which holds no text.
const SMALL: usize = 20_000;

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Asks with its argument.
#[tool(task = "required")]
async fn ask(ctx: &Ctx, text: String) -> Result<String, Error> {
    let Name { name } = ctx.elicit(format!("Whose is {text}?")).key("name").await?;
    Ok(name)
}

/// Works for ever.
#[tool(task = "required")]
async fn work(ctx: &Ctx, text: String, gate: State<Gate>) -> Result<String, Error> {
    let step = ctx.step("work", async |_| {
        gate.0.0.acquire().await.unwrap().forget();
        Ok(text.len())
    });
    Ok(step.await?.to_string())
}

fn tasks(limits: Limits) -> TaskClient {
    client(|server| server.state(gate()).draft_tasks(true).limits(limits).tool(ask).tool(work))
}

async fn task(client: &TaskClient, tool: &str, length: usize) -> String {
    let id = client.task(tool, json!({"text": "x".repeat(length)})).await;
    if tool == "ask" {
        client.asked(&id, &["name"]).await;
    }
    id
}

/// Opens a subscription to these tasks, and reads its acknowledgement; `None` if the server is busy.
async fn listen(service: &HttpService, ids: &[String], user: Option<&str>) -> Option<ReplyBody> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let params = json!({"_meta": meta, "notifications": {"taskIds": ids}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    let mut request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen");
    if let Some(user) = user {
        request = request.header("x-user", user);
    }
    let request: http::Request<Full<Bytes>> = request.body(message.to_string().into()).unwrap();
    let mut body = service.clone().call(request).await.unwrap().into_body();
    let first = event(&mut body).await?;
    first.contains("acknowledged").then_some(body)
}

/// The next event; `None` if there is none within ten seconds.
async fn event(body: &mut ReplyBody) -> Option<String> {
    let next = async {
        loop {
            let frame = body.frame().await?.unwrap().into_data().unwrap();
            // A comment says that the stream is open.
            if !frame.starts_with(b":") {
                return Some(String::from_utf8(frame.into()).unwrap());
            }
        }
    };
    timeout(Duration::from_secs(10), next).await.ok()?
}

/// A request that waits, begun by this function, which returns what holds it.
type Begins = for<'a> fn(&'a TaskClient, &'a HttpService, &'a [String]) -> BoxFuture<'a, Box<dyn Any>>;

/// Begins a few such requests, each for three tasks with a long text, and compares the bytes that stay with `most` for each.
fn check(what: &str, tool: &str, begins: Begins, most: usize) {
    const REQUESTS: usize = 2;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let client = tasks(Limits::default());
    let service = HttpService::new(client.server.clone(), HttpOptions::default());
    let ids = runtime.block_on(async {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(task(&client, tool, LENGTH).await);
        }
        ids
    });
    // The first request makes what is made once.
    let mut held = vec![runtime.block_on(begins(&client, &service, &ids))];
    let left = allocation_counter::measure(|| {
        for _ in 0..REQUESTS {
            held.push(runtime.block_on(begins(&client, &service, &ids)));
        }
    });
    let most = i64::try_from(REQUESTS * most).unwrap();
    assert!(left.bytes_current < most, "{what}: {} bytes are held, {most} at most", left.bytes_current);
    runtime.block_on(async { drop(held) });
}

/// Subscriptions hold digests. A request that waits for the end of a task holds its key.
#[test]
fn a_request_that_waits_holds_no_copy_of_its_tasks() {
    check(
        "a subscription that has read everything",
        "ask",
        |_, service, ids| {
            Box::pin(async move {
                let mut body = listen(service, ids, None).await.unwrap();
                for _ in ids {
                    assert!(event(&mut body).await.unwrap().len() > LENGTH);
                }
                assert_eq!(event(&mut body).await, None);
                Box::new(body) as Box<dyn Any>
            })
        },
        SMALL,
    );
    check(
        "a subscription that reads nothing holds one task",
        "ask",
        |_, service, ids| {
            Box::pin(async move { Box::new(listen(service, ids, None).await.unwrap()) as Box<dyn Any> })
        },
        // A growing text has room for as much again.
        2 * LENGTH + SMALL,
    );
    check(
        "a subscription that has read half of it holds one task",
        "ask",
        |_, service, ids| {
            Box::pin(async move {
                let mut body = listen(service, ids, None).await.unwrap();
                event(&mut body).await.unwrap();
                event(&mut body).await.unwrap();
                Box::new(body) as Box<dyn Any>
            })
        },
        2 * LENGTH + SMALL,
    );
    check(
        "a result of the draft that waits",
        "work",
        |client, _, ids| {
            Box::pin(async move {
                let (server, id) = (client.server.clone(), ids[0].clone());
                let mut waits: BoxFuture<'static, Value> = Box::pin(async move {
                    TaskClient::of(server)
                        .without_extension()
                        .send("tasks/result", json!({"taskId": id}))
                        .await
                });
                assert!(futures_util::poll!(&mut waits).is_pending());
                Box::new(waits) as Box<dyn Any>
            })
        },
        SMALL,
    );
    check(
        "a result in a session that waits",
        "work",
        |client, _, ids| {
            Box::pin(async move {
                let mut session = SessionClient::open(&client.server).await;
                for id in ids {
                    session.begin("tasks/result", json!({"taskId": id})).await;
                }
                assert!(session.is_asked_nothing().await);
                Box::new(session) as Box<dyn Any>
            })
        },
        // The buffers of its streams.
        150_000,
    );
}

fn reserved(server: &Server) -> usize {
    let text = format!("{server:?}");
    let (_, rest) = text.split_once("request_bytes: ").unwrap();
    rest.split(|next: char| !next.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// A task that is sent is in the budget of requests until it was read. Without a rest it waits.
#[tokio::test(start_paused = true)]
async fn unread_tasks_are_in_the_budget() {
    let client = tasks(Limits::default().request_bytes(640 << 10));
    let server = client.server.clone();
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let ids = [task(&client, "ask", LENGTH).await];
    let hers = [task(&client.user("anna"), "ask", LENGTH).await];
    let mut slow = Vec::new();
    for _ in 0..12 {
        slow.push(listen(&service, &ids, None).await.unwrap());
    }
    // Anonymous callers leave a quarter.
    let taken = reserved(&server);
    assert!((320 << 10..=480 << 10).contains(&taken), "{taken}");
    let mut anna = listen(&service, &hers, Some("anna")).await.unwrap();
    assert!(event(&mut anna).await.unwrap().len() > LENGTH, "there is room for her");
    assert_eq!(event(&mut anna).await, None);
    // Each has one event, one after the other.
    let mut read = 0;
    for body in &mut slow {
        read += usize::from(event(body).await.is_some_and(|event| event.len() > LENGTH));
        assert_eq!(event(body).await, None);
        assert!(reserved(&server) <= 480 << 10);
    }
    assert_eq!((read, reserved(&server)), (12, 0));
    // A short task is not counted.
    let short = [task(&client, "ask", 10).await];
    let mut body = listen(&service, &short, None).await.unwrap();
    assert_eq!(reserved(&server), 0);
    assert!(event(&mut body).await.is_some());
    // What is dropped unread is given back.
    let unread = listen(&service, &ids, None).await.unwrap();
    assert!(reserved(&server) > 2 * LENGTH);
    drop(unread);
    assert_eq!(reserved(&server), 0);
}

/// Watched tasks and requests that wait are counted with the subscriptions, in all and for each caller.
#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_tasks_leave_places_for_named_callers() {
    for what in ["tasks that are watched", "results that are awaited"] {
        let limits = Limits::default();
        let client = tasks(match what {
            "tasks that are watched" => limits.all_subscription_uri_bytes(8 * 128),
            _ => limits.subscriptions(8),
        });
        let service = HttpService::new(client.server.clone(), HttpOptions::default());
        let mut held: Vec<Box<dyn Any>> = Vec::new();
        for (user, expected) in [(None, 6), (Some("anna"), 2), (Some("bert"), 0)] {
            let of_user =
                user.map_or_else(|| TaskClient::of(client.server.clone()), |user| client.user(user));
            let id = [task(&of_user, "work", 1).await];
            let before = held.len();
            for _ in 0..9 {
                if what == "tasks that are watched" {
                    held.extend(listen(&service, &id, user).await.map(|body| Box::new(body) as Box<dyn Any>));
                    continue;
                }
                let of_user = of_user.without_extension();
                let id = id[0].clone();
                let mut waits: BoxFuture<'static, Value> =
                    Box::pin(async move { of_user.send("tasks/result", json!({"taskId": id})).await });
                match futures_util::poll!(&mut waits) {
                    std::task::Poll::Pending => held.push(Box::new(waits)),
                    std::task::Poll::Ready(reply) => {
                        assert_eq!(reply["error"]["data"]["reason"], "busy", "{reply}");
                    }
                }
            }
            assert_eq!(held.len() - before, expected, "{what}: {user:?}");
        }
    }
}

/// A store in memory never waits, so a subscription to many tasks lets others go on by itself, when it opens and when it looks at all.
#[tokio::test(start_paused = true)]
async fn a_look_at_many_tasks_lets_others_go_on() {
    const TASKS: usize = 64;
    let client = tasks(Limits::default());
    let service = HttpService::new(client.server.clone(), HttpOptions::default());
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        ids.push(task(&client, "ask", 1).await);
    }
    let turns = Arc::new(AtomicUsize::new(0));
    let others = tokio::spawn({
        let turns = Arc::clone(&turns);
        async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    });
    let mut body = listen(&service, &ids, None).await.unwrap();
    let when_opened = turns.load(Ordering::Relaxed);
    for _ in 0..TASKS {
        assert!(event(&mut body).await.unwrap().contains("taskId"));
    }
    others.abort();
    assert!(when_opened >= TASKS / 16, "{when_opened} turns");
}
