//! The rounds of a hand-built ask, from the first leg to the result.

use crate::common::*;
use serde_json::json;

#[tokio::test]
async fn a_call_that_asks_is_finished_by_another_server_with_the_same_keys() {
    for over in [Over::Http, Over::Stdio] {
        for (method, params) in askable() {
            let (first, second) = (fixture(|builder| builder), fixture(|builder| builder));
            let (status, reply) = send(over, &first.server, &request(1, method, params.clone()), None).await;
            assert_eq!(status, 200);
            let result = &reply["result"];
            assert_eq!(result["resultType"], "input_required", "{reply}");
            assert_eq!(
                result["inputRequests"],
                json!({"region": {"method": "elicitation/create", "params": {
                    "mode": "form",
                    "message": "Which region?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {"region": {"type": "string", "title": "Region"}},
                        "required": ["region"]
                    }
                }}})
            );
            let state = state_of(&reply);
            assert!(state.starts_with("r1."));
            let again = with(&params, json!({"inputResponses": answers(), "requestState": state}));
            let (status, reply) = send(over, &second.server, &request(2, method, again), None).await;
            assert_eq!((status, &reply["result"]["resultType"]), (200, &json!("complete")), "{reply}");
            assert!(reply.to_string().contains("in eu"), "{reply}");
            assert_eq!(reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "fixture");
            assert_eq!((runs(&first.runs), runs(&second.runs)), (1, 1));
        }
    }
}

/// The second leg of the tool `ask` with these members beside the state.
async fn second_leg(fixture: &Fixture, more: serde_json::Value) -> (u16, serde_json::Value) {
    let (method, params) = askable()[0].clone();
    let (_, reply) = send(Over::Http, &fixture.server, &request(1, method, params.clone()), None).await;
    let retry = with(&with(&params, json!({"requestState": state_of(&reply)})), more);
    send(Over::Http, &fixture.server, &request(2, method, retry), None).await
}

#[tokio::test]
async fn answers_that_do_not_count_are_asked_for_again_with_the_reason() {
    let accept = |content: serde_json::Value| json!({"region": {"action": "accept", "content": content}});
    for (what, responses, reason) in [
        ("no answers", json!(null), ""),
        ("none of ours", json!({"other": {"action": "accept", "content": {}}}), ""),
        ("no content", json!({"region": {"action": "accept"}}), "\n\nRegion must be filled in."),
        ("a missing field", accept(json!({})), "\n\nRegion must be filled in."),
        ("a null field", accept(json!({"region": null})), "\n\nRegion must be filled in."),
        ("a wrong type", accept(json!({"region": 7})), "\n\nRegion must be text."),
        ("no action", json!({"region": {"content": {"region": "eu"}}}), "\n\nThe answer could not be read."),
        ("an unknown action", json!({"region": {"action": "maybe"}}), "\n\nThe answer could not be read."),
        ("another kind", json!({"region": {"roots": []}}), "\n\nThe answer could not be read."),
        (
            "the old wrapping",
            json!({"region": {"result": {"action": "decline"}}}),
            "\n\nThe answer could not be read.",
        ),
        ("not an object", json!({"region": "eu"}), "\n\nThe answer could not be read."),
        (
            "too long",
            accept(json!({"region": "x".repeat(65 * 1024)})),
            "\n\nThe answer must have at most 65536 bytes.",
        ),
    ] {
        let fixture = fixture(|builder| builder);
        let (status, reply) = second_leg(&fixture, json!({"inputResponses": responses})).await;
        assert_eq!(
            (status, &reply["result"]["resultType"]),
            (200, &json!("input_required")),
            "{what}: {reply}"
        );
        let message = reply["result"]["inputRequests"]["region"]["params"]["message"].as_str().unwrap();
        assert_eq!(message, format!("Which region?{reason}"), "{what}");
        assert_eq!(runs(&fixture.runs), 1, "{what}: the handler ran again");
        // The question is still the same: a good answer counts.
        let (method, params) = askable()[0].clone();
        let retry = with(&params, json!({"requestState": state_of(&reply), "inputResponses": answers()}));
        let (_, reply) = send(Over::Http, &fixture.server, &request(3, method, retry), None).await;
        assert_eq!(reply["result"]["content"][0]["text"], "in eu", "{what}");
    }
}

