//! Sessions of the revisions up to 2025-11-25: their state, their places, the requests that the server sends on them, and the
//! form in which they know results and errors.

pub(crate) mod live;
#[expect(clippy::module_inception, reason = "the state of one session, beside what all sessions share")]
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod shares;
pub(crate) mod words;

pub(crate) use live::{AskEnd, Live, Wait};
pub(crate) use session::Session;
pub(crate) use sessions::Sessions;
pub(crate) use shares::Share;
pub(crate) use words::{in_words_of, not_answered, refused_in_words_of, too_late};
