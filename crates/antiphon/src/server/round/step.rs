//! A side effect or a computation that is run once and remembered.

use super::{
    journal::StepOutcome,
    key::{StepKey, path},
    machine::{Hold, Place, StepVerdict},
};
use crate::{
    Error,
    server::{Ctx, StepError},
};
use antiphon_seal::{Digest, canonical::canonical};
use pin_project_lite::pin_project;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Sleep;

impl Ctx {
    /// Runs something once and remembers what it came to, for the whole call: the closure is not called again when the
    /// handler is, and its result comes from the record.
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx};
    ///
    /// # mod payments { pub async fn charge(_: u32, _: &str) -> std::io::Result<String> { Ok("r-1".into()) } }
    /// async fn pay(ctx: &Ctx, amount: u32) -> Result<String> {
    ///     let receipt: String = ctx.step("charge", async |s| Ok(payments::charge(amount, s.key()).await?)).await?;
    ///     Ok(receipt)
    /// }
    /// ```
    ///
    /// What the handler gets has been through JSON, on the first run too: the value through serde, an error as
    /// [`StepError`]. Both are recorded. [`StepError::retry`] and a panic are not: then the step is run again, in place as
    /// [`step_retry`](Self::step_retry) says, and by the client's next request after that.
    ///
    /// "Once" is as much as a server without a store can promise. A crash between an effect and the end of the leg, and a
    /// client that sends an older request again, run it again, under the same [`Attempt::key`]: give that to a provider
    /// that remembers it.
    ///
    /// The key is one for each use: for a loop, `("charge", i)` with a number from the program.
    #[track_caller]
    pub fn step<'a, T, F, Fut>(&'a self, key: impl Into<StepKey<'a>>, run: F) -> Step<'a, T, F, Fut>
    where
        F: FnOnce(Attempt) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
        T: Serialize + DeserializeOwned,
    {
        Step::new(self, key.into(), Input::None, run, std::convert::identity)
    }

    /// [`step`](Self::step) for a function with an error type of its own.
    #[track_caller]
    pub fn step_fn<'a, T, E, F, Fut>(&'a self, key: impl Into<StepKey<'a>>, run: F) -> Step<'a, T, F, Fut>
    where
        F: FnOnce(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        T: Serialize + DeserializeOwned,
        E: Into<Error>,
    {
        Step::new(self, key.into(), Input::None, run, |result| result.map_err(Into::into))
    }

    /// [`step`](Self::step) that is tried again in place where it panics or asks for it with [`StepError::retry`]. After the
    /// last attempt the request fails, and may be sent again.
    ///
    /// ```
    /// use antiphon::{Result, server::{Ctx, Retry, StepError}};
    /// use std::time::Duration;
    ///
    /// # mod payments { pub async fn charge(_: u32, _: &str) -> std::io::Result<String> { Ok("r-1".into()) } }
    /// async fn pay(ctx: &Ctx, amount: u32) -> Result<String> {
    ///     let retry = Retry::times(3).every(Duration::from_millis(200));
    ///     let receipt = ctx.step_retry("charge", retry, async |s| {
    ///         payments::charge(amount, s.key()).await.map_err(StepError::retry)
    ///     });
    ///     Ok(receipt.await?)
    /// }
    /// ```
    #[track_caller]
    pub fn step_retry<'a, T, F, Fut>(
        &'a self,
        key: impl Into<StepKey<'a>>,
        retry: Retry,
        run: F,
    ) -> Step<'a, T, F, Fut>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
        T: Serialize + DeserializeOwned,
    {
        let mut step = Step::new(self, key.into(), Input::None, run, std::convert::identity);
        step.retry = retry;
        step.again = Some(|run, attempt| run(attempt));
        step
    }

    /// [`step`](Self::step) with its input pinned: a recorded result counts only for the same input. Another one ends the
    /// call, for the result would be that of something else.
    ///
    /// Inputs are the same if they are the same JSON: the order of members does not count, so a `HashMap` will do; that of
    /// elements does, so a `HashSet` will not.
    #[track_caller]
    pub fn step_with<'a, I, T, F, Fut>(
        &'a self,
        key: impl Into<StepKey<'a>>,
        input: &I,
        run: F,
    ) -> Step<'a, T, F, Fut>
    where
        I: Serialize + ?Sized,
        F: FnOnce(Attempt) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
        T: Serialize + DeserializeOwned,
    {
        let input = match serde_json::to_string(input) {
            // The members of a `HashMap` come in another order each time. What is too deep counts as it is written.
            Ok(text) => Input::Pinned(canonical(&text).unwrap_or_else(|_| text.into_bytes())),
            Err(fault) => Input::Unwritable(fault.to_string()),
        };
        Step::new(self, key.into(), input, run, std::convert::identity)
    }
}

/// One run of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    key: String,
    number: u32,
}

impl Attempt {
    /// The idempotency key: 32 hexadecimal digits, the same whenever this step of this call is run, and not to be guessed.
    /// Made for providers that take one.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Which attempt of this leg it is, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// How often, and how far apart, a step is tried in one leg.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    times: u32,
    every: Duration,
}

