//! A limit of the calls of one tool that run at once.

use crate::layer::{
    call::{Call, CallReply, Refused},
    run::CallService,
};
use futures_util::future::BoxFuture;
use std::{
    collections::HashMap,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::Semaphore;
use tower_layer::Layer;
use tower_service::Service;

/// The time after which a client may try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A layer that limits how many calls of a tool (prompt, resource) run at once in this process. One more is refused as busy, with
/// `Retry-After`. A call that waits for a person runs nowhere, and does not count; nor do the legs of a task.
///
/// ```
/// use antiphon::server::{Server, layers::ToolConcurrency};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("orders", "1.0").layer(ToolConcurrency::new([("export", 2)])).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ToolConcurrency(Arc<HashMap<String, Arc<Semaphore>>>);

impl ToolConcurrency {
    /// Returns a layer with a limit for each of these names.
    pub fn new<Name: Into<String>>(limits: impl IntoIterator<Item = (Name, usize)>) -> Self {
        let limit = |(name, limit): (Name, usize)| (name.into(), Arc::new(Semaphore::new(limit)));
        Self(Arc::new(limits.into_iter().map(limit).collect()))
    }
}

impl Layer<CallService> for ToolConcurrency {
    type Service = LimitedTools;

    fn layer(&self, inner: CallService) -> LimitedTools {
        LimitedTools { limits: self.clone(), inner }
    }
}

/// The service of [`ToolConcurrency`].
#[derive(Clone, Debug)]
pub struct LimitedTools {
    limits: ToolConcurrency,
    inner: CallService,
}

impl Service<Call> for LimitedTools {
    type Response = CallReply;
    type Error = Refused;
    type Future = BoxFuture<'static, Result<CallReply, Refused>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let limit = call.target().and_then(|name| self.limits.0.get(name)).filter(|_| !call.is_of_task());
        let permit = limit.map(|limit| Arc::clone(limit).try_acquire_owned());
        let reply = self.inner.call(call);
        Box::pin(async move {
            let _permit = permit.transpose().map_err(|_full| Refused::busy(RETRY_AFTER))?;
            reply.await
        })
    }
}
