//! A client over real HTTP: what it repeats in headers, and what it receives on the stream of a request.
#![cfg(feature = "http")]

use crate::transport_support::server::*;
use antiphon::client::Client;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::{io::AsyncWriteExt, net::TcpStream};

/// Reads a request, answers it with this member, and gives the request's method and `mcp-param-*` headers.
async fn answers(
    connection: &mut TcpStream,
    status: &str,
    member: &str,
    value: Value,
) -> (String, Vec<String>) {
    let (head, body) = receive(connection).await;
    let request: Value = serde_json::from_slice(&body).unwrap();
    let reply = json!({"jsonrpc": "2.0", "id": request["id"], member: value}).to_string();
    connection.write_all(json_response(status, &reply).as_bytes()).await.unwrap();
    let params = head.lines().filter(|line| line.starts_with("mcp-param-")).map(str::to_owned).collect();
    (request["method"].as_str().unwrap().to_owned(), params)
}

#[tokio::test]
async fn a_refused_call_is_sent_again_with_the_headers_of_the_new_list() {
    let server = Server::new().await;
    let client = Client::builder("my-host", "1.0").connect(server.client());
    let call = tokio::spawn(async move {
        client.call_tool("route", json!({"region": "Zürich ", "rank": 7, "dry": true, "none": null})).await
    });
    let mut connection = server.accepts().await;
    let error = json!({"code": -32020, "message": "no"});
    let first = answers(&mut connection, "400 Bad Request", "error", error).await;
    assert_eq!(first, ("tools/call".into(), vec![]));
    let property = |kind: &str, header: &str| json!({"type": kind, "x-mcp-header": header});
    let tool = json!({"name": "route", "inputSchema": {"type": "object", "properties": {
        "region": property("string", "Region"),
        "rank": property("integer", "Rank"),
        "dry": property("boolean", "Dry-Run"),
        "none": property("string", "None"),
        "absent": property("string", "Absent"),
    }}});
    let list = answers(&mut connection, "200 OK", "result", json!({"tools": [tool]})).await;
    assert_eq!(list, ("tools/list".into(), vec![]));
    let (method, mut headers) = answers(&mut connection, "200 OK", "result", json!({"content": []})).await;
    headers.sort_unstable();
    let expected =
        ["mcp-param-dry-run: true", "mcp-param-rank: 7", "mcp-param-region: =?base64?wso8cmljacA=?="];
    assert_eq!((method.as_str(), headers), ("tools/call", expected.map(str::to_lowercase).to_vec()));
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn progress_comes_on_the_stream_of_its_request() {
    let server = Server::new().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    let client = Client::builder("my-host", "1.0")
        .on_progress(move |event| log.lock().unwrap().push(event.progress))
        .connect(server.client());
    let call = tokio::spawn(async move { client.call_tool("t", ()).await });
    let mut connection = server.accepts().await;
    let (_, body) = receive(&mut connection).await;
    let request: Value = serde_json::from_slice(&body).unwrap();
    let token = &request["params"]["_meta"]["progressToken"];
    let progress = |progress: f64| {
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": progress}})
            .to_string()
    };
    let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}}).to_string();
    let stream = events(&[&progress(0.5), &progress(0.5), &progress(1.0), &reply]);
    connection.write_all(stream.as_bytes()).await.unwrap();
    call.await.unwrap().unwrap();
    assert_eq!(*heard.lock().unwrap(), [0.5, 1.0]);
}
