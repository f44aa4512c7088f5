//! Servers: tools, prompts and resources as plain async functions, any of which may ask.
//!
//! One request, from its bytes to its reply:
//!
//! ```text
//!  bytes ─▶ receive ─▶ route ──────────────▶ lists, discover ──────────▶ reply
//!           envelope,   one line             (written when they change)    ▲
//!           _meta       a method                                           │
//!                         │ tools/call, prompts/get, resources/read        │
//!                         ▼                                                │
//!                       admit ─▶ judge ─▶ handler ─▶ asks? ─▶ permit ─▶ seal
//!                       state     answers   yours              capability
//! ```
//!
//! A handler is reached only through `admit`, which opens the state that came along, and yields the value
//! that running, gating and sealing demand. Whatever is refused on the way becomes an error in one place, `refusal`.

mod admit;
mod arguments;
mod ask;
mod ask_error;
mod bearer;
mod build;
mod build_error;
mod builder;
mod cache;
mod caller;
mod change;
mod clock;
mod complete;
mod completer;
mod completion;
mod ctx;
mod cursor;
mod define;
mod emit;
mod error;
mod form;
mod handler;
mod hub;
mod in_flight;
mod leg;
mod legacy;
mod limits;
mod list;
mod listen;
mod outbox;
mod outcome;
mod permit;
mod prompt;
mod read;
mod receive;
mod refusal;
mod registry;
mod replay;
mod replay_check;
mod reply;
mod resolve;
mod resource;
mod round;
mod route;
mod runtime;
mod scopes;
pub mod serve;
mod server;
mod settings;
mod state_only;
mod step_error;
mod template;
#[doc(hidden)]
pub mod test_hooks;
mod tool;
mod uri;

pub use ask::{Ask, InputRequired, Reply};
pub use ask_error::AskError;
pub use bearer::Bearer;
pub use build_error::BuildError;
pub use builder::ServerBuilder;
pub use cache::CacheHint;
pub use caller::Caller;
pub use clock::{Clock, ManualClock};
pub use completion::{Completing, Completions, IntoCompletions};
pub use ctx::{Answer, Carrier, Ctx, Unverified};
pub use define::{IntoPrompt, IntoResource, IntoTool, Service, State};
pub use error::{Error, Result};
pub use form::{Form, FormChoice, OneField};
pub use handler::Handler;
pub use limits::{Limits, OnExpired};
pub use outcome::{HandlerOutcome, IntoOutcome, Json};
pub use prompt::Prompt;
pub use replay::{FaultPlace, ReplayCheck, ReplayFault};
pub use reply::ReplyMessage;
pub use resource::{Resource, ResourceTemplate};
pub use round::{
    Attempt, Branches, Checkpoint, Elicit, ElicitOutcome, ElicitUrl, ElicitUrlOutcome, IntoDone, IntoNumber,
    JoinAll, Migration, Response, Retry, Roots, Sample, Scope, Spawned, Step, StepKey, UrlRef, UrlRefError,
    VerifiedUrlRef, Won,
};
pub use runtime::Load;
pub use server::Server;
pub use settings::OnVersion;
pub use state_only::takes_state_only;
pub use step_error::StepError;
pub use tool::{NoArguments, Tool};

pub(crate) use legacy::Session;
#[cfg(feature = "http")]
pub(crate) use outbox::Kind;
pub(crate) use outbox::Outbox;
pub(crate) use receive::{Received, Request};
#[cfg(feature = "http")]
pub(crate) use scopes::is_scope;
pub(crate) use server::Begun;

/// The items that expanded code calls. They are no part of the API: they change with the macros.
#[doc(hidden)]
pub mod __expanded {
    pub use crate::{define::expanded::*, form::expanded::*, resolve::expanded::*};
}
