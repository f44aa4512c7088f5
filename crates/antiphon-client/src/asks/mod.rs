//! The asks of servers, and their answers: what callbacks receive, who is asked, and the check of each answer.
//!
//! ```text
//!  AskRound (round) -> AskHandlers (handlers): on_round, then callbacks (dispatch) -> each answer is checked (answers)
//! ```
//!
//! Nothing in here knows which call, which request or which session an ask belongs to: the [`Origin`](questions::Origin)
//! says that.

pub(crate) mod answers;
pub(crate) mod callbacks;
pub mod consent;
pub(crate) mod dispatch;
pub(crate) mod errors;
pub(crate) mod progress;
pub(crate) mod questions;
pub(crate) mod round;
