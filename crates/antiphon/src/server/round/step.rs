//! A side effect or a computation that is run once and remembered.

use super::flow::{Flow, Held};
use crate::{
    Error,
    server::{Ctx, StepError},
};
use antiphon_engine::{CallSite, SlotId, StepKey, StepOutcome, StepPoll, StepWaker, key::path};
use antiphon_seal::{Digest, canonical::canonical};
use pin_project_lite::pin_project;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
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
        site: CallSite,
        // While it runs.
        running: Option<Run>,
        pause: Option<Pin<Box<Sleep>>>,
        // Before its place, so that the body goes first.
        #[pin]
        body: Option<Fut>,
        held: Held<'a>,
    }
}

/// A step that was begun.
struct Run {
    wake: Arc<StepWaker>,
    attempt: Attempt,
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
            site: super::flow::here(),
            running: None,
            pause: None,
            body: None,
            held: Held::new(ctx.flow()),
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
        let flow = self.ctx.flow();
        flow.check_thread();
        if self.held.is_new() {
            self.as_mut().take_place();
        }
        let this = self.as_mut().project();
        let Some(slot) = this.held.slot(|| None) else { return Poll::Pending };
        if this.running.is_none() {
            match flow.with(|leg| leg.poll_step(slot, cx.waker())) {
                StepPoll::Pending => return Poll::Pending,
                StepPoll::Recorded(outcome) => {
                    this.held.end();
                    return self.resolve(outcome);
                }
                StepPoll::Run(wake, key) => {
                    *this.running = Some(Run { wake, attempt: Attempt { key, number: 1 } });
                }
            }
        }
        match ready!(self.as_mut().run(slot, cx)) {
            Some(outcome) => self.resolve(outcome),
            None => Poll::Pending,
        }
    }
}

impl<T, F, Fut> Step<'_, T, F, Fut>
where
    Fut: Future,
    T: Serialize + DeserializeOwned,
{
    /// Takes the place of the step in its leg; none where its key or its input is faulty.
    fn take_place(self: Pin<&mut Self>) {
        let this = self.project();
        let (flow, site) = (this.ctx.flow(), *this.site);
        let placed = path(this.ctx.scope_prefix(), this.key.key, this.key.number)
            .and_then(|path| Ok((path, this.input.digest(flow)?)));
        match placed {
            Ok((path, input)) => {
                this.held.slot(|| flow.begun(|leg| leg.step(path, input, site)));
            }
            Err(fault) => {
                flow.author_fault(site, fault);
                this.held.end();
            }
        }
    }

    /// Runs the body to its outcome. `None`: the handler does not learn of it.
    fn run(mut self: Pin<&mut Self>, slot: SlotId, cx: &mut Context<'_>) -> Poll<Option<StepOutcome>> {
        let flow = self.ctx.flow();
        loop {
            let ended = match self.as_mut().attempt(slot, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(cause)) if self.as_mut().try_again(flow) => {
                    tracing::debug!(%cause, "a step is tried again");
                    continue;
                }
                Poll::Ready(ended) => ended,
            };
            let this = self.as_mut().project();
            (*this.running, *this.pause) = (None, None);
            this.held.end();
            let resolves = match ended {
                Ok(outcome) => flow.with(|leg| leg.end_step(slot, outcome.clone())).then_some(outcome),
                Err(cause) => {
                    flow.with(|leg| leg.fail_step(slot, cause));
                    None
                }
            };
            return Poll::Ready(resolves);
        }
    }

    /// One attempt, to its outcome, or to why there is none.
    fn attempt(
        self: Pin<&mut Self>,
        slot: SlotId,
        cx: &mut Context<'_>,
    ) -> Poll<Result<StepOutcome, String>> {
        let mut this = self.project();
        let flow = this.ctx.flow();
        let Some(Run { wake, attempt }) = this.running else { return Poll::Pending };
        let may_try = flow.with(|leg| {
            leg.note_step_poll(slot, cx.waker());
            leg.may_attempt_step()
        });
        if this.pause.is_some() && !may_try {
            return Poll::Ready(Err("it was to be tried again, and its request is gone".to_owned()));
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
        let polled = {
            let _scope = flow.scope(|leg| leg.in_step(slot));
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

    /// Whether there is one more attempt. None begins once the request is gone.
    fn try_again(self: Pin<&mut Self>, flow: &Flow) -> bool {
        let this = self.project();
        let Some(Run { attempt, wake }) = this.running else { return false };
        let may_try = this.again.is_some() && attempt.number < this.retry.times;
        if !may_try || !flow.with(|leg| leg.may_attempt_step()) {
            return false;
        }
        let pause = this.retry.pause(attempt.number);
        attempt.number += 1;
        *this.pause = (!pause.is_zero()).then(|| Box::pin(tokio::time::sleep(pause)));
        // The next attempt is polled at once.
        Waker::from(Arc::clone(wake)).wake();
        true
    }

    /// The outcome as the handler gets it.
    fn resolve(&self, outcome: StepOutcome) -> Poll<Result<T, StepError>> {
        match outcome {
            StepOutcome::Done(text) => match serde_json::from_str(&text) {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(fault) => {
                    let path = path(self.ctx.scope_prefix(), self.key.key, self.key.number);
                    let path = path.as_deref().unwrap_or_default();
                    let fault = crate::server::ctx::without_value(&fault);
                    let call = self.ctx.call_id().map(|call| call.to_string());
                    tracing::error!(
                        call,
                        path,
                        %fault,
                        "the recorded result of a step is not of the type that it is read as"
                    );
                    self.ctx.flow().with(|leg| leg.reject_step_result(path));
                    Poll::Pending
                }
            },
            StepOutcome::Failed(failure) => Poll::Ready(Err(failure.into())),
            StepOutcome::Abandoned => Poll::Pending,
        }
    }
}

impl Input {
    /// The digest, if the input is pinned.
    fn digest(&self, flow: &Flow) -> Result<Option<Digest>, String> {
        match self {
            Self::None => Ok(None),
            Self::Pinned(text) => {
                flow.digest(text).map(Some).ok_or_else(|| "the call could not begin".to_owned())
            }
            Self::Unwritable(fault) => Err(format!("the input of a step cannot be written as JSON: {fault}")),
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
