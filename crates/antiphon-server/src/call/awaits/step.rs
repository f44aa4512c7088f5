//! Steps: side effects or computations that run once and are recorded.

mod attempt;
mod stored;
mod transaction;

use self::stored::{Reconcile, StoredStep};
pub use self::{
    attempt::{Attempt, Retry},
    transaction::InTransaction,
};
use crate::{
    call::{
        ctx::Ctx,
        exchange::OpenStep,
        leg_runtime::{LegRuntime, SlotHandle},
    },
    errors::{Error, awaited::StepError},
};
use antiphon_engine::{CallSite, SlotId, StepKey, StepOutcome, StepPoll, StepWaker, key::path};
use antiphon_seal::{Digest, canonical::canonical};
use antiphon_wire::escaped;
use pin_project_lite::pin_project;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use stored::{Ended, NoOutcome, of_body};
use tokio::time::Sleep;
use tracing::Span;

impl Ctx {
    /// Runs a function once per call and records its result: when the handler runs again, the function is not called,
    /// and the result comes from the record.
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
    /// The result passes through JSON, on the first run too: a value through serde, an error as [`StepError`]. Both are
    /// recorded. [`StepError::retry`] and a panic are not recorded: the step runs again, first in the same leg if
    /// [`step_retry`](Self::step_retry) allows it, then with the client's next request.
    ///
    /// "Once" is limited to what a server without a store can guarantee. After a crash between the effect and the end
    /// of the leg, or if a client sends an older request again, the step runs again with the same [`Attempt::key`].
    /// Pass that key to a provider that accepts idempotency keys.
    ///
    /// The key must be different for each use: in a loop, `("charge", i)` with a number from the program.
    #[track_caller]
    pub fn step<'a, T, F, Fut>(&'a self, key: impl Into<StepKey<'a>>, run: F) -> Step<'a, T, F, Fut>
    where
        F: FnOnce(Attempt) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
        T: Serialize + DeserializeOwned,
    {
        Step::new(self, key.into(), Input::None, run, of_body)
    }

    /// Runs a [`step`](Self::step) whose function has an error type of its own.
    #[track_caller]
    pub fn step_fn<'a, T, E, F, Fut>(&'a self, key: impl Into<StepKey<'a>>, run: F) -> Step<'a, T, F, Fut>
    where
        F: FnOnce(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        T: Serialize + DeserializeOwned,
        E: Into<Error>,
    {
        Step::new(self, key.into(), Input::None, run, |result, limit| {
            of_body(result.map_err(Into::into), limit)
        })
    }

    /// Runs a [`step`](Self::step) that is repeated in the same leg if it panics or returns [`StepError::retry`]. After
    /// the last attempt the request fails, and the client may send it again.
    ///
    /// ```
    /// use antiphon::{Result, server::{Ctx, Retry, StepError}};
    /// use std::time::Duration;
    ///
    /// # mod payments { pub async fn charge(_: u32, _: &str) -> std::io::Result<String> { Ok("r-1".into()) } }
    /// async fn pay(ctx: &Ctx, amount: u32) -> Result<String> {
    ///     let retry = Retry::times(3).interval(Duration::from_millis(200));
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
        let mut step = Step::new(self, key.into(), Input::None, run, of_body);
        step.retry = retry;
        step.again = Some(|run, attempt| run(attempt));
        step
    }

    /// Runs a [`step`](Self::step) whose input is recorded: a recorded result is used only for the same input. A
    /// different input ends the call with an error.
    ///
    /// Two inputs are the same if their JSON is the same. The order of members does not matter, so a `HashMap` is fine;
    /// the order of elements does, so a `HashSet` is not.
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
            // The members of a `HashMap` have a different order each time. JSON that is too deep is compared as
            // written.
            Ok(text) => Input::Pinned(canonical(&text).unwrap_or_else(|_| text.into_bytes())),
            Err(fault) => Input::Unwritable(fault.to_string()),
        };
        Step::new(self, key.into(), input, run, of_body)
    }
}

enum Input {
    None,
    Pinned(Vec<u8>),
    Unwritable(String),
}

