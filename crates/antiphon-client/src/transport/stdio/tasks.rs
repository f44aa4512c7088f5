//! The two tasks of a connection: one reads, one writes.

use crate::transport::{
    IncomingNotification, ServerMessage, TransportError,
    TransportErrorKind::{Closed, Malformed, TooLarge},
    session::messages,
    stdio::in_flight_requests::{Addressee, InFlightRequests},
};
use antiphon_wire::{
    ForeignText, Incoming, Notification, RequestId, Response, escaped,
    extension::check_method,
    framing::{Line, LineBuffer},
    lenient, method,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The number of lines in a row without a message after which the other end is not considered a server.
const MAX_STRAY_LINES: usize = 100;

/// Writes the queued messages until the queue ends; then closes the writing side.
pub(crate) async fn write(requests: &InFlightRequests, mut writer: impl AsyncWrite + Unpin) {
    while let Some((id, mut line)) = requests.next_outgoing().await {
        // > Messages are delimited by newlines, and **MUST NOT** contain embedded newlines.
        // In JSON a bare line end is white space.
        for byte in &mut line {
            if matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        line.push(b'\n');
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        if let Err(fault) = written.await {
            let error = TransportError::new(Closed, "the server does not read any more").with_source(fault);
            if let Some(id) = id {
                requests.settle(&id, Err(error.clone()));
            }
            requests.end_writing(error);
            break;
        }
    }
    let _ = writer.shutdown().await;
}

/// Reads messages and hands them to the requests, until the other end closes.
pub(crate) async fn read(requests: &InFlightRequests, mut reader: impl AsyncRead + Unpin, max_line: usize) {
    let mut lines = LineBuffer::new(max_line);
    let mut chunk = vec![0; 32 * 1024];
    let mut strays = 0;
    let error = 'reading: loop {
        match reader.read(&mut chunk).await {
            Ok(0) if lines.is_mid_line() => {
                break TransportError::new(
                    Closed,
                    "the server closed the connection in the middle of a message",
                );
            }
            Ok(0) => break TransportError::new(Closed, "the server closed the connection"),
            Ok(count) => lines.push(&chunk[..count]),
            Err(fault) => {
                break TransportError::new(Closed, "the connection to the server broke").with_source(fault);
            }
        }
        while let Some(line) = lines.next_line() {
            let is_message = match line {
                Line::Whole(line) => take_line(requests, &line),
                // The line may have been the response to any request, so all of them fail.
                Line::TooLong => {
                    let text = format!("the server sent a line longer than {max_line} bytes");
                    requests.fail_sent(&TransportError::new(TooLarge, text));
                    true
                }
            };
            strays = if is_message { 0 } else { strays + 1 };
            if strays == MAX_STRAY_LINES {
                let text = format!(
                    "{strays} lines in a row were no messages: this is no MCP server, or it logs to its output"
                );
                break 'reading TransportError::new(Malformed, text);
            }
        }
    };
    requests.end(error);
}

/// `false` if the line is no message.
fn take_line(requests: &InFlightRequests, line: &[u8]) -> bool {
    let line = &*lenient::repaired(line);
    // Only legacy revisions have batches.
    if line.first() != Some(&b'[') || !requests.in_session() {
        return take_message(requests, line);
    }
    // Each message of a batch is processed, even if others are invalid.
    let bad = messages(line).into_iter().filter(|message| !take_message(requests, message));
    bad.count() == 0
}

fn take_message(requests: &InFlightRequests, line: &[u8]) -> bool {
    match lenient::parse(line) {
        Ok(Incoming::Response(response)) => take_response(requests, response),
        Ok(Incoming::Notification(notification)) => take_notification(requests, notification),
        // > The server **MUST NOT** write JSON-RPC _requests_ to `stdout`.
        // Only modern servers send no requests; on a legacy session they do.
        Ok(Incoming::Request(request)) => {
            let method = ForeignText::new(request.method.clone().into_owned());
            if !requests.offer(request.into()) {
                tracing::warn!(%method, "the server sent a request: ignored");
            }
        }
        Err(unreadable) => {
            let text = format!("the server's answer is no response: {}", unreadable.error.message);
            let settled = unreadable
                .id
                .is_some_and(|id| requests.settle(&id, Err(TransportError::new(Malformed, text))));
            if !settled {
                tracing::warn!(line = %ForeignText::from_bytes(beginning(line)), "the server wrote a line that is no message: ignored");
            }
            return settled;
        }
    }
    true
}

fn take_response(requests: &InFlightRequests, response: Response<'_>) {
    match (response.id, response.outcome) {
        // > The client **SHOULD** ignore any response to the cancelled request that arrives afterward
        (Some(id), outcome) => {
            let id = match id.text_as_number() {
                Some(number) if requests.is_sent(&number) => number,
                _ => id,
            };
            if requests.settle(&id, Ok(outcome.map(ToOwned::to_owned))) {
                return;
            }
            if requests.is_first_stray(&id) {
                tracing::warn!(id = %escaped(&id), "the server sent a response to a request that was never made: ignored, as later ones");
            } else {
                tracing::debug!(id = %escaped(&id), "ignored a response, because no request waits for it");
            }
        }
        (None, Err(error)) => {
            let (code, message) = (error.code, ForeignText::new(error.message.clone()));
            if !requests.settle_only(error) {
                tracing::warn!(%code, %message, "the server sent an error without the id of a request");
            }
        }
        (None, Ok(_)) => {}
    }
}

fn take_notification(requests: &InFlightRequests, notification: Notification<'_>) {
    let addressee = addressee(&notification.method, notification.params)
        .filter(|addressee| *addressee != Addressee::AnyOne || !requests.in_session());
    let method = notification.method.into_owned();
    let notification = IncomingNotification::new(method, notification.params.map(ToOwned::to_owned));
    let left = match &addressee {
        None => Err(notification),
        Some(addressee) => requests.notify(addressee, notification),
    };
    match (left, addressee) {
        (Ok(()), Some(Addressee::Ending(id))) => {
            requests.settle(&id, Err(TransportError::new(Closed, "the server ended the subscription")));
        }
        (Ok(()), _) => {}
        (Err(notification), _) => {
            if !requests.offer(ServerMessage::Notification(notification)) {
                tracing::trace!("a notification that belongs to no request under way: ignored");
            }
        }
    }
}

/// The members that name the request of a notification.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    progress_token: Option<RequestId>,
    request_id: Option<RequestId>,
    #[serde(rename = "_meta")]
    meta: ReferenceMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReferenceMeta {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: Option<RequestId>,
}

fn addressee(method: &str, params: Option<&RawValue>) -> Option<Addressee> {
    let reference: Reference =
        params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
    match method {
        method::PROGRESS => reference.progress_token.map(Addressee::Request),
        // > A server **MUST** send `notifications/cancelled` referencing a `subscriptions/listen` request ID when it
        // > tears down that subscription stream
        method::CANCELLED => reference.request_id.map(Addressee::Ending),
        // > Clients **MUST** correlate these using the `io.modelcontextprotocol/subscriptionId` field in `_meta`
        _ if reference.meta.subscription.is_some() => reference.meta.subscription.map(Addressee::Request),
        method::MESSAGE => Some(Addressee::OnlyOne),
        // Nothing in a notification of an extension names its request, nor does its callback receive that.
        _ => check_method(method).is_ok().then_some(Addressee::AnyOne),
    }
}

/// Returns the beginning of a line, long enough to recognize the line in a log.
fn beginning(line: &[u8]) -> &[u8] {
    &line[..line.len().min(400)]
}
