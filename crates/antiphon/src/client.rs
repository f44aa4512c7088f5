//! The client: calls tools, and passes their questions to callbacks. See [`Client`].
//!
//! What most programs name is here; the rest is in modules by theme.

#[doc(inline)]
pub use antiphon_client::{
    Call, CallOptions, CallProgress, CallbackError, CancelToken, Client, ClientBuilder, ClientError,
    ClientErrorKind, Era, Finished, FormAsk, Mode, PendingCall, Round, RoundDecision, Subscription, UrlAsk,
    transport,
};

/// Asks: what callbacks receive, the faults of answers, and consent in words.
pub mod asks {
    #[doc(inline)]
    pub use antiphon_client::{
        AnswerError, AnswerFault, AskContext, AskFault, ElicitAsk, ElicitComplete, RootsAsk, SampleAsk,
        consent,
    };
}

/// Calls: what is behind a request, and why one was not sent.
pub mod calls {
    #[doc(inline)]
    pub use antiphon_client::{ArgumentsError, CallKind, RequestFault, ServerIdentity};
}

/// Layers: what tower layers around every request receive and return.
pub mod layers {
    #[doc(inline)]
    pub use antiphon_client::{Reply, ReplyKind, Request, RequestService};
}

/// Tasks: calls that continue at the server.
pub mod tasks {
    #[doc(inline)]
    pub use antiphon_client::{ClientTask, TaskForm, TaskHandle};
}

/// Events: progress, logs and subscriptions.
pub mod events {
    #[doc(inline)]
    pub use antiphon_client::{
        EventContext, LogEvent, OnProgress, ProgressEvent, ReconnectPolicy, SubscriptionEvent,
    };
}

/// Sign-in by OAuth: see [`HttpTransportBuilder::oauth`](transport::HttpTransportBuilder::oauth), and the guide's chapter `sign_in`.
#[cfg(feature = "oauth")]
pub mod oauth {
    #[doc(inline)]
    pub use antiphon_client::oauth::*;
}