pin_project! {
    /// The future of a step, which runs when the future is awaited. See [`Ctx::step`].
    #[must_use = "a step is run when it is awaited"]
    pub struct Step<'a, T, F, Fut>
    where
        Fut: Future,
    {
        ctx: &'a Ctx,
        key: StepKey<'a>,
        input: Input,
        run: Option<F>,
        // A function pointer instead of a bound `F: FnOnce(Attempt) -> Fut`: inside `join!` and similar macros, the
        // compiler cannot prove that bound for a closure that borrows.
        call: fn(F, Attempt) -> Fut,
        // Starts one more attempt, if the function can be called again.
        again: Option<fn(&mut F, Attempt) -> Fut>,
        // True if the body stores the end of the step itself, in a transaction.
        stores_itself: bool,
        retry: Retry,
        settle: Settle<Fut::Output, T>,
        site: CallSite,
        // `Some` while the step runs.
        running: Option<Run>,
        pause: Option<Pin<Box<Sleep>>>,
        // The records of the step in the server's store, if it has some.
        stored: Option<StoredStep<'a, T>>,
        reconcile: Option<Reconcile<'a, T>>,
        // Declared before the handle, so that the body is dropped first.
        #[pin]
        body: Option<Fut>,
        // Dropped after the body, if its leg was claimed in a store.
        open: Option<OpenStep<'a>>,
        handle: SlotHandle<'a>,
    }
}

/// Converts the body's output to an outcome, within a limit in bytes.
type Settle<Output, T> = fn(Output, usize) -> Result<Ended<T>, NoOutcome>;

/// A step that runs.
struct Run {
    wake: Arc<StepWaker>,
    attempt: Attempt,
    span: Span,
}

impl<'a, T, F, Fut: Future> Step<'a, T, F, Fut> {
    #[track_caller]
    fn new(ctx: &'a Ctx, key: StepKey<'a>, input: Input, run: F, settle: Settle<Fut::Output, T>) -> Self
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
            stores_itself: false,
            retry: Retry::times(1),
            settle,
            site: crate::call::leg_runtime::call_site(),
            running: None,
            pause: None,
            stored: None,
            reconcile: None,
            body: None,
            open: None,
            handle: SlotHandle::new(ctx.leg_runtime()),
        }
    }
}

impl<'a, T, F, Fut: Future> Step<'a, T, F, Fut> {
    /// Sets the function that finds out if this step had its effect, for a server with
    /// [`write_ahead`](crate::ServerBuilder::write_ahead): it is called if an earlier run of the leg began the step and
    /// died. It receives the step's idempotency key ([`Attempt::key`](crate::Attempt::key)), and asks the provider.
    ///
    /// | the function returns | then |
    /// |---|---|
    /// | `Ok(Some(value))` | the step has had its effect, with this result: it does not run again |
    /// | `Ok(None)` | it has had no effect: it runs now |
    /// | an error | the request fails, and the client may send it again |
    ///
    /// Without this function such a step is refused with `outcome_unknown`, unless the tool says
    /// [`rerun_after_crash`](crate::Tool::rerun_after_crash).
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx};
    ///
    /// # mod payments {
    /// # pub async fn charge(_: u32, _: &str) -> std::io::Result<String> { Ok("r-1".into()) }
    /// # pub async fn find(_: &str) -> std::io::Result<Option<String>> { Ok(None) }
    /// # }
    /// async fn pay(ctx: &Ctx, amount: u32) -> Result<String> {
    ///     let receipt = ctx
    ///         .step("charge", async |s| Ok(payments::charge(amount, s.key()).await?))
    ///         .reconcile(async |key| Ok(payments::find(&key).await?));
    ///     Ok(receipt.await?)
    /// }
    /// ```
    pub fn reconcile<G, Found>(mut self, find: G) -> Self
    where
        G: FnOnce(String) -> Found + Send + 'a,
        Found: Future<Output = Result<Option<T>, Error>> + Send + 'a,
    {
        self.reconcile = Some(Box::new(move |key| Box::pin(find(key))));
        self
    }
}

impl<T, F, Fut> Future for Step<'_, T, F, Fut>
where
    Fut: Future,
    T: Serialize + DeserializeOwned,
{
    type Output = Result<T, StepError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let runtime = self.ctx.leg_runtime();
        runtime.check_thread();
        if self.handle.is_new() {
            self.as_mut().take_place();
        }
        let this = self.as_mut().project();
        let Some(slot) = this.handle.slot(|| None) else { return Poll::Pending };
        if this.running.is_none() {
            let can_resolve = this.reconcile.is_some() && !*this.stores_itself;
            let can_resolve = runtime.claim().is_some_and(|claim| can_resolve || claim.reruns());
            match runtime.with(|leg| leg.poll_step(slot, cx.waker(), can_resolve)) {
                StepPoll::Pending => return Poll::Pending,
                StepPoll::Recorded(outcome) => {
                    this.handle.end();
                    return self.resolve(outcome);
                }
                StepPoll::Run(begin) => {
                    if let Some(claim) = runtime.claim().filter(|_| !*this.stores_itself) {
                        *this.open = Some(OpenStep::new(runtime, claim));
                        let path = path(this.ctx.scope_prefix(), this.key.key, this.key.number);
                        *this.stored = path.ok().and_then(|path| {
                            StoredStep::begin(runtime, claim, path, &begin, this.reconcile.take())
                        });
                    }
                    let attempt = Attempt { key: begin.key, number: begin.attempts + 1 };
                    let path = || path(this.ctx.scope_prefix(), this.key.key, this.key.number);
                    let span =
                        stored::span(|| path().map_or_else(|_| String::new(), |path| path.to_string()));
                    *this.running = Some(Run { wake: begin.wake, attempt, span });
                }
            }
        }
        match ready!(self.as_mut().run(slot, cx)) {
            Some(Ended { value: Some(value), .. }) => Poll::Ready(Ok(value)),
            Some(Ended { outcome, .. }) => self.resolve(outcome),
            None => Poll::Pending,
        }
    }
}

