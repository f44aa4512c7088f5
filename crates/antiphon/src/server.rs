//! The server: tools, prompts and resources as plain async functions, any of which may ask. See [`Server`].
//!
//! What most servers name is here; the rest is in modules by theme.

#[doc(hidden)]
pub use antiphon_server::test_hooks;
#[doc(inline)]
pub use antiphon_server::{
    Answer, Ask, AskError, Bearer, BuildError, CacheHint, Caller, ClaimOptions, Completing, Ctx, Json,
    Limits, NoArguments, Prompt, Reply, Resource, ResourceTemplate, Retry, Server, ServerBuilder, Service,
    State, StepError, TaskMode, TaskOptions, Tool,
};

/// Asks: what the methods of [`Ctx`] return, and what belongs to asks by hand.
pub mod asks {
    #[doc(inline)]
    pub use antiphon_server::{
        ByHand, Elicit, ElicitOutcome, ElicitUrl, ElicitUrlOutcome, InputRequired, InputResponse, Roots,
        Sample, Unverified, UrlRef, UrlRefError, VerifiedUrlRef, accepts_state_only,
    };
}

/// Steps: what [`Ctx::step`](crate::server::Ctx::step) and [`Ctx::in_transaction`](crate::server::Ctx::in_transaction) return and pass.
pub mod steps {
    #[doc(inline)]
    pub use antiphon_server::{Attempt, InTransaction, IntoDone, Step, StepKey};
}

/// The flow of a handler: branches, selects, scopes, checkpoints, tasks, and the versions of a handler.
pub mod flow {
    #[doc(inline)]
    pub use antiphon_server::{
        Branches, Carrier, Checkpoint, IntoNumber, IntoTask, JoinAll, Migration, OnVersion, Scope, Spawned,
        Winner,
    };
}

/// Offers: the traits by which functions and values become tools, prompts and resources, and their outcomes results; and the callers who see
/// them.
pub mod offers {
    #[doc(inline)]
    pub use antiphon_server::{
        AnyResource, CallerInfo, Changed, Completions, Handler, HandlerOutcome, IntoCompletions, IntoContent,
        IntoOutcome, IntoPrompt, IntoResource, IntoTool, ListKind, Offers, With, WithState, with_state,
    };
}

/// Extensions of the protocol: requests and notifications of their own.
pub mod extensions {
    #[doc(inline)]
    pub use antiphon_server::{Extension, ExtensionCtx};
}

#[doc(inline)]
pub use antiphon_server::apps;

/// Receipts: sealed proof of a call's answers and steps.
pub mod receipts {
    #[doc(inline)]
    pub use antiphon_server::{Receipt, ReceiptCall, ReceiptEntry, ReceiptError, ReceiptPerson};
}

/// Layers: what tower layers around every request receive and return, and the layers of this crate.
pub mod layers {
    #[cfg(feature = "layers")]
    #[doc(inline)]
    pub use antiphon_server::{AuditLog, RateLimit, ResultCache, ToolConcurrency};
    #[doc(inline)]
    pub use antiphon_server::{Call, CallReply, CallService, Outcome, Refused, RequestInfo};
}

/// Operations: keys, load, metrics, the replay check, and transports of your own.
pub mod operations {
    #[doc(inline)]
    pub use antiphon_server::{
        FaultPlace, KeyFileWatch, KeysError, Load, Metrics, OnExpired, PeerAddress, ReplayCheck, ReplayFault,
        ReplyKind, ReplyMessage, RequestBudget, TaskMetrics, TraceContext,
    };
}
