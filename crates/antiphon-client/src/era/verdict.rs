//! What an answer says of a server's era.

use crate::{
    fault::{RequestFault, common_version, supported},
    transport::{
        ServerReply, TransportError,
        TransportErrorKind::{Closed, HttpStatus, Malformed},
    },
};
use antiphon_wire::{DiscoverResult, ErrorCode, ErrorObject, ProtocolVersion};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What an answer says of the era.
pub(crate) enum Verdict {
    Modern,
    /// To be followed to this version.
    ModernOf(ProtocolVersion),
    /// A session has to be tried.
    Legacy,
    /// Of no version that is spoken here.
    Neither(Vec<String>),
    /// It says nothing: the request failed for another reason.
    Nothing,
}

/// What an answer to `server/discover` says.
pub(crate) fn judge(reply: &Result<ServerReply, RequestFault>) -> Verdict {
    match reply {
        Ok(Ok(result)) => match serde_json::from_str::<DiscoverResult>(result.get()) {
            Ok(discovered) => {
                choose(discovered.supported_versions.iter().map(|one| one.as_str().to_owned()).collect())
            }
            // Some answer anything with something.
            Err(_) => Verdict::Legacy,
        },
        Ok(Err(error)) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => choose(supported(error)),
        Ok(Err(error)) if is_modern(error) => Verdict::Modern,
        // > The fallback **MUST NOT** be keyed to one specific error code
        Ok(Err(_)) => Verdict::Legacy,
        // Some end when the first message is not `initialize`: the next process hears nothing else.
        Err(RequestFault::Transport(error)) if error.kind() == Closed && !error.is_final() => Verdict::Legacy,
        Err(RequestFault::Transport(error)) if is_no_modern(error) => Verdict::Legacy,
        Err(_) => Verdict::Nothing,
    }
}

/// The best of the versions that a server names.
fn choose(theirs: Vec<String>) -> Verdict {
    if let Some(version) = common_version(theirs.iter().map(String::as_str)) {
        return Verdict::ModernOf(version);
    }
    let speaks_legacy = theirs.iter().any(|version| ProtocolVersion::legacy(version).is_some());
    if speaks_legacy { Verdict::Legacy } else { Verdict::Neither(theirs) }
}

/// Errors that only modern servers know.
pub(crate) fn is_modern(error: &ErrorObject) -> bool {
    matches!(
        error.code,
        ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// Statuses that say "not like this". Others are about who asks, how often, or what broke: they are told.
pub(crate) fn is_no_modern(error: &TransportError) -> bool {
    match error.kind() {
        HttpStatus(status) => matches!(status, 400 | 402 | 404..=406 | 409..=418 | 422 | 424 | 426 | 428),
        _ => false,
    }
}

/// Whether the server refused `initialize` as something that it does not know.
pub(crate) fn is_no_session(fault: &RequestFault) -> bool {
    match fault {
        RequestFault::Transport(error) => is_no_modern(error) || error.kind() == Malformed,
        RequestFault::Server(error) => !is_modern(error),
        _ => false,
    }
}

/// Whether a modern server refused `initialize`, and says that it speaks a version that is spoken here.
pub(crate) fn is_of_modern(fault: &RequestFault) -> bool {
    match fault {
        RequestFault::Version { theirs } => common_version(theirs.iter().map(String::as_str)).is_some(),
        _ => false,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a> {
    #[serde(borrow, default)]
    result_type: Option<&'a RawValue>,
}

/// Legacy results have no `resultType`.
pub(crate) fn says_result_type(result: &RawValue) -> bool {
    serde_json::from_str::<Typed<'_>>(result.get()).is_ok_and(|typed| typed.result_type.is_some())
}
