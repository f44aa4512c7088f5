//! The answer to one POST: one JSON object, or a stream of events that ends with the response.

use crate::transport::{
    IncomingNotification, ServerReply, TransportError,
    TransportErrorKind::{Closed, HttpStatus, Malformed, TooLarge},
    http::{
        refusal,
        resume::{broken, media_type, parse_reply, read_whole},
    },
    session::answers,
};
use antiphon_wire::{Incoming, RequestId, escaped, lenient, sse::SseDecoder};
use http::{HeaderMap, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming as Body;

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
        return refusal::read_refusal(&head, body, id, limit).await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

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
}