#[tokio::test]
async fn what_is_not_needed_is_ignored() {
    let fixture = fixture(|builder| builder);
    let more = json!({"inputResponses": {
        "region": {"action": "accept", "content": {"region": "eu", "extra": {"deep": [1]}}, "_meta": {"x": 1}},
        "nobody": {"action": "accept", "content": {"asked": true}}, "this": null
    }});
    let (_, reply) = second_leg(&fixture, more).await;
    assert_eq!(reply["result"]["content"][0]["text"], "in eu");
}

#[tokio::test]
async fn declining_and_cancelling_are_answers() {
    for (action, text) in [("decline", "declined"), ("cancel", "cancelled")] {
        let fixture = fixture(|builder| builder);
        let (_, reply) =
            second_leg(&fixture, json!({"inputResponses": {"region": {"action": action}}})).await;
        assert_eq!(reply["result"]["content"][0]["text"], text);
        assert_eq!(reply["result"]["isError"], json!(null));
    }
}

#[tokio::test]
async fn responses_of_the_wrong_form_are_an_error_and_nothing_is_lost() {
    let fixture = fixture(|builder| builder);
    for wrong in [json!([]), json!("x"), json!(1), json!(true)] {
        let (status, reply) = second_leg(&fixture, json!({"inputResponses": wrong})).await;
        assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32602)), "{reply}");
    }
}

#[tokio::test]
async fn a_question_is_asked_three_times_at_most() {
    let fixture = fixture(|builder| builder);
    let (method, params) = askable()[0].clone();
    let (_, mut reply) = send(Over::Http, &fixture.server, &request(1, method, params.clone()), None).await;
    let bad = json!({"region": {"action": "accept", "content": {"region": 7}}});
    for id in 2..4 {
        let retry = with(&params, json!({"requestState": state_of(&reply), "inputResponses": bad}));
        reply = send(Over::Http, &fixture.server, &request(id, method, retry), None).await.1;
        assert_eq!(reply["result"]["resultType"], "input_required");
    }
    let retry = with(&params, json!({"requestState": state_of(&reply), "inputResponses": bad}));
    let (status, reply) = send(Over::Http, &fixture.server, &request(4, method, retry), None).await;
    assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32602)));
    assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "times_asked"}));
    let text = "`region` was asked 3 times without an answer that fits. Region must be text.";
    assert_eq!(reply["error"]["message"], text);
    assert_eq!(runs(&fixture.runs), 1);
}

/// > If the client fails to send all the information requested in a previous `InputRequests` [...] the server **SHOULD**
/// > respond with a new `InputRequiredResult` requesting the missing information again
#[tokio::test]
async fn requests_without_answers_end_the_call() {
    for none in [json!({}), json!({"inputResponses": null}), json!({"inputResponses": {"nobody": {}}})] {
        let fixture = fixture(|builder| builder);
        let (method, params) = askable()[0].clone();
        let (_, mut reply) =
            send(Over::Http, &fixture.server, &request(1, method, params.clone()), None).await;
        for id in 2..=4 {
            assert_eq!(reply["result"]["resultType"], "input_required", "{none}: {reply}");
            let retry = with(&with(&params, none.clone()), json!({"requestState": state_of(&reply)}));
            reply = send(Over::Http, &fixture.server, &request(id, method, retry), None).await.1;
        }
        assert_eq!(reply["error"]["code"], -32602, "{none}");
        assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "times_asked"}), "{none}");
        let text = "`region` was asked 3 times without an answer that fits. No answer to it came.";
        assert_eq!(reply["error"]["message"], text, "{none}");
        assert_eq!(runs(&fixture.runs), 1);
    }
}

#[tokio::test]
async fn the_first_leg_never_counts_answers() {
    let fixture = fixture(|builder| builder);
    for (method, params) in askable() {
        let unasked = with(&params, json!({"inputResponses": answers()}));
        let (_, reply) = send(Over::Http, &fixture.server, &request(1, method, unasked), None).await;
        assert_eq!(reply["result"]["resultType"], "input_required", "{method}");
    }
}

