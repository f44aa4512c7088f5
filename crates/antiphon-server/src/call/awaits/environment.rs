//! The part of the context that asks nothing: capabilities, time, random numbers, prefixes of keys, messages, the receipt, and the
//! places at which a leg may end, so that another instance continues the call, or a task does.

use crate::{
    call::{
        ctx::{Ctx, Promotion},
        leg_runtime::{SlotHandle, call_site},
    },
    errors::Error,
    options::seconds,
    receipt::{Fault, Receipt, ReceiptCall, ReceiptEntry, ReceiptError, ReceiptPerson, hex},
};
use antiphon_engine::{
    AnsweredQuestion, CallSite, IntoNumber,
    key::{path, scope_prefix},
};
use antiphon_seal::arguments_digest;
use antiphon_wire::{AskSupport, LogLevel};
use serde_json::{Value, value::RawValue};
use std::{
    borrow::Cow,
    future::Future,
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
    time::SystemTime,
};

impl Ctx {
    /// Returns the capabilities that the client had declared when the handler first called this. If a later request of
    /// the call declares less, and the handler asks something that it lacks, that request is refused.
    ///
    /// The caller chooses which capabilities it declares: do not skip a mandatory question because of them.
    pub fn can_ask(&self) -> AskSupport {
        let now = self.declared();
        self.leg_runtime().with(|leg| {
            leg.recorded_ask_support().unwrap_or_else(|| {
                leg.record_ask_support(now);
                now
            })
        })
    }

    /// Returns whether the client can show forms. See [`can_ask`](Self::can_ask).
    pub fn can_elicit(&self) -> bool {
        self.can_ask().form
    }

    /// Returns whether the client can open URLs. See [`can_ask`](Self::can_ask).
    pub fn can_elicit_url(&self) -> bool {
        self.can_ask().url
    }

    /// Returns whether the client has a model. See [`can_ask`](Self::can_ask).
    pub fn can_sample(&self) -> bool {
        self.can_ask().sampling
    }

    /// Returns whether the client can list its roots. See [`can_ask`](Self::can_ask).
    pub fn can_list_roots(&self) -> bool {
        self.can_ask().roots
    }

    /// Returns the time at which the call began, in whole seconds: the same on every leg.
    pub fn now(&self) -> SystemTime {
        self.leg_runtime().born()
    }

    /// Returns a pseudo-random number, the same on every leg of the call for the same key and scope.
    pub fn random_u64(&self, key: &str) -> u64 {
        self.leg_runtime().keyed(|secret| secret.random_u64(self.scope_prefix(), key)).unwrap_or_default()
    }
}

impl Ctx {
    /// Returns a context whose keys have this prefix: `alice/confirm` instead of `confirm`. Use it for a function that
    /// asks, or runs steps, once for each of several items.
    ///
    /// The name must be different for each use, like a key: a text of the program, or the id of a row.
    #[track_caller]
    pub fn scope(&self, name: impl AsRef<str>) -> Scope<'_> {
        let prefix = match scope_prefix(self.scope_prefix(), name.as_ref()) {
            Ok(prefix) => prefix,
            Err(fault) => {
                self.leg_runtime().author_fault(call_site(), fault);
                String::new()
            }
        };
        Scope { ctx: self.below(prefix), _lent: PhantomData }
    }
}

/// A context with a prefix for its keys. See [`Ctx::scope`].
#[derive(Debug)]
pub struct Scope<'a> {
    ctx: Ctx,
    _lent: PhantomData<&'a Ctx>,
}

impl Deref for Scope<'_> {
    type Target = Ctx;

    fn deref(&self) -> &Ctx {
        &self.ctx
    }
}

impl Ctx {
    /// Reports the progress of this request to the caller: `progress` of `total`, in any unit, with a message. It is
    /// sent at once, if the caller requested progress. The value must increase; a value that does not is not sent.
    ///
    /// > The server **MAY** send progress notifications to report the status of requests the client has issued.
    pub fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(emitter) = self.emitter() {
            emitter.progress(progress, total, message);
        }
    }

    /// Ends the event stream of this call while the call continues: a client of 2025-11-25 reconnects after the time
    /// that the stream named. Use it for work of minutes, so that no connection stays open.
    ///
    /// It has no effect on 2026-07-28, where the end of a stream cancels the call, nor on stdio.
    ///
    /// > The server **MAY** close the connection (without terminating the SSE stream) at any time
    pub fn close_stream(&self) {
        self.leg_runtime().carrier().close_stream();
    }

    /// Sends the caller a log message, if the caller requested this level and the server declares
    /// [`logging`](crate::ServerBuilder::logging). Never log secrets: the message is sent to the client.
    ///
    /// Deprecated in 2026-07-28: log with `tracing`, to standard error or to OpenTelemetry.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, None, || data.into());
        }
    }

    /// Sends a log message under the name of a logger. See [`log`](Self::log).
    pub fn log_as(&self, level: LogLevel, logger: &str, data: impl Into<Value>) {
        if let Some(emitter) = self.emitter() {
            emitter.log(level, Some(logger), || data.into());
        }
    }
}

