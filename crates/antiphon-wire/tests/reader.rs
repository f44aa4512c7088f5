//! The reader of usual requests: it reads what the other readers read, or leaves the message to them.

use crate::agreement::agrees;
use antiphon_wire::{AskSupport, MAX_DEPTH, StringMember, WholeRequest};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Asserts that the reader reads the message, or that it does not, and that it agrees with the others.
fn check(message: impl AsRef<[u8]>, reads: bool) {
    let message = message.as_ref();
    let shown = String::from_utf8_lossy(&message[..message.len().min(400)]);
    match agrees(message) {
        Ok(read) => assert_eq!(read, reads, "{shown}"),
        Err(fault) => panic!("{shown}\n{fault}"),
    }
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;

/// A request with these members of the envelope and of `params` besides the required ones.
fn request(envelope: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{META}{params}}}{envelope}}}"#
    )
}

/// A request with these members of `_meta` besides the version.
fn with_meta(members: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"1"{members}}}}}}}"#
    )
}

fn with_capabilities(capabilities: &str) -> String {
    with_meta(&format!(r#","io.modelcontextprotocol/clientCapabilities":{capabilities}"#))
}

#[test]
fn usual_requests_are_read() {
    let message = request("", r#","name":"echo","arguments":{"text":"hello"}"#);
    let whole = WholeRequest::read(message.as_bytes()).unwrap();
    assert_eq!((whole.id, whole.method, whole.version), (1_i64.into(), "tools/call", "2026-07-28"));
    assert_eq!(whole.params.name.as_ref().and_then(StringMember::text), Some("echo"));
    assert_eq!(whole.params.arguments.unwrap().get(), r#"{"text":"hello"}"#);
    assert_eq!(whole.meta.asks, Some(AskSupport::FORM));
    assert_eq!(whole.meta.client_info.unwrap().get(), r#"{"name":"bench","version":"1"}"#);

    for params in [
        "",
        r#","name":"a","arguments":null"#,
        r#","uri":"file:///a","cursor":"x","task":{"ttl":60000},"other":[1,2,{"a":[]}]"#,
        r#","arguments":{"a":"\"\\\/\b\f\n\r\t\u00e9\ud800","b":[-0,0.5,1e5,1E-5,-12.5e+7,true,false,null]}"#,
        r#","inputResponses":{"a":{"action":"accept"}},"requestState":"r1.AAAA""#,
        r#","arguments":{"é":1,"e":2,"":3},"cursor":5,"task":null,"requestState":{}"#,
        ",\n\t\"name\" : \"a\" , \"arguments\" : { \"a\" : [ 1 , 2 ] , \"b\" : { } , \"c\" : [ ] }\r\n",
    ] {
        check(request("", params), true);
    }
    for id in
        ["0", "-1", "9223372036854775807", "-9223372036854775808", "18446744073709551615", r#""é""#, "\"\""]
    {
        check(request("", "").replace(r#""id":1"#, &format!(r#""id":{id}"#)), true);
    }
    check(format!(" \r\n\t{} \n", request(r#","other":{"id":7}"#, "")), true);
}

#[test]
fn metadata_is_read() {
    const NONE: &str = r#","io.modelcontextprotocol/clientCapabilities":{}"#;
    for members in [
        r#","io.modelcontextprotocol/logLevel":"warning""#,
        r#","progressToken":7"#,
        r#","progressToken":"a","io.modelcontextprotocol/clientInfo":null,"other":[{}]"#,
    ] {
        check(with_meta(&format!("{NONE}{members}")), true);
    }
    for members in [
        r#","io.modelcontextprotocol/logLevel":"loud""#,
        r#","io.modelcontextprotocol/logLevel":{"warning":null}"#,
        r#","io.modelcontextprotocol/logLevel":null"#,
        r#","progressToken":1.5"#,
        r#","progressToken":null"#,
        r#","progressToken":"\u0041""#,
        r#","a":1,"a":1"#,
    ] {
        check(with_meta(&format!("{NONE}{members}")), false);
    }
    for meta in [
        "null",
        "[]",
        "{}",
        r#"{"io.modelcontextprotocol/protocolVersion":"1"}"#,
        r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":null,"io.modelcontextprotocol/clientCapabilities":{}}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":"1","io.modelcontextprotocol/clientCapabilities":null}"#,
        r#"{"io.modelcontextprotocol/protocolVersion":"1\u0031","io.modelcontextprotocol/clientCapabilities":{}}"#,
    ] {
        check(request("", "").replace(META, meta), false);
    }
}

#[test]
fn capabilities_are_read() {
    for capabilities in [
        "{}",
        r#"{"elicitation":{}}"#,
        r#"{"elicitation":{"form":{"x":{}},"url":{}},"x":1}"#,
        r#"{"elicitation":{"url":{}}}"#,
        r#"{"sampling":{}}"#,
        r#"{"sampling":{"tools":{},"other":1e999}}"#,
        r#"{"sampling":{"context":{}},"roots":{"listChanged":true}}"#,
        r#"{"experimental":[1e999,{"elicitation":{}}]}"#,
    ] {
        check(with_capabilities(capabilities), true);
    }
    for capabilities in [
        "3",
        r#"{"elicitation":null}"#,
        r#"{"elicitation":1e999}"#,
        r#"{"elicitation":"\ud800"}"#,
        r#"{"elicitation":{"form":true}}"#,
        r#"{"sampling":{"tools":[]}}"#,
        r#"{"roots":true}"#,
        r#"{"roots":{},"roots":{}}"#,
        r#"{"sampling":{"tools":{},"tools":{}}}"#,
    ] {
        check(with_capabilities(capabilities), false);
    }
}

#[test]
fn what_is_no_usual_request_is_left_alone() {
    let usual = request("", "");
    for message in ["", " ", "{", "{}", "[]", "null", "\u{feff}{}", "3"] {
        check(message, false);
    }
    for (from, to) in [
        (r#""jsonrpc":"2.0","#, ""),
        (r#""2.0""#, "2.0"),
        (r#""2.0""#, "null"),
        (r#""2.0""#, r#""1.0""#),
        (r#""2.0""#, r#""2\u002e0""#),
        (r#""id":1,"#, ""),
        (r#""id":1"#, r#""id":null"#),
        (r#""id":1"#, r#""id":1.0"#),
        (r#""id":1"#, r#""id":1e2"#),
        (r#""id":1"#, r#""id":-0"#),
        (r#""id":1"#, r#""id":01"#),
        (r#""id":1"#, r#""id":18446744073709551616"#),
        (r#""id":1"#, r#""id":"\u0041""#),
        (r#""id":1"#, r#""id":1,"id":1"#),
        (r#""id":1"#, r#""i\u0064":1"#),
        (r#""tools/call""#, "3"),
        (r#""tools/call""#, r#""tools\/call""#),
        (r#""method":"tools/call","#, ""),
        (r#""params":{"#, r#""params":[],"x":{"#),
        (r#""params":{"#, r#""params":null,"x":{"#),
    ] {
        assert_ne!(usual.replacen(from, to, 1), usual, "{from}");
        check(usual.replacen(from, to, 1), false);
    }
    for envelope in [
        r#","result":{}"#,
        r#","result":null"#,
        r#","error":null"#,
        r#","error":{"code":1,"message":""}"#,
        r#","a":1,"a":1"#,
        ",",
        "}",
        "} {",
        "\u{c}",
    ] {
        check(request(envelope, ""), false);
    }
}

#[test]
fn what_is_no_json_is_left_alone() {
    for value in [
        "",
        "nul",
        "nulll",
        "True",
        "+1",
        "-",
        "01",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\u{1f}\"",
        "'a'",
        "/**/1",
        "NaN",
        "1\u{a0}",
        "[1}",
        "{\"a\":1]",
        "[1:",
        "{\"a\":1:",
        "[}",
        "{]",
    ] {
        check(request("", &format!(r#","arguments":{value}"#)), false);
    }
    let mut message = request("", r#","arguments":"a""#).into_bytes();
    let place = message.len() - 4;
    message[place] = 0xFF;
    check(&message, false);
}

#[test]
fn names_that_are_there_twice_are_left_alone() {
    for params in [
        r#","name":"a","name":"a""#,
        r#","other":1,"other":2"#,
        r#","arguments":{"a":1,"a":2}"#,
        r#","arguments":{"a":[[{"b":{},"c":1,"b":{}}]]}"#,
        r#","arguments":{"":1,"":2}"#,
        r#","arguments":{"é":1,"é":2}"#,
        // Not twice, but not decoded.
        r#","arguments":{"\u0061":1}"#,
        r#","argument\u0073":{}"#,
    ] {
        check(request("", params), false);
    }
    let many = |last: &str| {
        let members: Vec<String> = (0..1000).map(|number| format!("\"name{number}\":{{}}")).collect();
        format!(r#","arguments":{{{},"{last}":0}}"#, members.join(","))
    };
    check(request("", &many("name")), true);
    check(request("", &many("name500")), false);
    check(request("", r#","arguments":{"a":{"a":{"a":1}},"b":{"a":1}}"#), true);
}

#[test]
fn nesting_has_the_limit_of_messages() {
    for (inside, reads) in [(MAX_DEPTH - 2, true), (MAX_DEPTH - 1, false)] {
        let arrays = format!("{}{}", "[".repeat(inside), "]".repeat(inside));
        check(request("", &format!(r#","arguments":{arrays}"#)), reads);
        let objects = format!("{}1{}", r#"{"a":"#.repeat(inside), "}".repeat(inside));
        check(request("", &format!(r#","arguments":{objects}"#)), reads);
    }
}

/// White space, mostly none.
fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![9 => Just(""), 1 => select(vec![" ", "\n", "\t\r", "\u{c}"])]
}

/// The text of a JSON value, or nearly of one.
fn value() -> impl Strategy<Value = String> {
    let leaf = select(vec![
        "null",
        "true",
        "false",
        "0",
        "-0",
        "17",
        "-1.5e+3",
        "1e999",
        "01",
        "1.",
        "\"\"",
        "\"a\"",
        "\"2.0\"",
        "\"\\u0061\"",
        "\"\\ud800\"",
        "\"\\\"\"",
        "\"é\u{1d11e}\"",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
        "{}",
        "[]",
        "18446744073709551616",
    ]);
    leaf.prop_map(String::from).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec((space(), inner.clone()).prop_map(|(space, value)| format!("{space}{value}")), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            vec(member(any_name(), inner), 0..4).prop_map(|members| object(&members)),
        ]
    })
}

/// Few names, so that one is often there twice.
fn any_name() -> impl Strategy<Value = &'static str> {
    select(vec![
        "a",
        "b",
        "",
        "é",
        "a\\u0061",
        "id",
        "name",
        "_meta",
        "method",
        "params",
        "result",
        "error",
        "form",
        "url",
        "tools",
        "context",
        "elicitation",
        "sampling",
        "roots",
        "progressToken",
        "cursor",
        "arguments",
    ])
}

fn member(
    name: impl Strategy<Value = &'static str>,
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    (name, space(), space(), value)
        .prop_map(|(name, before, behind, value)| format!("\"{name}\"{before}:{behind}{value}"))
}

fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

/// A member of this name and one of these values, there once, as it should be; or almost.
fn usually(
    name: &'static str,
    values: &'static [&'static str],
) -> impl Strategy<Value = Vec<String>> + use<> {
    let expected = || select(values).prop_map(String::from);
    let there = prop_oneof![30 => expected(), 1 => value()];
    let there = member(Just(name), there);
    prop_oneof![30 => vec(there, 1), 1 => Just(Vec::new()), 1 => vec(member(Just(name), expected()), 2)]
}

/// An object with these members, some others, in any order.
fn shuffled(
    members: Vec<BoxedStrategy<Vec<String>>>,
    others: std::ops::Range<usize>,
) -> impl Strategy<Value = String> {
    let others = prop_oneof![3 => Just(Vec::new()), 1 => vec(member(any_name(), value()), others)];
    (members, others)
        .prop_map(|(members, others)| members.into_iter().flatten().chain(others).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(|members| object(&members))
}

fn capabilities() -> impl Strategy<Value = String> {
    let modes = &["{}", "{\"form\":{}}", "{\"url\":{}}", "{\"tools\":{},\"url\":{}}", "{\"form\":1}"];
    let members = vec![
        usually("elicitation", modes).boxed(),
        usually("sampling", modes).boxed(),
        usually("roots", modes).boxed(),
    ];
    shuffled(members, 1..3)
}

fn meta() -> impl Strategy<Value = String> {
    let declared = member(Just("io.modelcontextprotocol/clientCapabilities"), capabilities());
    let members = vec![
        usually("io.modelcontextprotocol/protocolVersion", &["\"2026-07-28\"", "\"\""]).boxed(),
        vec(declared, 1).boxed(),
        usually("io.modelcontextprotocol/clientInfo", &["{\"name\":\"a\"}", "null"]).boxed(),
        usually("io.modelcontextprotocol/logLevel", &["\"debug\"", "\"emergency\""]).boxed(),
        usually("progressToken", &["1", "-1", "\"a\"", "9223372036854775808"]).boxed(),
    ];
    shuffled(members, 1..3)
}

fn params() -> impl Strategy<Value = String> {
    let members = vec![
        vec(member(Just("_meta"), meta()), 1).boxed(),
        usually("name", &["\"echo\"", "\"\""]).boxed(),
        usually("uri", &["\"file:///a\""]).boxed(),
        vec(member(Just("arguments"), value()), 0..2).boxed(),
        vec(member(Just("inputResponses"), value()), 0..2).boxed(),
        usually("requestState", &["\"r1.AAAA\"", "null"]).boxed(),
        usually("cursor", &["\"a\""]).boxed(),
    ];
    shuffled(members, 1..3)
}

fn message() -> impl Strategy<Value = String> {
    let members = vec![
        usually("jsonrpc", &["\"2.0\""]).boxed(),
        usually("id", &["1", "\"a\"", "-1", "0"]).boxed(),
        usually("method", &["\"tools/call\"", "\"prompts/get\"", "\"\""]).boxed(),
        vec(member(Just("params"), params()), 1).boxed(),
    ];
    shuffled(members, 1..2)
}

/// Changes to the bytes of a message.
#[derive(Clone, Debug)]
enum Change {
    Replace(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Repeat(Index, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let byte = || prop_oneof![3 => select(b"{}[]:,\"\\ 0123-.eEun\n\t\0".to_vec()), 1 => any::<u8>()];
    let change = prop_oneof![
        4 => (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        4 => (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        4 => any::<Index>().prop_map(Change::Remove),
        1 => any::<Index>().prop_map(Change::Cut),
        2 => (any::<Index>(), 0_usize..40).prop_map(|(at, length)| Change::Repeat(at, length)),
    ];
    vec(change, 1..4)
}

fn changed(message: &str, changes: &[Change]) -> Vec<u8> {
    let mut bytes = message.as_bytes().to_vec();
    for change in changes {
        let length = bytes.len().max(1);
        match change {
            Change::Insert(at, byte) => bytes.insert(at.index(bytes.len() + 1), *byte),
            _ if bytes.is_empty() => {}
            Change::Replace(at, byte) => bytes[at.index(length)] = *byte,
            Change::Remove(at) => drop(bytes.remove(at.index(length))),
            Change::Cut(at) => bytes.truncate(at.index(length)),
            Change::Repeat(at, many) => {
                let start = at.index(length);
                let end = length.min(start + many);
                let piece = bytes[start..end].to_vec();
                bytes.splice(end..end, piece);
            }
        }
    }
    bytes
}

/// A value that nothing is unusual about.
fn tidy() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<Option<bool>>().prop_map(|value| value.into()),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 60, 40, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
            proptest::collection::btree_map("[a-zA-Z0-9_é]{0,20}", inner, 0..40)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn messages_are_read_as_by_the_others(message in message()) {
        agrees(message.as_bytes()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn changed_messages_are_read_as_by_the_others(message in message(), changes in changes()) {
        agrees(&changed(&message, &changes)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn changed_usual_messages_are_read_as_by_the_others(changes in changes()) {
        let message = request("", r#","name":"echo","arguments":{"text":"hello","more":[1,{"a":2.5e3}]},"cursor":"x""#);
        agrees(&changed(&message, &changes)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn any_bytes_are_read_as_by_the_others(bytes in vec(any::<u8>(), 0..200)) {
        agrees(&bytes).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_the_arguments_of_a_usual_request_are_it_is_read(arguments in tidy(), pretty in any::<bool>()) {
        let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
        let message = request("", &format!(r#","name":"echo","arguments":{}"#, write(&arguments).unwrap()));
        prop_assert_eq!(agrees(message.as_bytes()), Ok(true));
    }
}

/// The generator makes messages that the reader reads, and others.
#[test]
fn the_generated_messages_are_of_both_kinds() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let messages = message();
    let read = (0..400)
        .filter(|_| {
            let message = messages.new_tree(&mut runner).unwrap().current();
            WholeRequest::read(message.as_bytes()).is_some()
        })
        .count();
    assert!((20..380).contains(&read), "{read} of 400 are read");
}
