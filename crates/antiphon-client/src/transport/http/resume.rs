//! Reads responses: one body, and event streams that may break and be resumed.

use crate::transport::{
    ServerMessage, ServerReply, TransportError,
    TransportErrorKind::{Closed, Malformed, TooLarge},
    session::{answers, sort},
};
use antiphon_wire::{Incoming, RequestId, escaped, lenient, sse::SseDecoder};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming as Body};
use std::{error::Error as StdError, io, time::Duration};

/// The wait before a stream is opened again, if the server sent no `retry`. It doubles with each failure, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The minimum wait, also if the server sends a `retry` of 0.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// The position in a stream.
#[derive(Default)]
pub(crate) struct Cursor {
    /// > it **SHOULD** issue an HTTP GET to the MCP endpoint, and include the `Last-Event-ID` header to indicate the last
    /// > event ID it received.
    pub(crate) last_id: Option<String>,
    retry: Option<Duration>,
}

impl Cursor {
    /// The wait before the stream is opened again, after `failures` in a row.
    ///
    /// > The client **MUST** respect the `retry` field, waiting the given number of milliseconds before attempting to
    /// > reconnect.
    pub(crate) fn wait(&self, failures: u32) -> Duration {
        let doubled = 2_u32.checked_pow(failures).unwrap_or(u32::MAX);
        let backoff = FIRST_WAIT.saturating_mul(doubled).min(LONGEST_WAIT);
        match self.retry {
            Some(told) if failures == 0 => told.max(SHORTEST_WAIT),
            Some(told) => told.max(backoff),
            None => backoff,
        }
    }
}

/// The end of a connection.
pub(crate) enum ConnectionEnd {
    /// The stream ended with the response.
    Answered(ServerReply),
    /// The stream ended without the response. The cursor shows if it can be resumed.
    Cut(TransportError),
}

/// Reads one connection of the stream of the request `id`, or of none, to its end.
pub(crate) async fn read_connection(
    mut body: Body,
    id: Option<&RequestId>,
    cursor: &mut Cursor,
    limit: usize,
    on_message: &mut (dyn FnMut(ServerMessage) + Send),
) -> Result<ConnectionEnd, TransportError> {
    let mut decoder = SseDecoder::new(limit);
    while let Some(frame) = body.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(fault) => {
                let error = broken(&fault);
                return if error.kind() == Closed { Ok(ConnectionEnd::Cut(error)) } else { Err(error) };
            }
        };
        decoder.push(&data);
        // Events without data count too: a server sends them for their id and `retry` only.
        if let Some(id) = decoder.last_id().filter(|id| Some(*id) != cursor.last_id.as_deref()) {
            cursor.last_id = Some(id.to_owned());
        }
        cursor.retry = decoder.retry().or(cursor.retry);
        while let Some(event) = decoder.next_event() {
            let event = event.map_err(|fault| TransportError::new(TooLarge, fault.to_string()))?;
            if event.kind != "message" || event.data.trim_ascii().is_empty() {
                continue;
            }
            let reply = sort(&event.data, id, on_message).map_err(|unreadable| {
                let text =
                    format!("the server sent an event that is no message: {}", unreadable.error.message);
                TransportError::new(Malformed, text)
            })?;
            if let Some(reply) = reply {
                return Ok(ConnectionEnd::Answered(reply));
            }
        }
    }
    Ok(ConnectionEnd::Cut(TransportError::new(
        Closed,
        "the server ended the event stream before the response",
    )))
}

/// Returns the media type of a body, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reads a whole body of at most `limit` bytes.
pub(crate) async fn read_whole(mut body: Body, limit: usize) -> Result<Vec<u8>, TransportError> {
    let too_large =
        || TransportError::new(TooLarge, format!("the server's answer is longer than {limit} bytes"));
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(too_large());
    }
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|fault| broken(&fault))?.into_data() else { continue };
        if whole.len() + data.len() > limit {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

/// Parses the reply to a request. An error may leave out the id, because HTTP shows the request. A response with another id
/// belongs to another request.
pub(crate) fn parse_reply(bytes: &[u8], id: &RequestId) -> Result<ServerReply, TransportError> {
    let text = match lenient::parse(&lenient::repaired(bytes)) {
        Ok(Incoming::Response(response)) => match &response.id {
            Some(other) if !answers(other, id) => {
                format!("the server answered request {other} instead of {id}")
            }
            _ => return Ok(response.outcome.map(ToOwned::to_owned)),
        },
        Ok(_) => "the server answered with a request or a notification instead of a response".to_owned(),
        Err(unreadable) => format!("the server's answer is no response: {}", unreadable.error.message),
    };
    Err(TransportError::new(Malformed, text))
}

/// Returns the error of an exchange that failed after its connection was open.
pub(crate) fn broken(fault: &(dyn StdError + 'static)) -> TransportError {
    let (kind, text) = if causes(fault).any(breaks_http) {
        (Malformed, "the server's answer breaks the rules of HTTP")
    } else {
        (Closed, "the connection ended before the answer did")
    };
    TransportError::new(kind, text).with_source(last_cause(fault))
}

fn breaks_http(cause: &(dyn StdError + 'static)) -> bool {
    cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
        // A chunk with a syntax error.
        || cause.downcast_ref::<io::Error>().is_some_and(|fault| {
            matches!(fault.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
        })
}

/// Returns the innermost cause. The errors around it have no more information.
pub(crate) fn last_cause(fault: &(dyn StdError + 'static)) -> io::Error {
    io::Error::other(causes(fault).last().map(|cause| escaped(cause).to_string()).unwrap_or_default())
}

fn causes<'a>(fault: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(fault), |cause| StdError::source(*cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_broken_stream_waits() {
        for (retry, waits) in [
            (None, [1000, 2000, 4000, 30000]),
            (Some(500), [500, 2000, 4000, 30000]),
            (Some(0), [10, 2000, 4000, 30000]),
            (Some(60_000), [60_000; 4]),
        ] {
            let cursor = Cursor { last_id: None, retry: retry.map(Duration::from_millis) };
            let found = [0, 1, 2, 99].map(|failures| cursor.wait(failures).as_millis());
            assert_eq!(found, waits, "{retry:?}");
        }
    }
}
