//! One HTTP request to the service, with parts that a test can change.

use antiphon::serve::{MessageService, http::HttpService};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body;
use serde_json::Value;
use tower_service::Service as _;

/// The response.
pub struct HttpReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The request that a correct client sends for this message; its host is only in the header.
pub fn correct(message: &Value) -> Request<Bytes> {
    let method = message["method"].as_str().unwrap_or_default();
    let mut request = Request::post("/mcp")
        .header("host", "127.0.0.1:8000")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    let target = match method {
        "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
        "resources/read" => message["params"]["uri"].as_str(),
        _ => None,
    };
    if let Some(target) = target {
        request = request.header("mcp-name", &*antiphon_wire::header::encode(target));
    }
    request.body(message.to_string().into()).unwrap()
}

/// Gives a header exactly these values.
pub fn set<B>(request: &mut Request<B>, header: &'static str, values: &[&str]) {
    request.headers_mut().remove(header);
    for value in values {
        request.headers_mut().append(header, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
}

pub async fn post<S: MessageService>(service: &HttpService<S>, request: Request<Bytes>) -> HttpReply {
    post_body(service, request.map(Full::new)).await
}

pub async fn post_body<S, B>(service: &HttpService<S>, request: Request<B>) -> HttpReply
where
    S: MessageService,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<antiphon::serve::http::BoxBodyError>,
{
    let (parts, body) = service.clone().call(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    HttpReply { status: parts.status.as_u16(), headers: parts.headers, body }
}

impl HttpReply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {:?}", self.body))
    }

    /// Checks the status and the JSON-RPC code, which is 0 for a result, plain text or nothing, and what goes with
    /// them.
    #[track_caller]
    pub fn check(&self, what: &str, (status, code): (u16, i64)) {
        assert_eq!(self.status, status, "{what}: {:?}", self.body);
        let header = |name: &str| self.headers.get(name).map(|value| value.to_str().unwrap());
        match header("content-type") {
            None => assert_eq!((status, self.body.len()), (202, 0), "{what}"),
            Some("application/json") => {
                let reply = self.json();
                assert_eq!(reply["jsonrpc"], "2.0", "{what}");
                assert_eq!(reply["error"]["code"].as_i64().unwrap_or(0), code, "{what}: {reply}");
                assert_eq!(reply.get("result").is_some(), code == 0, "{what}: {reply}");
            }
            Some(other) => {
                assert_eq!((other, code), ("text/plain; charset=utf-8", 0), "{what}: {:?}", self.body);
                assert!(!self.body.is_empty(), "{what}");
            }
        }
        assert_eq!(header("allow"), (status == 405).then_some("POST"), "{what}");
        let is_json = header("content-type") == Some("application/json");
        let closes = matches!(status, 408 | 413) || (status == 400 && !is_json);
        assert_eq!(header("connection"), closes.then_some("close"), "{what}");
        // > ignore it, and do not mint or echo session IDs.
        assert_eq!(header("mcp-session-id"), None, "{what}");
    }
}