#[tokio::test]
async fn a_client_is_only_asked_what_it_declared() {
    let fixture = fixture(|builder| builder);
    for (declared, allowed) in [
        (json!({}), false),
        (json!({"elicitation": {"url": {}}, "sampling": {}, "roots": {}}), false),
        (json!({"elicitation": {}}), true),
        (json!({"elicitation": {"form": {}}}), true),
    ] {
        let mut meta = meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = declared.clone();
        for (method, params) in askable() {
            let message = request(1, method, with(&params, json!({"_meta": meta})));
            let (status, reply) = send(Over::Http, &fixture.server, &message, None).await;
            if allowed {
                assert_eq!(reply["result"]["resultType"], "input_required", "{declared}");
            } else {
                assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32021)), "{declared}: {reply}");
                let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
                assert_eq!(reply["error"]["data"], required);
            }
        }
    }
    // Nor is it asked again in a later leg that declares less.
    let (method, params) = askable()[0].clone();
    let (_, reply) = send(Over::Http, &fixture.server, &request(1, method, params.clone()), None).await;
    let mut less = meta();
    less["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let retry = with(&params, json!({"requestState": state_of(&reply), "_meta": less}));
    let (status, reply) = send(Over::Http, &fixture.server, &request(2, method, retry), None).await;
    assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32021)));
}

#[tokio::test]
async fn state_only_legs_carry_the_state_and_an_empty_map() {
    let fixture = fixture(|builder| builder);
    let params = json!({"name": "shed"});
    let (_, reply) = send(Over::Http, &fixture.server, &request(1, "tools/call", params.clone()), None).await;
    assert_eq!(reply["result"]["resultType"], "input_required");
    assert_eq!(reply["result"]["inputRequests"], json!({}));
    let state = state_of(&reply);
    assert!(!state.contains("half"));
    let retry = with(&params, json!({"requestState": state, "arguments": {}}));
    let (_, reply) = send(Over::Http, &fixture.server, &request(2, "tools/call", retry), None).await;
    assert_eq!(reply["result"]["content"][0]["text"], "half and whole");
}

#[tokio::test]
async fn elsewhere_state_and_answers_are_ignored() {
    let fixture = fixture(|builder| builder);
    for method in
        ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]
    {
        let plain = send(Over::Http, &fixture.server, &request(1, method, json!({})), None).await;
        let both = json!({"requestState": "r1.forged", "inputResponses": answers()});
        assert_eq!(
            send(Over::Http, &fixture.server, &request(1, method, both), None).await,
            plain,
            "{method}"
        );
        assert_eq!(plain.1["result"]["resultType"], "complete");
    }
}

#[tokio::test]
async fn a_handler_that_asks_what_cannot_be_asked() {
    use antiphon::{
        server::{Ask, NoArguments, Tool, asks::InputRequired},
        wire::forms::{FormField, FormSchema},
    };
    let form = |key: &str| Ask::form(key, "?", FormSchema::new(vec![FormField::text("a")]));
    let beyond = || {
        serde_json::from_value(json!({"type": "object", "properties": {"a": {"type": "object"}}})).unwrap()
    };
    let many = (0..65).map(|index| form(&format!("k{index}"))).collect();
    for (what, asks) in [
        ("a key twice", vec![form("a"), form("a")]),
        ("an empty key", vec![form("")]),
        ("a key with a slash", vec![form("a/b")]),
        ("a key with a hash", vec![form("a#2")]),
        ("a key with a space", vec![form("a b")]),
        ("a long key", vec![form(&"k".repeat(65))]),
        ("65 asks", many),
        ("a form beyond the subset", vec![Ask::form("a", "?", beyond())]),
        ("a plain URL", vec![Ask::url("a", "?", "http://example.com/pay")]),
        ("no URL", vec![Ask::url("a", "?", "pay here")]),
        ("another scheme", vec![Ask::url("a", "?", "javascript:alert(1)")]),
    ] {
        let tool = Tool::new("broken", move |_: &antiphon::server::Ctx, _: NoArguments| {
            let required =
                asks.iter().skip(1).cloned().fold(InputRequired::ask(asks[0].clone()), InputRequired::and);
            async move { required }
        });
        let fixture = fixture(|builder| builder.tool(tool));
        let message = request(1, "tools/call", json!({"name": "broken"}));
        let (status, reply) = send(Over::Http, &fixture.server, &message, None).await;
        assert_eq!(status, 200, "{what}");
        let expected = json!({"code": -32603, "message": "Internal error"});
        assert_eq!(reply["error"], expected, "{what}");
    }
}
