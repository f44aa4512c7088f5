//! Places at which a leg may end with its state only, so that another instance continues the call.

use crate::call::{ctx::Ctx, leg_runtime::SlotHandle};
use antiphon_engine::{CallSite, IntoNumber, key::path};
use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

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
            site: crate::call::leg_runtime::call_site(),
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
