//! The place at which a call becomes a task.

use crate::{
    call::{
        ctx::{Ctx, Promotion},
        leg_runtime::call_site,
    },
    errors::error::Error,
};
use antiphon_engine::CallSite;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

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
