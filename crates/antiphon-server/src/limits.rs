//! The limits of a server.

use std::time::Duration;

/// The limits of a server. Every limit has a default; set others with
/// [`ServerBuilder::limits`](crate::ServerBuilder::limits).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of requests of one call. Default 16; a warning is logged at 8, since common clients stop at 10
    /// rounds.
    ///
    /// The last request runs the handler to its end, but may not ask. If the handler asks there, the call ends with an
    /// error that names this limit, the question's key, and the steps that ran in that request, because no round can
    /// carry their record. In a legacy session, a handler may return questions, or repeat a URL, one time less than
    /// this limit; awaited questions do not count there, nor do legs that ended with state only.
    pub legs: u16,
    /// The maximum number of questions in one round; in a legacy session, of questions of one call that wait at the
    /// same time. Default 64.
    pub asks: usize,
    /// The number of times that one question is asked before the call ends with an error, if its answers do not fit. A
    /// missing answer does not count. Default 3.
    pub times_asked: u8,
    /// The maximum size of one form's answer, in bytes of JSON. Default 64 KiB.
    pub form_answer: usize,
    /// The maximum size of one sampling or roots answer, in bytes of JSON. Default 1 MiB.
    pub sampling_answer: usize,
    /// The maximum size of a token's content, in bytes. Default 128 KiB. Entries recorded after a step in the same leg
    /// may take as much again, so that the step's record is not lost. In a legacy session, the maximum size of a call's
    /// record when it asks again.
    pub state: usize,
    /// The maximum size of one step's result, in bytes of JSON. Default 16 KiB. This space is reserved before a step
    /// runs, so that its result always fits. With the defaults, an empty record has space for seven steps at the same
    /// time; a further step waits until one ends.
    pub step_result: usize,
    /// The maximum number of legs of one call that end with state only: at checkpoints, and if a leg fails after it
    /// recorded something, so that the record leaves before the failure is reported. A failure uses the last such leg
    /// only if its leg has recorded a step. After the last one, checkpoints are passed and failures are reported at
    /// once. In a legacy session, the number of times that a failed handler is entered again with its record. A handler
    /// that returns state without a question is counted but not stopped. Default 2; some clients give up at the third.
    pub state_only: u8,
    /// The time for which a leg continues after its first question while something other than an answer may still wake
    /// the handler. Default 50 ms. When it is over, only unrecorded work of the handler is lost.
    pub grace: Duration,
    /// The time for which a running step may continue after its request was cancelled, its handler's time was over, or
    /// its leg failed otherwise. Default 5 seconds.
    pub step_grace: Duration,
    /// The time for which one leg waits for a person behind a URL before the URL is asked again. Default 20 seconds.
    pub until: Duration,
    /// The maximum time of one question of a legacy session while its client reports progress, which restarts the
    /// question's time limit. Default 1 hour. It does not extend a question's own `within`, nor an `answer_within` that
    /// is longer.
    pub answer_at_most: Duration,
    /// The maximum time of one leg's handler. Default 5 minutes. After that, a running step has
    /// [`step_grace`](Self::step_grace) to end, and the record of the leg leaves before the failure is reported.
    pub handler_time: Duration,
    /// The maximum number of handlers that run at the same time; further requests are refused. Default 1,024.
    pub handlers: usize,
    /// The maximum number of open legacy sessions; further ones are refused. Default 1,000.
    pub sessions: usize,
    /// The maximum number of open legacy sessions of one principal; further ones are refused. Default 100. Anonymous
    /// callers are limited by [`sessions`](Self::sessions) only.
    pub sessions_per_principal: usize,
    /// The maximum number of requests under way in one legacy session; further ones are refused. Default 64.
    pub session_requests: usize,
    /// The maximum number of handlers that run in legacy sessions at the same time, including those that wait for a
    /// person; further requests are refused. Default 1,024, in addition to [`handlers`](Self::handlers).
    pub session_handlers: usize,
    /// The maximum number of handlers that run at the same time in all legacy sessions of one principal; further
    /// requests of that principal are refused. Default 256. Anonymous callers are limited by
    /// [`session_handlers`](Self::session_handlers) only.
    pub session_handlers_per_principal: usize,
    /// The maximum number of open subscriptions; further ones are refused. Default 10,000.
    pub subscriptions: usize,
    /// The maximum number of resources in one subscription. Default 1,000.
    pub subscription_uris: usize,
    /// The maximum length of all URIs of one subscription, in bytes. Default 64 KiB.
    pub subscription_uri_bytes: usize,
    /// The maximum length of all URIs of all subscriptions, in bytes; further ones are refused. Default 64 MiB.
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
    /// Returns the limits that the engine enforces.
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

    /// Returns the maximum size of a token's content with the record of an effect.
    pub(crate) fn state_after_effect(&self) -> usize {
        self.state.saturating_mul(2)
    }
}

/// The treatment of state that comes back after its expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExpired {
    /// Expired state is refused like forged state: the client begins again. The default.
    #[default]
    Refuse,
    /// Expired state is opened until the whole call's deadline: its record is kept, the answers that came with it are
    /// dropped, and their round is asked again.
    AskAgain,
}

/// The maximum time of a whole call if expired state is asked again and no other limit is set.
pub(crate) const CALL_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The lifetime of a reference in a URL, unless the call ends sooner.
pub(crate) const URL_REF_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The size of a record from which a warning is logged. The warning names the largest entries.
pub(crate) const RECORD_WARNING: usize = 16 * 1024;

/// The leg from which a warning is logged: many clients stop at ten rounds.
pub(crate) const LEG_WARNING: u16 = 8;
