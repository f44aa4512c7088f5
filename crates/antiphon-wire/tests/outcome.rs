//! The kind of a result: decided by `resultType`, then by `method` and `mode`, never by its shape.

use antiphon_wire::{
    AskKind, CallToolResult, InputRequest, InputRequiredResult, ListToolsResult, Outcome, OutcomeFault,
};

/// Describes the outcome that is read from a result, in one line.
fn describe(result: &str) -> String {
    match Outcome::<CallToolResult>::read(serde_json::from_str(result).unwrap()) {
        Ok(Outcome::Complete(result)) => format!("complete {}", result.content.len()),
        Ok(Outcome::InputRequired(result)) => {
            let asks = result.input_requests().iter().map(|(key, ask)| {
                let reason = match ask {
                    InputRequest::Unknown(ask) => ask.unreadable(),
                    _ => None,
                };
                match reason {
                    Some(reason) => format!("{key} unreadable: {reason}"),
                    None => format!("{key}={:?}", ask.kind()),
                }
            });
            let asks = asks.collect::<Vec<_>>().join(",");
            format!("asks [{asks}] state {:?}", result.request_state())
        }
        Ok(Outcome::Task(created)) => format!("task {} {}", created.task.task_id, created.task.status),
        Ok(_) => "another".into(),
        Err(fault @ OutcomeFault::Malformed(_)) => format!("malformed: {fault}"),
        Err(fault) => format!("fault: {fault}"),
    }
}

fn check(result: &str, expected: &str) {
    let told = describe(result);
    assert!(told.starts_with(expected), "{result}\n told: {told}\n expected: {expected}");
}

