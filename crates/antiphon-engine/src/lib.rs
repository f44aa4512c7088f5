//! The record of a call, and the rules for its replay. The server of antiphon does the rest.
//!
//! The server runs a handler again with each request of its call. This crate holds the record of the call. For each
//! question, step and `select` that the handler reaches, the crate decides: the outcome is in the record, the question
//! is asked or the step runs now, or the future waits. The crate has no I/O, no clock, no runtime and no logging: the
//! caller passes texts, times and wakers in, and receives outcomes and decisions.
//!
//! # One leg
//!
//! ```text
//!  Record ── Leg::resume ──▶ replaying ── all entries replayed ──▶ past the record: asks, begins steps
//!    ▲                           │                                     │
//!    │                           └────────────┬────────────────────────┘
//!    │                                        │ after each poll of the handler: Leg::after_poll
//!    │         ┌───────────┬─────────────┬────┴─────────┬──────────────┐
//!    │     PollAgain     Wait,        Suspend          End          Cancelled
//!    │   a future can  WaitAtMost    only an answer  an error       the request
//!    │    continue    a waker is     can wake the       │          was cancelled
//!    │                   held        handler            │
//!    └──── suspend, ask_by_hand ────────┘               │
//!    └──── suspend_before_error ────────────────────────┘ new entries leave before the error is reported
//! ```
//!
//! # One awaited future
//!
//! Each question, step, `select` and checkpoint that a handler awaits has a slot of its own, with its own waker:
//!
//! ```text
//!              ┌─ in the record ───▶ Recorded ── its turn ──────────────────────────────▶ delivered
//!  first poll ─┤
//!              ├─ ask, answer came ▶ Answered ── all replayed ── valid ── [Agreed: until] ▶ delivered, recorded
//!              │                        └─ invalid ──────┐
//!              ├─ ask ─────────────▶ Asked ◀─────────────┘ leaves with the round, or is sent now
//!              ├─ step ────────────▶ Held ── handler idle ──▶ Released ──▶ Running ─────▶ delivered, recorded
//!              ├─ select ──────────▶ Undecided ── a branch is first ──▶ Decided ────────▶ delivered, recorded
//!              └─ checkpoint ──────▶ Ending (ends the leg), or passed at once
//! ```
//!
//! The record has the order of delivery: the engine writes an entry in the poll in which its future resolves, and
//! delivers the entries in that order on a later leg. New outcomes are delivered after all recorded ones.
//!
//! # The types
//!
//! | types | purpose |
//! |---|---|
//! | [`Record`], [`RecordError`], [`AskRecord`], [`UrlReference`] | the data that travels between legs, as bytes |
//! | [`Leg`] | one leg: the futures of a handler and the driver call its methods |
//! | [`Question`], [`AskPoll`], [`AnsweredAsk`], [`InputResponse`] | questions and answers |
//! | [`StepPoll`], [`StepWaker`], [`StepOutcome`], [`StepFailure`] | steps |
//! | [`SlotId`], [`BranchId`], [`PollContext`] | the identity of a future while it is polled |
//! | [`WakeTracker`], [`NextAction`], [`GraceReason`], [`DeferredWork`], [`LogEvent`] | the driver's work after a poll |
//! | [`LegOutput`], [`Observations`], [`PendingAsk`] | the end of a leg, and the questions to send |
//! | [`Setup`], [`Delivery`], [`Purpose`], [`Limits`], [`StopReason`], [`Migration`], [`Collision`] | settings and errors of a leg |
//! | [`StepKey`], [`IntoNumber`], [`EntryKind`], [`key`] | keys |

pub mod key;
mod leg;
mod limits;
mod record;
mod step_waker;
mod sync;
mod wake_tracker;

pub use key::{IntoNumber, StepKey};
pub use leg::{
    AnsweredAsk, AnsweredQuestion, AskPoll, BranchId, DeferredWork, Delivery, GraceReason, Leg, LegOutput,
    LogEvent, NextAction, Observations, PendingAsk, PollContext, Purpose, Question, Setup, SlotId, StepBegin,
    StepPoll,
};
pub use limits::{InputResponse, check as check_answer, read_answer};
pub use limits::{Limits, StopReason};
pub use record::{
    AskRecord, CANCELLED, Collision, EntryKind, Migration, Record, RecordError, StepFailure, StepOutcome,
    StoredLeg, UrlReference, WriteAhead,
};
pub use step_waker::StepWaker;
pub use wake_tracker::WakeTracker;

/// The location of the call in the author's code.
pub type CallSite = &'static std::panic::Location<'static>;
