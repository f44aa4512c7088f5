//! The answer to one POST: one JSON object, a stream of events that ends with the response, or a refusal (the status, what the
//! body says, and when to try again).

use crate::transport::{
    IncomingNotification, MAX_RETRY_AFTER, ServerReply, TransportError,
    TransportErrorKind::{Closed, HttpStatus, Malformed, TooLarge},
    http::{
        resume::{broken, media_type, parse_reply, read_whole},
        token,
    },
    session::answers,
};
use antiphon_wire::{ErrorCode, ErrorObject, Incoming, RequestId, escaped, lenient, sse::SseDecoder};
use http::{HeaderMap, Response, StatusCode, Uri, header, response::Parts};
use http_body_util::BodyExt as _;
use hyper::body::Incoming as Body;
use std::time::Duration;
use tokio::time::timeout;

/// Reads the response to the request `id`, which went to `uri`; no body and no event may be longer than `limit`.
pub(crate) async fn read_answer(
    response: Response<Body>,
    uri: &Uri,
    id: &RequestId,
    limit: usize,
    on_notification: &mut (dyn FnMut(IncomingNotification) + Send),
) -> Result<ServerReply, TransportError> {
    let (head, body) = response.into_parts();
    if head.status.is_redirection() {
        return Err(redirected(head.status, &head.headers, uri));
    }
    if !head.status.is_success() {
        return read_refusal(&head, body, id, limit).await;
    }
    let media_type = media_type(&head.headers);
    // > If the body is a JSON-RPC _request_, the server **MUST** return either `Content-Type: application/json` (a
    // > single JSON object) or `Content-Type: text/event-stream` (an SSE response stream). The client **MUST** support
    // > both.
    match media_type.as_str() {
        "application/json" => parse_reply(&read_whole(body, limit).await?, id),
        "text/event-stream" => read_events(body, id, limit, on_notification).await,
        _ if matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => {
            Err(TransportError::new(
                Malformed,
                format!("the server answered a request with {}, as if it were a notification", head.status),
            ))
        }
        other => Err(neither_json_nor_events(other)),
    }
}

pub(crate) fn neither_json_nor_events(media_type: &str) -> TransportError {
    if media_type.is_empty() {
        return TransportError::new(Malformed, "the server's answer has no content type");
    }
    let text = format!(
        "the server's answer is neither JSON nor an event stream but `{}`: check that the URL is that of an MCP endpoint",
        escaped(media_type)
    );
    TransportError::new(Malformed, text)
}

async fn read_events(
    mut body: Body,
    id: &RequestId,
    limit: usize,
    on_notification: &mut (dyn FnMut(IncomingNotification) + Send),
) -> Result<ServerReply, TransportError> {
    let mut decoder = SseDecoder::new(limit);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|fault| broken(&fault))?.into_data() else { continue };
        decoder.push(&data);
        while let Some(event) = decoder.next_event() {
            let event = event.map_err(|fault| TransportError::new(TooLarge, fault.to_string()))?;
            if event.kind != "message" || event.data.trim_ascii().is_empty() {
                tracing::debug!(kind = %escaped(&event.kind), "an event that is no message: ignored");
                continue;
            }
            if let Some(reply) = take_event(&event.data, id, on_notification)? {
                return Ok(reply);
            }
        }
    }
    Err(TransportError::new(Closed, "the server ended the event stream before the response"))
}

fn take_event(
    data: &[u8],
    id: &RequestId,
    on_notification: &mut (dyn FnMut(IncomingNotification) + Send),
) -> Result<Option<ServerReply>, TransportError> {
    match lenient::parse(&lenient::repaired(data)) {
        // > These notifications **MUST** relate to the originating client request.
        Ok(Incoming::Notification(notification)) => on_notification(IncomingNotification::new(
            notification.method.into_owned(),
            notification.params.map(ToOwned::to_owned),
        )),
        // > The server **MUST NOT** send independent JSON-RPC _requests_ on this stream.
        Ok(Incoming::Request(request)) => {
            tracing::warn!(method = %escaped(&request.method), "the server sent a request: ignored");
        }
        Ok(Incoming::Response(response)) => match &response.id {
            Some(other) if !answers(other, id) => {
                tracing::warn!(answered = %escaped(other), asked = %escaped(id), "a response to another request: ignored");
            }
            _ => return Ok(Some(response.outcome.map(ToOwned::to_owned))),
        },
        Err(unreadable) => {
            let text = format!("the server sent an event that is no message: {}", unreadable.error.message);
            return Err(TransportError::new(Malformed, text));
        }
    }
    Ok(None)
}

