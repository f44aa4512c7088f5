//! The era that a reply shows.

use crate::{
    request::fault::{RequestFault, common_version, supported},
    transport::{
        ServerReply, TransportError,
        TransportErrorKind::{Closed, HttpStatus, Malformed},
    },
};
use antiphon_wire::{
    DiscoverResult, ErrorCode, ErrorObject, Meta, PageParams, ProtocolVersion, RequestId, method,
    write_request,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The era that a reply shows.
pub(crate) enum Verdict {
    Modern,
    /// The server is modern and supports this version.
    ModernOf(ProtocolVersion),
    /// The server may be a legacy one: the client tries to open a session.
    Legacy,
    /// The server supports none of the versions of this client.
    Neither(Vec<String>),
    /// The reply shows no era: the request failed for another reason.
    Nothing,
}

/// Returns the era that a reply to `server/discover` shows.
pub(crate) fn verdict(reply: &Result<ServerReply, RequestFault>) -> Verdict {
    match reply {
        Ok(Ok(result)) => match serde_json::from_str::<DiscoverResult>(result.get()) {
            Ok(discovered) => {
                choose(discovered.supported_versions.iter().map(|one| one.as_str().to_owned()).collect())
            }
            // Some servers answer every request with some result.
            Err(_) => Verdict::Legacy,
        },
        Ok(Err(error)) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => choose(supported(error)),
        Ok(Err(error)) if is_modern_error(error) => Verdict::Modern,
        // > The fallback **MUST NOT** be keyed to one specific error code
        Ok(Err(_)) => Verdict::Legacy,
        // Some servers end if the first message is not `initialize`. The next process receives `initialize` first.
        Err(RequestFault::Transport(error)) if error.kind() == Closed && !error.is_final() => Verdict::Legacy,
        Err(RequestFault::Transport(error)) if is_legacy_only(error) => Verdict::Legacy,
        Err(_) => Verdict::Nothing,
    }
}

/// Returns the best of the versions that a server names.
fn choose(theirs: Vec<String>) -> Verdict {
    if let Some(version) = common_version(theirs.iter().map(String::as_str)) {
        return Verdict::ModernOf(version);
    }
    let speaks_legacy = theirs.iter().any(|version| ProtocolVersion::legacy(version).is_some());
    if speaks_legacy { Verdict::Legacy } else { Verdict::Neither(theirs) }
}

/// Returns `true` for the errors that only modern servers send.
pub(crate) fn is_modern_error(error: &ErrorObject) -> bool {
    matches!(
        error.code,
        ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// Returns `true` for the statuses of a server that does not support modern requests. Other statuses are about authorization,
/// rate or failure, and are returned to the caller.
pub(crate) fn is_legacy_only(error: &TransportError) -> bool {
    match error.kind() {
        HttpStatus(status) => matches!(status, 400 | 402 | 404..=406 | 409..=418 | 422 | 424 | 426 | 428),
        _ => false,
    }
}

/// Returns `true` if the server refused `initialize` as unknown.
pub(crate) fn is_session_refused(fault: &RequestFault) -> bool {
    match fault {
        RequestFault::Transport(error) => is_legacy_only(error) || error.kind() == Malformed,
        RequestFault::Server(error) => !is_modern_error(error),
        _ => false,
    }
}

/// Returns the fault that explains most, of the faults of two attempts: `earlier`, unless the fallback got a clear answer.
pub(crate) fn more_telling(earlier: RequestFault, fallback: RequestFault) -> RequestFault {
    if tells_more(&fallback, &earlier) { fallback } else { earlier }
}

/// Returns `true` if the fault of a fallback explains more than that of the attempt before.
pub(crate) fn tells_more(fallback: &RequestFault, earlier: &RequestFault) -> bool {
    let rank = rank(fallback);
    rank >= CLEAR && rank > self::rank(earlier)
}

/// The lowest rank of an answer that is about more than the URL or the era.
const CLEAR: u8 = 2;

fn rank(fault: &RequestFault) -> u8 {
    match fault {
        RequestFault::Transport(error) => match error.kind() {
            // The answers of a URL without such an endpoint.
            HttpStatus(404..=406 | 415 | 501) => 0,
            HttpStatus(401 | 403 | 407 | 429 | 500..) => 4,
            HttpStatus(400) => 1,
            HttpStatus(_) => CLEAR,
            _ => 1,
        },
        RequestFault::Server(error) if error.code == ErrorCode::METHOD_NOT_FOUND => CLEAR,
        _ => 3,
    }
}

/// Returns `true` if a modern server refused `initialize` and names a version that is supported here.
pub(crate) fn is_other_version(fault: &RequestFault) -> bool {
    match fault {
        RequestFault::Version { theirs, .. } => common_version(theirs.iter().map(String::as_str)).is_some(),
        _ => false,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithResultType<'a> {
    #[serde(borrow, default)]
    result_type: Option<&'a RawValue>,
}

/// Returns `true` if the result has a `resultType`. Legacy results have none.
pub(crate) fn has_result_type(result: &RawValue) -> bool {
    serde_json::from_str::<WithResultType<'_>>(result.get()).is_ok_and(|typed| typed.result_type.is_some())
}

/// Writes the message of a `server/discover`.
pub(crate) fn discover(id: &RequestId, meta: Meta) -> Result<Vec<u8>, serde_json::Error> {
    write_request(id, method::DISCOVER, &PageParams::new(meta, None))
}
