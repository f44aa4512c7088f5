//! The places at which a leg may end, so that another instance continues the call, or a task does.

use crate::{
    call::{
        ctx::{Ctx, Promotion},
        leg_runtime::{SlotHandle, call_site},
    },
    errors::Error,
};
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
