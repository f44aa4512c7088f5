//! Messages that are not quite those of the specification, as peers write them.

use antiphon_wire::{
    CallToolResult, ContentBlock, DiscoverResult, FormField, FormSchema, Implementation, Incoming,
    InputRequest, ListPromptsResult, ListResourcesResult, ListToolsResult, Outcome, Prompt, RequestId,
    Resource, ResourceTemplate, Tool, lenient,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json, value::RawValue};

#[test]
fn half_of_a_surrogate_pair_in_a_text() {
    for (message, expected) in [
        // Texts.
        (r#"{"text":"cut \ud83d"}"#, r#"{"text":"cut \ufffd"}"#),
        (r#"{"message":"\uDE00 cut","x":1}"#, r#"{"message":"\ufffd cut","x":1}"#),
        (r#"[{"description":"\ud83d\ud83d\ude00"}]"#, r#"[{"description":"\ufffd\ud83d\ude00"}]"#),
        (r#"{"a":["\\\udfff","\ud83d"],"b":"\ud800x"}"#, r#"{"a":["\\\ufffd","\ufffd"],"b":"\ufffdx"}"#),
        (r#"{"structuredContent":{"name":"\ud83d"}}"#, r#"{"structuredContent":{"name":"\ufffd"}}"#),
        (
            r#"{"name":"t","inputSchema":{"properties":{"name":{"title":"\ud83d"}}}}"#,
            r#"{"name":"t","inputSchema":{"properties":{"name":{"title":"\ufffd"}}}}"#,
        ),
        // Whole pairs, and backslashes that begin no escape.
        (r#"{"text":"\ud83d\ude00"}"#, ""),
        (r#"{"text":"\\ud83d \\\\ud83d"}"#, ""),
        (r#"{"text":"\ud7ff\ue000"}"#, ""),
        // Names, identifiers, keys, URIs and states.
        (r#"{"\ud83d":1}"#, ""),
        (r#"{"name":"\ud83d"}"#, ""),
        (r#"{"n\u0061me":"\ud83d"}"#, ""),
        (r#"{"id":"\ud83d","uri":"\ud83d","requestState":"\ud83d"}"#, ""),
        (r#"{"required":["a","\ud83d"]}"#, ""),
        // Choices, whose titles are texts.
        (
            r#"{"enum":["a","\ud83d"],"enumNames":["A","\ud83d"]}"#,
            r#"{"enum":["a","\ud83d"],"enumNames":["A","\ufffd"]}"#,
        ),
        (
            r#"{"oneOf":[{"const":"\ud83d","title":"\ud83d"}]}"#,
            r#"{"oneOf":[{"const":"\ud83d","title":"\ufffd"}]}"#,
        ),
        (
            r#"{"items":{"enum":["\ud83d"]},"default":["\ud83d"]}"#,
            r#"{"items":{"enum":["\ud83d"]},"default":["\ufffd"]}"#,
        ),
        (r#"{"properties":{"enum":{"title":"\ud83d"}}}"#, r#"{"properties":{"enum":{"title":"\ufffd"}}}"#),
        (
            r#"{"structuredContent":{"enum":["\ud83d"],"const":"\ud83d"}}"#,
            r#"{"structuredContent":{"enum":["\ufffd"],"const":"\ufffd"}}"#,
        ),
        (r#"{"_meta":{"progressToken":"\ud83d","a/b":{"taskId":"\ud83d"}}}"#, ""),
        (
            r#"{"properties":{"default":{"required":["\ud83d"],"default":"\ud83d"}}}"#,
            r#"{"properties":{"default":{"required":["\ud83d"],"default":"\ufffd"}}}"#,
        ),
        // No JSON.
        (r#"{"text":"\ud83d"#, r#"{"text":"\ufffd"#),
        (r#""\ud83"#, ""),
        (r#"\ud83d"#, ""),
    ] {
        let expected = if expected.is_empty() { message } else { expected };
        let read = lenient::repaired(message.as_bytes()).into_owned();
        assert_eq!(String::from_utf8(read).unwrap(), expected, "{message}");
    }
    // At each place of the chunks that are searched, after an even and after an odd number of backslashes.
    for before in 0..1_100 {
        let space = " ".repeat(before);
        for (escape, expected) in
            [(r"\ud83d", r"\ufffd"), (r"\\\ud83d", r"\\\ufffd"), (r"\\ud83d", ""), (r"\ud83d\ude00", "")]
        {
            let message = format!(r#"{{"text":"{space}{escape}"}}"#);
            let expected = message.replace(escape, if expected.is_empty() { escape } else { expected });
            assert_eq!(lenient::repaired(message.as_bytes()), expected.as_bytes(), "{before} {escape}");
        }
    }
    let deep = format!(r#"{}"\ud83d""#, "[".repeat(100_000));
    assert_eq!(*lenient::repaired(deep.as_bytes()), *deep.as_bytes());
}

#[test]
fn half_of_a_surrogate_pair_in_a_choice() {
    let read = |property: &str| {
        let form = format!(r#"{{"type":"object","properties":{{"size":{property}}}}}"#);
        let repaired = lenient::repaired(form.as_bytes()).into_owned();
        serde_json::from_slice::<FormSchema>(&repaired).map_err(|fault| fault.to_string())
    };
    for refused in [
        r#"{"type":"string","enum":["a","b\ud83d"]}"#,
        r#"{"type":"string","enum":["a","b\ud83d"],"enumNames":["A","B"],"default":"b\ud83d"}"#,
        r#"{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"\udc00b","title":"B"}]}"#,
        r#"{"type":"array","items":{"type":"string","enum":["a","b\ud83d"]}}"#,
        r#"{"type":"array","items":{"anyOf":[{"const":"b\ud83d","title":"B"}]}}"#,
    ] {
        let fault = read(refused).unwrap_err();
        assert!(fault.contains("field `size`: a choice has half of a surrogate pair"), "{refused}: {fault}");
    }
    // Texts, which people see, and defaults, which are choices only if they are among them.
    for (text, default) in [
        (r#"{"type":"string","enum":["a"],"enumNames":["\ud83d"]}"#, json!(null)),
        (r#"{"type":"string","oneOf":[{"const":"a","title":"\ud83d"}]}"#, json!(null)),
        (r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"\ud83d"}]}}"#, json!(null)),
        (r#"{"type":"string","default":"b\ud83d"}"#, json!("b\u{fffd}")),
    ] {
        let form = read(text).unwrap();
        assert_eq!(json!(form.fields()[0].default_value()), default, "{text}");
    }
    let foreign = read(r#"{"type":"string","enum":["a"],"default":"b\ud83d"}"#).unwrap();
    assert!(foreign.check(Map::new()).is_err(), "nobody chose it");

    // The schema of a tool keeps its text. Its value is for reading.
    let tool = r#"{"name":"t","inputSchema":{"properties":{"a":{"enum":["\ud83d","x"],"title":"\ud83d"}}}}"#;
    let tool: Tool = serde_json::from_slice(&lenient::repaired(tool.as_bytes())).unwrap();
    assert_eq!(tool.input_schema.text(), r#"{"properties":{"a":{"enum":["\ud83d","x"],"title":"\ufffd"}}}"#);
    let value = json!({"properties": {"a": {"enum": ["\u{fffd}", "x"], "title": "\u{fffd}"}}});
    assert_eq!(tool.input_schema.to_value(), value);
}

/// Reads the text as a `T`, and writes it again.
fn written<T: DeserializeOwned + Serialize>(text: &str) -> Value {
    let read: T = serde_json::from_str(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    serde_json::to_value(read).unwrap()
}

#[test]
fn null_for_an_optional_array_or_object() {
    let tool = r#"{"name":"t","inputSchema":{},"icons":null,"annotations":null,"_meta":null}"#;
    assert_eq!(written::<Tool>(tool), json!({"name": "t", "inputSchema": {}}));
    let prompt = r#"{"name":"p","arguments":null,"icons":null}"#;
    assert_eq!(written::<Prompt>(prompt), json!({"name": "p"}));
    let resource = r#"{"name":"r","uri":"x:y","icons":null,"annotations":null}"#;
    assert_eq!(written::<Resource>(resource), json!({"name": "r", "uri": "x:y"}));
    let template = r#"{"name":"r","uriTemplate":"x:{y}","icons":null,"annotations":null,"_meta":null}"#;
    assert_eq!(written::<ResourceTemplate>(template), json!({"name": "r", "uriTemplate": "x:{y}"}));
    let server = r#"{"name":"s","version":"1","icons":null,"title":null}"#;
    assert_eq!(written::<Implementation>(server), json!({"name": "s", "version": "1"}));
    let link = format!(r#"{{"type":"resource_link",{}"#, &resource[1..]);
    assert!(matches!(serde_json::from_str(&link).unwrap(), ContentBlock::ResourceLink(_)));
    let called: CallToolResult = serde_json::from_str(r#"{"content":null}"#).unwrap();
    assert!(called.content.is_empty());
    let form = r#"{"type":"object","properties":{"a":{"type":"string"}},"required":null}"#;
    assert_eq!(serde_json::from_str::<FormSchema>(form).unwrap().fields().len(), 1);
    let form = r#"{"type":"object","properties":{
        "one":{"type":"string","title":null,"oneOf":null,"enum":["a"],"enumNames":null,"default":null,"format":null},
        "titled":{"type":"string","oneOf":[{"const":"a","title":null}],"enum":null},
        "many":{"type":"array","items":{"type":"string","anyOf":null,"enum":["a"]},"minItems":null},
        "text":{"type":"string","enum":null,"oneOf":null,"minLength":null,"x":null},
        "size":{"type":"integer","minimum":null,"enum":null}
    }}"#;
    let form: FormSchema = serde_json::from_str(form).unwrap();
    let fields = [
        FormField::one("one", ["a"]),
        FormField::one("titled", ["a"]),
        FormField::many("many", ["a"]),
        FormField::text("text"),
        FormField::integer("size"),
    ];
    assert_eq!(form.fields(), fields.map(FormField::optional));
    assert_eq!(form.beyond_subset(), None);
    let list: ListToolsResult =
        serde_json::from_str(r#"{"tools":[],"ttlMs":null,"cacheScope":null,"nextCursor":null}"#).unwrap();
    assert_eq!(list, ListToolsResult::new(Vec::new()));
    for (list, expected) in [
        (r#"{"resultType":null,"tools":null}"#, json!(ListToolsResult::new(Vec::new()))),
        (r#"{"resultType":"complete","tools":null}"#, json!(ListToolsResult::new(Vec::new()))),
    ] {
        assert_eq!(written::<ListToolsResult>(list), expected);
    }
    assert_eq!(written::<ListPromptsResult>(r#"{"prompts":null,"resultType":null}"#)["prompts"], json!([]));
    assert_eq!(written::<ListResourcesResult>(r#"{"resources":null}"#)["resources"], json!([]));
    // A list that is missing is no list.
    assert!(serde_json::from_str::<ListToolsResult>("{}").is_err());
    let nulls = r#"{"resultType":null,"content":[],"structuredContent":null,"isError":null,"_meta":null,"requestState":null,"inputRequests":null,"task":null}"#;
    let read = Outcome::<CallToolResult>::read_tool(serde_json::from_str(nulls).unwrap()).unwrap();
    assert!(matches!(read, Outcome::Complete(result) if !result.failed()));
    for other in ["3", "\"input_required\"", "\"x\""] {
        let list = format!(r#"{{"resultType":{other},"tools":[]}}"#);
        assert!(serde_json::from_str::<ListToolsResult>(&list).is_err(), "{list}");
    }
}

#[test]
fn an_empty_array_for_an_object_without_members() {
    let discovered: DiscoverResult = serde_json::from_str(
        r#"{"supportedVersions":[],"_meta":[],"capabilities":{"tools":[],"extensions":{"a/b":[]}}}"#,
    )
    .unwrap();
    assert!(discovered.capabilities.has("tools"));
    assert_eq!(json!(discovered.capabilities), json!({"tools": {}, "extensions": {"a/b": {}}}));
    let none = r#"{"supportedVersions":[],"capabilities":[]}"#;
    assert!(serde_json::from_str::<DiscoverResult>(none).unwrap().capabilities.0.is_empty());
    let tool = r#"{"name":"t","inputSchema":{},"annotations":[],"_meta":[]}"#;
    let read = json!({"name": "t", "inputSchema": {}, "annotations": {}, "_meta": {}});
    assert_eq!(written::<Tool>(tool), read);
    let form = r#"{"type":"object","properties":[ ]}"#;
    assert!(serde_json::from_str::<FormSchema>(form).unwrap().fields().is_empty());
    // An array with entries is no object.
    for wrong in [r#"{"type":"object","properties":[1]}"#, r#"{"type":"object","properties":3}"#] {
        assert!(serde_json::from_str::<FormSchema>(wrong).is_err(), "{wrong}");
    }
    assert!(serde_json::from_str::<CallToolResult>(r#"{"content":[],"_meta":[1]}"#).is_err());
}

#[test]
fn an_empty_array_for_params_and_for_a_result() {
    for (message, expected) in [
        (r#"{"jsonrpc":"2.0","method":"m","params":[]}"#, Some("m none")),
        (r#"{"jsonrpc":"2.0","id":"a","method":"m","params":[ ]}"#, Some("m none")),
        (r#"{"jsonrpc":"2.0","id":1,"result":[]}"#, Some("{}")),
        (r#"{"jsonrpc":"2.0","id":1,"result":[0]}"#, Some("[0]")),
        (r#"{"jsonrpc":"2.0","method":"m","params":[0]}"#, None),
        (r#"{"jsonrpc":"2.0","method":"m","params":[[]]}"#, None),
        (r#"{"jsonrpc":"2.0","method":"m","params":0}"#, None),
    ] {
        let read = lenient::parse(message.as_bytes()).ok().map(|message| match message {
            Incoming::Response(response) => response.outcome.unwrap().get().to_owned(),
            Incoming::Request(request) => format!("{} {}", request.method, shown(request.params)),
            Incoming::Notification(notification) => {
                format!("{} {}", notification.method, shown(notification.params))
            }
        });
        assert_eq!(read.as_deref(), expected, "{message}");
        // A server is strict.
        if message.contains("params") {
            assert!(Incoming::parse(message.as_bytes()).is_err(), "{message}");
        }
    }
}

/// One type for all messages, each of whose members is written.
#[test]
fn null_for_a_member_that_a_message_does_not_have() {
    for (message, expected, is_strict) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":null,"params":null,"result":{"a":1},"error":null}"#,
            r#"1 {"a":1}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":null,"params":null,"result":null,"error":{"code":-1,"message":"m","data":null}}"#,
            "1 m (-1)",
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"result":null,"error":{"code":-1,"message":"m"}}"#,
            "none m (-1)",
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"m","params":null,"result":null,"error":null}"#,
            "request m",
            false,
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":null}"#, "m none", false),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":{"a":1},"error":null}"#, r#"m {"a":1}"#, false),
        // Both, and neither.
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"m"}}"#, "", false),
        (r#"{"jsonrpc":"2.0","id":2,"method":"m","result":{}}"#, "", false),
        (r#"{"jsonrpc":"2.0","id":2,"method":"m","error":{}}"#, "", false),
        (r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#, "1 null", true),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "", false),
    ] {
        let read = lenient::parse(message.as_bytes()).ok().map(|message| match message {
            Incoming::Response(response) => {
                let id = response.id.map_or("none".to_owned(), |id| json!(id).to_string());
                match response.outcome {
                    Ok(result) => format!("{id} {}", result.get()),
                    Err(error) => format!("{id} {error}"),
                }
            }
            Incoming::Request(request) => format!("request {}", request.method),
            Incoming::Notification(notification) => {
                format!("{} {}", notification.method, shown(notification.params))
            }
        });
        assert_eq!(read.unwrap_or_default(), expected, "{message}");
        assert_eq!(Incoming::parse(message.as_bytes()).is_ok(), is_strict, "{message}");
    }
}

fn shown(params: Option<&RawValue>) -> &str {
    params.map_or("none", RawValue::get)
}

#[test]
fn hints_that_do_not_decode_are_left_out() {
    let plain = json!({"name": "t", "inputSchema": {}});
    for (member, expected) in [
        (r#""annotations":{"readOnlyHint":"true"}"#, json!({})),
        (r#""annotations":"none""#, json!({})),
        (r#""annotations":[1]"#, json!({})),
        (r#""icons":{"src":"x"}"#, json!({})),
        (r#""icons":[3,{"src":"x"},{}]"#, json!({"icons": [{"src": "x"}]})),
        (
            r#""icons":[{"src":"x","sizes":"48x48 any"}]"#,
            json!({"icons": [{"src": "x", "sizes": ["48x48", "any"]}]}),
        ),
        (r#""icons":[{"src":"x","sizes":""}]"#, json!({"icons": [{"src": "x", "sizes": []}]})),
        (r#""icons":[{"src":"x","sizes":null}]"#, json!({"icons": [{"src": "x"}]})),
    ] {
        let mut all = plain.clone();
        all.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
        let tool = format!(r#"{{"name":"t","inputSchema":{{}},{member}}}"#);
        assert_eq!(written::<Tool>(&tool), all, "{member}");
    }
}

#[test]
fn a_content_block_that_does_not_decode_is_kept() {
    for block in [
        r#"{"type":"text","text":null}"#,
        r#"{"type":"image","data":"AA=="}"#,
        r#"{"type":"resource","resource":[]}"#,
        r#"{"text":"no type"}"#,
    ] {
        let read: ContentBlock = serde_json::from_str(block).unwrap();
        assert!(matches!(&read, ContentBlock::Other(_)), "{block}");
        assert_eq!(json!(read), serde_json::from_str::<Value>(block).unwrap());
    }
}

#[test]
fn an_entry_that_does_not_decode_is_left_out_alone() {
    fn check<P: DeserializeOwned + Serialize, T: DeserializeOwned>(
        list: &str,
        entries: &str,
        expected: &[(&str, usize)],
        names: &[&str],
    ) {
        let text = format!(r#"{{"{list}":[{entries}],"nextCursor":"c","x":1}}"#);
        let (page, left_out) = lenient::page::<P, T>(serde_json::from_str(&text).unwrap(), list).unwrap();
        assert_eq!(left_out.count, expected.len());
        let left_out: Vec<_> = left_out
            .first
            .iter()
            .map(|entry| (entry.name.as_deref().unwrap_or_default(), entry.index))
            .collect();
        assert_eq!(left_out, expected, "{text}");
        let page = json!(page);
        let read: Vec<&str> =
            page[list].as_array().unwrap().iter().filter_map(|entry| entry["name"].as_str()).collect();
        assert_eq!((read, &page["nextCursor"], &page["x"]), (names.to_vec(), &json!("c"), &json!(1)));
    }
    let good = r#"{"name":"good","inputSchema":{}}"#;
    let tools = check::<ListToolsResult, Tool>;
    tools("tools", good, &[], &["good"]);
    tools("tools", &format!(r#"{good},{{"name":"bad"}}"#), &[("bad", 1)], &["good"]);
    tools("tools", &format!("null,{good},[],3"), &[("", 0), ("", 2), ("", 3)], &["good"]);
    let wrong = r#"{"name":"w","inputSchema":{},"description":["x"]}"#;
    tools("tools", &format!("{wrong},{good}"), &[("w", 0)], &["good"]);
    tools("tools", &format!(r#"{{"name":"\ud83d","inputSchema":{{}}}},{good}"#), &[("", 0)], &["good"]);
    let prompts = r#"{"name":"p"},{"title":"no name"},{"name":"q","arguments":[{}]}"#;
    check::<ListPromptsResult, Prompt>("prompts", prompts, &[("", 1), ("q", 2)], &["p"]);
    let resources = r#"{"uri":"a:b"},{"uri":"a:c","name":"r"}"#;
    check::<ListResourcesResult, Resource>("resources", resources, &[("a:b", 0)], &["r"]);
    // Of very many, some are described.
    let many = vec!["0"; 100].join(",");
    let text = format!(r#"{{"tools":[{good},{many}]}}"#);
    let raw = serde_json::from_str(&text).unwrap();
    let (page, left_out) = lenient::page::<ListToolsResult, Tool>(raw, "tools").unwrap();
    assert_eq!((page.tools.len(), left_out.count, left_out.first.len()), (1, 100, 16));
    for none in [r#"{"tools":3}"#, r#"{"nextCursor":"c"}"#, r#"{"tools":[],"nextCursor":3}"#, "[]"] {
        let page = lenient::page::<ListToolsResult, Tool>(serde_json::from_str(none).unwrap(), "tools");
        assert!(page.is_err(), "{none}");
    }
}

#[test]
fn the_id_of_a_response_in_another_notation() {
    for (id, expected) in [
        ("1.0", Some(1_u64)),
        ("1e2", Some(100)),
        ("1.5", None),
        ("-1.0", None),
        ("true", None),
        ("1e400", None),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        let read = match lenient::parse(message.as_bytes()) {
            Ok(Incoming::Response(response)) => response.id,
            _ => None,
        };
        assert_eq!(read, expected.map(RequestId::from), "{id}");
        assert!(Incoming::parse(message.as_bytes()).is_err(), "{id}");
        // A request chooses its id.
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert!(lenient::parse(request.as_bytes()).is_err(), "{id}");
    }
    for (text, expected) in
        [("1", Some(1_u64)), ("0", Some(0)), ("01", None), ("+1", None), ("1.0", None), ("", None)]
    {
        assert_eq!(RequestId::from(text).text_as_number(), expected.map(RequestId::from), "{text}");
    }
    assert_eq!(RequestId::from(1_u64).text_as_number(), None);
}

#[test]
fn the_result_of_a_tool_without_content() {
    let draft = "the result has inputRequests but is not `input_required`, or has a requestState";
    let none = "the result of the tool has neither";
    for (result, expected) in [
        (r#"{}"#, none),
        (r#"{"resultType":"complete"}"#, none),
        (r#"{"isError":true}"#, none),
        (r#"{"_meta":{},"toolResult":1}"#, none),
        (r#"{"resultType":"complete","requestState":"foo"}"#, none),
        (r#"{"requestState":"foo"}"#, draft),
        (r#"{"requestState":""}"#, draft),
        (r#"{"inputRequests":{}}"#, draft),
        (r#"{"content":[]}"#, ""),
        (r#"{"content":null}"#, ""),
        (r#"{"structuredContent":null}"#, ""),
        (r#"{"structuredContent":{},"requestState":"foo"}"#, ""),
    ] {
        let fault = Outcome::<CallToolResult>::read_tool(serde_json::from_str(result).unwrap()).err();
        let fault = fault.map(|fault| fault.to_string()).unwrap_or_default();
        assert!(fault.starts_with(expected) && fault.is_empty() == expected.is_empty(), "{result}: {fault}");
    }
}

#[test]
fn a_round_without_asks_as_an_empty_array() {
    let round = r#"{"resultType":"input_required","inputRequests":[],"requestState":"s"}"#;
    let read = Outcome::<CallToolResult>::read(serde_json::from_str(round).unwrap()).unwrap();
    assert!(matches!(read, Outcome::InputRequired(round) if round.input_requests().is_empty()));
    let ask = r#"{"message":"m","requestedSchema":{"type":"object","properties":[],"required":null}}"#;
    let read = InputRequest::read("elicitation/create", Some(serde_json::from_str(ask).unwrap()));
    assert!(read.is_ok(), "{read:?}");
}
