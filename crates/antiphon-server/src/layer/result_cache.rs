//! A cache of results by arguments.

use crate::layer::{
    call::{Call, CallReply, Outcome, Refused},
    run::CallService,
};
use futures_util::future::BoxFuture;
use lru::LruCache;
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

/// A layer that keeps final results of some tools, prompts and resources, and answers the same caller's same request with them. A
/// result with `isError`, a question, and a result after a question are not kept. Two requests with the same arguments in another order are two.
///
/// ```
/// use antiphon::server::{Server, layers::ResultCache};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let minute = Duration::from_secs(60);
/// let cache = ResultCache::new(1000, [("weather", minute), ("config://app", minute)]);
/// let server = Server::builder("orders", "1.0").layer(cache).build()?;
/// # Ok(()) }
/// ```
///
/// A layer outside of this one sees the cached results too; one inside does not see their requests. Each process has a cache of its own.
#[derive(Clone)]
pub struct ResultCache(Arc<Cache>);

struct Cache {
    times: HashMap<String, Duration>,
    results: Mutex<LruCache<String, (Instant, Box<RawValue>)>>,
}

impl ResultCache {
    /// Returns a layer that keeps at most this number of results (at least one), those of each name for its time.
    pub fn new<Name: Into<String>>(
        results: usize,
        times: impl IntoIterator<Item = (Name, Duration)>,
    ) -> Self {
        let results = LruCache::new(NonZeroUsize::new(results).unwrap_or(NonZeroUsize::MIN));
        let times = times.into_iter().map(|(name, time)| (name.into(), time)).collect();
        Self(Arc::new(Cache { times, results: Mutex::new(results) }))
    }

    /// Returns the key of a request, and the time for which its result is kept; `None` if it is not.
    fn key(&self, call: &Call) -> Option<(String, Duration)> {
        let target = call.target()?;
        let time = *self.0.times.get(target)?;
        let is_first = call.leg() == 1 && call.answers().next().is_none();
        let principal = call.principal().map(|who| (who.issuer(), who.client_id(), who.subject()));
        let arguments = call.arguments().map_or("", RawValue::get);
        let key = (call.method(), target, call.protocol_version(), principal, arguments);
        (is_first && !call.is_of_task()).then(|| (format!("{key:?}"), time))
    }

    fn find(&self, key: &str) -> Option<Box<RawValue>> {
        let mut results = self.0.results.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, result) = results.get(key)?;
        (*until > Instant::now()).then(|| result.clone())
    }

    fn keep(&self, key: String, time: Duration, result: Box<RawValue>) {
        let mut results = self.0.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.put(key, (Instant::now() + time, result));
    }
}

impl Layer<CallService> for ResultCache {
    type Service = Cached;

    fn layer(&self, inner: CallService) -> Cached {
        Cached { cache: self.clone(), inner }
    }
}

/// The service of [`ResultCache`].
#[derive(Clone, Debug)]
pub struct Cached {
    cache: ResultCache,
    inner: CallService,
}

impl Service<Call> for Cached {
    type Response = CallReply;
    type Error = Refused;
    type Future = BoxFuture<'static, Result<CallReply, Refused>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let Some((key, time)) = self.cache.key(&call) else { return self.inner.call(call) };
        if let Some(result) = self.cache.find(&key) {
            return Box::pin(std::future::ready(Ok(CallReply::again(result))));
        }
        let (cache, reply) = (self.cache.clone(), self.inner.call(call));
        Box::pin(async move {
            let reply = reply.await?;
            if reply.outcome() == (Outcome::Complete { is_error: false })
                && let Some(result) = reply.result()
            {
                cache.keep(key, time, result);
            }
            Ok(reply)
        })
    }
}

impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache").finish_non_exhaustive()
    }
}