impl Retry {
    /// So many attempts in all, at least one, without a pause.
    pub fn times(times: u32) -> Self {
        Self { times: times.max(1), every: Duration::ZERO }
    }

    /// With this pause after the first failure, doubled after each further one, a minute at most.
    #[must_use]
    pub fn every(mut self, pause: Duration) -> Self {
        self.every = pause;
        self
    }

    fn pause(&self, failed: u32) -> Duration {
        let factor = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        self.every.saturating_mul(factor).min(Duration::from_secs(60))
    }
}

enum Input {
    None,
    Pinned(Vec<u8>),
    Unwritable(String),
}

pin_project! {
    /// A step that is run when it is awaited. See [`Ctx::step`].
    #[must_use = "a step is run when it is awaited"]
    pub struct Step<'a, T, F, Fut>
    where
        Fut: Future,
    {
        ctx: &'a Ctx,
        key: StepKey<'a>,
        input: Input,
        run: Option<F>,
        // Pointers, so that nothing asks of `F` that it is called with an attempt and gives `Fut`: inside `join!` and its
        // like, the compiler cannot see that of a closure which borrows.
        call: fn(F, Attempt) -> Fut,
        // Begins one more attempt, if the closure can be called again.
        again: Option<fn(&mut F, Attempt) -> Fut>,
        retry: Retry,
        settle: fn(Fut::Output) -> Result<T, Error>,
        place: Place,
        attempt: Option<Attempt>,
        pause: Option<Pin<Box<Sleep>>>,
        #[pin]
        body: Option<Fut>,
        guard: Guard<'a>,
    }
}

/// Where a step stands; dropped with it.
struct Guard<'a> {
    ctx: &'a Ctx,
    path: String,
    /// Where it was held.
    seat: Box<str>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Held(Hold),
    Running,
    Over,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut machine = self.ctx.flow().machine();
        match self.stage {
            Stage::New | Stage::Over => return,
            Stage::Held(hold) => {
                machine.let_go(hold);
                if hold == Hold::Recorded {
                    return;
                }
            }
            // It may have had its effect: it is not run again.
            Stage::Running => {
                machine.step_cut(&self.path);
                return;
            }
        }
        machine.step_dropped(&self.path, &self.seat);
    }
}

impl<'a, T, F, Fut: Future> Step<'a, T, F, Fut> {
    #[track_caller]
    fn new(
        ctx: &'a Ctx,
        key: StepKey<'a>,
        input: Input,
        run: F,
        settle: fn(Fut::Output) -> Result<T, Error>,
    ) -> Self
    where
        F: FnOnce(Attempt) -> Fut,
    {
        Self {
            ctx,
            key,
            input,
            run: Some(run),
            call: |run, attempt| run(attempt),
            again: None,
            retry: Retry::times(1),
            settle,
            place: super::flow::here(),
            attempt: None,
            pause: None,
            body: None,
            guard: Guard { ctx, path: String::new(), seat: Box::default(), stage: Stage::New },
        }
    }
}

