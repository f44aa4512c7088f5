//! Progress and log messages of handlers that run several times: each is told once, in the leg in which it happened.

use crate::common::{
    lines,
    post::{correct, post},
    *,
};
use antiphon::{
    Form, Result,
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, NoArguments, Server, Tool, operations::ReplayCheck},
    wire::LogLevel,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

fn notify(ctx: &Ctx, number: u8) {
    ctx.report_progress(number.into(), None, None);
    ctx.log(LogLevel::Info, number);
}

fn server() -> Server {
    let tool = Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        notify(ctx, 1);
        let place: Place = ctx.elicit("Where?").await?;
        notify(ctx, 2);
        let () = ctx
            .step("create", async |_| {
                notify(ctx, 3);
                Ok(())
            })
            .await?;
        notify(ctx, 4);
        ctx.checkpoint().now().await;
        notify(ctx, 5);
        let () = ctx.step("charge", async |_| Ok(())).await?;
        notify(ctx, 6);
        let again: Place = ctx.elicit("And then?").key("then").await?;
        notify(ctx, 7);
        Ok(format!("{} {}", place.region, again.region))
    });
    let builder = Server::builder("told", "1").tool(tool).keys(ring(7)).logging(true);
    // What runs twice tells nothing twice.
    let builder = builder.replay_check(ReplayCheck::Always);
    builder.build().unwrap()
}

/// Returns the messages sent for this request, the reply last.
async fn sent(over: Over, message: &Value) -> Vec<Value> {
    if over == Over::Http {
        let got = post(&HttpService::new(server(), HttpOptions::default()), correct(message)).await;
        let body = String::from_utf8(got.body.to_vec()).unwrap();
        return match got.headers["content-type"].to_str().unwrap() {
            "text/event-stream" => {
                let events = body.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
                events.map(|event| serde_json::from_str(event).unwrap()).collect()
            }
            _ => vec![serde_json::from_str(&body).unwrap()],
        };
    }
    let mut peer = lines::serve(server(), 1 << 16);
    peer.send(message.to_string()).await;
    let mut heard = Vec::new();
    while heard.last().is_none_or(|message: &Value| message.get("id").is_none()) {
        heard.push(peer.receive().await.expect("a reply"));
    }
    assert_eq!(peer.ends().await, [] as [Value; 0]);
    heard
}

/// Returns the numbers in the notifications before the reply. Each is sent as progress, then as a log message.
fn numbers(told: &[Value]) -> Vec<u64> {
    let (pairs, rest) = told.as_chunks::<2>();
    assert!(rest.is_empty(), "{told:?}");
    let number = |[progress, log]: &[Value; 2]| {
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(log["method"], "notifications/message");
        let number = log["params"]["data"].as_u64().unwrap();
        assert_eq!(progress["params"]["progress"].as_f64().unwrap() as u64, number);
        number
    };
    pairs.iter().map(number).collect()
}

async fn check(over: Over) {
    let meta = with(&meta(), json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}));
    let call = json!({"name": "t", "arguments": {}, "_meta": meta});
    let answer = json!({"action": "accept", "content": {"region": "eu"}});
    let mut state = Value::Null;
    // What each leg brings, what it tells, and what it asks.
    for (answers, told, asked) in [
        (json!({}), &[1][..], &["place"][..]),
        // Nothing was answered: all this was told.
        (json!({}), &[], &["place"]),
        (json!({"place": {"action": "accept", "content": {"region": 7}}}), &[], &["place"]),
        (json!({"place": answer}), &[2, 3, 4], &[]),
        (json!({}), &[5, 6], &["then"]),
        (json!({}), &[], &["then"]),
        (json!({"then": answer}), &[7], &[]),
    ] {
        let mut params = with(&call, json!({"inputResponses": answers}));
        if state.is_string() {
            params["requestState"] = state.clone();
        }
        let mut all = sent(over, &request(1, "tools/call", params)).await;
        let reply = all.pop().unwrap();
        assert_eq!(numbers(&all), told, "{over:?}: {reply}");
        let keys: Vec<&String> =
            reply["result"]["inputRequests"].as_object().into_iter().flat_map(|asks| asks.keys()).collect();
        assert_eq!(keys, asked, "{over:?}: {reply}");
        state = reply["result"]["requestState"].clone();
    }
    assert_eq!(state, Value::Null, "it is over");
}

#[tokio::test]
async fn a_notification_is_sent_by_one_leg_only() {
    for over in [Over::Http, Over::Stdio] {
        check(over).await;
    }
}
