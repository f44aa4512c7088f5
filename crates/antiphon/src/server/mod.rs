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
mod bench;
mod build;
mod builder;
mod cache;
mod caller;
mod change;
mod completer;
mod completion;
mod ctx;
mod cursor;
pub(crate) mod define;
mod emit;
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
mod prompt;
mod receive;
mod refusal;
mod registry;
mod replay_check;
mod reply;
pub(crate) mod resolve;
mod resource;
mod round;
mod route;
mod serve;
mod settings;
mod state_only;
mod step_error;
mod template;
mod tool;
mod uri;

pub use ask::{Ask, InputRequired, Reply};
pub use ask_error::AskError;
pub use bearer::Bearer;
pub use build::BuildError;
pub use builder::ServerBuilder;
pub use cache::CacheHint;
pub use caller::Caller;
pub use completion::{Completing, Completions, IntoCompletions};
pub use ctx::{Answer, Carrier, Ctx, Unverified};
pub use define::{IntoPrompt, IntoResource, IntoTool, Service, State};
pub use handler::Handler;
pub use limits::{Limits, OnExpired};
pub use outcome::{HandlerOutcome, IntoOutcome, Json};
pub use prompt::Prompt;
pub use replay_check::{FaultPlace, ReplayCheck, ReplayFault};
pub use resource::{Resource, ResourceTemplate};
pub use round::{
    Attempt, Branches, Checkpoint, Elicit, ElicitOutcome, ElicitUrl, ElicitUrlOutcome, IntoDone, IntoNumber,
    JoinAll, Migration, Response, Retry, Roots, Sample, Scope, Spawned, Step, StepKey, UrlRef, UrlRefError,
    VerifiedUrlRef, Won,
};
pub use serve::{Load, ReplyMessage, Server};
pub use settings::OnVersion;
pub use state_only::takes_state_only;
pub use step_error::StepError;
pub use tool::{NoArguments, Tool};

#[cfg(feature = "http")]
pub(crate) use bearer::is_scope;
pub(crate) use bench::Lifetime;
pub(crate) use legacy::Session;
#[cfg(feature = "http")]
pub(crate) use outbox::Kind;
pub(crate) use outbox::Outbox;
pub(crate) use receive::{Received, Request};
pub(crate) use serve::Begun;
