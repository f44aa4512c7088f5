//! Races whose winner is remembered.

use super::flow::Held;
use crate::server::Ctx;
use antiphon_engine::{BranchId, CallSite, SlotId, StepKey, key::path};
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

/// Which branch of a [`select`](Ctx::select) came first, with what it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Won<A, B, C = Infallible, D = Infallible> {
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
    /// Waits for the first of two to four branches: questions, steps, or async blocks of these. Which one came first is
    /// recorded, so that it stays first whenever the handler runs again.
    ///
    /// A timer is no time for the person: where a question ends the leg, a timer beside it that is longer than
    /// [`Limits::grace`](crate::server::Limits::grace) never fires, for each leg begins it anew. That time is
    /// [`within`](crate::server::Elicit::within).
    ///
    /// Of several that are ready the first in source order wins, and recorded answers come before new steps. A step that
    /// runs in a losing branch is not dropped: it runs to its end, is recorded, and its branch goes no further. Questions
    /// of losing branches are not asked. So beside a question that nobody has answered yet, a step begins at once, and
    /// mostly wins.
    ///
    /// The key is that of a step: one for each use.
    ///
    /// ```
    /// use antiphon::{Result, server::{Ctx, Won}};
    /// # #[derive(serde::Deserialize)] struct Voucher { code: String }
    /// # impl antiphon::Form for Voucher {
    /// #     fn schema() -> antiphon::wire::FormSchema { antiphon::wire::FormSchema::new(vec![antiphon::wire::FormField::text("code")]) }
    /// # }
    ///
    /// async fn pay(ctx: &Ctx) -> Result<String> {
    ///     let voucher = ctx.elicit::<Voucher>("Do you have a voucher?");
    ///     let page = ctx.elicit_url("Or pay in your browser.", |r| format!("https://pay.example/{r}"));
    ///     Ok(match ctx.select("pay", (voucher, page)).await {
    ///         Won::A(voucher) => voucher?.code,
    ///         Won::B(opened) => { opened?; "paid in the browser".to_owned() }
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn select<'a, K: Into<StepKey<'a>>, B: Branches + 'a>(
        &'a self,
        key: K,
        branches: B,
    ) -> impl Future<Output = B::Won> + Send + use<'a, K, B> {
        let (key, site) = (key.into(), super::flow::here());
        async move {
            let race = match path(self.scope_prefix(), key.key, key.number) {
                Ok(path) => Race { ctx: self, path, site, held: Held::new(self.flow()) },
                Err(fault) => {
                    self.flow().author_fault(site, fault);
                    return std::future::pending().await;
                }
            };
            branches.run(race).await
        }
    }
}

/// Two to four futures, as a tuple. Nothing else implements it.
pub trait Branches: sealed::Sealed + Send {
    /// Which came first.
    type Won;
    #[doc(hidden)]
    fn run(self, race: Race<'_>) -> impl Future<Output = Self::Won> + Send
    where
        Self: Sized;
}

mod sealed {
    pub trait Sealed {}
}

/// One select, while it is run.
#[doc(hidden)]
pub struct Race<'a> {
    ctx: &'a Ctx,
    path: Arc<str>,
    site: CallSite,
    held: Held<'a>,
}

/// What is done with a branch.
#[derive(Clone, Copy)]
enum Deed {
    Poll,
    /// Drops it, which withdraws what it asks.
    Drop,
}

