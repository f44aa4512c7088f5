//! Reading the body of a request, within its limits of size, memory and time, into buffers that are used again; and the place of a
//! request of HTTP/2 among those of all connections.
//!
//! An allocator gives a freed megabyte back to the system, and the next one costs a page fault for each of its pages: more
//! time than reading and decoding the body.

use crate::{
    identity::{Caller, account::Account},
    in_place::rare,
    quota::{BudgetExhausted, Quota, QuotaLimits, QuotaPermit, RequestBudget, RequestBytes},
    serve::http::{
        HttpOptions,
        auth::Authorized,
        body::Rejection,
        checks::{content_length, too_large, too_slow},
        reply::HttpReply,
    },
};
use antiphon_wire::{escaped, lock::Lock};
use futures_util::future::poll_immediate;
use http::{StatusCode, Version, request::Parts};
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::body::{Buf as _, Bytes};
use std::{
    error::Error as StdError,
    mem,
    ops::Deref,
    pin::{Pin, pin},
    sync::{Arc, MutexGuard},
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
    let read = rare(tokio::time::timeout(options.body_timeout, read));
    read.await.unwrap_or_else(|_elapsed| Err(too_slow()))
}

/// Returns the rejection of a request whose body was not read. Unless the body is there already, hyper closes the connection after
/// the response, and the response must say so: a client that sends its head and its body one after the other would lose its next
/// request.
pub(crate) async fn without_body<B>(refused: Rejection, mut body: Pin<&mut B>, version: Version) -> HttpReply
where
    B: Body + Send,
    B::Data: Send,
{
    if body.is_end_stream() {
        return HttpReply::Rejection(Rejection { unread: false, ..refused });
    }
    let ends = async {
        let mut length = 0;
        while length < LARGE {
            let Some(Ok(frame)) = body.frame().await else { return true };
            length += frame.data_ref().map_or(0, |data| data.remaining());
        }
        false
    };
    let unread = refused.breaks_off || poll_immediate(pin!(ends)).await != Some(true);
    let breaks_off = refused.breaks_off || (unread && version <= Version::HTTP_11);
    HttpReply::Rejection(Rejection { unread, breaks_off, ..refused })
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

/// The length from which a body is read into a buffer of the pool.
const LARGE: usize = 64 * 1024;

/// The maximum number of buffers that wait for a body: as many as a few processors use at a time.
const BUFFERS: usize = 4;

/// The maximum capacity of a buffer that is kept.
const CAPACITY: usize = 2 * 1024 * 1024;

/// The free buffers of one endpoint: at most 8 MiB.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferPool(Arc<Lock<Vec<Vec<u8>>>>);

impl BufferPool {
    /// Moves bytes to a buffer of the pool, or to a new one if none is free.
    pub(crate) fn adopt(&self, bytes: &[u8]) -> PooledBuffer {
        let mut buffer = self.free().pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        PooledBuffer { buffer, pool: self.clone() }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock()
    }
}

/// A buffer that returns to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    buffer: Vec<u8>,
    pool: BufferPool,
}

impl PooledBuffer {
    /// Appends bytes. A buffer that is too small gets this capacity, and no more.
    pub(crate) fn append(&mut self, bytes: &[u8], capacity: usize) {
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            let capacity = capacity.max(self.buffer.len() + bytes.len());
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
        self.buffer.extend_from_slice(bytes);
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let mut buffer = mem::take(&mut self.buffer);
        buffer.clear();
        if (LARGE..=CAPACITY).contains(&buffer.capacity()) {
            let mut free = self.pool.free();
            if free.len() < BUFFERS {
                free.push(buffer);
            }
        }
    }
}

/// The place of a request of HTTP/2 among those of all connections, until it is dropped.
///
/// Its caller is not known before the head was checked: until then, the place counts for nobody, so that the places which are kept
/// for callers with a principal can be reached.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    permit: Lock<QuotaPermit>,
    limits: QuotaLimits,
}

impl StreamPlace {
    /// Returns a place, unless all of them are taken.
    pub(crate) fn take(places: &Arc<Quota>, limits: QuotaLimits) -> Option<Self> {
        let permit = places.take(Account::Owner, &limits).ok()?;
        Some(Self { permit: Lock::new(permit), limits })
    }

    /// Counts the request as one of this account. Returns false if the account, or all anonymous callers, have as many as they may
    /// have.
    pub(crate) fn assign(&self, account: Account) -> bool {
        let mut permit = self.permit.lock();
        let assigned = permit.assign(account, &self.limits);
        if let Err(full) = &assigned {
            let (limit, all, theirs) = (full.limit, full.all, full.theirs);
            tracing::debug!(?limit, all, theirs, "too many requests of HTTP/2: one was refused");
        }
        assigned.is_ok()
    }

    /// Returns the rejection of a request that the account may not have.
    pub(crate) fn refused(unread: bool) -> Rejection {
        let text = "The server has too many requests over HTTP/2 now: try again in a second";
        Rejection { unread, retry_after: Some("1"), ..Rejection::new(StatusCode::SERVICE_UNAVAILABLE, text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_is_empty() {
        let pool = BufferPool::default();
        let mut body = pool.adopt(b"first");
        body.append(&[1; LARGE], LARGE + 100);
        assert_eq!((&body[..5], body.len(), body.buffer.capacity()), (&b"first"[..], LARGE + 5, LARGE + 100));
        let place = body.buffer.as_ptr();
        drop(body);
        let body = pool.adopt(b"second");
        assert_eq!((&*body, body.buffer.as_ptr()), (&b"second"[..], place));
    }

    /// The pool keeps few buffers, and neither small nor huge ones.
    #[test]
    fn the_pool_is_bounded() {
        let pool = BufferPool::default();
        let used = |length: usize| {
            let mut body = pool.adopt(b"");
            body.append(&vec![0; length], 0);
            body
        };
        drop([used(LARGE - 1), used(CAPACITY + 1)]);
        assert_eq!(pool.free().len(), 0);
        drop((0..2 * BUFFERS).map(|_| used(LARGE)).collect::<Vec<_>>());
        assert_eq!(pool.free().len(), BUFFERS);
    }

    const LIMITS: QuotaLimits = QuotaLimits { all: 8, anonymous: 6, each_principal: 2, each_address: 6 };

    /// Places whose callers are not known yet keep nobody from being recognized, unless all places are taken.
    #[test]
    fn a_place_counts_for_its_caller_once_it_is_known() {
        let places = Arc::<Quota>::default();
        let take = || StreamPlace::take(&places, LIMITS);
        let mut held: Vec<StreamPlace> = (0..8).map_while(|_| take()).collect();
        assert!(held.len() == 8 && take().is_none());
        let (nobody, anna, bert) = (Account::Anonymous, Account::Principal(1), Account::Principal(2));
        for (at, account, is_accepted) in [
            (0, anna, true),
            (1, nobody, true),
            (2, nobody, true),
            (3, nobody, true),
            (4, nobody, true),
            (5, nobody, true),
            (6, nobody, true),
            (7, nobody, false),
            (7, anna, true),
            (6, anna, false),
            (6, bert, true),
            (7, nobody, true),
        ] {
            assert_eq!(held[at].assign(account), is_accepted, "{at} {account:?}");
            assert_eq!(places.in_use(), 8);
        }
        held.truncate(3);
        assert_eq!(places.in_use(), 3);
        drop(held);
        assert_eq!(places.in_use(), 0);
    }
}