impl<T, F, Fut> Future for Step<'_, T, F, Fut>
where
    Fut: Future,
    T: Serialize + DeserializeOwned,
{
    type Output = Result<T, StepError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.ctx.flow().check_thread();
        if self.guard.stage != Stage::Running
            && let Some(outcome) = ready!(self.as_mut().begin(cx))
        {
            return self.resolve(outcome);
        }
        loop {
            match ready!(self.as_mut().attempt(cx)) {
                Ok(outcome) => {
                    let resolves = {
                        let this = self.as_mut().project();
                        this.guard.stage = Stage::Over;
                        let mut machine = this.ctx.flow().machine();
                        machine.end_step(&this.guard.path, outcome.clone())
                    };
                    return if resolves { self.resolve(outcome) } else { Poll::Pending };
                }
                Err(cause) => {
                    if !self.as_mut().try_again() {
                        let this = self.as_mut().project();
                        this.guard.stage = Stage::Over;
                        this.ctx.flow().machine().fail_step(&this.guard.path, cause);
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<T, F, Fut> Step<'_, T, F, Fut>
where
    Fut: Future,
    T: Serialize + DeserializeOwned,
{
    /// The outcome, if it was recorded; `None` if the body now runs.
    fn begin(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<Option<StepOutcome>> {
        let this = self.project();
        let flow = this.ctx.flow();
        let input = match this.guard.stage {
            Stage::Over => return Poll::Pending,
            Stage::Held(hold) => {
                flow.machine().let_go(hold);
                this.guard.stage = Stage::New;
                pinned(flow, this.input, this.place)
            }
            _ => match path(this.ctx.scope_prefix(), this.key.key, this.key.number) {
                Ok(path) => {
                    this.guard.path = path;
                    pinned(flow, this.input, this.place)
                }
                Err(fault) => {
                    flow.author_fault(this.place, fault);
                    None
                }
            },
        };
        let Some(input) = input else {
            this.guard.stage = Stage::Over;
            return Poll::Pending;
        };
        let mut machine = flow.begun();
        match machine.step(&this.guard.path, input, this.place, flow.limits(), flow.push().is_none()) {
            StepVerdict::Recorded(outcome) => {
                this.guard.stage = Stage::Over;
                Poll::Ready(Some(outcome))
            }
            StepVerdict::Run(key) => {
                this.guard.stage = Stage::Running;
                *this.attempt = Some(Attempt { key, number: 1 });
                Poll::Ready(None)
            }
            StepVerdict::Held(hold) => {
                machine.hold(hold);
                this.guard.seat = machine.seat();
                drop(machine);
                this.guard.stage = Stage::Held(hold);
                flow.wait_held(cx);
                Poll::Pending
            }
            StepVerdict::Never => {
                this.guard.stage = Stage::Over;
                Poll::Pending
            }
        }
    }

    /// One attempt, to its outcome, or to why there is none.
    fn attempt(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StepOutcome, String>> {
        let mut this = self.project();
        if let Some(pause) = this.pause {
            ready!(pause.as_mut().poll(cx));
            *this.pause = None;
        }
        let flow = this.ctx.flow();
        flow.machine().enter_step(&this.guard.path);
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| {
            if this.body.is_none()
                && let Some(attempt) = this.attempt.clone()
            {
                let body = match this.again {
                    Some(again) => this.run.as_mut().map(|run| again(run, attempt)),
                    None => this.run.take().map(|run| (this.call)(run, attempt)),
                };
                this.body.set(body);
            }
            match this.body.as_mut().as_pin_mut() {
                Some(body) => body.poll(cx).map(Some),
                None => Poll::Ready(None),
            }
        }));
        flow.machine().leave_step();
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Some(output))) => Ok((this.settle)(output)),
            Ok(Poll::Ready(None)) => Err("its closure can be called once only".to_owned()),
            Err(_panic) => Err("it panicked".to_owned()),
        };
        this.body.set(None);
        Poll::Ready(result.and_then(|result| match result {
            Ok(value) => Ok(recorded(&value, flow.limits().step_result)),
            Err(error) => match StepError::of(error) {
                Ok(error) => Ok(failed(error, flow.limits().step_result)),
                Err(again) => Err(again.to_string()),
            },
        }))
    }

    /// Whether there is one more attempt.
    fn try_again(self: Pin<&mut Self>) -> bool {
        let this = self.project();
        let Some(attempt) = this.attempt else { return false };
        if this.again.is_none() || attempt.number >= this.retry.times {
            return false;
        }
        let pause = this.retry.pause(attempt.number);
        attempt.number += 1;
        *this.pause = (!pause.is_zero()).then(|| Box::pin(tokio::time::sleep(pause)));
        true
    }

    /// The outcome as the handler gets it.
    fn resolve(&self, outcome: StepOutcome) -> Poll<Result<T, StepError>> {
        match outcome {
            StepOutcome::Done(text) => match serde_json::from_str(&text) {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(fault) => {
                    let fault = crate::server::ctx::without_value(&fault);
                    let fault = format!(
                        "the recorded result of the step `{}` is not of the type it is read as: {fault}",
                        self.guard.path
                    );
                    self.ctx.flow().author_fault(self.place, fault);
                    Poll::Pending
                }
            },
            StepOutcome::Failed(failure) => Poll::Ready(Err(failure.into())),
            StepOutcome::Abandoned => Poll::Pending,
        }
    }
}

/// The digest of the input, if there is one; `None` if the leg has ended for it.
fn pinned(flow: &super::flow::Flow, input: &Input, place: Place) -> Option<Option<Digest>> {
    match input {
        Input::None => Some(None),
        Input::Pinned(text) => flow.pin(text).map(Some),
        Input::Unwritable(fault) => {
            flow.author_fault(place, format!("the input of a step cannot be written as JSON: {fault}"));
            None
        }
    }
}

/// A value as it is recorded, if it can be, and can be read again.
fn recorded<T: Serialize + DeserializeOwned>(value: &T, limit: usize) -> StepOutcome {
    let text = match serde_json::to_string(value) {
        Ok(text) => text,
        Err(fault) => return StepOutcome::Failed(StepError::unrecordable(fault).recorded()),
    };
    if text.len() > limit {
        let cause = format!("it takes {} bytes of JSON; the limit is {limit}", text.len());
        return StepOutcome::Failed(StepError::unrecordable(cause).recorded());
    }
    match serde_json::from_str::<T>(&text) {
        Ok(_) => StepOutcome::Done(text),
        Err(fault) => {
            let cause = format!("it cannot be read again: {}", crate::server::ctx::without_value(&fault));
            StepOutcome::Failed(StepError::unrecordable(cause).recorded())
        }
    }
}

fn failed(error: StepError, limit: usize) -> StepOutcome {
    let failure = error.recorded();
    if failure.size() <= limit {
        return StepOutcome::Failed(failure);
    }
    let cause = format!("its error takes {} bytes; the limit is {limit}", failure.size());
    StepOutcome::Failed(StepError::unrecordable(cause).recorded())
}
