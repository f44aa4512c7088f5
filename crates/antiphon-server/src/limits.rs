//! The bounds of a server.

use std::time::Duration;

/// What a server puts up with. Every bound has a default; set others on the builder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of requests of one call. Default 16; a warning is logged at 8, since common clients stop at 10
    /// rounds.
    ///
    /// The last one runs the handler to its end, but may not ask: where it does, the call ends with an error that names this
    /// limit, the question's key, and the steps that ran in that request, for no round can take their record along. In a
    /// legacy session one less is how often a handler may return questions, or a URL may be asked again; questions that are
    /// awaited do not count there, nor do legs that ended with state only.
    pub legs: u16,
    /// Asks in one round; in a legacy session, those of one call that wait at once. Default 64.
    pub asks: usize,
    /// How often one question is asked before the call ends with an error, if its answers do not fit; an answer that
    /// is missing does not count. Default 3.
    pub times_asked: u8,
    /// One form's answer, in bytes of JSON. Default 64 KiB.
    pub form_answer: usize,
    /// One sampling or roots answer, in bytes of JSON. Default 1 MiB.
    pub sampling_answer: usize,
    /// All that a token carries, in bytes. Default 128 KiB. What is recorded behind a step, in the same leg, may take as
    /// much again: it would cost the step's record otherwise. In a legacy session, what a call has recorded when it asks once
    /// more.
    pub state: usize,
    /// What one step may come to, in bytes of JSON. Default 16 KiB. So much is kept free before a step runs: what it comes
    /// to always finds room. Of an empty record, seven can run at once by default; a further one waits until one ends.
    pub step_result: usize,
    /// The maximum number of legs of one call that end with state only: at checkpoints, and where a leg fails behind something
    /// that it has recorded, so that the record leaves before the failure is told. A failure takes the last one only if its
    /// leg has recorded a step. Where none is left, checkpoints are passed and failures are told at once. In a legacy session,
    /// how often a handler that failed is entered again with its record. A handler that returns state without a question is
    /// not stopped by it, but counts. Default 2; some clients give up at the third.
    pub state_only: u8,
    /// How long a leg goes on behind its first question while something other than an answer may still wake the handler.
    /// Default 50 ms. It costs only what the handler did and did not record.
    pub grace: Duration,
    /// How long a step that runs may go on after its request was cancelled, its handler's time was over, or its leg has failed
    /// otherwise. Default 5 seconds.
    pub step_grace: Duration,
    /// How long one leg waits for what a person does behind a URL, before the URL is asked again. Default 20 seconds.
    pub until: Duration,
    /// How long one question of a legacy session may wait in all while its client tells progress of it, which begins its
    /// time anew. Default 1 hour. A question's own `within` is never stretched; nor is an `answer_within` beyond this.
    pub answer_at_most: Duration,
    /// How long one leg's handler may run. Default 5 minutes. Then a step that runs has [`step_grace`](Self::step_grace) to
    /// end, and what the leg has recorded leaves before the failure is told.
    pub handler_time: Duration,
    /// Handlers that run at once; further requests are refused. Default 1,024.
    pub handlers: usize,
    /// Legacy sessions that are open at once; further ones are refused. Default 1,000.
    pub sessions: usize,
    /// Legacy sessions of one principal; further ones are refused. Default 100. Callers without a name share
    /// [`sessions`](Self::sessions).
    pub sessions_per_principal: usize,
    /// Requests under way in one legacy session; further ones are refused. Default 64.
    pub session_requests: usize,
    /// Handlers that run in legacy sessions at once, those that wait for a person included; further requests are
    /// refused. Default 1,024, beside [`handlers`](Self::handlers).
    pub session_handlers: usize,
    /// Handlers that run at once in all legacy sessions of one principal, likewise; its further requests are refused, and
    /// nobody else's. Default 256. Callers without a name share [`session_handlers`](Self::session_handlers).
    pub session_handlers_per_principal: usize,
    /// Subscriptions that are open at once; further ones are refused. Default 10,000.
    pub subscriptions: usize,
    /// Resources that one subscription may name. Default 1,000.
    pub subscription_uris: usize,
    /// All URIs that one subscription names, in bytes. Default 64 KiB.
    pub subscription_uri_bytes: usize,
    /// All URIs that all subscriptions name, in bytes; further ones are refused. Default 64 MiB.
    pub all_subscription_uri_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            legs: 16,
            asks: 64,
            times_asked: 3,
            form_answer: 64 * 1024,
            sampling_answer: 1024 * 1024,
            state: 128 * 1024,
            step_result: 16 * 1024,
            state_only: 2,
            grace: Duration::from_millis(50),
            step_grace: Duration::from_secs(5),
            until: Duration::from_secs(20),
            answer_at_most: Duration::from_secs(3600),
            handler_time: Duration::from_secs(300),
            handlers: 1024,
            sessions: 1000,
            sessions_per_principal: 100,
            session_requests: 64,
            session_handlers: 1024,
            session_handlers_per_principal: 256,
            subscriptions: 10_000,
            subscription_uris: 1000,
            subscription_uri_bytes: 64 * 1024,
            all_subscription_uri_bytes: 64 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// The bounds that the engine enforces.
    pub(crate) fn engine_limits(&self) -> antiphon_engine::Limits {
        let Self {
            legs,
            asks,
            times_asked,
            form_answer,
            sampling_answer,
            state,
            step_result,
            state_only,
            ..
        } = *self;
        antiphon_engine::Limits {
            legs,
            asks,
            times_asked,
            form_answer,
            sampling_answer,
            state,
            step_result,
            state_only,
        }
    }

    /// What a token carries at most that has the record of an effect.
    pub(crate) fn state_after_effect(&self) -> usize {
        self.state.saturating_mul(2)
    }
}

/// What becomes of a state that comes back after its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExpired {
    /// It is refused like a forged one: the client begins again. The default.
    #[default]
    Refuse,
    /// It is opened, until the whole call's deadline: what it holds is kept, what came with it is dropped, and that
    /// round is asked again.
    AskAgain,
}

/// How long a call may take as a whole if late states are asked again, and nothing else was set.
pub(crate) const CALL_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the reference in a URL is good, unless the call ends sooner.
pub(crate) const URL_REF_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// From this size on, a warning is logged that names the largest entries of a journal.
pub(crate) const JOURNAL_WARNING: usize = 16 * 1024;

/// From this leg on, a warning is logged: many clients stop at ten rounds.
pub(crate) const LEG_WARNING: u16 = 8;
