//! Several futures at once, and tasks that end with the leg.

use crate::{call::ctx::Ctx, errors::Result};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::task::{JoinError, JoinHandle};

impl Ctx {
    /// Waits for all futures and returns their outputs in order. The futures may borrow. Questions among them leave in
    /// one round.
    ///
    /// Unlike `futures::future::join_all`, it stores no waker of its own, so a leg that asks here ends at once, for any
    /// number of futures.
    pub fn join_all<I>(&self, futures: I) -> JoinAll<I::Item>
    where
        I: IntoIterator<Item: Future>,
    {
        JoinAll(futures.into_iter().map(|future| Slot::Running(Box::pin(future))).collect())
    }

    /// Returns the future as it is, and so tells the compiler the type of its error: for an `async` block in which `?` converts errors,
    /// in `join!`, `try_join!`, [`join_all`](Self::join_all) or [`select`](Self::select). Without it, the compiler cannot infer the
    /// type (E0282).
    ///
    /// ```
    /// use antiphon::{Result, server::Ctx};
    ///
    /// async fn total(ctx: &Ctx, price: &str, count: &str) -> Result<u32> {
    ///     let price = ctx.branch(async { Ok(price.parse::<u32>()?) });
    ///     let count = ctx.branch(async {
    ///         let sure = ctx.confirm("So many?").await?;
    ///         Ok(if sure { count.parse::<u32>()? } else { 1 })
    ///     });
    ///     let (price, count) = tokio::join!(price, count);
    ///     Ok(price? * count?)
    /// }
    /// ```
    pub fn branch<T, F: Future<Output = Result<T>>>(&self, branch: F) -> F {
        branch
    }

    /// Runs a future beside the handler, on a task that ends with this leg at the latest. The future cannot ask, and
    /// the next leg starts it again.
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Spawned<T> {
        let task = tokio::spawn(future);
        self.leg_runtime().end_with_leg(task.abort_handle());
        Spawned(task)
    }
}

/// The future of several futures. See [`Ctx::join_all`].
// A type of its own: a future that named the iterator would not be `Send` if the iterator maps with a borrowing
// closure.
#[must_use = "futures do nothing unless they are awaited"]
pub struct JoinAll<F: Future>(Vec<Slot<F>>);

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut all_done = true;
        for slot in &mut self.0 {
            all_done &= slot.poll(cx);
        }
        if !all_done {
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(&mut self.0).into_iter().filter_map(Slot::output).collect())
    }
}

impl<F: Future> fmt::Debug for JoinAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinAll").finish_non_exhaustive()
    }
}

enum Slot<F: Future> {
    Running(Pin<Box<F>>),
    Done(F::Output),
}

// A running future is in a box of its own.
impl<F: Future> Unpin for Slot<F> {}

impl<F: Future> Slot<F> {
    /// Returns true if the future is done.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if let Self::Running(future) = self {
            match future.as_mut().poll(cx) {
                Poll::Ready(output) => *self = Self::Done(output),
                Poll::Pending => return false,
            }
        }
        true
    }

    fn output(self) -> Option<F::Output> {
        match self {
            Self::Done(output) => Some(output),
            Self::Running(_) => None,
        }
    }
}

/// A task that ends with its leg. It resolves to the task's output, or to an error if the task was aborted or panicked.
pub struct Spawned<T>(JoinHandle<T>);

impl<T> Spawned<T> {
    /// Aborts the task.
    pub fn abort(&self) {
        self.0.abort();
    }
}

impl<T> Future for Spawned<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> fmt::Debug for Spawned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").finish_non_exhaustive()
    }
}
