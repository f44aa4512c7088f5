//! What a call remembers, and what may happen next in it: for the server of antiphon, which does the rest.
//!
//! A handler is run again with each request of its call. This crate holds the record of the call and decides, for each
//! question, step and `select` that the handler comes to, whether its outcome is recorded, whether it is asked or run now,
//! or whether it waits. There is no I/O, no clock, no runtime and no logging in it: texts, times and wakers go in, outcomes
//! and decisions come out.
//!
//! # One leg
//!
//! ```text
//!  Record ── Leg::resume ──▶ replaying ── all entries met ──▶ beyond the record: asks, begins steps
//!    ▲                           │                                │
//!    │                           └────────────┬───────────────────┘
//!    │                                        │ after each poll of the handler: Leg::after_poll
//!    │         ┌───────────┬─────────────┬────┴────────┬──────────────┐
//!    │       Again       Wait,         Suspend       StopReason         Cancelled
//!    │    something may  Grace       only an answer  a fault       nobody
//!    │      go on     something may  can wake it       │            waits
//!    │                  wake it         │              │
//!    └──── suspend, ask_by_hand ────────┘              │
//!    └──── leave_with_state_only ──────────────────────┘ what was recorded leaves before the fault is told
//! ```
//!
//! # One waiting future
//!
//! Each question, step, `select` and checkpoint that a handler awaits has a slot of its own with its own waker:
//!
//! ```text
//!              ┌─ in the record ───▶ Recorded ── its turn ──────────────────────────────▶ delivered
//!  first poll ─┤
//!              ├─ ask, answer came ▶ AnsweredAsk ── all met ── fits ── [Agreed: until] ────▶ delivered, recorded
//!              │                        └─ does not fit ─┐
//!              ├─ ask ─────────────▶ Asked ◀─────────────┘ leaves with the round, or is sent now
//!              ├─ step ────────────▶ Held ── handler at rest ──▶ Released ──▶ Running ──▶ delivered, recorded
//!              ├─ select ──────────▶ Undecided ── a branch is first ──▶ Decided ────────▶ delivered, recorded
//!              └─ checkpoint ──────▶ Ending (ends the leg), or it is passed
//! ```
//!
//! The record is the order of delivery: an entry is written in the poll in which its future resolves, and on a later leg
//! entries are delivered in that order, one after the other. All that is new is delivered behind them.
//!
//! # The types
//!
//! | type | why it is public |
//! |---|---|
//! | [`Record`], [`RecordError`], [`AskRecord`], [`UrlReference`] | it travels between legs, as bytes |
//! | [`Leg`] | one leg: the futures of a handler and its driver talk to it |
//! | [`Question`], [`DecodeCheck`], [`AskPoll`], [`AnsweredAsk`], [`Response`] | asking |
//! | [`StepPoll`], [`StepWaker`], [`StepOutcome`], [`StepFailure`] | steps |
//! | [`SlotId`], [`BranchId`], [`PollContext`] | the place of a future, while it is polled |
//! | [`WakeTracker`], [`NextAction`], [`GraceReason`], [`DeferredWork`], [`LogEvent`] | driving: what the driver does after a poll |
//! | [`LegOutput`], [`Observations`], [`PendingAsk`] | the end of a leg |
//! | [`Setup`], [`Delivery`], [`Purpose`], [`Limits`], [`StopReason`], [`Migration`], [`Collision`] | what a leg is begun with, and how it fails |
//! | [`StepKey`], [`IntoNumber`], [`EntryKind`], [`key`] | names |

mod answer;
pub mod key;
mod leg;
mod limits;
mod record;
mod step_waker;
mod stop;
mod sync;
mod wake_tracker;

pub use answer::{Response, read_answer};
pub use key::{IntoNumber, StepKey};
pub use leg::{
    AnsweredAsk, AskPoll, BranchId, DecodeCheck, DeferredWork, Delivery, GraceReason, Leg, LegOutput,
    LogEvent, NextAction, Observations, PendingAsk, PollContext, Purpose, Question, Setup, SlotId, StepPoll,
};
pub use limits::Limits;
pub use record::{
    AskRecord, Collision, EntryKind, Migration, Record, RecordError, StepFailure, StepOutcome, UrlReference,
};
pub use step_waker::StepWaker;
pub use stop::StopReason;
pub use wake_tracker::WakeTracker;

/// The line of the author's code that called.
pub type CallSite = &'static std::panic::Location<'static>;
