//! The trace of a call: the context that a request carries, and the one that the state of the call keeps, so that all legs are one
//! trace, on any instance, also if the client sends no context.
//!
//! ```text
//! 1, trace id (16 bytes), span id (8), flags (1), microseconds of the moment of sealing (4), then the payload without a trace
//! ```

#[cfg(feature = "otel")]
pub(crate) mod otel;

pub use antiphon_wire::TraceContext;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first byte of a payload with a trace. A record begins with that of a CBOR array, and the name of a stored record with 0.
const TRACED: u8 = 1;
const LENGTH: usize = 1 + 16 + 8 + 1 + 4;

/// Puts a trace, and the moment, in front of a payload.
pub(crate) fn join(trace: &TraceContext, now: SystemTime, payload: &[u8]) -> Vec<u8> {
    let (id, span, flags) = trace.parts();
    let micros = now.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_micros();
    let mut joined = Vec::with_capacity(LENGTH + payload.len());
    joined.push(TRACED);
    joined.extend_from_slice(&id.to_be_bytes());
    joined.extend_from_slice(&span.to_be_bytes());
    joined.push(flags);
    joined.extend_from_slice(&micros.to_be_bytes());
    joined.extend_from_slice(payload);
    joined
}

/// Returns the trace in a payload, the microseconds of the moment of sealing, and the rest.
pub(crate) fn split(payload: &[u8]) -> (Option<TraceContext>, Duration, &[u8]) {
    match read(payload) {
        Some((trace, micros, rest)) => (Some(trace), micros, rest),
        None => (None, Duration::ZERO, payload),
    }
}

fn read(payload: &[u8]) -> Option<(TraceContext, Duration, &[u8])> {
    let rest = payload.strip_prefix(&[TRACED])?;
    let (id, rest) = rest.split_first_chunk()?;
    let (span, rest) = rest.split_first_chunk()?;
    let ([flags], rest) = rest.split_first_chunk()?;
    let (micros, rest) = rest.split_first_chunk()?;
    let trace = TraceContext::from_parts(u128::from_be_bytes(*id), u64::from_be_bytes(*span), *flags);
    Some((trace, Duration::from_micros(u32::from_be_bytes(*micros).into()), rest))
}

/// The trace of a call without the feature `otel`: `tracing` alone has no parents in other processes.
#[cfg(not(feature = "otel"))]
pub(crate) mod otel {
    use antiphon_seal::CallId;
    use antiphon_wire::TraceContext;
    use serde_json::value::RawValue;
    use std::time::SystemTime;
    use tracing::Span;

    /// Does nothing.
    pub(crate) fn join(_: &Span, _: Option<&RawValue>, _: impl FnOnce() -> Option<TraceContext>) {}

    /// Does nothing.
    pub(crate) fn set_parent(_: &Span, _: &TraceContext) {}

    /// Returns no context: spans have no ids here.
    pub(crate) fn current() -> Option<TraceContext> {
        None
    }

    /// Does nothing.
    pub(crate) fn link(_: &TraceContext) {}

    /// Does nothing: a span of `tracing` begins when it is made.
    pub(crate) fn waited(_: Option<&TraceContext>, _: Option<CallId>, _: SystemTime, _: SystemTime) {}
}

#[cfg(test)]
mod tests {
    use crate::trace::*;

    #[test]
    fn a_payload_comes_back_with_its_trace_and_without() {
        let trace = TraceContext::from_parts(u128::MAX, 7, 1);
        let now = UNIX_EPOCH + Duration::from_micros(1_800_000_000_123_456);
        for payload in [&b""[..], b"\x88 a record", b"\x00 a stored record"] {
            let joined = join(&trace, now, payload);
            assert_eq!(split(&joined), (Some(trace.clone()), Duration::from_micros(123_456), payload));
            // As it was sealed before there was a trace in it.
            assert_eq!(split(payload), (None, Duration::ZERO, payload));
        }
        assert_eq!(split(&[TRACED; LENGTH - 1]), (None, Duration::ZERO, &[TRACED; LENGTH - 1][..]));
    }
}
