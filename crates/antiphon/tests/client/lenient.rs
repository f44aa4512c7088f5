//! Servers whose messages are not quite those of the specification: their texts as they write them.

use crate::{client_support::*, log::take_log};
use antiphon::client::{Client, ClientError, transport::memory};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// A client of a server that answers the methods with these texts. `ID` in a text is the request's id, and `\n` separates
/// messages.
fn client(answers: &'static [(&'static str, &'static str)]) -> Client {
    let (transport, reader, mut writer) = memory::duplex();
    tokio::spawn(async move {
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = request.get("id") else { continue };
            let discovered = r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#;
            let method = request["method"].as_str().unwrap();
            let answer = answers.iter().find(|(name, _)| *name == method);
            let answer = answer.map_or(discovered, |(_, answer)| answer).replace("ID", &id.to_string());
            writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    });
    builder().on_elicit_form(async |ask| Ok(ask.decline())).connect(transport)
}

/// Calls the tool `t` of a server that answers with this text.
async fn call(answer: &'static str) -> Result<String, ClientError> {
    let answers = Box::leak(Box::new([("tools/call", answer)]));
    let result = client(answers).call_tool("t", ()).await?;
    Ok(serde_json::to_string(&result.content).unwrap())
}

#[tokio::test(start_paused = true)]
async fn half_of_a_surrogate_pair_costs_no_message() {
    for (answer, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"cut \ud83d"}]}}"#,
            Ok("cut \u{fffd}"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"name":"\udc00"}}}"#,
            Ok("[]"),
        ),
        (r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"cut \ud83d"}}"#, Err("cut \u{fffd} (-1)")),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"\ud83d","requestedSchema":{"type":"object","properties":{"b":{"type":"string","title":"\ud83d"}}}}}}}}"#,
            Err("max_rounds"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","requestState":"\ud83d"}}"#,
            Err("the server's answer is invalid"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"b":{"type":"string","enum":["x","\ud83d"]}}}}}}}}"#,
            Err("field `b`: a choice has half of a surrogate pair"),
        ),
    ] {
        match (call(answer).await, expected) {
            (Ok(content), Ok(text)) => assert!(content.contains(text), "{answer}: {content}"),
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{answer}: {error}"),
            (result, _) => panic!("{answer}: {result:?}"),
        }
    }
}

#[tokio::test]
async fn an_entry_that_does_not_decode_costs_no_list() {
    take_log();
    let tools = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"good","icons":null,"annotations":[],"description":"\ud83d","inputSchema":{"type":"object","title":"\ud83d"}},{"name":"b\u001bad"},null]}}"#;
    let prompts =
        r#"{"jsonrpc":"2.0","id":ID,"result":{"prompts":[{"name":"good","arguments":null},{"name":3}]}}"#;
    let resources =
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resources":[{"uri":"a:b"},{"uri":"a:b","name":"good"}]}}"#;
    let templates = r#"{"jsonrpc":"2.0","id":ID,"result":{"resourceTemplates":[[],{"uriTemplate":"a:{b}","name":"good","icons":null}]}}"#;
    let client = client(Box::leak(Box::new([
        ("tools/list", tools),
        ("prompts/list", prompts),
        ("resources/list", resources),
        ("resources/templates/list", templates),
    ])));
    let tools = client.list_tools().await.unwrap();
    assert_eq!((tools.len(), tools[0].description.as_deref()), (1, Some("\u{fffd}")));
    assert!(serde_json::to_value(&tools).is_ok());
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
    assert_eq!(client.list_resources().await.unwrap().len(), 1);
    assert_eq!(client.list_resource_templates().await.unwrap().len(), 1);
    let log = take_log();
    let warnings: Vec<&str> =
        log.lines().filter(|line| line.contains("an entry of the server's list is left out")).collect();
    assert_eq!(warnings.len(), 5, "{log}");
    assert!(warnings[0].contains(r"b\u{1b}ad") && warnings[0].contains("inputSchema"), "{}", warnings[0]);
}

#[tokio::test(start_paused = true)]
async fn a_response_whose_id_is_in_another_notation() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":"ID","result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID.0,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":IDe0,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"ID","error":{"code":-1,"message":"no"}}"#,
    ] {
        match call(answer).await {
            Ok(content) => assert_eq!(content, "[]"),
            Err(error) => assert!(error.to_string().contains("no (-1)"), "{answer}: {error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_to_a_request_that_was_never_made_is_logged_once() {
    for stray in ["99", r#""99""#, r#""01""#, "99.0"] {
        take_log();
        let other = format!(r#"{{"jsonrpc":"2.0","id":{stray},"result":{{"content":[]}}}}"#);
        let answer =
            format!("{other}\n{other}\n{{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{{\"content\":[]}}}}");
        assert_eq!(call(Box::leak(answer.into_boxed_str())).await.unwrap(), "[]");
        let log = take_log();
        assert_eq!(log.matches("a response to a request that was never made").count(), 1, "{log}");
    }
    // A response may come late, or twice.
    take_log();
    let again = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#;
    let answer = format!("{again}\n{again}\n{}", again.replace("ID", "\"ID\""));
    assert_eq!(call(Box::leak(answer.into_boxed_str())).await.unwrap(), "[]");
    assert!(!take_log().contains("never made"));
}

#[tokio::test]
async fn a_result_without_content_is_an_error() {
    for (answer, expected) in [
        (r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#, "neither `content` nor `structuredContent`"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete"}}"#, "neither `content` nor"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"isError":true}}"#, "neither `content` nor"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#, "neither `content` nor"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"requestState":"foo"}}"#, "the form of an older draft"),
        (r#"{"jsonrpc":"2.0","id":ID,"result":{"content":null}}"#, ""),
    ] {
        let error = call(answer).await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{answer}: {error}");
    }
}
