//! The bounds of a server, and asks that cannot be asked.

use crate::common::{
    Over, answers, askable, fixture,
    gate::gate,
    post::{correct, post},
    region, request, send, state_of, with,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{Ask, Ctx, Limits, NoArguments, Reply, Server, Tool, asks::InputRequired},
    wire::forms::{FormField, FormSchema},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;

fn limits(change: impl FnOnce(Limits) -> Limits) -> Limits {
    change(Limits::default())
}

async fn call(server: &Server, name: &str) -> (u16, Value) {
    send(
        Over::Http,
        server,
        &request(1, "tools/call", json!({"name": name, "arguments": {"name": "a"}})),
        None,
    )
    .await
}

fn calling(server: &Server, name: &str) -> JoinHandle<(u16, Value)> {
    let message = request(1, "tools/call", json!({"name": "hold", "arguments": {"name": name}}));
    let service = HttpService::new(server.clone(), HttpOptions::default());
    tokio::spawn(async move {
        let got = post(&service, correct(&message)).await;
        (got.status, got.json())
    })
}

const BUSY: &str = r#"{"code":-32603,"message":"The server is busy: try again in a second","data":{"reason":"busy","retryAfterMs":1000}}"#;

#[tokio::test]
async fn one_handler_more_than_allowed_is_busy() {
    let (hold, mut gate) = gate();
    let server = fixture(|builder| builder.tool(hold).limits(limits(|limits| limits.handlers(1)))).server;
    for name in ["a", "b"] {
        let first = calling(&server, name);
        gate.started(name).await;
        for (method, params) in askable() {
            let (status, reply) = send(Over::Http, &server, &request(1, method, params), None).await;
            let busy: Value = serde_json::from_str(BUSY).unwrap();
            assert_eq!((status, &reply["error"]), (200, &busy), "{method}");
        }
        // What runs no handler is answered.
        for method in ["server/discover", "tools/list"] {
            let (_, reply) = send(Over::Http, &server, &request(1, method, json!({})), None).await;
            assert_eq!(reply["result"]["resultType"], "complete");
        }
        // A place is free again after the end, and after a cancellation.
        if name == "a" {
            gate.open("a");
            gate.ended("a").await;
            assert_eq!(first.await.unwrap().1["result"]["content"][0]["text"], "a");
        } else {
            first.abort();
            gate.dropped("b").await;
            assert!(first.await.unwrap_err().is_cancelled());
        }
        assert_eq!(call(&server, "echo").await.1["result"]["content"][0]["text"], "a");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_dropped() {
    let (hold, mut gate) = gate();
    let time = Duration::from_secs(7);
    let server =
        fixture(|builder| builder.tool(hold).limits(limits(|limits| limits.handler_timeout(time)))).server;
    let begin = tokio::time::Instant::now();
    let (status, reply) = calling(&server, "a").await.unwrap();
    assert_eq!((status, &reply["error"]), (200, &json!({"code": -32603, "message": "Internal error"})));
    assert!((time..time * 2).contains(&begin.elapsed()));
    gate.started("a").await;
    gate.dropped("a").await;
    assert_eq!(call(&server, "echo").await.1["result"]["content"][0]["text"], "a");
}

#[tokio::test]
async fn a_call_has_as_many_legs_as_it_may() {
    let shed = async |ctx: &Ctx, _: NoArguments| {
        Reply::<String>::from(InputRequired::state_only(ctx.leg().to_string()))
    };
    for most in [1, 2, 5] {
        let tool = Tool::new("forever", shed);
        let server = fixture(|builder| builder.tool(tool).limits(limits(|limits| limits.legs(most)))).server;
        let mut params = json!({"name": "forever"});
        for _ in 1..most {
            let (_, reply) = send(Over::Http, &server, &request(1, "tools/call", params.clone()), None).await;
            params["requestState"] = json!(state_of(&reply));
        }
        let (status, reply) = send(Over::Http, &server, &request(1, "tools/call", params), None).await;
        assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32602)), "{reply}");
        assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "legs"}));
        assert_eq!(
            reply["error"]["message"],
            format!("This call has had {most} requests, as many as the limit `legs` allows: it cannot go on")
        );
    }
}

#[tokio::test]
async fn state_that_is_too_large_ends_the_call() {
    for (length, fits) in [(100, true), (900, true), (1100, false), (100_000, false)] {
        let state = "s".repeat(length);
        let tool = Tool::new("large", move |_: &Ctx, _: NoArguments| {
            let state = state.clone();
            async move { Reply::<String>::from(InputRequired::state_only(state)) }
        });
        let server = fixture(|builder| builder.tool(tool).limits(limits(|limits| limits.state(1000)))).server;
        let (status, reply) =
            send(Over::Http, &server, &request(1, "tools/call", json!({"name": "large"})), None).await;
        if fits {
            assert_eq!((status, &reply["result"]["resultType"]), (200, &json!("input_required")), "{length}");
        } else {
            assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32602)), "{length}");
            assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "state"}));
            assert!(!reply.to_string().contains("sss"), "{length}");
        }
    }
    // An answer that would not fit beside the question is asked for again, shorter, while another is missing.
    let server = fixture(|builder| {
        let two = async |_: &Ctx, _: NoArguments| {
            let other = Ask::form("other", "And?", FormSchema::new(vec![FormField::text("region")]));
            Reply::<String>::from(InputRequired::ask(region()).and(other))
        };
        builder.tool(Tool::new("two", two)).limits(limits(|limits| limits.state(1000)))
    })
    .server;
    let params = json!({"name": "two"});
    let (_, reply) = send(Over::Http, &server, &request(1, "tools/call", params.clone()), None).await;
    let long = json!({"region": {"action": "accept", "content": {"region": "x".repeat(900)}}});
    let retry = with(&params, json!({"requestState": state_of(&reply), "inputResponses": long}));
    let (_, reply) = send(Over::Http, &server, &request(2, "tools/call", retry), None).await;
    let message = &reply["result"]["inputRequests"]["region"]["params"]["message"];
    assert!(
        message
            .as_str()
            .unwrap()
            .starts_with("Which region?\n\nThe answers together are too long: this one may have "),
        "{reply}"
    );
}