impl<T, F, Fut> Step<'_, T, F, Fut>
where
    Fut: Future,
    T: Serialize + DeserializeOwned,
{
    /// Registers the step with its leg. A faulty key or input ends the leg.
    fn take_place(self: Pin<&mut Self>) {
        let this = self.project();
        let (runtime, site) = (this.ctx.leg_runtime(), *this.site);
        let placed = path(this.ctx.scope_prefix(), this.key.key, this.key.number)
            .and_then(|path| Ok((path, this.input.digest(runtime)?)));
        match placed {
            Ok((path, input)) => {
                this.handle.slot(|| runtime.begun(|leg| leg.step(path, input, site)));
            }
            Err(fault) => {
                runtime.author_fault(site, fault);
                this.handle.end();
            }
        }
    }

    /// Runs the body to its outcome. `None` means that the handler does not receive the outcome.
    fn run(mut self: Pin<&mut Self>, slot: SlotId, cx: &mut Context<'_>) -> Poll<Option<Ended<T>>> {
        let runtime = self.ctx.leg_runtime();
        loop {
            let running = self.as_mut().project().running;
            let span = running.as_ref().map_or_else(Span::none, |running| running.span.clone());
            let entered = span.enter();
            let ended = match self.as_mut().attempt(slot, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(NoOutcome::Failed(cause))) if self.as_mut().try_again(runtime) => {
                    tracing::debug!(cause = %escaped(&cause), "a step is tried again");
                    continue;
                }
                Poll::Ready(ended) => ended,
            };
            stored::ended(&runtime.server().metrics, &span, &ended);
            drop(entered);
            let this = self.as_mut().project();
            (*this.running, *this.pause) = (None, None);
            this.handle.end();
            let open = this.open.take();
            let resolves = match ended {
                Ok(ended) => {
                    open.into_iter().for_each(OpenStep::end);
                    runtime.with(|leg| leg.end_step(slot, ended.outcome.clone())).then_some(ended)
                }
                Err(NoOutcome::Failed(cause)) => {
                    open.into_iter().for_each(OpenStep::fail);
                    runtime.with(|leg| leg.fail_step(slot, cause));
                    None
                }
                Err(NoOutcome::NotBegun(reason)) => {
                    open.into_iter().for_each(OpenStep::fail);
                    runtime.with(|leg| leg.stop_in_step(slot, reason));
                    None
                }
                Err(NoOutcome::NotStored(reason)) => {
                    runtime.with(|leg| leg.stop_in_step(slot, reason));
                    None
                }
            };
            return Poll::Ready(resolves);
        }
    }

    /// Converts an outcome to the handler's result.
    fn resolve(&self, outcome: StepOutcome) -> Poll<Result<T, StepError>> {
        match outcome {
            StepOutcome::Done(text) => match serde_json::from_str(&text) {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(fault) => {
                    let path = path(self.ctx.scope_prefix(), self.key.key, self.key.number);
                    let path = path.as_deref().unwrap_or_default();
                    let fault = crate::call::ctx::without_value(&fault);
                    let call = self.ctx.call_id().map(|call| call.to_string());
                    tracing::error!(
                        call,
                        path,
                        fault = %escaped(&fault),
                        "the recorded result of a step does not decode into its type"
                    );
                    self.ctx.leg_runtime().with(|leg| leg.reject_step_result(path));
                    Poll::Pending
                }
            },
            StepOutcome::Failed(failure) => Poll::Ready(Err(failure.into())),
            StepOutcome::Abandoned { .. } => Poll::Pending,
        }
    }
}

impl Input {
    /// Returns the digest, if the input is pinned.
    fn digest(&self, runtime: &LegRuntime) -> Result<Option<Digest>, String> {
        match self {
            Self::None => Ok(None),
            Self::Pinned(text) => {
                runtime.digest(text).map(Some).ok_or_else(|| "the call could not begin".to_owned())
            }
            Self::Unwritable(fault) => Err(format!("the input of a step cannot be written as JSON: {fault}")),
        }
    }
}
