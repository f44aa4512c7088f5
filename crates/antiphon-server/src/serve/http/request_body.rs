//! Reading the body of a request, within its limits of size, memory and time.

use crate::{
    identity::caller::Caller,
    quota::request_budget::{BudgetExhausted, RequestBudget, RequestBytes},
    serve::http::{
        HttpOptions,
        auth::Authorized,
        buffer_pool::{BufferPool, LARGE, PooledBuffer},
        checks::{content_length, too_large, too_slow},
        rejection::Rejection,
    },
};
use antiphon_wire::escaped;
use futures_util::future::poll_immediate;
use http::{StatusCode, request::Parts};
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::body::{Buf as _, Bytes};
use std::{
    error::Error as StdError,
    ops::Deref,
    pin::{Pin, pin},
};

/// An error of a request's body.
pub type BoxBodyError = Box<dyn StdError + Send + Sync>;

/// The body of a request, which occupies its part of the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestBody {
    bytes: BodyBytes,
    _reserved: RequestBytes,
}

/// The bytes of a body: nearly every one is one frame, and stays where it is.
#[derive(Debug)]
enum BodyBytes {
    Frame(Bytes),
    Joined(Vec<u8>),
    Large(PooledBuffer),
}

impl BodyBytes {
    /// Appends a frame. `reserved` is the number of bytes for which memory is reserved.
    fn append(&mut self, frame: Bytes, reserved: usize, pool: &BufferPool) {
        if self.is_empty() {
            *self = Self::Frame(frame);
            return;
        }
        let length = self.len() + frame.len();
        match self {
            Self::Large(buffer) => return buffer.append(&frame, reserved),
            _ if length >= LARGE => *self = Self::Large(pool.adopt(self)),
            Self::Frame(first) => *self = Self::Joined(first.to_vec()),
            Self::Joined(_) => {}
        }
        match self {
            Self::Large(buffer) => buffer.append(&frame, reserved),
            Self::Joined(bytes) => {
                // No more memory than is reserved.
                bytes.reserve_exact(reserved.max(length) - bytes.len());
                bytes.extend_from_slice(&frame);
            }
            Self::Frame(_) => {}
        }
    }
}

impl Deref for BodyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Frame(bytes) => bytes,
            Self::Joined(bytes) => bytes,
            Self::Large(bytes) => bytes,
        }
    }
}

impl Deref for RequestBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the body of a request that is authorized: no other request may send megabytes.
pub(crate) async fn read_body<B>(
    mut body: Pin<&mut B>,
    parts: &Parts,
    options: &HttpOptions,
    budget: &RequestBudget,
    pool: &BufferPool,
    authorized: &Authorized,
) -> Result<RequestBody, Rejection>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<BoxBodyError>,
{
    let read = async {
        let mut bytes = BodyBytes::Frame(Bytes::new());
        let mut reserved = RequestBytes::default();
        while let Some(frame) = body.frame().await {
            let Ok(mut data) = frame.map_err(unreadable)?.into_data() else { continue };
            let length = data.remaining();
            let read = bytes.len() + length;
            if read > options.max_body {
                return Err(too_large(options));
            }
            if read > reserved.allowed() {
                let caller = authorized.caller(parts);
                reserve(&mut reserved, read, content_length(&parts.headers), options, budget, &caller)?;
            }
            bytes.append(data.copy_to_bytes(length), reserved.allowed(), pool);
        }
        reserved.settle(bytes.len());
        Ok(RequestBody { bytes, _reserved: reserved })
    };
    let mut read = pin!(read);
    // Nearly every body is there with its head, and needs no timer.
    if let Some(read) = poll_immediate(&mut read).await {
        return read;
    }
    // Boxed, because it would enlarge the future of every request.
    let read = Box::pin(tokio::time::timeout(options.body_timeout, read));
    read.await.unwrap_or_else(|_elapsed| Err(too_slow()))
}

/// Reserves memory for the bytes that were read, and for as many again: a client that announces a long body and does not
/// send it reserves little.
fn reserve(
    reserved: &mut RequestBytes,
    read: usize,
    announced: Option<u64>,
    options: &HttpOptions,
    budget: &RequestBudget,
    caller: &Caller<'_>,
) -> Result<(), Rejection> {
    let announced = announced.and_then(|length| usize::try_from(length).ok());
    let whole = announced.unwrap_or(options.max_body).clamp(read, options.max_body);
    let bytes = read.saturating_mul(2).min(whole);
    budget.reserve(reserved, bytes, options.max_body, caller).map_err(|BudgetExhausted| Rejection {
        retry_after: Some("1"),
        breaks_off: true,
        ..Rejection::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The server reads too many long requests now: try again in a second",
        )
    })
}

fn unreadable(error: impl Into<BoxBodyError>) -> Rejection {
    tracing::debug!(error = %escaped(&error.into()), "a body could not be read");
    Rejection::new(StatusCode::BAD_REQUEST, "The body could not be read")
}