#[test]
fn the_result_type_decides() {
    for (result, expected) in [
        (r#"{"content":[]}"#, "complete 0"),
        (r#"{"resultType":"complete","content":[{"type":"text","text":"x"}]}"#, "complete 1"),
        (r#"{"result\u0054ype":"c\u006fmplete","content":[]}"#, "complete 0"),
        (r#"{"resultType":"complete","content":[],"requestState":"s"}"#, "complete 0"),
        (r#"{"resultType":"task","taskId":"1","status":"working","ttlMs":null}"#, "task 1 working"),
        (r#"{"resultType":"task","taskId":"1","status":"idle"}"#, "malformed"),
        (r#"{"resultType":"task","taskId":1,"content":[]}"#, "malformed"),
        (
            r#"{"task":{"taskId":"t\u001b","status":"working"}}"#,
            r#"fault: the result is a task, with the id "t\u{1b}""#,
        ),
        (
            r#"{"resultType":"complete","task":{"taskId":"t"}}"#,
            r#"fault: the result is a task, with the id "t""#,
        ),
        (r#"{"task":{"taskId":"t"},"content":[]}"#, "complete 0"),
        (r#"{"task":"a word","structuredContent":1}"#, "complete 0"),
        (r#"{"resultType":"","content":[]}"#, r#"fault: the result has the unknown resultType """#),
        (r#"{"resultType":"Complete","content":[]}"#, "fault: the result has the unknown resultType"),
        (r#"{"resultType":3,"content":[]}"#, "malformed"),
        (r#"{"resultType":null,"content":[]}"#, "complete 0"),
        (r#"{"resultType":"complete","resultType":"input_required","requestState":"s"}"#, "malformed"),
        (r#"{"content":[],"inputRequests":{}}"#, "complete 0"),
        (r#"{"content":[],"inputRequests":{"":0}}"#, "fault: the result has inputRequests but is not"),
        (r#"{"inputRequests":{"a":{"method":"roots/list"}}}"#, "fault: the result has inputRequests"),
        (r#"{"content":[],"inputRequests":null}"#, "complete 0"),
        (r#"{"resultType":"complete","content":3}"#, "malformed"),
    ] {
        check(result, expected);
    }
}

#[test]
fn a_result_is_an_object() {
    for result in
        ["null", "true", "3", r#""complete""#, "[]", r#"["complete"]"#, r#"["input_required",{},"s"]"#]
    {
        check(result, "malformed");
    }
    // Nothing is read by its place in an array.
    let list = serde_json::from_str(r#"["complete",[],null,0,"private",null]"#).unwrap();
    assert!(matches!(Outcome::<ListToolsResult>::read(list), Err(OutcomeFault::Malformed(_))));
}

#[test]
fn state_and_asks() {
    for (members, expected) in [
        ("", "fault: an InputRequiredResult has neither"),
        (r#","inputRequests":{}"#, "fault: an InputRequiredResult has neither"),
        (r#","inputRequests":null,"requestState":null"#, "fault: an InputRequiredResult has neither"),
        (r#","requestState":"s""#, r#"asks [] state Some("s")"#),
        (r#","requestState":"""#, r#"asks [] state Some("")"#),
        (r#","inputRequests":{},"requestState":"s""#, r#"asks [] state Some("s")"#),
        (r#","inputRequests":null,"requestState":"s""#, r#"asks [] state Some("s")"#),
        (r#","content":null,"requestState":"s""#, r#"asks [] state Some("s")"#),
        (r#","content":[],"isError":false,"requestState":"s""#, r#"asks [] state Some("s")"#),
        (r#","requestState":7"#, "malformed"),
        (r#","requestState":{}"#, "malformed"),
        (r#","inputRequests":[],"requestState":"s""#, r#"asks [] state Some("s")"#),
        (r#","inputRequests":[1],"requestState":"s""#, "malformed"),
        (r#","inputRequests":3,"requestState":"s""#, "malformed"),
        (r#","requestState":"s","requestState":"s""#, "malformed"),
        (r#","inputRequests":{"a":{"method":"roots/list"}}"#, "asks [a=Roots] state None"),
    ] {
        check(&format!(r#"{{"resultType":"input_required"{members}}}"#), expected);
    }
}

#[test]
fn asks_are_read_by_method_and_mode() {
    let form = r#""message":"m","requestedSchema":{"type":"object","properties":{}}"#;
    let sampling = r#"{"messages":[],"maxTokens":10}"#;
    for (ask, expected) in [
        (format!(r#"{{"method":"elicitation/create","params":{{{form}}}}}"#), "asks [k=Form]"),
        (format!(r#"{{"method":"elicitation/create","params":{{"mode":null,{form}}}}}"#), "asks [k=Form]"),
        (format!(r#"{{"params":{{{form},"mode":"form"}},"method":"elicitation\/create"}}"#), "asks [k=Form]"),
        (
            r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example"}}"#.into(),
            "asks [k=Url]",
        ),
        // Not by its shape: what has a URL and no mode is a form without a schema.
        (
            r#"{"method":"elicitation/create","params":{"message":"m","url":"https://x.example"}}"#.into(),
            "asks [k unreadable: missing field `requestedSchema`",
        ),
        (
            format!(r#"{{"method":"elicitation/create","params":{{"mode":"url",{form}}}}}"#),
            "asks [k unreadable: missing field `url`",
        ),
        (
            format!(r#"{{"method":"elicitation/create","params":{{"mode":"voice",{form}}}}}"#),
            "asks [k=Unknown]",
        ),
        (
            r#"{"method":"tasks/get","params":{}}"#.into(),
            "asks [k=Unknown]",
        ),
        (format!(r#"{{"method":"sampling/createMessage","params":{sampling}}}"#), "asks [k=Sampling]"),
        (r#"{"method":"sampling/createMessage"}"#.into(), "asks [k unreadable: "),
        (r#"{"method":"elicitation/create"}"#.into(), "asks [k unreadable: "),
        (r#"{"method":"roots/list","params":{}}"#.into(), "asks [k=Roots]"),
        (r#"{"method":"roots/list","params":null}"#.into(), "asks [k=Roots]"),
        (r#"{"method":"roots/list","params":{"_meta":{"a":1}}}"#.into(), "asks [k=Roots]"),
        (r#"{"method":"roots/list","params":[{"a":1}]}"#.into(), "asks [k unreadable: "),
        (r#"{"params":{}}"#.into(), "asks [k unreadable: missing field `method`"),
        (r#"["roots/list"]"#.into(), "asks [k unreadable: "),
        (
            r#"{"method":"elicitation/create","params":["form","m",{"type":"object","properties":{}}]}"#.into(),
            "asks [k unreadable: ",
        ),
        ("null".into(), "asks [k unreadable: "),
    ] {
        check(&format!(r#"{{"resultType":"input_required","inputRequests":{{"k":{ask}}}}}"#), expected);
    }
}

#[test]
fn asks_keep_their_order_and_their_keys_are_unique() {
    let roots = r#"{"method":"roots/list"}"#;
    let asks = |keys: &[&str]| {
        let asks: Vec<String> = keys.iter().map(|key| format!(r#""{key}":{roots}"#)).collect();
        format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, asks.join(","))
    };
    check(
        &asks(&["zeta", "", "alpha", "10", "9"]),
        "asks [zeta=Roots,=Roots,alpha=Roots,10=Roots,9=Roots] state None",
    );
    check(&asks(&["a", "b", "a"]), "malformed: the result is malformed: two asks have the key `a`");
    check(&asks(&["a", "\\u0061"]), "malformed: the result is malformed: two asks have the key `a`");
}

#[test]
fn a_huge_result_takes_no_quadratic_time() {
    let asks: Vec<String> = (0..100_000).map(|key| format!(r#""{key}":{{"method":"roots/list"}}"#)).collect();
    check(
        &format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, asks.join(",")),
        "asks [0=Roots",
    );
}

#[test]
fn what_is_made_here_is_written_for_every_client() {
    let state_only = InputRequiredResult::new(Default::default(), Some(String::new())).unwrap();
    assert_eq!(
        serde_json::to_string(&state_only).unwrap(),
        r#"{"resultType":"input_required","inputRequests":{},"requestState":""}"#
    );
    assert!(InputRequiredResult::new(Default::default(), None).is_err());
    // An elicitation without mode is written with one.
    let read = r#"{"resultType":"input_required","inputRequests":{"b":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number","minimum":1.0}}}}},"a":{"method":"roots/list"}}}"#;
    let Ok(Outcome::InputRequired(result)) =
        Outcome::<CallToolResult>::read(serde_json::from_str(read).unwrap())
    else {
        panic!("asks")
    };
    assert_eq!(result.input_requests().get("b").unwrap().kind(), AskKind::Form);
    assert_eq!(
        serde_json::to_string(&result).unwrap(),
        read.replace(r#"{"message""#, r#"{"mode":"form","message""#)
    );
}
