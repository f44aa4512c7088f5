//! Several futures at once: selects among branches, of which the first one is recorded, joins, and tasks that end with the leg.

use crate::{
    call::{ctx::Ctx, exchange::StoreOrder, leg_runtime::SlotHandle},
    errors::Result,
};
use antiphon_engine::{BranchId, CallSite, SlotId, StepKey, key::path};
use std::{
    convert::Infallible,
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::task::{JoinError, JoinHandle};

/// The winner of a [`select`](Ctx::select): its first branch, with its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winner<A, B, C = Infallible, D = Infallible> {
    /// The first in source order.
    A(A),
    /// The second.
    B(B),
    /// The third.
    C(C),
    /// The fourth.
    D(D),
}

impl Ctx {
    /// Waits for the first of two to four branches: questions, steps, or async blocks of these. The first branch is
    /// recorded, so that the same branch is first when the handler runs again.
    ///
    /// A timer is not a limit for the person's answer: if a question ends the leg, a timer beside it that is longer
    /// than [`Limits::grace`](crate::Limits::grace) never fires, because each leg starts it again. To limit the
    /// answer's time, use [`timeout`](crate::Elicit::timeout).
    ///
    /// If several branches are ready, the first in source order wins; recorded answers come before new steps. A step
    /// that runs in a losing branch is not dropped: it runs to its end and is recorded, and its branch does not
    /// continue. Questions of losing branches are not asked. So a step beside an unanswered question starts at once and
    /// usually wins.
    ///
    /// The key follows the rules for the key of a step: one for each use.
    ///
    /// ```
    /// use antiphon::{Result, server::{Ctx, flow::Winner}};
    /// # #[derive(serde::Deserialize)] struct Voucher { code: String }
    /// # impl antiphon::Form for Voucher {
    /// #     fn schema() -> antiphon::wire::forms::FormSchema { antiphon::wire::forms::FormSchema::new(vec![antiphon::wire::forms::FormField::text("code")]) }
    /// # }
    ///
    /// async fn pay(ctx: &Ctx) -> Result<String> {
    ///     let voucher = ctx.elicit::<Voucher>("Do you have a voucher?");
    ///     let page = ctx.elicit_url("Or pay in your browser.", |r| format!("https://pay.example/{r}"));
    ///     Ok(match ctx.select("pay", (voucher, page)).await {
    ///         Winner::A(voucher) => voucher?.code,
    ///         Winner::B(opened) => { opened?; "paid in the browser".to_owned() }
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn select<'a, K: Into<StepKey<'a>>, B: Branches + 'a>(
        &'a self,
        key: K,
        branches: B,
    ) -> impl Future<Output = B::Winner> + Send + use<'a, K, B> {
        let (key, site) = (key.into(), crate::call::leg_runtime::call_site());
        async move {
            let select = match path(self.scope_prefix(), key.key, key.number) {
                Ok(path) => SelectRun { ctx: self, path, site, handle: SlotHandle::new(self.leg_runtime()) },
                Err(fault) => {
                    self.leg_runtime().author_fault(site, fault);
                    return std::future::pending().await;
                }
            };
            branches.run(select).await
        }
    }
}

/// Two to four futures, as a tuple. Nothing else implements it.
pub trait Branches: sealed::Sealed + Send {
    /// The output: the first branch, with its own output.
    type Winner;
    #[doc(hidden)]
    fn run(self, select: SelectRun<'_>) -> impl Future<Output = Self::Winner> + Send
    where
        Self: Sized;
}

mod sealed {
    pub trait Sealed {}
}

/// One select while it runs.
#[doc(hidden)]
pub struct SelectRun<'a> {
    ctx: &'a Ctx,
    path: Arc<str>,
    site: CallSite,
    handle: SlotHandle<'a>,
}

/// An action on a branch.
#[derive(Clone, Copy)]
enum BranchAction {
    Poll,
    /// Drops the branch, which withdraws its questions.
    Drop,
}