impl Ctx {
    /// Returns a receipt of the call so far, as text to be stored: each question whose answer the handler has received, as
    /// it was rendered; the answer, its time, and the person who gave it; the method, the target and a digest of the
    /// arguments. The entries form a chain: a later receipt of the same call [continues](Receipt::continues) this one.
    ///
    /// The text is sealed under the server's keys, for receipts only: no client can read or make one, and a receipt is
    /// never accepted as a state. [`Receipt::verify`], or `antiphon receipt verify`, opens it with the key file. A receipt
    /// does not expire: keep a copy of the key file for as long as the receipts.
    ///
    /// The text differs each time, so store it in a [`step`](Self::step):
    ///
    /// ```
    /// # use antiphon::{Result, server::Ctx, tool};
    /// # async fn store(_receipt: &str) -> Result<()> { Ok(()) }
    /// /// Deletes a database.
    /// #[tool(needs(form))]
    /// async fn delete(ctx: &Ctx, name: String) -> Result<String> {
    ///     if !ctx.confirm(format!("Delete {name}?")).await? {
    ///         return Ok("Nothing was deleted.".to_owned());
    ///     }
    ///     ctx.step("receipt", async |_| store(&ctx.receipt()?).await).await?;
    ///     // ..
    ///     Ok("Deleted.".to_owned())
    /// }
    /// # let _ = delete;
    /// ```
    ///
    /// It holds answers to questions that the handler awaits; of questions that a handler returns, those of the last
    /// round, without their times. With a random key, only this process can verify it.
    ///
    /// # Errors
    /// If the handler has received no answer, or if the receipt cannot be sealed.
    pub fn receipt(&self) -> Result<String, ReceiptError> {
        let fault = |fault| ReceiptError(fault);
        let written = |error: &dyn std::fmt::Display| ReceiptError(Fault::NotWritten(error.to_string()));
        let request = &self.leg.later.as_ref().ok_or_else(|| fault(Fault::NothingAnswered))?.request;
        let caller = self.principal().map(ReceiptPerson::from);
        let entries = self.leg.runtime.with(|leg| {
            let answered = leg.answered_questions();
            answered
                .into_iter()
                .map(|question| entry(question, caller.clone()))
                .collect::<Result<Vec<_>, _>>()
        });
        let entries = entries.map_err(|error| written(&error))?;
        if entries.is_empty() {
            return Err(fault(Fault::NothingAnswered));
        }
        let arguments = arguments_digest(Some(request.arguments())).map_err(|error| written(&error))?;
        let server = self.server_runtime();
        let call = self.leg.runtime.with_call(|call| ReceiptCall {
            server: server.name.clone(),
            id: call.id().to_string(),
            began: call.born(),
            method: request.method().to_owned(),
            target: request.target().to_owned(),
            version: request.version,
            arguments: hex(&arguments),
            caller,
        });
        let call = call.ok_or_else(|| fault(Fault::NothingAnswered))?;
        let receipt = Receipt::new(call, seconds(server.clock.now()), entries);
        let receipt = receipt.ok_or_else(|| fault(Fault::Unreadable))?;
        let body = serde_json::to_vec(&receipt).map_err(|error| written(&error))?;
        server.sealing.sealer().seal_receipt(&body).map_err(|error| fault(Fault::NotSealed(error)))
    }
}

fn entry(
    question: AnsweredQuestion<'_>,
    by: Option<ReceiptPerson>,
) -> Result<ReceiptEntry, serde_json::Error> {
    let raw = |text: Cow<'_, str>| RawValue::from_string(text.into_owned());
    Ok(ReceiptEntry {
        previous: String::new(),
        key: question.path.to_string(),
        round: question.round,
        shown: raw(question.question)?,
        answer: question.answer.map(raw).transpose()?,
        at: question.at,
        by,
    })
}

