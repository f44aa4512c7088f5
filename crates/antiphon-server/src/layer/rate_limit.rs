//! A limit of calls per time and caller.

use crate::layer::{
    call::{Call, CallReply, Refused},
    run::CallService,
};
use futures_util::future::BoxFuture;
use governor::{
    DefaultKeyedRateLimiter, Quota,
    clock::{Clock as _, DefaultClock},
};
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that limits how often a caller begins something: `tools/call`, `prompts/get`, `resources/read` without a state. A caller is
/// the principal, or without one the address of the peer; all without either share one limit. A call over the limit is refused as busy, with `Retry-After`. A call that has begun
/// may always end: its later legs, and those of a task, do not count.
///
/// ```
/// use antiphon::server::{Server, layers::RateLimit};
/// use governor::Quota;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let thirty = std::num::NonZeroU32::new(30).expect("more than 0");
/// let server = Server::builder("orders", "1.0").layer(RateLimit::per_caller(Quota::per_minute(thirty))).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RateLimit {
    limiter: Arc<DefaultKeyedRateLimiter<String>>,
    of_each_tool: bool,
}

impl RateLimit {
    /// Returns a layer with this quota for each caller.
    pub fn per_caller(quota: Quota) -> Self {
        Self { limiter: Arc::new(DefaultKeyedRateLimiter::keyed(quota)), of_each_tool: false }
    }

    /// Returns a layer with this quota for each caller and each tool, prompt or resource.
    pub fn per_caller_and_tool(quota: Quota) -> Self {
        Self { of_each_tool: true, ..Self::per_caller(quota) }
    }

    /// Counts a call, or refuses it.
    fn check(&self, call: &Call) -> Result<(), Refused> {
        let begins = matches!(call.method(), "tools/call" | "prompts/get" | "resources/read");
        if !begins || call.leg() > 1 || call.is_of_task() {
            return Ok(());
        }
        let caller = match (call.principal(), call.peer_address()) {
            (Some(who), _) => format!("{:?}", (who.issuer(), who.client_id(), who.subject())),
            (None, Some(address)) => format!("{address:?}"),
            (None, None) => String::new(),
        };
        let target = call.target().filter(|_| self.of_each_tool).unwrap_or_default();
        if self.limiter.len() > CALLERS {
            self.limiter.retain_recent();
        }
        let key = format!("{target}\n{caller}");
        let clock = DefaultClock::default();
        self.limiter.check_key(&key).map_err(|full| Refused::busy(full.wait_time_from(clock.now())))
    }
}

/// The number of callers from which those are forgotten that have their whole quota again.
const CALLERS: usize = 10_000;

impl Layer<CallService> for RateLimit {
    type Service = RateLimited;

    fn layer(&self, inner: CallService) -> RateLimited {
        RateLimited { limit: self.clone(), inner }
    }
}

/// The service of [`RateLimit`].
#[derive(Clone, Debug)]
pub struct RateLimited {
    limit: RateLimit,
    inner: CallService,
}

impl Service<Call> for RateLimited {
    type Response = CallReply;
    type Error = Refused;
    type Future = BoxFuture<'static, Result<CallReply, Refused>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        match self.limit.check(&call) {
            Ok(()) => self.inner.call(call),
            Err(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("callers", &self.limiter.len()).finish_non_exhaustive()
    }
}
