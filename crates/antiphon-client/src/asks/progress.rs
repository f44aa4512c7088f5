//! The progress that callbacks report while they answer the asks of a session.

use antiphon_wire::{
    ProgressParams, ProgressToken, escaped, lock::Lock, method, progress_token_of, write_notification,
};
use serde_json::{Number, value::RawValue};
use std::{
    fmt,
    sync::{Arc, MutexGuard},
};
use tokio::sync::Notify;

/// The progress of one ask: callbacks report it, the session sends it. Clones are the same ask; the default is one whose
/// server did not ask for progress.
#[derive(Clone, Default)]
pub(crate) struct AskProgress(Option<Arc<ReportState>>);

struct ReportState {
    token: ProgressToken,
    state: Lock<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    reached: Option<f64>,
    /// The newest report, if it was not sent yet. It replaces earlier ones.
    waiting: Option<ProgressParams>,
}

impl ReportState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl AskProgress {
    /// The progress of a request with these params.
    ///
    /// > Progress notifications **MUST** only reference tokens that: Were provided in an active request
    pub(crate) fn of(params: Option<&RawValue>) -> Self {
        let token = params.and_then(progress_token_of);
        Self(
            token
                .map(|token| Arc::new(ReportState { token, state: Lock::default(), changed: Notify::new() })),
        )
    }

    /// Stores a report to be sent.
    pub(crate) fn report(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let (Some(reported), Some(number)) = (&self.0, Number::from_f64(progress)) else { return };
        let mut state = reported.state();
        // > The `progress` value **MUST** increase with each notification, even if the total is unknown.
        if let Some(reached) = state.reached.filter(|reached| progress <= *reached) {
            tracing::debug!(progress, reached, "progress did not increase: not sent");
            return;
        }
        state.reached = Some(progress);
        let mut params = ProgressParams::new(reported.token.clone(), number);
        params.total = total.and_then(Number::from_f64);
        params.message = message.map(str::to_owned);
        state.waiting = Some(params);
        drop(state);
        reported.changed.notify_one();
    }

    /// The next notification to send.
    pub(crate) async fn next(&self) -> Vec<u8> {
        let Some(reported) = &self.0 else { return std::future::pending().await };
        loop {
            let waiting = reported.state().waiting.take();
            match waiting.map(|params| write_notification(method::PROGRESS, &params)) {
                Some(Ok(message)) => return message,
                Some(Err(fault)) => {
                    tracing::error!(fault = %escaped(&fault), "progress cannot be written as JSON")
                }
                None => reported.changed.notified().await,
            }
        }
    }
}

impl fmt::Debug for AskProgress {
    /// Nothing of what was reported.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskProgress").field("is_requested", &self.0.is_some()).finish()
    }
}
