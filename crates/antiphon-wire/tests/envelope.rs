//! The envelope: what is a message, and what every other text is answered with.

use antiphon_wire::{Incoming, MAX_DEPTH, Unreadable};

const PARSE: &str = "-32700";
const INVALID: &str = "-32600";

/// Describes the message that is read from a text, in one line: `request 1 ping {}`, `-32600 id 1: ...`.
fn describe(message: &[u8]) -> String {
    let params = |params: Option<&serde_json::value::RawValue>| {
        params.map(|params| format!(" {}", params.get())).unwrap_or_default()
    };
    match Incoming::parse(message) {
        Ok(Incoming::Request(request)) => {
            format!("request {} {}{}", request.id, request.method, params(request.params))
        }
        Ok(Incoming::Notification(message)) => {
            format!("notification {}{}", message.method, params(message.params))
        }
        Ok(Incoming::Response(response)) => {
            let id = response.id.map_or("no id".into(), |id| id.to_string());
            match response.outcome {
                Ok(result) => format!("result {id} {}", result.get()),
                Err(error) => format!("error {id} {error}"),
            }
        }
        Err(Unreadable { id, error }) => {
            let id = id.map_or("no id".into(), |id| format!("id {id}"));
            format!("{} {id}: {}", error.code, error.message)
        }
    }
}

/// The line must begin as expected.
fn check(message: impl AsRef<[u8]>, expected: &str) {
    let (message, told) = (message.as_ref(), describe(message.as_ref()));
    let shown = String::from_utf8_lossy(&message[..message.len().min(200)]);
    assert!(told.starts_with(expected), "{shown}\n told: {told}\n expected: {expected}");
}

