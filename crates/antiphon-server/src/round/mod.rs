//! The call as its handler sees it: what it awaits, and what runs it.
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
//! The record and all decisions are those of `antiphon-engine`. Here are the futures that handlers await ([`elicit`],
//! [`step`], [`select`], [`checkpoint`]), the [`carrier`] of their questions, and [`drive`], which polls the handler.

mod drive;

mod carrier;
mod flow;
mod pushed;

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

pub(crate) use antiphon_engine::read_answer;
pub use antiphon_engine::{IntoNumber, Migration, Response, StepKey};
pub(crate) use asking::check_elicit;
pub(crate) use carrier::Carrier;
pub use checkpoint::Checkpoint;
pub(crate) use drive::{Ran, Round, drive};
pub use elicit::{Elicit, ElicitOutcome};
pub use elicit_url::{ElicitUrl, ElicitUrlOutcome};
pub(crate) use flow::Flow;
pub use group::{JoinAll, Spawned};
pub(crate) use pushed::Pushed;
pub use sample::{Roots, Sample};
pub use scope::Scope;
pub use select::{Branches, Won};
pub use step::{Attempt, Retry, Step};
pub use until::IntoDone;
pub use url_ref::{UrlRef, UrlRefError, VerifiedUrlRef};
