//! The asks of servers, and their answers: the arguments of callbacks, their dispatch, and the check of each answer.
//!
//! ```text
//!  AskRound (round) -> AskHandlers (handlers): on_round, then callbacks (dispatch) -> each answer is checked (answers)
//! ```
//!
//! This module does not depend on calls, requests or sessions. The [`Origin`](questions::Origin) names the call, or the
//! session, that an ask belongs to.

pub(crate) mod answers;
pub(crate) mod callbacks;
pub mod consent;
pub(crate) mod dispatch;
pub(crate) mod progress;
pub(crate) mod questions;
