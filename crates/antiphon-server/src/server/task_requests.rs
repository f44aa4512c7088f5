//! The requests of tasks: each leg of a task is a request to its own server.

use crate::{
    dispatch::reply::result_of,
    errors::refusal::Refusal,
    identity::caller::Caller,
    request::receive::{Received, receive},
    server::{Inner, Server},
    task_registry::{RunLeg, leg::TaskLeg},
};
use antiphon_wire::{StringMember, escaped};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::value::RawValue;
use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

/// The time until a task is tried again whose tool this process does not have.
const WITHOUT_TOOL: Duration = Duration::from_secs(5);

/// The server of tasks. It is set after the server was built, and does not keep it alive.
#[derive(Clone, Default)]
pub(crate) struct OwnServer(Arc<OnceLock<Weak<Inner>>>);

impl OwnServer {
    pub(crate) fn set(&self, server: &Server) {
        // It is set once.
        let _ = self.0.set(Arc::downgrade(&server.0));
    }
}

impl RunLeg for OwnServer {
    fn run<'a>(
        &'a self,
        message: &'a [u8],
        leg: &'a Arc<TaskLeg>,
    ) -> BoxFuture<'a, Option<Result<Box<RawValue>, Refusal>>> {
        async move {
            let server = Server(self.0.get()?.upgrade()?);
            let Ok(Received::Request(request)) = receive(message, false) else {
                tracing::error!("the request of a task cannot be read");
                return Some(Err(Refusal::Internal));
            };
            let offers = server.current_offers();
            let tool = request.target().and_then(StringMember::text).unwrap_or_default();
            if offers.lists.tools.get(tool).is_none() {
                // During an upgrade, another process has the tool.
                tracing::warn!(tool = ?escaped(tool), "a task needs a tool that this process does not have: it waits");
                return Some(Err(Refusal::InFlight { retry_after: WITHOUT_TOOL }));
            }
            let tasks = server.0.runtime.tasks.as_ref();
            tasks.inspect(|tasks| tasks.counters.legs.add_one());
            let routed = server.route(&offers, &request, &Caller::of_task(leg)).await;
            Some(routed.and_then(|body| result_of(&body)))
        }
        .boxed()
    }
}
