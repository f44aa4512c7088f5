//! The trace context of a request, in the form of W3C Trace Context.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest `tracestate` that is passed on, in bytes.
const LONGEST_STATE: usize = 512;

/// The trace context of a request: `traceparent` and `tracestate` of its `_meta`, in the form of W3C Trace Context. A task keeps the
/// context of the request that created it, so that all its legs belong to one trace, in every process. `baggage`
/// is not kept: it carries data of the caller.
///
/// > the keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation. When present, their
/// > values MUST follow W3C Trace Context
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
}

impl TraceContext {
    /// Returns the `traceparent`: version, trace id, id of the caller's span, and flags, in hexadecimal digits.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// Returns the `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Creates a context from the parts of a `traceparent`: the id of a trace, the id of a span, and flags. No id is zero.
    pub fn from_parts(trace: u128, span: u64, flags: u8) -> Self {
        Self { traceparent: format!("00-{trace:032x}-{span:016x}-{flags:02x}"), tracestate: None }
    }

    /// Returns the id of the trace, the id of the span, and the flags. The form of a context was checked.
    pub fn parts(&self) -> (u128, u64, u8) {
        let part = |range| self.traceparent.get(range).unwrap_or_default();
        let trace = u128::from_str_radix(part(3..35), 16).unwrap_or_default();
        let span = u64::from_str_radix(part(36..52), 16).unwrap_or_default();
        (trace, span, u8::from_str_radix(part(53..55), 16).unwrap_or_default())
    }

    /// Reads the context in a `_meta`. One with a wrong form is ignored, as the recommendation says.
    pub fn of(meta: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            traceparent: &'a RawValue,
            #[serde(borrow, default)]
            tracestate: Option<&'a RawValue>,
        }
        // Most requests have none.
        let text = meta?.get();
        if !text.contains("traceparent") {
            return None;
        }
        let members: Members<'_> = serde_json::from_str(text).ok()?;
        let traceparent: String = serde_json::from_str(members.traceparent.get()).ok()?;
        if !is_traceparent(&traceparent) {
            return None;
        }
        let tracestate = members.tracestate.and_then(|text| serde_json::from_str::<String>(text.get()).ok());
        Some(Self { traceparent, tracestate: tracestate.filter(|state| is_tracestate(state)) })
    }
}

/// Returns true for `00-<32 digits>-<16 digits>-<2 digits>`, with ids that are not zero. Later versions may have more parts.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, len: usize| is_hex(part, len) && part.bytes().any(|byte| byte != b'0');
    let mut parts = text.split('-');
    let mut next = || parts.next().unwrap_or_default();
    let (version, trace, span, flags) = (next(), next(), next(), next());
    let is_known =
        is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(span, 16) && is_hex(flags, 2);
    let is_printable = text.len() <= LONGEST_STATE && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_known && is_printable && (version != "00" || parts.next().is_none())
}

fn is_tracestate(text: &str) -> bool {
    text.len() <= LONGEST_STATE && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::TraceContext;
    use serde_json::{json, value::to_raw_value};

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_well_formed_contexts_are_read() {
        let zeros = PARENT.replace("b7ad6b7169203331", "0000000000000000");
        for (meta, expected) in [
            (json!({}), None),
            (json!({"traceparent": PARENT}), Some(None)),
            (json!({"traceparent": PARENT, "tracestate": "a=1,b=2"}), Some(Some("a=1,b=2"))),
            (json!({"traceparent": PARENT, "tracestate": "a=\n"}), Some(None)),
            (json!({"traceparent": PARENT, "tracestate": 7}), Some(None)),
            (json!({"traceparent": PARENT, "tracestate": "a".repeat(513)}), Some(None)),
            (json!({"traceparent": format!("{PARENT}-more")}), None),
            (json!({"traceparent": PARENT.replace("00-0a", "cc-0a") + "-more"}), Some(None)),
            (json!({"traceparent": PARENT.replace("00-0a", "ff-0a")}), None),
            (json!({"traceparent": PARENT.to_uppercase()}), None),
            (json!({"traceparent": zeros}), None),
            (json!({"traceparent": "00-x"}), None),
            (json!({"traceparent": 7}), None),
            (json!({"x": "traceparent"}), None),
        ] {
            let read = TraceContext::of(Some(&to_raw_value(&meta).unwrap()));
            assert_eq!(read.as_ref().map(TraceContext::tracestate), expected, "{meta}");
        }
        assert_eq!(TraceContext::of(None), None);
    }
}
