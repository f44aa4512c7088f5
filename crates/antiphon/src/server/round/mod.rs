//! Rounds by hand: what is sealed between two legs, and what becomes of the answers that come back.
//!
//! ```text
//!  handler returns asks ──▶ Payload {state, asked} ──▶ sealed ──▶ client
//!                                                                    │ answers
//!  handler runs ◀── Judged::Ready ◀── judge(asked, answers) ◀── opened
//!                                        │
//!                                        └── Judged::AskAgain ──▶ sealed: those questions alone, the others kept
//! ```
//!
//! The question itself is in the state, so an answer is checked against what was asked, whichever version of the
//! handler runs now, and asked again without running the handler.

mod judge;
mod payload;
#[allow(dead_code)] // Until the driver asks it.
mod sync;
#[allow(dead_code)] // Until the driver asks it.
mod tracker;

pub(crate) use judge::{Judged, judge, read};
pub(crate) use payload::{Asked, Payload};

use super::Response;
use antiphon_wire::InputRequest;

/// A question with its checked answer.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) key: String,
    /// The question as it was rendered when it was asked.
    pub(crate) question: String,
    pub(crate) response: Response,
}

impl Answered {
    /// Whether this is the answer to exactly that question.
    pub(crate) fn answers(&self, request: &InputRequest) -> bool {
        serde_json::to_string(request).is_ok_and(|text| text == self.question)
    }
}
