//! The part of the context that asks nothing: capabilities, time, random numbers, prefixes of keys, messages, the receipt.

use crate::{
    call::ctx::Ctx,
    options::seconds,
    receipt::{Fault, Receipt, ReceiptCall, ReceiptEntry, ReceiptError, ReceiptPerson, hex},
};
use antiphon_engine::{AnsweredQuestion, key::scope_prefix};
use antiphon_seal::arguments_digest;
use antiphon_wire::{AskSupport, LogLevel};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, marker::PhantomData, ops::Deref, time::SystemTime};

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
                self.leg_runtime().author_fault(crate::call::leg_runtime::call_site(), fault);
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
