//! The capability gate: every kind and sub-mode, on first legs and when asked again, and `needs` before the first line.

use crate::common::*;
use antiphon::{
    server::{Ask, Ctx, Reply, Tool},
    wire::{
        AskSupport,
        sampling::{CreateMessageParams, SamplingMessage},
    },
};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

fn sampling(change: impl FnOnce(&mut CreateMessageParams)) -> Ask {
    let mut params = CreateMessageParams::new(vec![SamplingMessage::user("?")], 5);
    change(&mut params);
    Ask::sample("k", params)
}

fn context(what: &str) -> Ask {
    sampling(|params| params.include_context = Some(what.to_owned()))
}

fn call(declared: &Value, more: Value) -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = declared.clone();
    request(1, "tools/call", with(&json!({"name": "it", "arguments": {"name": "x"}, "_meta": meta}), more))
}

/// Asks on a first leg and again on a second one, by a client that declares `less`, then by one with `enough`.
async fn check(what: &str, ask: Ask, less: Value, enough: Value, missing: Value) {
    let runs_so_far = Runs::default();
    let counter = runs_so_far.clone();
    let tool = Tool::new("it", move |_: &Ctx, _: Named| {
        counter.fetch_add(1, Ordering::SeqCst);
        let ask = ask.clone();
        async move { Reply::<String>::from(ask) }
    });
    let fixture = fixture(|builder| builder.tool(tool));
    let refused = |(status, reply): (u16, Value)| {
        assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32021)), "{what}: {reply}");
        assert_eq!(reply["error"]["data"], json!({"requiredCapabilities": missing}), "{what}");
    };
    refused(send(Over::Http, &fixture.server, &call(&less, json!({})), None).await);
    let (_, reply) = send(Over::Http, &fixture.server, &call(&enough, json!({})), None).await;
    let state = json!({"requestState": state_of(&reply)});
    let before = runs(&runs_so_far);
    refused(send(Over::Http, &fixture.server, &call(&less, state.clone()), None).await);
    // The state is not lost by that.
    let (_, reply) = send(Over::Http, &fixture.server, &call(&enough, state), None).await;
    assert_eq!(reply["result"]["resultType"], "input_required", "{what}: {reply}");
    assert_eq!(runs(&runs_so_far), before, "{what}: asking again does not run the handler");
}

#[tokio::test]
async fn every_kind_and_sub_mode_must_be_declared() {
    let url = || Ask::url("k", "?", "https://pay.example/");
    let url_caps = json!({"elicitation": {"url": {}}});
    let tools = |params: &mut CreateMessageParams| params.tools = Some(Vec::new());
    let choice = |params: &mut CreateMessageParams| params.tool_choice = Some(Default::default());
    let with_tools = json!({"sampling": {"tools": {}}});
    let with_context = json!({"sampling": {"context": {}}});
    for (what, ask, less, enough, missing) in [
        ("url by a client of forms", url(), json!({"elicitation": {}}), url_caps.clone(), url_caps.clone()),
        ("url by nobody", url(), json!({}), url_caps.clone(), url_caps.clone()),
        (
            "url declared as true",
            url(),
            json!({"elicitation": {"url": true}}),
            url_caps.clone(),
            url_caps.clone(),
        ),
        (
            "form by a client of URLs",
            region(),
            url_caps,
            json!({"elicitation": {"form": {}}}),
            json!({"elicitation": {"form": {}}}),
        ),
        (
            "sampling",
            sampling(|_| ()),
            json!({"roots": {}}),
            json!({"sampling": {}}),
            json!({"sampling": {}}),
        ),
        (
            "sampling as null",
            sampling(|_| ()),
            json!({"sampling": null}),
            json!({"sampling": {}}),
            json!({"sampling": {}}),
        ),
        ("sampling.tools", sampling(tools), json!({"sampling": {}}), with_tools.clone(), with_tools.clone()),
        ("a tool choice", sampling(choice), with_context.clone(), with_tools.clone(), with_tools),
        (
            "sampling.context",
            context("thisServer"),
            json!({"sampling": {}}),
            with_context.clone(),
            with_context.clone(),
        ),
        (
            "all servers",
            context("allServers"),
            json!({"sampling": {"tools": {}}}),
            with_context.clone(),
            with_context,
        ),
        ("no context", context("none"), json!({}), json!({"sampling": {}}), json!({"sampling": {}})),
        ("roots", Ask::roots("k"), json!({"sampling": {}}), json!({"roots": {}}), json!({"roots": {}})),
    ] {
        check(what, ask, less, enough, missing).await;
    }
}

#[tokio::test]
async fn needs_are_checked_before_the_first_line_of_every_leg() {
    let needs = |change: fn(&mut AskSupport)| {
        let mut needs = AskSupport::NONE;
        change(&mut needs);
        needs
    };
    for (what, needed, less) in [
        ("elicitation.form", needs(|n| n.form = true), json!({"elicitation": {"url": {}}})),
        ("elicitation.url", needs(|n| n.url = true), json!({"elicitation": {}})),
        ("sampling", needs(|n| n.sampling = true), json!({"elicitation": {}, "roots": {}})),
        ("sampling.tools", needs(|n| n.sampling_tools = true), json!({"sampling": {"context": {}}})),
        ("sampling.context", needs(|n| n.sampling_context = true), json!({"sampling": {"tools": {}}})),
        ("roots", needs(|n| n.roots = true), json!({"elicitation": {}, "sampling": {}})),
    ] {
        let counter = Runs::default();
        let counted = counter.clone();
        let tool = Tool::new("it", move |ctx: &Ctx, _: Named| {
            counted.fetch_add(1, Ordering::SeqCst);
            let first = ctx.leg() == 1;
            async move {
                match first {
                    true => Reply::from(antiphon::server::asks::InputRequired::state_only("s")),
                    false => Reply::Complete("done"),
                }
            }
        });
        let fixture = fixture(|builder| builder.tool(tool.needs(needed)));
        let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}});
        let (_, reply) = send(Over::Http, &fixture.server, &call(&all, json!({})), None).await;
        let state = json!({"requestState": state_of(&reply)});
        for more in [json!({}), state.clone()] {
            let (status, reply) = send(Over::Http, &fixture.server, &call(&less, more), None).await;
            assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32021)), "{what}: {reply}");
            assert_eq!(
                reply["error"]["message"],
                format!("The client did not declare a required capability: {what}")
            );
        }
        assert_eq!(runs(&counter), 1, "{what}");
        // A forged state is frozen whatever is declared: the gate tells nothing about it.
        let forged = call(&less, json!({"requestState": "r1.AAAA"}));
        let (_, reply) = send(Over::Http, &fixture.server, &forged, None).await;
        assert_eq!(reply["error"]["data"], json!({"reason": "invalid_request_state"}));
        let (_, reply) = send(Over::Http, &fixture.server, &call(&all, state), None).await;
        assert_eq!(reply["result"]["content"][0]["text"], "done");
    }
}