impl Race<'_> {
    /// Polls the branches, each in its place, until one is first. Gives its number. `act` says whether a branch has come to
    /// its end.
    async fn run<const N: usize>(
        mut self,
        mut act: impl FnMut(usize, Deed, &mut Context<'_>) -> bool + Send,
    ) -> usize {
        let mut first: Option<BranchId> = None;
        let mut done = [false; N];
        poll_fn(|cx| {
            let flow = self.ctx.flow();
            flow.check_thread();
            let begun = self.held.slot(|| {
                let (slot, branch) = flow.begun(|leg| leg.select(Arc::clone(&self.path), N, self.site))?;
                first = Some(branch);
                Some(slot)
            });
            let (Some(slot), Some(first)) = (begun, first) else { return Poll::Pending };
            let runs = |branch: &usize| flow.with(|leg| leg.has_running_step_in(first.offset(*branch)));
            if flow.with(|leg| leg.is_over()) {
                // The steps in it come to their end; nobody wins any more.
                for branch in (0..N).filter(runs) {
                    done[branch] = self.poll((first.offset(branch), false), branch, &mut act, cx);
                }
                return Poll::Pending;
            }
            let Some(winner) = self.decide(slot, first, &mut done, &mut act, cx) else {
                return Poll::Pending;
            };
            // A step of another branch may have been woken just now: it is polled before this waits for it.
            let mut goes_on = false;
            for branch in (0..N).filter(|branch| *branch != winner) {
                if runs(&branch) {
                    done[branch] = self.poll((first.offset(branch), false), branch, &mut act, cx);
                }
                if runs(&branch) {
                    goes_on = true;
                } else {
                    act(branch, Deed::Drop, cx);
                }
            }
            if goes_on || flow.with(|leg| leg.is_over()) {
                return Poll::Pending;
            }
            flow.with(|leg| leg.end_select(slot));
            self.held.end();
            Poll::Ready(winner)
        })
        .await
    }

    /// Polls a branch in its place, with the waker of the select: nobody else is woken for it, or forgotten. Whether it has
    /// come to its end.
    fn poll(
        &self,
        (place, holds_steps): (BranchId, bool),
        branch: usize,
        act: &mut impl FnMut(usize, Deed, &mut Context<'_>) -> bool,
        cx: &mut Context<'_>,
    ) -> bool {
        let _scope = self.ctx.flow().scope(|leg| leg.in_branch(place, holds_steps));
        act(branch, Deed::Poll, cx)
    }

    /// Polls the branches that may win, in source order, until one has. The winner, if it is decided.
    fn decide<const N: usize>(
        &self,
        slot: SlotId,
        first: BranchId,
        done: &mut [bool; N],
        act: &mut impl FnMut(usize, Deed, &mut Context<'_>) -> bool,
        cx: &mut Context<'_>,
    ) -> Option<usize> {
        let flow = self.ctx.flow();
        let decide = |done: &[bool; N]| flow.with(|leg| leg.decide(slot, first, N, |branch| done[branch]));
        if let Some(winner) = flow.with(|leg| leg.winner(slot)) {
            return Some(winner);
        }
        // Where it is recorded and due, the others are not polled any more.
        let alone = flow.with(|leg| leg.recorded_winner(slot));
        // What needs no new step comes first; only then do steps begin.
        for holds_steps in [true, false] {
            if !holds_steps && !flow.with(|leg| leg.release_steps_of_select()) {
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
        flow.with(|leg| leg.wait_for_select(slot, cx.waker(), done.contains(&true)));
        None
    }
}

macro_rules! branches {
    ($count:literal, $($name:ident $place:tt),*) => {
        impl<$($name: Future + Send),*> sealed::Sealed for ($($name,)*) where $($name::Output: Send),* {}

        impl<$($name: Future + Send),*> Branches for ($($name,)*) where $($name::Output: Send),* {
            type Won = Won<$($name::Output),*>;

            async fn run(self, race: Race<'_>) -> Self::Won {
                $( #[allow(non_snake_case, reason = "named after its type")]
                let mut $name = pin!(Some(self.$place)); )*
                let mut done: ($(Option<$name::Output>,)*) = ($(none::<$name>(),)*);
                let winner = race
                    .run::<$count>(|branch, deed, cx| match branch {
                        $( $place => act($name.as_mut(), &mut done.$place, deed, cx), )*
                        _ => false,
                    })
                    .await;
                match winner {
                    $( $place => if let Some(output) = done.$place { return Won::$name(output) }, )*
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

/// Polls a branch that has not come to its end, and keeps its output; or drops it.
fn act<F: Future>(
    mut branch: Pin<&mut Option<F>>,
    done: &mut Option<F::Output>,
    deed: Deed,
    cx: &mut Context<'_>,
) -> bool {
    if let Deed::Drop = deed {
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
