//! Rounds: what is asked, what was answered and done, and what travels between two legs.
//!
//! Asking by hand, a handler returns its questions:
//!
//! ```text
//!  handler returns asks ──▶ Payload {state, asked} ──▶ sealed ──▶ client
//!                                                                    │ answers
//!  handler runs ◀── Judged::Ready ◀── judge(asked, answers) ◀── opened
//!                                        │
//!                                        └── Judged::AskAgain ──▶ sealed: those questions alone, the others kept
//! ```
//!
//! There the question itself is in the state, so an answer is checked against what was asked, whichever version of the
//! handler runs now, and asked again without running the handler. In a session each answer comes by itself, and is judged
//! then.
//!
//! Asking with `await`, a handler is a future that cannot go on without an answer:
//!
//! ```text
//!  ctx.elicit, ctx.step ──▶ machine: recorded? ──▶ given at once        (pure: history in; ask, run or done out)
//!        ▲                     │ new
//!        │                     ▼
//!      drive ◀── blocked ── pending asks ──▶ Payload {journal} ──▶ sealed ──▶ client
//!        │                                                                      │ answers
//!        └──────── the handler runs again, from its top, on the journal ◀───────┘
//! ```
//!
//! There the journal has a digest of each question; the handler renders it again, and the answer is checked then.

mod judge;
mod payload;

mod journal;
mod key;
mod machine;

mod drive;
mod flow;
mod push;
mod sync;
mod tracker;

mod asking;
mod checkpoint;
mod elicit;
mod elicit_url;
mod group;
mod sample;
mod scope;
mod select;
mod setters;
mod step;
mod surroundings;
mod until;
mod url_ref;

pub(crate) use asking::check_elicit;
pub use checkpoint::Checkpoint;
pub(crate) use drive::{Ran, drive};
pub use elicit::{Elicit, ElicitOutcome};
pub use elicit_url::{ElicitUrl, ElicitUrlOutcome};
pub(crate) use flow::Flow;
pub use group::{JoinAll, Spawned};
pub(crate) use journal::{AskedOnce, Journal, Kind, StepFailure};
pub(crate) use judge::{Judged, JudgedOne, judge, judge_one, read};
pub(crate) use key::check_key;
pub use key::{IntoNumber, StepKey};
pub(crate) use machine::{Kept, Machine, Stop, seconds};
pub(crate) use payload::{Asked, Payload};
pub(crate) use push::Push;
pub use sample::{Roots, Sample};
pub use scope::Scope;
pub use select::{Branches, Won};
pub use step::{Attempt, Retry, Step};
pub(crate) use surroundings::ASKS_NOTED;
pub use until::IntoDone;
pub use url_ref::{UrlRef, UrlRefError, VerifiedUrlRef};

use super::Response;
use antiphon_wire::InputRequest;

/// How many branches a `select` has at most.
const BRANCHES: u8 = 4;

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
