//! Messages that are not quite those of the specification, as peers write them.

use antiphon_wire::{
    AskKind, CallToolResult, Completion, ContentBlock, DiscoverResult, FormField, FormSchema,
    GetPromptResult, Implementation, Incoming, InitializeResult, InputRequest, InputRequests,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Outcome,
    OutcomeFault, Prompt, ReadResourceResult, RequestId, Resource, ResourceTemplate, Tool, ToolResultContent,
    lenient,
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
        // The author's own data, whose names are texts; names in content; the server's identity.
        (
            r#"{"structuredContent":{"\ud83d":{"\ud83d":1}}}"#,
            r#"{"structuredContent":{"\ufffd":{"\ufffd":1}}}"#,
        ),
        (
            r#"{"_meta":{"\ud83d":{"name":"\ud83d","url":["\ud83d"]}},"name":"\ud83d"}"#,
            r#"{"_meta":{"\ufffd":{"name":"\ufffd","url":["\ufffd"]}},"name":"\ud83d"}"#,
        ),
        (
            r#"{"error":{"data":{"\ud83d":"\ud83d","name":"\ud83d","url":"\ud83d","elicitationId":"\ud83d"}}}"#,
            r#"{"error":{"data":{"\ufffd":"\ufffd","name":"\ufffd","url":"\ud83d","elicitationId":"\ud83d"}}}"#,
        ),
        (
            r#"{"content":[{"name":"\ud83d","uri":"\ud83d","\ud83d":1}],"name":"\ud83d"}"#,
            r#"{"content":[{"name":"\ufffd","uri":"\ud83d","\ud83d":1}],"name":"\ud83d"}"#,
        ),
        (
            r#"{"serverInfo":{"name":"\ud83d","icons":[{"src":"\ud83d"}]}}"#,
            r#"{"serverInfo":{"name":"\ufffd","icons":[{"src":"\ufffd"}]}}"#,
        ),
        // A property of a schema may have any name.
        (r#"{"requestedSchema":{"properties":{"data":{"enum":["\ud83d"]}}}}"#, ""),
        (r#"{"requestedSchema":{"properties":{"structuredContent":{"enum":["\ud83d"]}}}}"#, ""),
        (
            r#"{"inputSchema":{"properties":{"_meta":{"const":"\ud83d"},"content":{"required":["\ud83d"]}}}}"#,
            "",
        ),
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
fn what_is_only_shown_is_left_out_if_it_has_another_type() {
    for (member, expected) in [
        (r#""title":false,"description":["a"],"mimeType":{}"#, json!({})),
        (r#""title":"t","description":7"#, json!({"title": "t"})),
        (r#""size":"12""#, json!({"size": 12})),
        (r#""size":12.0"#, json!({"size": 12})),
        (r#""size":"12 KB""#, json!({})),
        (r#""size":-1"#, json!({})),
        (r#""size":false,"mimeType":"a/b""#, json!({"mimeType": "a/b"})),
    ] {
        let mut all = json!({"uri": "x:y", "name": "r"});
        all.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
        let resource = format!(r#"{{"uri":"x:y","name":"r",{member}}}"#);
        assert_eq!(written::<Resource>(&resource), all, "{member}");
    }
    let argument = r#"{"name":"p","title":0,"arguments":[{"name":"a","description":false}]}"#;
    assert_eq!(written::<Prompt>(argument), json!({"name": "p", "arguments": [{"name": "a"}]}));
    let completion = r#"{"values":["a"],"total":"2","hasMore":0}"#;
    assert_eq!(written::<Completion>(completion), json!({"values": ["a"], "total": 2, "hasMore": false}));
    let server = r#"{"name":"s","version":"1","title":[],"websiteUrl":false}"#;
    assert_eq!(written::<Implementation>(server), json!({"name": "s", "version": "1"}));
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

/// The identity of a server is for people.
#[test]
fn a_version_of_a_server_that_is_no_text() {
    for version in ["null", "3", "1.10", "[]", r#"{"major":1}"#] {
        let result = format!(
            r#"{{"protocolVersion":"2025-06-18","capabilities":{{}},"serverInfo":{{"name":"s","version":{version}}}}}"#
        );
        let read: InitializeResult =
            serde_json::from_str(&result).unwrap_or_else(|it| panic!("{version}: {it}"));
        assert_eq!(
            (read.server_info.name.as_str(), read.server_info.version.as_str()),
            ("s", ""),
            "{version}"
        );
    }
    let none = r#"{"protocolVersion":"2025-06-18","serverInfo":{"name":"s"}}"#;
    assert_eq!(serde_json::from_str::<InitializeResult>(none).unwrap().server_info.version, "");
    let known = r#"{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"2"}}"#;
    assert_eq!(serde_json::from_str::<InitializeResult>(known).unwrap().server_info.version, "2");
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
    let wrong = r#"{"name":"w","inputSchema":{},"_meta":"x"}"#;
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
    for none in [r#"{"tools":3}"#, r#"{"nextCursor":"c"}"#, r#"{"tools":[],"nextCursor":[3]}"#, "[]"] {
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

/// PHP, Python and SQLite write booleans as numbers and texts.
#[test]
fn a_boolean_as_a_number_or_a_text() {
    for (text, expected) in [
        ("1", Some(true)),
        ("1.0", Some(true)),
        (r#""true""#, Some(true)),
        (r#""True""#, Some(true)),
        (r#""1""#, Some(true)),
        ("true", Some(true)),
        ("0", Some(false)),
        (r#""false""#, Some(false)),
        (r#""0""#, Some(false)),
        ("-0.0", Some(false)),
        ("null", None),
    ] {
        let result = format!(r#"{{"content":[],"isError":{text}}}"#);
        let read: CallToolResult = serde_json::from_str(&result).unwrap_or_else(|it| panic!("{text}: {it}"));
        assert_eq!((read.is_error, read.failed()), (expected, expected == Some(true)), "{text}");
        let result = format!(r#"{{"type":"tool_result","toolUseId":"a","content":[],"isError":{text}}}"#);
        assert_eq!(serde_json::from_str::<ToolResultContent>(&result).unwrap().is_error, expected, "{text}");
        let prompt = format!(r#"{{"name":"p","arguments":[{{"name":"a","required":{text}}}]}}"#);
        let prompt: Prompt = serde_json::from_str(&prompt).unwrap_or_else(|it| panic!("{text}: {it}"));
        assert_eq!(prompt.arguments[0].required, expected, "{text}");
        let values = format!(r#"{{"values":[],"hasMore":{text}}}"#);
        assert_eq!(serde_json::from_str::<Completion>(&values).unwrap().has_more, expected, "{text}");
    }
    // Nobody knows what these mean.
    for wrong in ["2", "-1", "0.5", r#""yes""#, r#""""#, "[]", "{}"] {
        let result = format!(r#"{{"content":[],"isError":{wrong}}}"#);
        let fault = serde_json::from_str::<CallToolResult>(&result).unwrap_err().to_string();
        assert!(fault.contains("expected `true` or `false`"), "{wrong}: {fault}");
    }
}

#[test]
fn the_code_of_an_error_as_a_text_or_a_float() {
    for (code, expected) in [
        (r#""-32602""#, Some(-32602)),
        (r#"" 7 ""#, Some(7)),
        (r#""-32602.0""#, Some(-32602)),
        ("-32602.0", Some(-32602)),
        ("-3.2602e4", Some(-32602)),
        ("0", Some(0)),
        ("9007199254740993", Some(9_007_199_254_740_993)),
        ("-32602.5", None),
        ("1e30", None),
        ("18446744073709551615", None),
        (r#""""#, None),
        (r#""E404""#, None),
        ("null", None),
        ("true", None),
        ("[-1]", None),
        // Details that do not decode do not cost the error.
        (r#"-1,"data":{"url":"\ud83d"}"#, Some(-1)),
        (r#"-1,"data":{"a":1e400}"#, Some(-1)),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"m"}}}}"#);
        let read = match lenient::parse(message.as_bytes()) {
            Ok(Incoming::Response(response)) => Some(response.outcome.unwrap_err().code.0),
            Ok(other) => panic!("{code}: {other:?}"),
            Err(_) => None,
        };
        assert_eq!(read, expected, "{code}");
    }
}

#[test]
fn input_requests_without_entries_in_a_final_result() {
    let final_results = [r#""content":[]"#, r#""structuredContent":1"#, r#""content":[],"requestState":"s""#];
    for asks in ["[]", "{}", "[ ]", "{ }", "null"] {
        for head in ["", r#""resultType":"complete","#, r#""resultType":null,"#] {
            for content in final_results {
                let result = format!(r#"{{{head}"inputRequests":{asks},{content}}}"#);
                let read = Outcome::<CallToolResult>::read_tool(serde_json::from_str(&result).unwrap());
                assert!(matches!(read, Ok(Outcome::Complete(_))), "{result}: {read:?}");
            }
        }
    }
    // Entries are questions of the older draft, and a state alone is one of its results.
    for result in [
        r#"{"inputRequests":{"a":{}},"content":[]}"#,
        r#"{"inputRequests":[1],"content":[]}"#,
        r#"{"inputRequests":"a","content":[]}"#,
        r#"{"inputRequests":{},"requestState":"s"}"#,
    ] {
        let read = Outcome::<CallToolResult>::read_tool(serde_json::from_str(result).unwrap());
        assert!(matches!(read, Err(OutcomeFault::AsksWithoutResultType)), "{result}: {read:?}");
    }
}

#[test]
fn one_question_of_a_round_that_cannot_be_read() {
    let good = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#;
    for (bad, method, reason) in [
        ("null", "", "expected an object"),
        ("3", "", "expected an object"),
        ("[]", "", "expected an object"),
        ("{}", "", "missing field `method`"),
        (r#"{"method":3}"#, "", "invalid type"),
        (r#"{"method":"a","method":"b"}"#, "", "duplicate field"),
        (r#"{"method":"\ud83d"}"#, "", "hex escape"),
        (r#"{"method":"elicitation/create"}"#, "elicitation/create", "expected an object"),
        (r#"{"method":"elicitation/create","params":[]}"#, "elicitation/create", "expected an object"),
        (
            r#"{"method":"elicitation/create","params":{"message":"m"}}"#,
            "elicitation/create",
            "requestedSchema",
        ),
        (
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"m"}}"#,
            "elicitation/create",
            "missing field `url`",
        ),
        (
            r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"b":{"type":"string","enum":["\ud83d"]}}}}}"#,
            "elicitation/create",
            "field `b`: a choice has half of a surrogate pair",
        ),
        (r#"{"method":"sampling/createMessage","params":{}}"#, "sampling/createMessage", "missing field"),
        (r#"{"method":"roots/list","params":3}"#, "roots/list", "expected an object"),
    ] {
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"a":{good},"bad":{bad},"z":{good}}},"requestState":"s"}}"#
        );
        let read = Outcome::<CallToolResult>::read_tool(serde_json::from_str(&result).unwrap());
        let Ok(Outcome::InputRequired(round)) = read else { panic!("{bad}: {read:?}") };
        let asks = round.input_requests();
        let kinds: Vec<_> = asks.iter().map(|(key, ask)| (key, ask.kind())).collect();
        assert_eq!(kinds, [("a", AskKind::Form), ("bad", AskKind::Unknown), ("z", AskKind::Form)], "{bad}");
        let Some(InputRequest::Unknown(unknown)) = asks.get("bad") else { panic!("{bad}") };
        assert_eq!(unknown.method, method, "{bad}");
        assert!(unknown.unreadable().unwrap().contains(reason), "{bad}: {:?}", unknown.unreadable());
        // A pending call that is stored has the text of the server.
        let written = serde_json::to_string(asks).unwrap();
        assert!(written.contains(&format!(r#""bad":{bad}"#)), "{bad}: {written}");
        let again: InputRequests = serde_json::from_str(&written).unwrap();
        assert!(matches!(again.get("bad"), Some(InputRequest::Unknown(ask)) if ask.unreadable().is_some()));
    }
    // A key that is there twice names no question, and one that cannot be read cannot be sent back.
    for asks in [format!(r#"{{"a":{good},"a":{good}}}"#), format!(r#"{{"a":{good},"\ud83d":{good}}}"#)] {
        assert!(serde_json::from_str::<InputRequests>(&asks).is_err(), "{asks}");
    }
}

/// Lua has one type for lists and objects.
#[test]
fn an_empty_object_for_a_list_without_entries() {
    for empty in ["{}", "{ }", "null", "[]"] {
        let of = |member: &str| format!(r#"{{"{member}":{empty}}}"#);
        assert!(serde_json::from_str::<ListToolsResult>(&of("tools")).unwrap().tools.is_empty(), "{empty}");
        assert!(serde_json::from_str::<ListPromptsResult>(&of("prompts")).unwrap().prompts.is_empty());
        assert!(serde_json::from_str::<ListResourcesResult>(&of("resources")).unwrap().resources.is_empty());
        assert!(serde_json::from_str::<CallToolResult>(&of("content")).unwrap().content.is_empty());
        assert!(serde_json::from_str::<GetPromptResult>(&of("messages")).unwrap().messages.is_empty());
        assert!(serde_json::from_str::<ReadResourceResult>(&of("contents")).unwrap().contents.is_empty());
        assert!(serde_json::from_str::<Completion>(&of("values")).unwrap().values.is_empty());
        let form = format!(r#"{{"type":"object","properties":{{}},"required":{empty}}}"#);
        assert!(serde_json::from_str::<FormSchema>(&form).unwrap().fields().is_empty(), "{empty}");
        let prompt = format!(r#"{{"name":"p","arguments":{empty}}}"#);
        assert!(serde_json::from_str::<Prompt>(&prompt).unwrap().arguments.is_empty());
    }
    for wrong in [r#"{"1":{}}"#, "3", r#""""#, "false"] {
        assert!(
            serde_json::from_str::<ListToolsResult>(&format!(r#"{{"tools":{wrong}}}"#)).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn a_cursor_and_a_ttl_in_another_type() {
    for (cursor, expected) in
        [("2", Some("2")), (r#""2""#, Some("2")), ("18446744073709551615", Some("18446744073709551615"))]
    {
        let list = format!(r#"{{"tools":[],"nextCursor":{cursor}}}"#);
        let list: ListToolsResult = serde_json::from_str(&list).unwrap();
        assert_eq!(list.next_cursor.as_deref(), expected, "{cursor}");
        let list = format!(r#"{{"resourceTemplates":[],"nextCursor":{cursor}}}"#);
        let list: ListResourceTemplatesResult = serde_json::from_str(&list).unwrap();
        assert_eq!(list.next_cursor.as_deref(), expected, "{cursor}");
    }
    for wrong in ["{}", "[1]", "true"] {
        let list = format!(r#"{{"tools":[],"nextCursor":{wrong}}}"#);
        assert!(serde_json::from_str::<ListToolsResult>(&list).is_err(), "{wrong}");
    }
    for (ttl, expected) in [
        ("5000", 5000),
        ("5000.9", 5000),
        (r#""5000""#, 5000),
        (r#"" 1.5e3 ""#, 1500),
        (r#""-1""#, 0),
        (r#""soon""#, 0),
        (r#""""#, 0),
        ("-1", 0),
        ("null", 0),
    ] {
        let list = format!(r#"{{"tools":[],"ttlMs":{ttl}}}"#);
        let list: ListToolsResult = serde_json::from_str(&list).unwrap_or_else(|it| panic!("{ttl}: {it}"));
        assert_eq!(list.ttl_ms.0, expected, "{ttl}");
    }
}
