//! The call from the handler's side: the futures that it awaits, and the code that runs it.
//!
//! ```text
//!  ctx.elicit, ctx.step ──▶ Leg (antiphon-engine): recorded? ──▶ given at once
//!        ▲                     │ new
//!        │                     ▼
//!      drive ◀── blocked ── pending asks ──▶ carrier ──▶ client
//!        │                                      │ answers
//!        └── the handler goes on, or runs again from its top on the record ◀┘
//! ```
//!
//! The record and all decisions are in `antiphon-engine`. This module holds the futures that handlers await
//! ([`elicit`], [`step`], [`select`], [`checkpoint`]), the [carrier](crate::request::carrier) of their questions, and [`drive`], which polls
//! the handler.

pub(crate) mod ask;
mod awaits;
pub(crate) mod ctx;
pub(crate) mod drive;
pub(crate) mod emit;
pub(crate) mod exchange;
pub(crate) mod handler;
pub(crate) mod in_session;
pub(crate) mod leg;
pub(crate) mod leg_end;
pub(crate) mod leg_runtime;
pub(crate) mod replay_check;

pub(crate) use antiphon_engine::read_answer;
pub use antiphon_engine::{InputResponse, IntoNumber, Migration, StepKey};
pub use awaits::*;
pub(crate) use drive::{DriveResult, Round, drive};
pub(crate) use leg_runtime::LegRuntime;
