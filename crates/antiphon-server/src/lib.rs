//! Servers: tools, prompts and resources as plain async functions that may ask questions.
//!
//! The path of one request, from its bytes to its reply:
//!
//! ```text
//!  bytes ─▶ receive ─▶ route ──────────────▶ lists, discover ──────────▶ reply
//!           envelope,   one line             (written when they change)    ▲
//!           _meta       a method                                           │
//!                         │ tools/call, prompts/get, resources/read        │
//!                         ▼                                                │
//!                       admit ─▶ check ─▶ handler ─▶ asks? ─▶ permit ─▶ seal
//!                       state     answers   yours              capability
//! ```
//!
//! A handler is reached only through `admit`, which opens the state of the request and returns the value that running,
//! permitting and sealing require. A refusal becomes an error in one place, `refusal`.

mod ask_error;
mod at_most_once;
mod build;
mod build_error;
mod builder;
mod call;
mod claims;
mod clock;
mod define;
mod dispatch;
mod error;
mod form;
mod identity;
mod in_place;
mod key_file;
mod legacy;
mod limits;
mod message_service;
mod offer;
mod outbox;
mod quota;
mod read;
mod receipt;
mod refusal;
mod refusal_log;
mod registration;
mod reply;
mod request;
mod resolve;
mod runtime;
mod sealing;
pub mod serve;
mod server;
mod server_service;
mod session;
mod settings;
mod step_error;
mod store_settings;
mod subscribe;
mod task;
mod task_form;
mod task_leg;
mod task_registry;
mod task_requests;
mod task_settings;
#[doc(hidden)]
pub mod test_hooks;
mod trace;

pub use ask_error::AskError;
pub use build_error::BuildError;
pub use builder::ServerBuilder;
pub use call::{
    Attempt, Branches, Carrier, Checkpoint, Elicit, ElicitOutcome, ElicitUrl, ElicitUrlOutcome,
    InTransaction, InputResponse, IntoDone, IntoNumber, IntoTask, JoinAll, Migration, Retry, Roots, Sample,
    Scope, Spawned, Step, StepKey, UrlRef, UrlRefError, VerifiedUrlRef, Winner,
    ask::{Ask, InputRequired, Reply},
    ctx::{Answer, Ctx, Unverified},
    handler::{Handler, WithState, with_state},
    outcome::{HandlerOutcome, IntoOutcome, Json},
};
pub use claims::ClaimOptions;
pub use clock::{Clock, ManualClock};
pub use define::{IntoPrompt, IntoResource, IntoTool, Service, State};
pub use error::{Error, Result, ShowError};
pub use form::{Form, FormChoice, OneField};
pub use identity::{bearer::Bearer, caller::Caller, peer_address::PeerAddress};
pub use key_file::KeyFileWatch;
pub use limits::{Limits, OnExpired};
pub use offer::{
    cache::CacheHint,
    completion::{Completing, Completions, IntoCompletions},
    prompt::Prompt,
    resource::{Resource, ResourceTemplate},
    tool::{NoArguments, Tool},
};
pub use quota::request_budget::RequestBudget;
pub use receipt::{Receipt, ReceiptCall, ReceiptEntry, ReceiptError, ReceiptPerson};
pub use reply::{ReplyKind, ReplyMessage};
pub use runtime::{
    Load,
    replay::{FaultPlace, ReplayCheck, ReplayFault},
    state_only::takes_state_only,
};
pub use sealing::KeysError;
pub use server::Server;
pub use settings::{OnVersion, TaskMode};
pub use step_error::StepError;
pub use task_registry::{TaskMetrics, TaskOptions};
pub use trace::TraceContext;

#[cfg(feature = "http")]
pub(crate) use identity::scopes::is_scope;
pub(crate) use outbox::Outbox;
pub(crate) use request::receive::{Received, Request};
pub(crate) use session::Session;

/// The items that expanded code calls. They are not part of the API: they change with the macros.
#[doc(hidden)]
pub mod __expanded {
    pub use crate::{define::expanded::*, form::expanded::*, resolve::expanded::*};
}
