//! Any head and any body receives a response as the specification requires. A tool runs only if the routing headers
//! agree with the body, so that an intermediary that reads only the headers is not misled.

#![no_main]

use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, Tool},
};
use antiphon_fuzz::{block_on, server};
use antiphon_wire::header::decode;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::{LazyLock, Mutex},
};
use tower_service::Service as _;

/// The region of each call of the tool.
static RAN: Mutex<Vec<String>> = Mutex::new(Vec::new());

static SERVICE: LazyLock<HttpService> = LazyLock::new(|| {
    let tool = Tool::new("mirrored", async |_: &Ctx, arguments: MirroredArguments| {
        RAN.lock().expect("nothing panics").push(arguments.region);
        "done".to_owned()
    });
    HttpService::new(server().modern_only(true).tool(tool).build().expect("one tool"), HttpOptions::default())
});

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct MirroredArguments {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// Reads one header per line, an empty line, and the body. Adds the headers of a correct client that are absent.
fn read(bytes: &[u8]) -> Option<(HeaderMap, &[u8])> {
    let at = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let mut headers = HeaderMap::new();
    for line in bytes[..at].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line[colon + 1..].trim_ascii();
        headers.append(HeaderName::from_bytes(&line[..colon]).ok()?, HeaderValue::from_bytes(value).ok()?);
    }
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "mirrored"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    Some((headers, &bytes[at + 2..]))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((headers, body)) = read(bytes) else { return };
    let mut request =
        Request::post("/mcp").body(Full::new(VecDeque::from(body.to_vec()))).expect("a request");
    *request.headers_mut() = headers.clone();
    let (status, is_json, reply) = block_on(async {
        let response = SERVICE.clone().call(request).await.expect("no response fails");
        let (head, reply) = response.into_parts();
        let is_json = head.headers.get("content-type").is_some_and(|kind| kind == "application/json");
        (head.status.as_u16(), is_json, reply.collect().await.expect("a body of ours").to_bytes())
    });
    let ran = std::mem::take(&mut *RAN.lock().expect("nothing panics"));
    assert!(ran.len() <= 1);
    if let [region] = &*ran {
        check_agreement(&headers, &serde_json::from_slice(body).expect("the body of a call is JSON"), region);
        assert_eq!(status, 200);
    }
    if is_json {
        check_response(&reply, body);
    } else {
        // > If the server accepts it, the server MUST return HTTP status code 202 Accepted with no body.
        assert!([202, 403, 404, 406, 413, 415, 421].contains(&status) || status == 200, "{status}");
        assert_eq!(reply.is_empty(), status == 202);
    }
});

/// Checks that the headers and the body of a call agree.
fn check_agreement(headers: &HeaderMap, body: &Value, region: &str) {
    let single = |name: &str| {
        let all: Vec<_> = headers.get_all(name).iter().collect();
        let [value] = &all[..] else { panic!("{name}: {all:?}") };
        decode(value.to_str().expect("the value is ASCII")).expect("the value decodes").into_owned()
    };
    assert_eq!(single("mcp-method"), body["method"]);
    assert_eq!(single("mcp-name"), body["params"]["name"]);
    assert_eq!(
        single("mcp-protocol-version"),
        body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
    );
    assert_eq!(single("mcp-param-region"), body["params"]["arguments"]["region"]);
    assert_eq!(region, body["params"]["arguments"]["region"]);
}

/// Checks a JSON response. If the body was a request, the response has its id.
fn check_response(reply: &[u8], body: &[u8]) {
    let reply: Value = serde_json::from_slice(reply).expect("the content type is JSON");
    assert_eq!(reply["jsonrpc"], "2.0");
    assert_ne!(reply.get("result").is_some(), reply.get("error").is_some(), "{reply}");
    match (&reply["id"], serde_json::from_slice::<Value>(body)) {
        (Value::Null, _) => assert!(reply.get("error").is_some()),
        (id, Ok(request)) => assert_eq!(*id, request["id"]),
        // For example, a body with a duplicate member.
        (_, Err(_)) => {}
    }
}