impl SelectRun<'_> {
    /// Polls the branches, each in its scope, until one wins, and returns its index. `act` returns true if the branch
    /// has finished.
    async fn run<const N: usize>(
        mut self,
        mut act: impl FnMut(usize, BranchAction, &mut Context<'_>) -> bool + Send,
    ) -> usize {
        let mut first: Option<BranchId> = None;
        let mut done = [false; N];
        // The winner, while it is being stored.
        let mut won: Option<(usize, StoreOrder<'_>)> = None;
        let ctx = self.ctx;
        poll_fn(|cx| {
            let runtime = ctx.leg_runtime();
            runtime.check_thread();
            if let Some((winner, storing)) = &mut won {
                let is_stored = ready!(storing.poll(cx));
                return if is_stored { Poll::Ready(*winner) } else { Poll::Pending };
            }
            let begun = self.handle.slot(|| {
                let (slot, branch) = runtime.begun(|leg| leg.select(Arc::clone(&self.path), N, self.site))?;
                first = Some(branch);
                Some(slot)
            });
            let (Some(slot), Some(first)) = (begun, first) else { return Poll::Pending };
            let runs = |branch: &usize| runtime.with(|leg| leg.has_running_step_in(first.offset(*branch)));
            if runtime.with(|leg| leg.is_over()) {
                // The running steps are polled to their end; no branch can win any more.
                for branch in (0..N).filter(runs) {
                    done[branch] = self.poll((first.offset(branch), false), branch, &mut act, cx);
                }
                return Poll::Pending;
            }
            let Some(winner) = self.decide(slot, first, &mut done, &mut act, cx) else {
                return Poll::Pending;
            };
            // A step of another branch may have been woken just now: it is polled before the select waits for it.
            let mut goes_on = false;
            let interrupted =
                |branch: &usize| runtime.with(|leg| leg.has_interrupted_step_in(first.offset(*branch)));
            for branch in (0..N).filter(|branch| *branch != winner) {
                if runs(&branch) || interrupted(&branch) {
                    done[branch] = self.poll((first.offset(branch), false), branch, &mut act, cx);
                }
                if runs(&branch) {
                    goes_on = true;
                } else {
                    act(branch, BranchAction::Drop, cx);
                }
            }
            if goes_on || runtime.with(|leg| leg.is_over()) {
                return Poll::Pending;
            }
            runtime.with(|leg| leg.end_select(slot));
            self.handle.end();
            // With a store, the winner is stored before a line behind the select runs.
            let Some(mut storing) = StoreOrder::begin(runtime) else { return Poll::Ready(winner) };
            match storing.poll(cx) {
                Poll::Ready(true) => Poll::Ready(winner),
                Poll::Ready(false) => Poll::Pending,
                Poll::Pending => {
                    won = Some((winner, storing));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Polls a branch in its scope, with the waker of the select, so that no other waker is needed. Returns true if the
    /// branch has finished.
    fn poll(
        &self,
        (place, holds_steps): (BranchId, bool),
        branch: usize,
        act: &mut impl FnMut(usize, BranchAction, &mut Context<'_>) -> bool,
        cx: &mut Context<'_>,
    ) -> bool {
        let _scope = self.ctx.leg_runtime().scope(|leg| leg.in_branch(place, holds_steps));
        act(branch, BranchAction::Poll, cx)
    }

    /// Polls the branches that may win, in source order, until one wins. Returns the winner.
    fn decide<const N: usize>(
        &self,
        slot: SlotId,
        first: BranchId,
        done: &mut [bool; N],
        act: &mut impl FnMut(usize, BranchAction, &mut Context<'_>) -> bool,
        cx: &mut Context<'_>,
    ) -> Option<usize> {
        let runtime = self.ctx.leg_runtime();
        let decide = |done: &[bool; N]| runtime.with(|leg| leg.decide(slot, first, N, |branch| done[branch]));
        if let Some(winner) = runtime.with(|leg| leg.winner(slot)) {
            return Some(winner);
        }
        // If the winner is recorded and due, the other branches are not polled any more.
        let alone = runtime.with(|leg| leg.recorded_winner(slot));
        // Branches that need no new step are polled first; only then may new steps begin.
        for holds_steps in [true, false] {
            if !holds_steps && !runtime.with(|leg| leg.release_steps_of_select()) {
                break;
            }
            for branch in (0..N).filter(|branch| alone.is_none_or(|alone| alone == *branch)) {
                if !done[branch] {
                    done[branch] = self.poll((first.offset(branch), holds_steps), branch, act, cx);
                }
                if done[branch]
                    && let Some(winner) = decide(done)
                {
                    return Some(winner);
                }
            }
        }
        // A branch that is not done may have received the entry before that of this select, which is due now.
        if let Some(winner) = decide(done) {
            return Some(winner);
        }
        runtime.with(|leg| leg.wait_for_select(slot, cx.waker(), done.contains(&true)));
        None
    }
}

macro_rules! branches {
    ($count:literal, $($name:ident $place:tt),*) => {
        impl<$($name: Future + Send),*> sealed::Sealed for ($($name,)*) where $($name::Output: Send),* {}

        impl<$($name: Future + Send),*> Branches for ($($name,)*) where $($name::Output: Send),* {
            type Winner = Winner<$($name::Output),*>;

            async fn run(self, select: SelectRun<'_>) -> Self::Winner {
                $( #[allow(non_snake_case, reason = "named after its type")]
                let mut $name = pin!(Some(self.$place)); )*
                let mut done: ($(Option<$name::Output>,)*) = ($(none::<$name>(),)*);
                let winner = select
                    .run::<$count>(|branch, action, cx| match branch {
                        $( $place => act($name.as_mut(), &mut done.$place, action, cx), )*
                        _ => false,
                    })
                    .await;
                match winner {
                    $( $place => if let Some(output) = done.$place { return Winner::$name(output) }, )*
                    _ => {}
                }
                std::future::pending().await
            }
        }
    };
}

fn none<F: Future>() -> Option<F::Output> {
    None
}

/// Polls an unfinished branch and stores its output, or drops the branch.
fn act<F: Future>(
    mut branch: Pin<&mut Option<F>>,
    done: &mut Option<F::Output>,
    action: BranchAction,
    cx: &mut Context<'_>,
) -> bool {
    if let BranchAction::Drop = action {
        branch.set(None);
        return false;
    }
    if let Some(running) = branch.as_mut().as_pin_mut()
        && let Poll::Ready(output) = running.poll(cx)
    {
        *done = Some(output);
        branch.set(None);
    }
    done.is_some()
}

branches!(2, A 0, B 1);
branches!(3, A 0, B 1, C 2);
branches!(4, A 0, B 1, C 2, D 3);

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