/// Programs of .NET and PowerShell write one before their first line.
#[test]
fn a_byte_order_mark_is_ignored() {
    for (message, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#, "request 1 ping {}"),
        (r#" {"jsonrpc":"2.0","method":"a"}"#, "notification a"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, r#"result 1 {"a":1}"#),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"none"}}"#, "error 1 "),
        ("{}", "-32600 no id"),
        ("[]", "-32600 no id: the message must be one JSON object"),
    ] {
        check(format!("\u{feff}{message}"), expected);
    }
}

#[test]
fn what_is_not_json() {
    for message in [
        "",
        " \n",
        "{",
        "}",
        "{]",
        "nul",
        "'{}'",
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        "{} {}",
        "{}x",
        "[1",
        "[1]]",
        "01",
        "\u{feff}",
        "\u{feff}\u{feff}{}",
        " \u{feff}{}",
        "{\u{feff}}",
        "\0",
        "{}\0",
        "\0{}",
        "{\0}",
        "\u{c}{}",
        "// {}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"a\nb\"}",
        r#"{"jsonrpc":"2.0","method":"a"} trailing"#,
        r#"{"jsonrpc":"2.0","method":"\ud800"#,
        r#"{"jsonrpc":"2.0","id":NaN,"method":"a"}"#,
    ] {
        check(message, "-32700 no id: Parse error");
    }
    check(vec![b'['; 4 << 20], PARSE);
    check(b"{\"a\":".repeat(1 << 16), INVALID);
}

#[test]
fn text_that_is_not_utf_8_is_not_json_wherever_it_stands() {
    for message in [
        &b"\xff"[..],
        b"[\"\xff\"]",
        b"{\"\xff\":1,\"jsonrpc\":\"2.0\",\"method\":\"a\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"b\":\"\xc3\x28\"}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"unknown\":\"\xed\xa0\x80\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"a\xf0\x9f\"}",
    ] {
        check(message, PARSE);
    }
}

#[test]
fn what_is_json_but_no_object() {
    for message in ["null", "true", "3", "-1.5e3", r#""{}""#] {
        check(message, "-32600 no id: the message must be a JSON object");
    }
    for message in ["[]", "[1]", r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "[[[]]]"] {
        check(message, "-32600 no id: the message must be one JSON object: batches");
    }
}

#[test]
fn ids() {
    for (id, shown) in [
        (r#""a""#, r#""a""#),
        (r#""""#, r#""""#),
        (r#""1""#, r#""1""#),
        (r#""\u0061""#, r#""a""#),
        ("1", "1"),
        ("0", "0"),
        ("-7", "-7"),
        ("9223372036854775808", "9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
    ] {
        check(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), &format!("request {shown} m"));
        check(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#), &format!("result {shown} {{}}"));
        // What is wrong beside the id does not hide it.
        check(format!(r#"{{"id":{id},"method":"m"}}"#), &format!("-32600 id {shown}: `jsonrpc`"));
    }
    for id in [
        "null",
        "true",
        "[]",
        "[1]",
        "{}",
        r#"{"id":1}"#,
        "1.5",
        "1.0",
        "1e3",
        "18446744073709551616",
        "-9223372036854775809",
        "1e400",
    ] {
        check(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), "-32600 no id: `id` must be");
        check(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#), "-32600 no id: `id` must be");
    }
}

#[test]
fn an_error_whose_request_was_not_read_has_no_id_or_a_null_one() {
    for id in ["", r#""id":null,"#] {
        check(
            format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"No"}}}}"#),
            "error no id No (-32700)",
        );
    }
    check(r#"{"jsonrpc":"2.0","id":true,"error":{"code":1,"message":"No"}}"#, "-32600 no id: `id` must be");
    check(r#"{"jsonrpc":"2.0","id":null,"method":"m","error":{"code":1,"message":"No"}}"#, INVALID);
    check(r#"{"jsonrpc":"2.0","result":{}}"#, "-32600 no id: `id` is missing");
}

#[test]
fn versions_of_json_rpc() {
    for jsonrpc in ["null", "2", "2.0", r#""2""#, r#""1.0""#, r#""2.0 ""#, "{}", r#"["2.0"]"#] {
        check(format!(r#"{{"jsonrpc":{jsonrpc},"id":1,"method":"m"}}"#), "-32600 id 1: `jsonrpc` must be");
    }
    check(r#"{"id":1,"method":"m"}"#, "-32600 id 1: `jsonrpc` must be");
    check(r#"{"jsonrpc":"2\u002e0","id":1,"method":"m"}"#, "request 1 m");
}

#[test]
fn a_member_stands_there_once() {
    for member in [
        r#""jsonrpc":"2.0""#,
        r#""method":"m""#,
        r#""params":{}"#,
        r#""result":{}"#,
        r#""error":{}"#,
        r#""par\u0061ms":{}"#,
    ] {
        check(
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{}},{member},{member}}}"#),
            "-32600 id 1: not a message: duplicate field",
        );
    }
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","id":1}"#, "-32600 no id: not a message: duplicate field");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","\u0069d":2}"#, "-32600 no id: not a message");
    // Members that no envelope has are nobody's.
    check(r#"{"x":1,"jsonrpc":"2.0","id":1,"method":"m","x":2}"#, "request 1 m");
}

#[test]
fn a_message_is_one_thing() {
    for (members, expected) in [
        (r#""method":"m","result":{}"#, "-32600 id 1: a message has either"),
        (r#""method":"m","result":null"#, "-32600 id 1: a message has either"),
        (r#""method":"m","error":{"code":1,"message":"x"}"#, "-32600 id 1: a message has either"),
        (r#""result":{},"error":{"code":1,"message":"x"}"#, "-32600 id 1: a response has"),
        (r#""result":{},"error":null"#, "result 1 {}"),
        (r#""result":null"#, "result 1 null"),
        (r#""params":{}"#, "-32600 id 1: `method` is missing"),
        (r#""method":null"#, "-32600 id 1: `method` is missing"),
        (r#""error":null"#, "-32600 id 1: `method` is missing"),
    ] {
        check(format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#), expected);
    }
    check(r#"{"jsonrpc":"2.0"}"#, "-32600 no id: `method` is missing");
    check("{}", "-32600 no id: `jsonrpc` must be");
}

#[test]
fn methods() {
    for method in ["3", "true", "{}", r#"["m"]"#] {
        check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":{method}}}"#), "-32600 id 1: `method` must be");
    }
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll"}"#, "request 1 tools/call");
    check(r#"{"jsonrpc":"2.0","m\u0065thod":"m"}"#, "notification m");
    check(r#"{"jsonrpc":"2.0","id":1,"method":""}"#, "request 1 ");
    let long = "m".repeat(1 << 20);
    check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{long}"}}"#), &format!("request 1 {long}"));
}

#[test]
fn params_are_an_object_and_keep_their_text() {
    for (params, kept) in [
        ("{}", " {}"),
        (r#"{ "b":1.0, "a":[1e3] }"#, r#" { "b":1.0, "a":[1e3] }"#),
        ("null", ""),
        (r#"{"a":1,"a":2}"#, r#" {"a":1,"a":2}"#),
    ] {
        check(
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#),
            &format!("request 1 m{kept}"),
        );
        check(
            format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#),
            &format!("notification m{kept}"),
        );
    }
    for params in ["[]", r#"["echo",{}]"#, "3", "true", r#""{}""#] {
        check(
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params": {params}}}"#),
            "-32600 id 1: `params` must be an object",
        );
        check(format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#), "-32600 no id: `params`");
    }
}

#[test]
fn error_objects() {
    for error in [
        "3",
        "{}",
        "[]",
        r#"[-32600,"x"]"#,
        r#""x""#,
        r#"{"code":1}"#,
        r#"{"message":"x"}"#,
        r#"{"code":"1","message":"x"}"#,
        r#"{"code":1.5,"message":"x"}"#,
        r#"{"code":1,"message":null}"#,
        r#"{"code":1,"code":1,"message":"x"}"#,
    ] {
        check(format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#), "-32600 id 1: `error` must have");
    }
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x","data":[1],"y":2}}"#, "error 1 x (-1)");
}

#[test]
fn depth() {
    let nested = |levels: usize, open: &str, close: &str| open.repeat(levels) + "1" + &close.repeat(levels);
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        // The message itself is one level; params are another.
        let in_params = |levels: usize| {
            let value = nested(levels - 2, open, close);
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"b":{value}}}}}"#)
        };
        let outside = |levels: usize| {
            let value = nested(levels - 1, open, close);
            format!(r#"{{"x":{value},"jsonrpc":"2.0","id":1,"method":"m"}}"#)
        };
        for message in [in_params(MAX_DEPTH), outside(MAX_DEPTH)] {
            check(message, "request 1 m");
        }
        for message in [in_params(MAX_DEPTH + 1), outside(MAX_DEPTH + 1), in_params(100_000)] {
            check(message, "-32600 id 1: the message nests deeper than 128");
        }
    }
    let strings = format!(r#"{{"a":"{}","b":"\"[\\","c":"{{"}}"#, "[".repeat(200));
    check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{strings}}}"#), "request 1 m");
    // Siblings do not add up.
    let many = vec!["[[]]"; 200].join(",");
    check(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":[{many}]}}}}"#), "request 1 m");
    // What the envelope lets through can be decoded.
    let params = format!(r#"{{"a":{}}}"#, nested(MAX_DEPTH - 2, "[", "]"));
    assert!(serde_json::from_str::<serde_json::Value>(&params).is_ok());
}