/// Returns the error for a redirect. A POST with its secrets is not sent to another place. The error names only the origin of
/// the new place, because its path may itself be a secret.
pub(crate) fn redirected(status: StatusCode, headers: &HeaderMap, own: &Uri) -> TransportError {
    let place = headers.get(header::LOCATION).and_then(|value| value.as_bytes().try_into().ok());
    let place = match place.as_ref().map(|uri: &Uri| (uri.scheme_str(), uri.host())) {
        // Routers redirect like this to the path of a mounted service.
        Some(_) if place.as_ref().is_some_and(|place| adds_a_slash(own, place)) => {
            "the same URL with a slash behind its path".into()
        }
        Some((Some(scheme), Some(host))) => format!("{scheme}://{host}"),
        Some(_) => "another path of the same host".into(),
        None => "an unreadable place".into(),
    };
    let text = format!("the server answered {status} and pointed to {place}; redirects are not followed");
    TransportError::new(HttpStatus(status.as_u16()), text)
}

fn adds_a_slash(own: &Uri, place: &Uri) -> bool {
    let is_here = place.authority().is_none_or(|there| Some(there) == own.authority());
    is_here && place.path().strip_suffix('/') == Some(own.path())
}

/// The maximum number of bytes that are read of a body that explains a refusal.
const MAX_BODY: usize = 8 * 1024;
/// The time limit to read such a body: it may never end.
const BODY_TIME: Duration = Duration::from_secs(2);

/// Reads a reply whose status is no success. A JSON-RPC response in its body is the reply nevertheless, unless the status
/// refuses the caller: then the error of the response is [`TransportError::server_error`].
pub(crate) async fn read_refusal(
    head: &Parts,
    body: Body,
    id: &RequestId,
    limit: usize,
) -> Result<ServerReply, TransportError> {
    let body = read_body(head, body, limit).await;
    parse_refusal(head, &body, id)
}

/// Reads the body of such a reply.
pub(crate) async fn read_body(head: &Parts, body: Body, limit: usize) -> Vec<u8> {
    let media_type = media_type(&head.headers);
    // The reply to the request may be long; an explanation of a refusal is short.
    if media_type == "application/json" && !refuses_caller(head) {
        return read_whole(body, limit).await.unwrap_or_default();
    }
    read_beginning(&media_type, body).await
}

/// Returns the reply in such a body, or the error of the refusal.
pub(crate) fn parse_refusal(
    head: &Parts,
    body: &[u8],
    id: &RequestId,
) -> Result<ServerReply, TransportError> {
    match parse_reply(body, id) {
        Ok(reply) if !refuses_caller(head) => Ok(reply),
        _ => Err(refused(head.status, &head.headers, body)),
    }
}

/// Reads the refusal of a message that has no reply.
pub(crate) async fn read_refused(head: &Parts, body: Body) -> TransportError {
    let body = read_beginning(&media_type(&head.headers), body).await;
    refused(head.status, &head.headers, &body)
}

/// Returns `true` for a head that says who may call, or when: its meaning does not depend on the body.
fn refuses_caller(head: &Parts) -> bool {
    matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS)
        || token::challenge(&head.headers).is_some()
}

/// Reads the beginning of a body. An event stream has no more information than the status, and a page is for browsers.
pub(crate) async fn read_beginning(media_type: &str, mut body: Body) -> Vec<u8> {
    let mut read = Vec::new();
    if matches!(media_type, "text/event-stream" | "text/html") {
        return read;
    }
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            read.extend_from_slice(&data[..data.len().min(MAX_BODY - read.len())]);
            if read.len() == MAX_BODY {
                break;
            }
        }
    };
    // What arrived in time is the beginning.
    let _ = timeout(BODY_TIME, reading).await;
    read
}

/// The error for a status that comes without a reply. `body` is the beginning of its body.
pub(crate) fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> TransportError {
    let scope = if status == StatusCode::FORBIDDEN { needed_scope(headers, body) } else { None };
    if let Some(scope) = scope {
        return refusal(status, headers, body, &format!(": the token needs the scope `{}`", escaped(&scope)));
    }
    let advice = match status {
        StatusCode::UNAUTHORIZED => ": check the bearer token",
        StatusCode::FORBIDDEN => {
            ": check what the token may do, and whether the server accepts this host and origin"
        }
        StatusCode::NOT_FOUND => ": check the path of the URL",
        StatusCode::MISDIRECTED_REQUEST => ": it does not answer under this host name",
        // File servers answer a POST with these statuses.
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            ": check that the URL is that of an MCP endpoint, which accepts POST"
        }
        _ => "",
    };
    refusal(status, headers, body, advice)
}

