//! The attempts of a step: each one runs the body to its outcome, and another one may follow.

use super::{
    Run, Step,
    stored::{Begun, Ended, NoOutcome},
};
use crate::call::leg_runtime::LegRuntime;
use antiphon_engine::SlotId;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

/// One run of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub(super) key: String,
    pub(super) number: u32,
}

impl Attempt {
    /// Returns the idempotency key: 32 hexadecimal digits, the same for every run of this step of this call, and not
    /// guessable. Pass it to a provider that accepts one.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the number of this attempt in this leg, from 1. Under
    /// [`write_ahead`](crate::ServerBuilder::write_ahead), attempts of an earlier run of the leg count.
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// The number of attempts of a step in one leg, and the pause between them.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    pub(super) times: u32,
    every: Duration,
}

impl Retry {
    /// `times` attempts in total (minimum 1), without a pause.
    pub fn times(times: u32) -> Self {
        Self { times: times.max(1), every: Duration::ZERO }
    }

    /// Sets the pause after the first failure. The pause doubles after each further failure, up to one minute.
    #[must_use]
    pub fn interval(mut self, pause: Duration) -> Self {
        self.every = pause;
        self
    }

    pub(super) fn pause(&self, failed: u32) -> Duration {
        let factor = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        self.every.saturating_mul(factor).min(Duration::from_secs(60))
    }
}

impl<T, F, Fut> Step<'_, T, F, Fut>
where
    Fut: Future,
    T: Serialize + DeserializeOwned,
{
    /// Runs one attempt to its outcome. With a store, the start is stored before, and the end after.
    pub(super) fn attempt(
        self: Pin<&mut Self>,
        slot: SlotId,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Ended<T>, NoOutcome>> {
        let mut this = self.project();
        let runtime = this.ctx.leg_runtime();
        let Some(Run { wake, attempt, .. }) = this.running else { return Poll::Pending };
        let may_try = runtime.with(|leg| {
            leg.note_step_poll(slot, cx.waker());
            leg.may_attempt_step()
        });
        if this.pause.is_some() && !may_try {
            return Poll::Ready(Err(NoOutcome::Failed(
                "another attempt was requested, but the request was cancelled".to_owned(),
            )));
        }
        if !wake.begin_poll(cx.waker()) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(wake));
        let mut cx = Context::from_waker(&waker);
        if let Some(pause) = this.pause {
            ready!(pause.as_mut().poll(&mut cx));
            *this.pause = None;
        }
        if let Some(stored) = this.stored {
            match ready!(stored.poll_begin(&mut cx, runtime.limits().engine.step_result)) {
                Begun::Run { attempt: number } => attempt.number = number,
                Begun::Ended(result) => return Poll::Ready(result),
                Begun::BodyEnded => return stored.poll_end(&mut cx),
            }
        }
        let polled = {
            let _scope = runtime.scope(|leg| leg.in_step(slot));
            std::panic::catch_unwind(AssertUnwindSafe(|| {
                if this.body.is_none() {
                    let body = match this.again {
                        Some(again) => this.run.as_mut().map(|run| again(run, attempt.clone())),
                        None => this.run.take().map(|run| (this.call)(run, attempt.clone())),
                    };
                    this.body.set(body);
                }
                match this.body.as_mut().as_pin_mut() {
                    Some(body) => body.poll(&mut cx).map(Some),
                    None => Poll::Ready(None),
                }
            }))
        };
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Some(output))) => (this.settle)(output, runtime.limits().engine.step_result),
            Ok(Poll::Ready(None)) => {
                Err(NoOutcome::Failed("its function can be called only once".to_owned()))
            }
            Err(_panic) => Err(NoOutcome::Failed("it panicked".to_owned())),
        };
        this.body.set(None);
        match this.stored {
            None => Poll::Ready(result),
            Some(stored) => {
                stored.body_ended(result);
                stored.poll_end(&mut cx)
            }
        }
    }

    /// Starts one more attempt, if there is one. No attempt starts after the request is gone. Returns true if one was
    /// started.
    pub(super) fn try_again(self: Pin<&mut Self>, runtime: &LegRuntime) -> bool {
        let this = self.project();
        let Some(Run { attempt, wake, .. }) = this.running else { return false };
        let may_try = this.again.is_some() && attempt.number < this.retry.times;
        if !may_try || !runtime.with(|leg| leg.may_attempt_step()) {
            return false;
        }
        let pause = this.retry.pause(attempt.number);
        attempt.number += 1;
        if let Some(stored) = this.stored {
            stored.begin_again(attempt.number);
        }
        *this.pause = (!pause.is_zero()).then(|| Box::pin(tokio::time::sleep(pause)));
        // The next attempt is polled at once.
        Waker::from(Arc::clone(wake)).wake();
        true
    }
}
