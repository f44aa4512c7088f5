//! A step in a transaction: the author's writes and the end of the step are committed together.
//!
//! ```text
//!  claimed? ─▶ begin ─▶ body ─┬─ a value ──▶ record, commit ─▶ outcome
//!     │ no                    ├─ an error ─▶ roll back ─▶ record ─▶ outcome
//!     ▼                       ├─ again ────▶ roll back ─▶ no outcome
//!  the leg ends               └─ a panic ──▶ roll back ─▶ no outcome
//! ```
//!
//! The record has no start. So its end holds everything that the handler has received before the step.

use super::{
    Attempt, Input, Step,
    stored::{Ended, NoOutcome, of_error, written},
};
use crate::{
    at_most_once::ClaimedLeg,
    call::{ctx::Ctx, leg_runtime::call_site},
    errors::{Error, awaited::StepError},
};
use antiphon_engine::{CallSite, StepKey, StepOutcome, StopReason, key::path};
use antiphon_store::{Conclusion, StepRecord, StoreIdentity, Transact, Transacted};
use futures_util::future::BoxFuture;
use pin_project_lite::pin_project;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    error::Error as StdError,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

impl Ctx {
    /// Runs a [`step`](Self::step) whose only effect is in the database of the server's store: the writes of `body` and the
    /// record of the step are committed in one transaction. **Each call has the effect exactly once** when its handler goes
    /// past this line, whatever crashes and whatever is sent again, as long as the database keeps what it committed. No other
    /// step can promise that.
    ///
    /// `store` is a clone of the value that [`ServerBuilder::store`](crate::ServerBuilder::store) received: `SqliteStore` or
    /// `PostgresStore`. The tables of the program are in the same file or database. The tool, or the server, has
    /// [`write_ahead`](crate::ServerBuilder::write_ahead).
    ///
    /// ```
    /// use antiphon::{Result, server::{Ctx, State}, store::SqliteStore, tool};
    ///
    /// /// Orders an item.
    /// #[tool(write_ahead)]
    /// async fn order(ctx: &Ctx, store: State<SqliteStore>, item: String) -> Result<String> {
    ///     let id: i64 = ctx
    ///         .in_transaction("order", &*store, move |tx| {
    ///             tx.execute("INSERT INTO orders (item) VALUES (?1)", [item])?;
    ///             Ok(tx.last_insert_rowid())
    ///         })
    ///         .await?;
    ///     Ok(format!("Order {id}."))
    /// }
    /// ```
    ///
    /// With SQLite, the body is a closure over a `&rusqlite::Transaction` that runs on the thread of the store. With
    /// PostgreSQL, the body is an async closure over a `PostgresTransaction`, whose methods are those of `tokio_postgres::Client`;
    /// `antiphon::store::PostgresTransaction` has an example.
    ///
    /// | the body | the transaction | the handler receives | the same request again |
    /// |---|---|---|---|
    /// | returns a value | is committed with the record | the value | the recorded value |
    /// | returns an error | is rolled back, then the error is recorded | the error, as [`StepError`] | the recorded error |
    /// | returns [`StepError::retry`], panics, or fails because the connection broke, the file was busy, or the database chose another transaction | is rolled back | nothing: the leg ends with `step_failed` | the body runs again |
    /// | is dropped, or its process is killed | is rolled back | nothing | the body runs again |
    /// | ends after another run took the leg over | is rolled back | nothing: the leg ends with `in_flight` | the result of the other run |
    ///
    /// If the database does not confirm the commit, the record shows if it happened. The step is never `outcome_unknown`.
    ///
    /// The body must not commit, roll back, or keep the transaction. It has at most the store's time limit, 5 seconds by default.
    /// Use it for statements only: an effect outside of the database is not rolled back.
    ///
    /// Without `write_ahead`, or with another store, a request ends with an error whose cause is in the log.
    #[track_caller]
    pub fn in_transaction<'a, S, T, F, R>(
        &'a self,
        key: impl Into<StepKey<'a>>,
        store: &'a S,
        body: F,
    ) -> InTransaction<'a, T>
    where
        S: Transact<F, R, Output = Result<T, Error>>,
        F: for<'t> FnOnce(S::Transaction<'t>) -> R + Send + 'a,
        R: Send + 'a,
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        let (key, site) = (key.into(), call_site());
        // A faulty key ends the leg before the body runs.
        let path = path(self.scope_prefix(), key.key, key.number).unwrap_or_else(|_| Arc::from(""));
        let run: Run<'a, T> = Box::new(move |_attempt| Box::pin(transact(self, site, path, store, body)));
        let mut step = Step::new(self, key, Input::None, run, |ended, _limit| ended);
        step.stores_itself = true;
        InTransaction { step }
    }
}