/// The error for a status, with this advice.
pub(crate) fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8], advice: &str) -> TransportError {
    let error = server_error(body);
    let retry_after = retry_after(headers);
    let mut text = format!("the server answered {status}{advice}");
    if let Some(wait) = retry_after {
        text += &format!("; it may be tried again after {wait:?}");
    }
    let words = match &error {
        Some(error) => error.to_string(),
        None => String::from_utf8_lossy(body).split_whitespace().collect::<Vec<_>>().join(" "),
    };
    if !words.is_empty() {
        text += &format!("; it said: {}", escaped(&words));
    }
    TransportError::new(HttpStatus(status.as_u16()), text)
        .with_challenge(token::challenge(headers))
        .with_server_error(error)
        .with_retry_after(retry_after)
}

/// The scopes that the token lacks, as the error says, or else all that are required, as the challenge says.
fn needed_scope(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let lacking = || {
        let data = server_error(body)?.data?;
        let scopes =
            data.get("scopes").filter(|_| data.get("reason").is_some_and(|it| it == "insufficient_scope"));
        let scopes: Vec<&str> = scopes?.as_array()?.iter().filter_map(|scope| scope.as_str()).collect();
        Some(scopes.join(" "))
    };
    lacking().or_else(|| token::required_scope(&token::challenge(headers)?)).filter(|scope| !scope.is_empty())
}

/// The JSON-RPC error in a body, whatever request it names.
fn server_error(body: &[u8]) -> Option<ErrorObject> {
    match lenient::parse(&lenient::repaired(body)) {
        Ok(Incoming::Response(response)) => response.outcome.err(),
        _ => None,
    }
}

/// The `Retry-After` in seconds. The form with a date is not read, because the clocks may differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= MAX_RETRY_AFTER)
}

// HTTP 400 for an unknown session. The specification demands 404; some servers say it in the body of a 400.

/// The words of an unknown session, in lower case.
///
/// | words | source |
/// |---|---|
/// | no valid session id | the examples of the TypeScript SDK, and servers that began as copies of them, such as server-everything |
/// | session not found | the TypeScript SDK's transport (code -32001) behind frameworks that change its 404 to 400 |
/// | invalid or missing session id | the same examples, for GET and DELETE |
/// | invalid or expired session id | the Python SDK, as above |
/// | invalid session | servers on Express that look sessions up themselves |
const UNKNOWN: [&str; 5] = [
    "no valid session id",
    "session not found",
    "invalid or missing session id",
    "invalid or expired session id",
    "invalid session",
];

/// The codes that come with these words.
const CODES: [ErrorCode; 2] = [ErrorCode(-32000), ErrorCode(-32001)];

/// The maximum length of a body that is not JSON-RPC, in bytes. A longer one, such as a page, is about something else.
const MAX_PLAIN: usize = 256;

/// Returns `true` if the body of a 400 says that the server does not know the session. The server then did not act on the
/// request.
pub(crate) fn is_unknown_session(body: &[u8]) -> bool {
    match lenient::parse(&lenient::repaired(body)) {
        Ok(Incoming::Response(response)) => match response.outcome {
            Err(error) => CODES.contains(&error.code) && names_it(&error.message),
            Ok(_) => false,
        },
        Ok(_) => false,
        Err(_) => body.len() <= MAX_PLAIN && names_it(&String::from_utf8_lossy(body)),
    }
}

