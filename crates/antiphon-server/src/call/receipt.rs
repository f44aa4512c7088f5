//! The receipt of the call so far.

use crate::{
    call::ctx::Ctx,
    options::clock::seconds,
    receipt::{Fault, Receipt, ReceiptCall, ReceiptEntry, ReceiptError, ReceiptPerson, hex},
};
use antiphon_engine::AnsweredQuestion;
use antiphon_seal::arguments_digest;
use serde_json::value::RawValue;
use std::borrow::Cow;

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