fn form(key: &str) -> Ask {
    Ask::form(key, "hunter2?", FormSchema::new(vec![FormField::text("x")]))
}

fn shape(schema: Value) -> Ask {
    Ask::form("key", "hunter2?", serde_json::from_value(schema).expect("the schema of a form"))
}

fn url(url: &str) -> Ask {
    Ask::url("key", "hunter2?", url)
}

/// A handler that asks what cannot be asked is at fault itself: the log says why, the wire says nothing.
#[tokio::test]
async fn what_cannot_be_asked_is_not_asked() {
    let many = |count: usize| (0..count).map(|number| form(&number.to_string())).collect::<Vec<_>>();
    let field = |field: Value| vec![shape(json!({"type": "object", "properties": {"x": field}}))];
    for (what, asks, leaves) in [
        ("as many as allowed", many(64), true),
        ("one more", many(65), false),
        ("a key twice", vec![form("a"), form("b"), form("a")], false),
        ("a long key", vec![form(&"k".repeat(64))], true),
        ("a longer key", vec![form(&"k".repeat(65))], false),
        ("no key", vec![form("")], false),
        ("signs", vec![form("a-b_c.d:e!")], true),
        ("a key with #", vec![form("a#1")], false),
        ("a key with /", vec![form("a/b")], false),
        ("a key with a space", vec![form("a b")], false),
        ("a key with a line", vec![form("a\n")], false),
        ("an umlaut", vec![form("ä")], false),
        ("a plain field", field(json!({"type": "string", "maxLength": 9})), true),
        ("an object inside", field(json!({"type": "object", "properties": {}})), false),
        ("a list of objects", field(json!({"type": "array", "items": {"type": "object"}})), false),
        ("a pattern", field(json!({"type": "string", "pattern": "^a"})), false),
        ("a reference", field(json!({"$ref": "#/$defs/x"})), false),
        (
            "a field twice",
            vec![Ask::form(
                "key",
                "hunter2?",
                FormSchema::new(vec![FormField::text("x"), FormField::text("x")]),
            )],
            false,
        ),
        ("https", vec![url("https://a.example/path?x=1")], true),
        ("http at home", vec![url("http://127.0.0.1:8000/")], true),
        ("http at home by name", vec![url("http://localhost")], true),
        ("http at home by IPv6", vec![url("http://[::1]:1/x")], true),
        ("http", vec![url("http://a.example/")], false),
        ("http that sounds like home", vec![url("http://localhost.a.example/")], false),
        ("http with a name before it", vec![url("http://localhost@a.example/")], false),
        ("http on the network", vec![url("http://0.0.0.0/")], false),
        ("a script", vec![url("javascript:alert(1)")], false),
        ("a file", vec![url("file:///etc/passwd")], false),
        ("a path", vec![url("/login")], false),
        ("no host", vec![url("https://")], false),
        ("a host that is none", vec![url("https:///login")], false),
        ("nothing", vec![url("")], false),
    ] {
        let tool = Tool::new("asks", move |_: &Ctx, _: NoArguments| {
            let mut asks = asks.clone().into_iter();
            let first = InputRequired::ask(asks.next().unwrap());
            async move { Reply::<String>::from(asks.fold(first, InputRequired::and)) }
        });
        let server = fixture(|builder| builder.tool(tool)).server;
        for over in [Over::Http, Over::Stdio] {
            let (status, reply) =
                send(over, &server, &request(1, "tools/call", json!({"name": "asks"})), None).await;
            assert_eq!(status, 200, "{what}");
            if leaves {
                assert_eq!(reply["result"]["resultType"], "input_required", "{what}: {reply}");
            } else {
                assert_eq!(reply["error"], json!({"code": -32603, "message": "Internal error"}), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_has_as_many_bytes_as_it_may() {
    let server = fixture(|builder| builder.limits(limits(|limits| limits.form_answer(50)))).server;
    let (method, params) = askable()[0].clone();
    for (answer, reason) in [
        (answers()["region"].clone(), None),
        (
            json!({"action": "accept", "content": {"region": "e".repeat(30)}}),
            Some("The answer must have at most 50 bytes."),
        ),
    ] {
        let (_, reply) = send(Over::Http, &server, &request(1, method, params.clone()), None).await;
        let retry = json!({"requestState": state_of(&reply), "inputResponses": {"region": answer}});
        let (_, reply) = send(Over::Http, &server, &request(2, method, with(&params, retry)), None).await;
        match reason {
            None => assert_eq!(reply["result"]["content"][0]["text"], "in eu", "{reply}"),
            Some(reason) => {
                let message = &reply["result"]["inputRequests"]["region"]["params"]["message"];
                assert_eq!(message, &format!("Which region?\n\n{reason}"));
            }
        }
    }
}
