//! Reading the body of a request, within its limits of size and time.

use crate::serve::http::{
    HttpOptions,
    auth::Authorized,
    checks::{too_large, too_slow},
    rejection::Rejection,
};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::body::{Buf as _, Bytes};
use std::{error::Error as StdError, pin::pin};

/// An error of a request's body.
pub type BoxBodyError = Box<dyn StdError + Send + Sync>;

/// Reads the body of a request that is authorized: no other request may send megabytes.
pub(crate) async fn read_body<B>(body: B, options: &HttpOptions, _: Authorized) -> Result<Bytes, Rejection>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<BoxBodyError>,
{
    let read = async {
        // Nearly every body is one frame, and stays where it is.
        let (mut body, mut first, mut joined) = (pin!(body), Bytes::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(mut data) = frame.map_err(unreadable)?.into_data() else { continue };
            let length = data.remaining();
            if first.len().max(joined.len()) + length > options.max_body {
                return Err(too_large(options));
            }
            let data = data.copy_to_bytes(length);
            if first.is_empty() {
                first = data;
                continue;
            }
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&data);
        }
        Ok(if joined.is_empty() { first } else { joined.into() })
    };
    tokio::time::timeout(options.body_timeout, read).await.unwrap_or_else(|_elapsed| Err(too_slow()))
}

fn unreadable(error: impl Into<BoxBodyError>) -> Rejection {
    tracing::debug!(error = %error.into(), "a body could not be read");
    Rejection::new(StatusCode::BAD_REQUEST, "The body could not be read")
}
