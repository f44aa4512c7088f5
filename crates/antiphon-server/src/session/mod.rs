//! Sessions of the revisions up to 2025-11-25: their state, their quotas, the requests that the server sends on them,
//! and the conversion of results and errors to their versions.

mod errors;
pub(crate) mod outbound_request;
pub(crate) mod results;
#[expect(clippy::module_inception, reason = "the state of one session, beside what all sessions share")]
pub(crate) mod session;
pub(crate) mod sessions;

pub(crate) use errors::{downgrade_refusal, not_answered, too_late};
pub(crate) use outbound_request::{AnswerTimeout, AskEnd, OutboundRequest, Question};
pub(crate) use results::{InSession, SessionResult};
pub(crate) use session::Session;
pub(crate) use sessions::Sessions;
