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

pub mod apps;
mod at_most_once;
mod call;
mod define;
mod dispatch;
mod errors;
mod extension;
mod feed;
mod form;
mod identity;
mod in_place;
mod layer;
mod legacy;
mod metrics;
mod offer;
mod options;
mod outbox;
mod quota;
mod receipt;
mod reply;
mod request;
mod resolve;
mod runtime;
pub mod serve;
mod server;
mod session;
mod subscribe;
mod task;
mod task_registry;
#[doc(hidden)]
pub mod test_hooks;
mod trace;

pub use call::{
    Attempt, Branches, Checkpoint, Elicit, ElicitOutcome, ElicitUrl, ElicitUrlOutcome, InTransaction,
    InputResponse, IntoDone, IntoNumber, IntoTask, JoinAll, Migration, Retry, Roots, Sample, Scope, Spawned,
    Step, StepKey, UrlRef, UrlRefError, VerifiedUrlRef, Winner,
    ask::{Ask, ByHand, InputRequired, Reply, Unverified},
    ctx::{Answer, Ctx},
    handler::{Handler, HandlerOutcome, IntoContent, IntoOutcome, Json, WithState, with_state},
};
pub use define::{AnyResource, Changed, IntoPrompt, IntoResource, IntoTool, Service, State, With};
pub use errors::{
    BuildError, Error, Result, ShowError,
    awaited::{AskError, StepError},
};
pub use extension::{Extension, ExtensionCtx};
pub use feed::ListKind;
pub use form::{Form, FormChoice, OneField};
pub use identity::{Bearer, Caller, PeerAddress, account::CallerInfo};
pub use layer::{
    CallService,
    call::{Call, CallReply, Outcome, Refused},
};
#[cfg(feature = "layers")]
pub use layer::{
    audit::AuditLog,
    limits::{RateLimit, ResultCache, ToolConcurrency},
};
pub use metrics::Metrics;
pub use offer::{
    CacheHint,
    completion::{Completing, Completions, IntoCompletions},
    given::Offers,
    prompt::Prompt,
    resource::{Resource, ResourceTemplate},
    tool::{NoArguments, Tool},
};
pub use options::{
    Clock, ManualClock, OnVersion, TaskMode,
    limits::{Limits, OnExpired},
};
pub use quota::RequestBudget;
pub use receipt::{Receipt, ReceiptCall, ReceiptEntry, ReceiptError, ReceiptPerson};
pub use reply::{ReplyKind, ReplyMessage};
pub use request::{RequestInfo, carrier::Carrier};
pub use runtime::{
    KeysError, Load, accepts_state_only,
    claims::ClaimOptions,
    replay::{FaultPlace, ReplayCheck, ReplayFault},
};
pub use server::{Server, builder::ServerBuilder, key_file::KeyFileWatch};
pub use task_registry::{TaskMetrics, TaskOptions};
pub use trace::TraceContext;

/// The items that expanded code calls. They are not part of the API: they change with the macros.
#[doc(hidden)]
pub mod __expanded {
    pub use crate::{define::expanded::*, form::expanded::*, resolve::expanded::*};
}