type Run<'a, T> = Box<dyn FnOnce(Attempt) -> BoxFuture<'a, Result<Ended<T>, NoOutcome>> + Send + 'a>;

pin_project! {
    /// The future of a step in a transaction. See [`Ctx::in_transaction`].
    #[must_use = "a step is run when it is awaited"]
    pub struct InTransaction<'a, T> {
        #[pin]
        step: Step<'a, T, Run<'a, T>, BoxFuture<'a, Result<Ended<T>, NoOutcome>>>,
    }
}

impl<T: Serialize + DeserializeOwned> Future for InTransaction<'_, T> {
    type Output = Result<T, StepError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().step.poll(cx)
    }
}

/// Runs the step. One whose outcome an earlier run of the leg has stored is in the record, and does not come here.
async fn transact<S, T, F, R>(
    ctx: &Ctx,
    site: CallSite,
    path: Arc<str>,
    store: &S,
    body: F,
) -> Result<Ended<T>, NoOutcome>
where
    S: Transact<F, R, Output = Result<T, Error>>,
    F: Send,
    R: Send,
    T: Serialize + DeserializeOwned + Send + 'static,
{
    let (runtime, claim) = (ctx.leg_runtime(), claimed(ctx, site, store.identity())?);
    let limit = runtime.limits().engine.step_result;
    let ahead = runtime.with(|leg| leg.write_ahead_of_step(&path, 1));
    let record = claim.end_of_step(&path, ahead.as_ref().map(|ahead| ahead.text.clone()));
    let conclude = move |result| conclude(result, limit, S::is_temporary, record);
    let ended = match store.transact(&claim.claim.fence, body, conclude).await {
        Ok(Transacted::Committed(ended)) => {
            ahead.iter().for_each(|ahead| runtime.with(|leg| leg.written(ahead)));
            return ended;
        }
        Ok(Transacted::RolledBack(Ok(ended))) => ended,
        Ok(Transacted::RolledBack(Err(no_outcome))) => return Err(no_outcome),
        Ok(Transacted::Existing(stored)) => {
            let outcome = claim.existing_outcome(&path, &stored).map_err(NoOutcome::NotStored)?;
            return Ok(Ended { outcome, value: None });
        }
        Ok(Transacted::Refused(error)) => of_error(error.into(), limit)?,
        Err(error) => {
            let outcome = claim.after_failure(&path, &error).await.map_err(NoOutcome::NotStored)?;
            return Ok(Ended { outcome, value: None });
        }
    };
    // Nothing of the body is left. Its error is the outcome of the step.
    claim.end_step(&path, &ended.outcome, ahead.as_ref()).await.map_err(NoOutcome::NotStored)?;
    Ok(ended)
}

/// Returns the claim of the leg, if the record of a step can be stored in this store.
fn claimed(ctx: &Ctx, site: CallSite, store: Option<StoreIdentity>) -> Result<&Arc<ClaimedLeg>, NoOutcome> {
    let claimed = match ctx.leg_runtime().claim() {
        Some(claim) => claim.fence_in(store).map(|_fence| claim),
        None => Err(
            "a step in a transaction needs a request that is claimed: set `write_ahead` on the server or on the tool",
        ),
    };
    claimed.map_err(|fault| NoOutcome::NotBegun(StopReason::Author(format!("{fault}, at {site}"))))
}

/// Returns what happens after the body: only a value is committed.
fn conclude<T: Serialize + DeserializeOwned>(
    result: Result<T, Error>,
    limit: usize,
    is_temporary: fn(&(dyn StdError + 'static)) -> bool,
    record: impl FnOnce(&StepOutcome) -> Result<StepRecord, StopReason>,
) -> Conclusion<Result<Ended<T>, NoOutcome>> {
    let value = match result {
        Ok(value) => value,
        Err(error) if error.has_cause(is_temporary) => {
            return Conclusion::RollBack(Err(NoOutcome::Failed(error.to_string())));
        }
        Err(error) => return Conclusion::RollBack(of_error(error, limit)),
    };
    let (text, value) = match written(&value, limit) {
        Ok(written) => written,
        Err(cause) => {
            let error = StepError::unrecordable_in_transaction(&cause);
            return Conclusion::RollBack(of_error(error.into(), limit));
        }
    };
    let outcome = StepOutcome::Done(text.into());
    match record(&outcome) {
        Ok(record) => Conclusion::Commit(record, Ok(Ended { outcome, value: Some(value) })),
        Err(reason) => Conclusion::RollBack(Err(NoOutcome::NotStored(reason))),
    }
}
