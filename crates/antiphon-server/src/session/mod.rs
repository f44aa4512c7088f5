//! Sessions of the revisions up to 2025-11-25: their state, their quotas, the requests that the server sends on them,
//! and the conversion of results and errors to their versions.

pub(crate) mod downgrade;
pub(crate) mod outbound_request;
pub(crate) mod quota;
#[expect(clippy::module_inception, reason = "the state of one session, beside what all sessions share")]
pub(crate) mod session;
pub(crate) mod sessions;

pub(crate) use downgrade::{downgrade_refusal, downgrade_result, not_answered, too_late};
pub(crate) use outbound_request::{AnswerTimeout, AskEnd, OutboundRequest};
pub(crate) use quota::QuotaPermit;
pub(crate) use session::Session;
pub(crate) use sessions::Sessions;