fn names_it(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    UNKNOWN.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Texts near a message, and anything.
    fn near_a_message() -> impl Strategy<Value = Vec<u8>> {
        let id = prop_oneof![
            Just(""),
            Just(r#""id":1,"#),
            Just(r#""id":"1","#),
            Just(r#""id":2,"#),
            Just(r#""id":null,"#)
        ];
        let rest = prop_oneof![
            Just(r#""result":{"a":1}"#),
            Just(r#""result":null"#),
            Just(r#""error":{"code":-32603,"message":"m"}"#),
            Just(r#""error":{}"#),
            Just(r#""method":"m""#),
            Just(r#""method":"m","params":[]"#),
        ];
        prop_oneof![
            (id, rest).prop_map(|(id, rest)| format!(r#"{{"jsonrpc":"2.0",{id}{rest}}}"#).into_bytes()),
            r#"\{("jsonrpc":"2.0"|"id":[12]|[,:"\[\]{}]|result){0,8}\}?"#.prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..60),
        ]
    }

    proptest! {
        /// Checks that only a response to this request is taken as its answer, as a JSON body or as an event.
        #[test]
        fn any_bytes_are_the_answer_or_not(bytes in near_a_message()) {
            let id = RequestId::from(1_u64);
            let mut heard = 0;
            let of_event = take_event(&bytes, &id, &mut |_| heard += 1);
            let answers = [parse_reply(&bytes, &id).ok(), of_event.ok().flatten()];
            prop_assert_eq!(format!("{:?}", answers[0]), format!("{:?}", answers[1]));
            let read: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if answers[0].is_some() {
                let names_it = read.get("id").is_none_or(|id| id.is_null() || id == 1 || id == "1");
                prop_assert!(names_it && read.get("method").is_none(), "{}", read);
            }
            let is_notification = read["method"].is_string() && read["id"].is_null();
            prop_assert!(heard == 0 || is_notification, "{}", read);
        }
    }

    #[test]
    fn a_refusal_has_the_text_of_the_server() {
        let advice = "check what the token may do, and whether the server accepts this host and origin";
        let rpc = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32000,"message":"no\u001b[2J"}}"#;
        for (status, retry, body, text, code) in [
            (
                403,
                None,
                "Access is only allowed at localhost:9182",
                format!("403 Forbidden: {advice}; it said: Access is only allowed at localhost:9182"),
                None,
            ),
            (
                403,
                None,
                rpc,
                format!("403 Forbidden: {advice}; it said: no\\u{{1b}}[2J (-32000)"),
                Some(-32000),
            ),
            (
                429,
                Some("7"),
                "Slow\r\n\tdown",
                "429 Too Many Requests; it may be tried again after 7s; it said: Slow down".into(),
                None,
            ),
            (429, Some("Wed, 21 Oct 2026 07:28:00 GMT"), "", "429 Too Many Requests".into(), None),
            (429, Some("99999999999"), "", "429 Too Many Requests".into(), None),
            (
                500,
                None,
                "\u{1b}]0;x\u{7}\u{202e}",
                r"500 Internal Server Error; it said: \u{1b}]0;x\u{7}\u{202e}".into(),
                None,
            ),
        ] {
            let mut headers = HeaderMap::new();
            retry.map(|value| headers.insert(header::RETRY_AFTER, value.parse().unwrap()));
            let error = refused(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes());
            assert_eq!(error.to_string(), format!("the server answered {text}"));
            assert_eq!(error.server_error().map(|error| error.code.0), code, "{body}");
            assert_eq!(
                error.retry_after(),
                retry.filter(|value| *value == "7").map(|_| Duration::from_secs(7))
            );
        }
        let long =
            refused(StatusCode::BAD_GATEWAY, &HeaderMap::new(), "x".repeat(8000).as_bytes()).to_string();
        assert!(long.ends_with("x… (8000 bytes)") && long.len() < 400, "{long}");
    }

    #[test]
    fn a_forbidden_request_names_the_scope() {
        let body = |data: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32600,"message":"no","data":{data}}}}}"#)
        };
        let lacks = body(r#"{"reason":"insufficient_scope","scopes":["a:pay"]}"#);
        let both = body(r#"{"reason":"insufficient_scope","scopes":["a","b"]}"#);
        let foreign = body(r#"{"reason":"insufficient_scope","scopes":["a\u001b[2J"]}"#);
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"a b\"";
        for (status, challenge, body, needed) in [
            (403, None, &*lacks, Some("a:pay")),
            (403, Some(challenge), &*lacks, Some("a:pay")),
            (403, None, &*both, Some("a b")),
            (403, Some(challenge), "", Some("a b")),
            (403, Some("Bearer scope=\"a b\", error=insufficient_scope"), "no", Some("a b")),
            (403, None, &*foreign, Some("a\\u{1b}[2J")),
            // Nothing says that it is about scopes.
            (403, Some("Bearer scope=\"a b\""), "", None),
            (403, Some("Bearer error=\"insufficient_scope\", x-scope=\"a\", scope=\"\""), "", None),
            (403, None, &*body(r#"{"reason":"other","scopes":["a"]}"#), None),
            (401, Some(challenge), "", None),
        ] {
            let mut headers = HeaderMap::new();
            challenge.map(|value| headers.insert(header::WWW_AUTHENTICATE, value.parse().unwrap()));
            let text = refused(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes()).to_string();
            let found =
                text.split_once("the token needs the scope `").and_then(|(_, rest)| rest.split_once('`'));
            assert_eq!(found.map(|(scope, _)| scope), needed, "{challenge:?} {body}: {text}");
        }
    }

    #[test]
    fn bodies_that_name_an_unknown_session() {
        let error = |code: i64, message: &str| {
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}}).to_string()
        };
        for (body, is) in [
            (error(-32000, "Bad Request: No valid session ID provided"), true),
            (error(-32001, "Session not found"), true),
            (error(-32000, "Invalid session"), true),
            (error(-32602, "Session not found"), false),
            (error(-32000, "Bad Request: Server not initialized"), false),
            ("Invalid or missing session ID".to_owned(), true),
            (json!({"error": "Invalid or missing session ID"}).to_string(), true),
            ("Bad Request".to_owned(), false),
            (String::new(), false),
            (format!("{}Session not found", " ".repeat(MAX_PLAIN)), false),
            (json!({"jsonrpc": "2.0", "id": 1, "result": {"text": "session not found"}}).to_string(), false),
        ] {
            assert_eq!(is_unknown_session(body.as_bytes()), is, "{body}");
        }
    }
}
