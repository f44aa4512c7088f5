//! Unknown members survive reading and writing, and a member that is stored as text is written as the same text.

use crate::common::exact;
use antiphon_wire::{
    AcknowledgedParams, Annotations, AskSupport, CacheScope, CallToolParams, CallToolResult,
    ClientCapabilities, CompleteParams, CompleteResult, Completion, CompletionReference, ContentBlock,
    CreateMessageParams, CreateMessageResult, DiscoverResult, ElicitResult, ErrorObject, FieldKind,
    FormSchema, GetPromptParams, GetPromptResult, Icon, Implementation, InputRequest, InputResponses,
    ListChangedParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListRootsResult,
    ListToolsResult, ListenParams, ListenResult, LogLevel, LogMessageParams, Meta, ModelPreferences,
    ProgressParams, Prompt, ReadResourceParams, ReadResourceResult, RequestId, RequestMeta, Resource,
    ResourceTemplate, Role, SamplingBlock, SamplingMessage, ServerCapabilities, SubscriptionFilter, Tool,
    ToolChoice, ToolResultContent, ToolUseContent, meta_keys,
};
use serde::{Serialize, de::DeserializeOwned};

fn check<T: DeserializeOwned + Serialize>(text: &str) {
    let read: T = serde_json::from_str(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    assert_eq!(exact(&serde_json::to_string(&read).unwrap()), exact(text));
}

/// A value with all that may get lost: nulls, empty things, numbers near the limits, names that need escapes.
const ODD: &str = r#"{"null":null,"empty":{},"list":[[],null,1,1.0,-1.5e-7],"max":18446744073709551615,"min":-9223372036854775808,"third":0.3333333333333333,"tiny":5e-324,"\u0000\"é𝄞":"\u2028","":false}"#;

#[test]
fn maps_keep_every_member() {
    check::<Meta>(ODD);
    check::<ClientCapabilities>(ODD);
    check::<ServerCapabilities>(ODD);
    check::<InputResponses>(ODD);
    check::<ClientCapabilities>(
        r#"{"elicitation":{"form":{"x":1},"voice":{}},"extensions":{"a/b":{}},"tasks":true}"#,
    );
    check::<ServerCapabilities>(r#"{"tools":{"listChanged":false,"x":[1.0]},"resources":null}"#);
}

#[test]
fn blocks_keep_what_they_do_not_name() {
    let more =
        format!(r#""_meta":{ODD},"x":{ODD},"annotations":{{"priority":1,"audience":["user"],"x":{ODD}}}"#);
    for block in [
        format!(r#"{{"type":"text","text":"",{more}}}"#),
        format!(r#"{{"type":"image","data":"","mimeType":"image/png",{more}}}"#),
        format!(r#"{{"type":"audio","data":"","mimeType":"audio/wav",{more}}}"#),
        format!(r#"{{"type":"resource_link","uri":"a:b","name":"n","size":0,{more}}}"#),
        format!(
            r#"{{"type":"resource","resource":{{"uri":"a:b","text":"","x":{ODD},"_meta":{ODD}}},{more}}}"#
        ),
        format!(
            r#"{{"type":"resource","resource":{{"uri":"a:b","mimeType":"a/b","blob":"","x":1.0}},{more}}}"#
        ),
        format!(r#"{{"type":"video","text":3,{more}}}"#),
        format!(r#"{{"type":"","x":{ODD}}}"#),
    ] {
        check::<ContentBlock>(&block);
        check::<CallToolResult>(&format!(r#"{{"resultType":"complete","content":[{block}]}}"#));
        check::<GetPromptResult>(&format!(
            r#"{{"resultType":"complete","messages":[{{"role":"user","content":{block}}}]}}"#
        ));
    }
    for block in [
        format!(r#"{{"type":"tool_use","id":"1","name":"n","input":{ODD},"_meta":{ODD},"x":{ODD}}}"#),
        format!(r#"{{"type":"tool_result","toolUseId":"1","content":[],"isError":false,"x":{ODD}}}"#),
        r#"{"type":"tool_result","toolUseId":"1","content":[{"type":"odd"}],"structuredContent":null}"#
            .into(),
        format!(r#"{{"type":"video","x":{ODD}}}"#),
    ] {
        check::<SamplingBlock>(&block);
        for content in [block.clone(), format!("[{block}]"), "[]".into()] {
            check::<SamplingMessage>(&format!(r#"{{"role":"assistant","content":{content},"x":{ODD}}}"#));
        }
    }
    check::<Annotations>(&format!(r#"{{"priority":1.0,"lastModified":"x","audience":[],"more":{ODD}}}"#));
}

#[test]
fn blocks_are_not_guessed() {
    for block in
        [r#"{"text":"x"}"#, r#"{"type":3,"text":"x"}"#, r#"{"type":"text"}"#, r#"["text","x"]"#, "null"]
    {
        // An object is kept as it is, and is no text.
        let read = serde_json::from_str::<ContentBlock>(block).ok();
        let is_kept = matches!(&read, Some(ContentBlock::Other(_)));
        assert_eq!((is_kept, read.is_some()), (block.starts_with('{'), block.starts_with('{')), "{block}");
        assert!(serde_json::from_str::<SamplingBlock>(block).is_err(), "{block}");
    }
    for contents in [r#"{"uri":"a:b"}"#, r#"{"uri":"a:b","text":"x","blob":"eA=="}"#] {
        let block = format!(r#"{{"type":"resource","resource":{contents}}}"#);
        assert!(matches!(serde_json::from_str(&block).unwrap(), ContentBlock::Other(_)), "{block}");
    }
}

#[test]
fn results_are_open() {
    let more = format!(r#""resultType":"complete","_meta":{ODD},"x":{ODD}"#);
    let kept = r#""ttlMs":18446744073709551615,"cacheScope":"public""#;
    check::<CallToolResult>(&format!(r#"{{"content":[],"structuredContent":{ODD},{more}}}"#));
    check::<CallToolResult>(r#"{"resultType":"complete","content":[],"structuredContent":null}"#);
    check::<GetPromptResult>(&format!(r#"{{"messages":[],{more}}}"#));
    check::<ReadResourceResult>(&format!(r#"{{"contents":[],{kept},{more}}}"#));
    check::<ListToolsResult>(&format!(r#"{{"tools":[],"nextCursor":"",{kept},{more}}}"#));
    check::<ListPromptsResult>(&format!(r#"{{"prompts":[],{kept},{more}}}"#));
    check::<ListResourcesResult>(&format!(r#"{{"resources":[],{kept},{more}}}"#));
    check::<ListResourceTemplatesResult>(&format!(r#"{{"resourceTemplates":[],{kept},{more}}}"#));
    check::<DiscoverResult>(&format!(
        r#"{{"supportedVersions":["2026-07-28","x"],"capabilities":{ODD},{kept},{more}}}"#
    ));
    check::<ErrorObject>(&format!(r#"{{"code":-9223372036854775808,"message":"","data":{ODD}}}"#));
    check::<ErrorObject>(r#"{"code":1,"message":"x","data":null}"#);
}

#[test]
fn listed_things_keep_what_they_do_not_name() {
    let icons = format!(r#""icons":[{{"src":"a:b","sizes":[],"theme":"dark","x":{ODD}}}]"#);
    let more = format!(r#""title":"","description":"","_meta":{ODD},"execution":{ODD},{icons}"#);
    check::<Tool>(&format!(
        r#"{{"name":"n","inputSchema":{{}},"annotations":{{"title":"t","readOnlyHint":false,"x":{ODD}}},{more}}}"#
    ));
    check::<Prompt>(&format!(
        r#"{{"name":"n","arguments":[{{"name":"a","required":false,"x":{ODD}}}],{more}}}"#
    ));
    check::<Resource>(&format!(r#"{{"uri":"a:b","name":"n","size":9007199254740993,{more}}}"#));
    check::<ResourceTemplate>(&format!(r#"{{"uriTemplate":"a:{{b}}","name":"n",{more}}}"#));
    check::<Implementation>(&format!(r#"{{"name":"n","version":"","websiteUrl":"","x":{ODD},{icons}}}"#));
    check::<Icon>(r#"{"src":"data:,","mimeType":"image/png","sizes":["any"],"theme":"light"}"#);
    check::<Icon>(r#"{"src":"data:,","theme":"sepia"}"#);
}

#[test]
fn an_unknown_cache_scope_is_the_narrow_one() {
    for (word, scope) in
        [("public", CacheScope::Public), ("private", CacheScope::Private), ("team", CacheScope::Private)]
    {
        assert_eq!(serde_json::from_value::<CacheScope>(word.into()).unwrap(), scope, "{word}");
    }
}

#[test]
fn an_unknown_role_is_kept_and_an_unknown_log_level_is_not() {
    check::<SamplingMessage>(r#"{"role":"narrator","content":{"type":"text","text":""}}"#);
    check::<Annotations>(r#"{"audience":["user","","USER","assistant","narrator"]}"#);
    for (word, role) in [
        ("user", Role::User),
        ("assistant", Role::Assistant),
        ("User", Role::Other("User".into())),
        ("", Role::Other(String::new())),
    ] {
        let read: Role = serde_json::from_value(word.into()).unwrap();
        assert_eq!((&read, read.as_str()), (&role, word));
    }
    assert!(serde_json::from_str::<Role>("3").is_err());
    // What a server may send depends on it: it is not guessed.
    for level in [r#""verbose""#, r#""INFO""#, "3"] {
        let meta = format!(r#"{{"{}":{level}}}"#, meta_keys::LOG_LEVEL);
        assert!(serde_json::from_str::<RequestMeta<'_>>(&meta).is_err(), "{level}");
    }
}

#[test]
fn log_levels_rise() {
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    let read: Vec<LogLevel> =
        levels.iter().map(|word| serde_json::from_value((*word).into()).unwrap()).collect();
    assert!(read.is_sorted_by(|one, other| one < other));
}

#[test]
fn what_comes_on_a_subscription_names_it() {
    for id in ["1", r#""1""#, "-9223372036854775808", "18446744073709551615", r#""""#] {
        let id: RequestId = serde_json::from_str(id).unwrap();
        assert_eq!(Meta::for_subscription(&id).subscription_id(), Some(id.clone()));
        let text = serde_json::to_string(&ListChangedParams::new(&id)).unwrap();
        let mut written = serde_json::Map::new();
        written.insert(meta_keys::SUBSCRIPTION_ID.into(), serde_json::to_value(&id).unwrap());
        assert_eq!(text, serde_json::json!({ "_meta": written }).to_string());
    }
    for id in ["null", "1.5", "{}", "true", "[1]"] {
        let meta: Meta =
            serde_json::from_str(&format!(r#"{{"{}":{id}}}"#, meta_keys::SUBSCRIPTION_ID)).unwrap();
        assert_eq!(meta.subscription_id(), None, "{id}");
    }
    assert_eq!(Meta::default().subscription_id(), None);
}

#[test]
fn subscriptions_and_suggestions_keep_what_they_do_not_name() {
    check::<SubscriptionFilter>(&format!(
        r#"{{"toolsListChanged":false,"resourceSubscriptions":[],"tasks":{ODD},"x":null}}"#
    ));
    check::<AcknowledgedParams>(&format!(r#"{{"notifications":{{"x":{ODD}}},"_meta":{ODD}}}"#));
    check::<ListenResult>(&format!(r#"{{"resultType":"complete","_meta":{ODD},"x":{ODD}}}"#));
    check::<CompleteResult>(&format!(
        r#"{{"resultType":"complete","completion":{{"values":[""],"total":0,"hasMore":false,"x":{ODD}}},"x":{ODD}}}"#
    ));
    check::<LogMessageParams>(&format!(r#"{{"level":"alert","data":{ODD},"_meta":{ODD}}}"#));
    check::<LogMessageParams>(r#"{"level":"debug","data":null}"#);
    check::<ProgressParams>(r#"{"progressToken":0.5,"progress":1.0,"total":18446744073709551615}"#);
}

#[test]
fn references_are_not_guessed() {
    for reference in [
        r#"{"name":"n"}"#,
        r#"{"uri":"a:b"}"#,
        r#"{"type":"ref/prompt","uri":"a:b"}"#,
        r#"{"type":"ref/resource","name":"n"}"#,
        r#"{"type":"ref/tool","name":"n"}"#,
        r#"{"type":"prompt","name":"n"}"#,
        r#"["ref/prompt","n"]"#,
        "null",
    ] {
        assert!(serde_json::from_str::<CompletionReference>(reference).is_err(), "{reference}");
    }
    // By its type, not by what else is there; escapes make no difference.
    let read: CompletionReference =
        serde_json::from_str(r#"{"uri":"a:b","name":"n\u0041","title":null,"type":"ref\/prompt"}"#).unwrap();
    assert_eq!(read, CompletionReference::prompt("nA"));
}

#[test]
fn values_of_arguments_do_not_come_into_logs() {
    let text = r#"{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"city","value":"SECRET"},"context":{"arguments":{"street":"SECRET"}},"_meta":{"x":"SECRET"}}"#;
    let read: CompleteParams = serde_json::from_str(text).unwrap();
    let shown = format!("{read:?} {:?} {:?}", read.argument, read.context);
    assert!(!shown.contains("SECRET") && shown.contains("city") && shown.contains("street"), "{shown}");
    check::<CompleteParams>(text);
}

#[test]
fn answers_and_asks_keep_what_they_do_not_name() {
    check::<ElicitResult>(&format!(r#"{{"action":"accept","content":{ODD},"_meta":{ODD},"x":{ODD}}}"#));
    check::<ListRootsResult>(&format!(r#"{{"roots":[{{"uri":"file:///","name":"","x":{ODD}}}],"x":{ODD}}}"#));
    check::<CreateMessageResult>(&format!(
        r#"{{"role":"assistant","content":[],"model":"m","stopReason":"odd","x":{ODD}}}"#
    ));
    check::<CreateMessageParams>(&format!(
        r#"{{"messages":[],"maxTokens":1.0,"temperature":0.7,"includeContext":"odd","metadata":{ODD},"modelPreferences":{{"hints":[{{"name":"m","x":1}}],"costPriority":1,"x":1}},"toolChoice":{{"mode":"odd","x":1}},"x":{ODD}}}"#
    ));
    check::<InputRequest>(&format!(r#"{{"method":"roots/list","params":{{"_meta":{ODD}}}}}"#));
}

#[test]
fn nothing_is_read_by_its_place_in_an_array() {
    fn refused<T: DeserializeOwned>(array: &str) {
        assert!(serde_json::from_str::<T>(array).is_err(), "{array}: {}", std::any::type_name::<T>());
    }
    refused::<ElicitResult>(r#"["accept",{}]"#);
    refused::<ListRootsResult>(r#"[[["file:///"]]]"#);
    refused::<CreateMessageResult>(r#"["assistant",{"type":"text","text":"x"},"m"]"#);
    refused::<SamplingMessage>(r#"["user",{"type":"text","text":"x"}]"#);
    refused::<ListToolsResult>(r#"["complete",[],null,0,"private",null]"#);
    refused::<DiscoverResult>(r#"["complete",[],{},null,0,"private",null]"#);
    refused::<Icon>(r#"["a:b"]"#);
    refused::<ModelPreferences>("[]");
    refused::<ToolChoice>("[]");
    refused::<ToolUseContent>(r#"["tool_use","1","n",{}]"#);
    refused::<ToolResultContent>(r#"["tool_result","1",[]]"#);
    refused::<AskSupport>("[{}]");
    refused::<SubscriptionFilter>("[true]");
    refused::<ListenParams>(r#"{"notifications":[true]}"#);
    refused::<ListenResult>(r#"["complete",{}]"#);
    refused::<Completion>("[[]]");
    refused::<CompleteResult>(r#"["complete",{"values":[]}]"#);
    let reference = r#""ref":{"type":"ref/prompt","name":"n"}"#;
    let argument = r#""argument":{"name":"a","value":"v"}"#;
    refused::<CompleteParams>(&format!(r#"{{{reference},"argument":["a","v"]}}"#));
    refused::<CompleteParams>(&format!(r#"{{{reference},{argument},"context":[{{}}]}}"#));
    refused::<CompleteParams>(&format!(r#"{{{reference},{argument},"context":{{"arguments":{{"b":1}}}}}}"#));
    assert!(serde_json::from_str::<RequestMeta<'_>>(r#"["2026-07-28",{}]"#).is_err());
}

#[test]
fn a_capability_is_an_object() {
    let none = AskSupport::NONE;
    for capability in ["true", "false", "0", "-1", r#""yes""#, "[]", "[{}]", "null"] {
        let text = format!(r#"{{"elicitation":{capability},"sampling":{capability},"roots":{{}}}}"#);
        let mut roots = none;
        roots.roots = true;
        assert_eq!(serde_json::from_str::<AskSupport>(&text).unwrap(), roots, "{text}");
        let text = format!(
            r#"{{"elicitation":{{"url":{capability}}},"sampling":{{"tools":{capability},"context":{capability}}},"roots":{capability}}}"#
        );
        let mut without_modes = none;
        (without_modes.form, without_modes.sampling) = (true, true);
        assert_eq!(serde_json::from_str::<AskSupport>(&text).unwrap(), without_modes, "{text}");
    }
}

#[test]
fn schemas_arguments_and_answers_stay_the_text_they_are() {
    let schema = r#"{ "type": "object", "z": 1.0, "a": 1e3, "big": 123456789012345678901234567890, "properties": {"b": {}, "a": {"type" : "string"}}, "a": 2 }"#;
    let tool = format!(r#"{{"x":1,"outputSchema":{schema},"name":"n","inputSchema":{schema}}}"#);
    let read: Tool = serde_json::from_str(&tool).unwrap();
    assert_eq!((read.input_schema.text(), read.output_schema.as_ref().unwrap().text()), (schema, schema));
    assert!(serde_json::to_string(&read).unwrap().contains(&format!(r#""inputSchema":{schema}"#)));
    let list: ListToolsResult = serde_json::from_str(&format!(r#"{{"tools":[{tool}]}}"#)).unwrap();
    assert_eq!(list.tools[0].input_schema.text(), schema);
    let ask = format!(
        r#"{{"method":"sampling/createMessage","params":{{"messages":[],"maxTokens":1,"tools":[{tool}]}}}}"#
    );
    let InputRequest::CreateMessage(ask) = serde_json::from_str(&ask).unwrap() else { panic!("sampling") };
    assert_eq!(ask.tools.unwrap()[0].input_schema.text(), schema);

    let legs = format!(r#""inputResponses":{{"z":{schema},"a":null}},"requestState":"","_meta":{{"x":1}}"#);
    let call = format!(r#"{{"name":"n","arguments":{schema},{legs}}}"#);
    let read: CallToolParams = serde_json::from_str(&call).unwrap();
    assert_eq!(read.arguments.as_ref().unwrap().get(), schema);
    assert_eq!(serde_json::to_string(&read).unwrap(), call);
    // The order in which Python writes them.
    let turned = format!(r#"{{{legs},"arguments":{schema},"name":"n"}}"#);
    let read: GetPromptParams = serde_json::from_str(&turned).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), call);
    let read: ReadResourceParams = serde_json::from_str(&format!(r#"{{"uri":"a:b",{legs}}}"#)).unwrap();
    let answers = read.input_responses.unwrap();
    let answers: Vec<_> = answers.iter().map(|(key, answer)| (key, answer.get())).collect();
    assert_eq!(answers, [("z", schema), ("a", "null")]);
    assert!(serde_json::from_str::<InputResponses>(r#"{"a":1,"b":2,"\u0061":3}"#).is_err());
}

#[test]
fn numbers_that_typescript_writes_as_it_likes() {
    let resource: Resource = serde_json::from_str(r#"{"uri":"a:b","name":"n","size":1024.0}"#).unwrap();
    assert_eq!(resource.size, Some(1024));
    for (size, expected) in [("-1", None), ("0.5", None), ("1e300", None), (r#""1""#, Some(1))] {
        let text = format!(r#"{{"uri":"a:b","name":"n","size":{size}}}"#);
        assert_eq!(serde_json::from_str::<Resource>(&text).unwrap().size, expected, "{size}");
    }
    for (ttl, expected) in [("1500.0", 1500), ("-5", 0), ("0.9", 0), ("1e300", u64::MAX), ("-1e300", 0)] {
        let text = format!(r#"{{"tools":[],"ttlMs":{ttl}}}"#);
        let list: ListToolsResult = serde_json::from_str(&text).unwrap();
        assert_eq!(list.ttl_ms.0, expected, "{ttl}");
    }
    let form = r#"{"type":"object","properties":{"a":{"type":"string","minLength":2.0,"maxLength":3e0},"b":{"type":"number","minimum":0.5,"default":1.5}}}"#;
    let form: FormSchema = serde_json::from_str(form).unwrap();
    let FieldKind::Text { min_length, max_length, .. } = &form.fields()[0].kind else { panic!("text") };
    assert_eq!((*min_length, *max_length), (Some(2), Some(3)));
    assert_eq!(form.fields()[1].default_value(), Some(1.5.into()));
}

#[test]
fn a_huge_object_takes_no_quadratic_time() {
    let members: Vec<String> = (0..100_000).map(|name| format!(r#""{name}":{{}}"#)).collect();
    let members = members.join(",");
    let answers: InputResponses = serde_json::from_str(&format!("{{{members}}}")).unwrap();
    assert_eq!(answers.len(), 100_000);
    let names: Vec<String> = (0..100_000).rev().map(|name| name.to_string()).collect();
    let required = serde_json::to_string(&names).unwrap();
    let form = format!(r#"{{"type":"object","properties":{{{members}}},"required":{required}}}"#);
    let form: FormSchema = serde_json::from_str(&form).unwrap();
    assert!(form.fields().iter().all(|field| field.required));
}

/// Not every JSON text is a `Value`. Schemas with such a text are equal if their texts are.
#[test]
fn schemas_that_are_no_value_are_compared() {
    let check = |one: &str, other: &str, equal: bool| {
        let read = |text: &str| serde_json::from_str::<antiphon_wire::JsonSchema>(text).unwrap();
        assert_eq!(read(one) == read(other), equal, "{one} {other}");
    };
    check(r#"{"maximum":1e400}"#, r#"{"maximum":1e400}"#, true);
    check(r#"{"maximum":1e400}"#, r#"{"maximum":1e401}"#, false);
    check(r#"{"title":"\ud83d"}"#, r#"{"title":"\ud83e"}"#, false);
    check(r#"{"maximum":1e400}"#, "null", false);
    check(r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, true);
}
