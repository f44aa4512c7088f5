//! Reads the body of a response.

use crate::transport::{
    ServerReply, TransportError,
    TransportErrorKind::{Closed, Malformed, TooLarge},
    session::answers,
};
use antiphon_wire::{Incoming, RequestId, escaped, lenient};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming as Body};
use std::{error::Error as StdError, io};

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
