//! Races whose winner is remembered.

use super::{
    key::{StepKey, path},
    machine::Place,
};
use crate::server::Ctx;
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
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
        let (key, place) = (key.into(), super::flow::here());
        async move {
            let race = match path(self.scope_prefix(), key.key, key.number) {
                Ok(path) => Race { ctx: self, path, place },
                Err(fault) => {
                    self.flow().author_fault(place, fault);
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

/// One race, while it is run.
#[doc(hidden)]
pub struct Race<'a> {
    ctx: &'a Ctx,
    path: String,
    place: Place,
}

impl Drop for Race<'_> {
    fn drop(&mut self) {
        self.ctx.flow().machine().end_race(&self.path);
    }
}

impl Race<'_> {
    /// Polls the branches, each in its seat, until one is first. Gives its number.
    async fn run<const N: usize>(
        &self,
        mut poll: impl FnMut(usize, &mut Context<'_>) -> Poll<()> + Send,
    ) -> usize {
        let mut decided: Option<usize> = None;
        let (mut begun, mut never) = (false, false);
        poll_fn(|cx| {
            let flow = self.ctx.flow();
            if never {
                return Poll::Pending;
            }
            if flow.machine().is_cancelled() && begun {
                // The steps in it end; nobody wins any more.
                self.poll_all(N, cx, &mut poll);
                return Poll::Pending;
            }
            if !begun {
                begun = true;
                let (winner, goes_on) = flow.machine().race(&self.path, N, self.place);
                if !goes_on {
                    never = true;
                    return Poll::Pending;
                }
                decided = winner.map(usize::from);
                if let Some(winner) = decided {
                    return self.poll_one(winner, cx, &mut poll).map(|()| winner);
                }
            } else if let Some(winner) = decided {
                return self.finish(winner, N, cx, &mut poll);
            }
            // What is recorded or answered first; only then are new steps begun.
            let mut first = self.first_ready::<N>(false, cx, &mut poll);
            if first.is_none() && flow.machine().begins_steps() {
                if flow.machine().take_held_by_race() {
                    self.wake_held(cx);
                }
                first = self.first_ready::<N>(true, cx, &mut poll);
            }
            if let Some(branch) = first {
                decided = Some(branch);
                flow.machine().decide(&self.path, number(branch), self.place);
                // A step of another branch may have been woken just now: it is polled before this waits for it.
                return self.finish(branch, N, cx, &mut poll);
            }
            Poll::Pending
        })
        .await
    }

    /// The first branch in source order that is ready.
    fn first_ready<const N: usize>(
        &self,
        begins_steps: bool,
        cx: &mut Context<'_>,
        poll: &mut impl FnMut(usize, &mut Context<'_>) -> Poll<()>,
    ) -> Option<usize> {
        let flow = self.ctx.flow();
        let outer = flow.machine().hold_steps(!begins_steps);
        let (mut first, mut end) = (None, N);
        loop {
            let epoch = flow.machine().epoch();
            if let Some(branch) = (0..end).find(|branch| self.poll_one(*branch, cx, poll).is_ready()) {
                (first, end) = (Some(branch), branch);
            }
            // What a branch has met, a branch before it may have waited for.
            if begins_steps || end == 0 || flow.machine().epoch() == epoch {
                break;
            }
            self.wake_held(cx);
        }
        flow.machine().hold_steps(outer);
        first
    }

    /// Who is held in a set of futures is polled again only if it is woken.
    fn wake_held(&self, cx: &Context<'_>) {
        let flow = self.ctx.flow();
        flow.forget_reached(cx.waker());
        flow.wake_held();
    }

    /// Has the steps in the branches come to their end.
    fn poll_all(
        &self,
        branches: usize,
        cx: &mut Context<'_>,
        poll: &mut impl FnMut(usize, &mut Context<'_>) -> Poll<()>,
    ) {
        for branch in 0..branches {
            if self.ctx.flow().machine().runs_in(&self.path) {
                let _ = self.poll_one(branch, cx, poll);
            }
        }
    }

    fn poll_one(
        &self,
        branch: usize,
        cx: &mut Context<'_>,
        poll: &mut impl FnMut(usize, &mut Context<'_>) -> Poll<()>,
    ) -> Poll<()> {
        let flow = self.ctx.flow();
        let seat = flow.machine().sit(&self.path, number(branch));
        let polled = poll(branch, cx);
        flow.machine().stand(seat);
        polled
    }

    /// The winner is known: it may still have to come to its end, or steps of the others to theirs.
    fn finish(
        &self,
        winner: usize,
        branches: usize,
        cx: &mut Context<'_>,
        poll: &mut impl FnMut(usize, &mut Context<'_>) -> Poll<()>,
    ) -> Poll<usize> {
        for branch in (0..branches).filter(|branch| *branch != winner) {
            if self.ctx.flow().machine().runs_in(&self.path) {
                let _ = self.poll_one(branch, cx, poll);
            }
        }
        if self.poll_one(winner, cx, poll).is_ready() && !self.ctx.flow().machine().runs_in(&self.path) {
            return Poll::Ready(winner);
        }
        Poll::Pending
    }
}

/// There are four branches at most.
fn number(branch: usize) -> u8 {
    u8::try_from(branch).unwrap_or(u8::MAX)
}

macro_rules! branches {
    ($count:literal, $($name:ident $place:tt),*) => {
        impl<$($name: Future + Send),*> sealed::Sealed for ($($name,)*) where $($name::Output: Send),* {}

        impl<$($name: Future + Send),*> Branches for ($($name,)*) where $($name::Output: Send),* {
            type Won = Won<$($name::Output),*>;

            async fn run(self, race: Race<'_>) -> Self::Won {
                $( #[allow(non_snake_case, reason = "named after its type")]
                let mut $name = pin!(self.$place); )*
                let mut done: ($(Option<$name::Output>,)*) = ($(none::<$name>(),)*);
                let winner = race
                    .run::<$count>(|branch, cx| match branch {
                        $( $place => settle($name.as_mut(), &mut done.$place, cx), )*
                        _ => Poll::Pending,
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

/// Polls a branch that is not done, and keeps what it came to.
fn settle<F: Future>(branch: Pin<&mut F>, done: &mut Option<F::Output>, cx: &mut Context<'_>) -> Poll<()> {
    if done.is_none() {
        *done = Some(std::task::ready!(branch.poll(cx)));
    }
    Poll::Ready(())
}

branches!(2, A 0, B 1);
branches!(3, A 0, B 1, C 2);
branches!(4, A 0, B 1, C 2, D 3);