impl Ctx {
    /// Lets this leg end here without a question. While the server drains or sheds load, the client receives the state so
    /// far and calls again, and another instance continues from here. Otherwise, and in a task, a checkpoint does nothing.
    ///
    /// > Servers **MAY** return an `InputRequiredResult` that contains only `requestState`
    ///
    /// A leg ends at a checkpoint at most [`Limits::state_only_legs`](crate::Limits::state_only_legs) times in a call, by default
    /// twice, because some clients give up at the third. Later checkpoints are passed.
    #[track_caller]
    pub fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint {
            ctx: self,
            key: Cow::Borrowed("checkpoint"),
            number: None,
            always: false,
            site: call_site(),
            handle: SlotHandle::new(self.leg_runtime()),
        }
    }
}

/// A place at which a leg may end, returned by [`Ctx::checkpoint`].
#[must_use = "a checkpoint does nothing unless it is awaited"]
pub struct Checkpoint<'a> {
    ctx: &'a Ctx,
    key: Cow<'a, str>,
    number: Option<i128>,
    always: bool,
    site: CallSite,
    handle: SlotHandle<'a>,
}

impl<'a> Checkpoint<'a> {
    /// Sets the key. The second checkpoint of a call needs a key of its own. Default: `checkpoint`.
    pub fn key(mut self, key: impl Into<Cow<'a, str>>) -> Self {
        self.key = key.into();
        self
    }

    /// Numbers one of several checkpoints with the same key. The number comes from the program.
    pub fn nth(mut self, number: impl IntoNumber) -> Self {
        self.number = Some(number.into_number());
        self
    }

    /// Ends the leg here even if the server neither drains nor sheds load.
    pub fn now(mut self) -> Self {
        self.always = true;
        self
    }
}

impl Future for Checkpoint<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let runtime = self.ctx.leg_runtime();
        runtime.check_thread();
        if self.handle.is_new() {
            let path = match path(self.ctx.scope_prefix(), &self.key, self.number) {
                Ok(path) => path,
                Err(fault) => {
                    runtime.author_fault(self.site, fault);
                    self.handle.end();
                    return Poll::Pending;
                }
            };
            let wants_to_end = runtime.carrier().has_checkpoints()
                && (self.always || runtime.server().sheds())
                && self.ctx.accepts_state_only();
            match runtime.begun(|leg| leg.checkpoint(path, wants_to_end, self.site)) {
                Ok(()) => {
                    self.handle.end();
                    return Poll::Ready(());
                }
                Err(slot) => drop(self.handle.slot(|| slot)),
            }
        }
        let Some(slot) = self.handle.slot(|| None) else { return Poll::Pending };
        if !runtime.with(|leg| leg.poll_checkpoint(slot, cx.waker())) {
            return Poll::Pending;
        }
        self.handle.end();
        Poll::Ready(())
    }
}

impl Ctx {
    /// Makes the call a task here: the client gets a task in the place of a result, and the handler goes on while nobody is
    /// connected. Ask first, then begin the long work.
    ///
    /// ```
    /// # use antiphon_server::{Ctx, Error};
    /// # async fn render(ctx: &Ctx) -> Result<(), Error> {
    /// ctx.into_task().await?;
    /// let file: String = ctx.step("render", async |_| Ok("film.mp4".to_owned())).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The leg ends here and the handler runs again in the task, as after a question: what came before and is no step or
    /// question runs again. It does nothing, at once, if the call is a task already, in a session, or if the client does not
    /// declare the extension `io.modelcontextprotocol/tasks`: the call then runs as any other.
    ///
    /// # Errors
    /// If the tool offers no tasks ([`TaskMode::Never`](crate::TaskMode::Never)).
    #[track_caller]
    pub fn into_task(&self) -> IntoTask<'_> {
        IntoTask { ctx: self, site: call_site(), has_begun: false }
    }

    /// Returns true if the call is a task.
    pub fn is_task(&self) -> bool {
        matches!(self.leg.promotion, Promotion::InTask)
    }
}

/// The place at which a call becomes a task, returned by [`Ctx::into_task`].
#[must_use = "the call becomes a task only if this is awaited"]
pub struct IntoTask<'a> {
    ctx: &'a Ctx,
    site: CallSite,
    has_begun: bool,
}

impl Future for IntoTask<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let runtime = self.ctx.leg_runtime();
        runtime.check_thread();
        match self.ctx.leg.promotion {
            Promotion::InTask | Promotion::Inline => Poll::Ready(Ok(())),
            Promotion::Never => Poll::Ready(Err(Error::from(
                "the tool offers no tasks: use `task = \"optional\"`, or `Tool::task(TaskMode::Optional)`",
            ))),
            Promotion::Allowed { .. } => {
                if !self.has_begun {
                    self.has_begun = true;
                    let site = self.site;
                    runtime.begun(|leg| leg.end_for_task(site));
                }
                Poll::Pending
            }
        }
    }
}
