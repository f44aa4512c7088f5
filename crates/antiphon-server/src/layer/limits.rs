//! Layers that keep calls from the server: limits per time, caller and tool, and a cache of results.

use crate::{
    identity::Bearer,
    layer::{
        CallService,
        call::{Call, CallReply, Outcome, Refused},
    },
};
use antiphon_wire::{lock::Lock, method};
use governor::{
    DefaultKeyedRateLimiter, Quota,
    clock::{Clock as _, DefaultClock},
};
use lru::LruCache;
use serde_json::value::RawValue;
use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Semaphore, time::Instant};
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
        if !uses_an_offer(call) || call.leg() > 1 || call.is_of_task() {
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
        // A caller can invent names: beyond the bound, a caller has one quota for all of them. Addresses are many: beyond twice the bound,
        // callers share one.
        let key = match self.limiter.len() {
            known if known <= CALLERS => format!("{target}\n{caller}"),
            known if known <= 2 * CALLERS => format!("\n{caller}"),
            _ => String::new(),
        };
        let clock = DefaultClock::default();
        self.limiter.check_key(&key).map_err(|full| Refused::busy(full.wait_time_from(clock.now())))
    }
}

/// Returns true for the requests that a tool, a prompt or a resource answers. Others name one too: a subscription, and a notification of it.
pub(super) fn uses_an_offer(call: &Call) -> bool {
    matches!(call.method(), method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ)
}

/// The number of callers from which those are forgotten that have their whole quota again.
const CALLERS: usize = 10_000;

impl Layer<CallService> for RateLimit {
    type Service = CallService;

    fn layer(&self, inner: CallService) -> CallService {
        let limit = self.clone();
        inner.inside_of(move |call, mut inner| {
            let checked = limit.check(&call);
            async move {
                checked?;
                inner.call(call).await
            }
        })
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("callers", &self.limiter.len()).finish_non_exhaustive()
    }
}

/// The time after which a client may try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A layer that limits how many calls of a tool (prompt, resource) run at once in this process. One more is refused as busy, with
/// `Retry-After`. A call that waits for a person runs nowhere, and does not count; nor do the legs of a task, and calls of those from whom
/// `visible_if` hides the offer.
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
    type Service = CallService;

    fn layer(&self, inner: CallService) -> CallService {
        let limits = Arc::clone(&self.0);
        inner.inside_of(move |call, mut inner| {
            let target = call.target().filter(|_| uses_an_offer(&call) && !call.is_of_task());
            let limit = target.and_then(|name| limits.get(name));
            // To a caller who does not see the offer, a refusal would tell that it exists.
            let limit = limit.filter(|_| call.is_visible() != Some(false));
            let permit = limit.map(|limit| Arc::clone(limit).try_acquire_owned());
            async move {
                let _permit = permit.transpose().map_err(|_full| Refused::busy(RETRY_AFTER))?;
                inner.call(call).await
            }
        })
    }
}

/// A layer that keeps final results of some tools, prompts and resources, and answers the same caller's same request with them. A
/// result with `isError`, a question, and a result after a question are not kept. The caller is the principal with the scopes of the token, and
/// not more: headers, `_meta` and values of layers are not in the key, so do not name a tool whose result depends on them. Two requests with the same
/// arguments in another order are two.
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
/// A kept result is sent only to a caller who sees the offer by its rule of `visible_if`. Results of offers that are found at run time, and of templates with such a
/// rule, are not kept.
///
/// A layer outside of this one sees the cached results too; one inside does not see their requests. Each process has a cache of its own.
#[derive(Clone)]
pub struct ResultCache(Arc<Cache>);

struct Cache {
    times: HashMap<String, Duration>,
    results: Lock<LruCache<String, (Instant, Box<RawValue>)>>,
}

impl ResultCache {
    /// Returns a layer that keeps at most this number of results (at least one), those of each name for its time.
    pub fn new<Name: Into<String>>(
        results: usize,
        times: impl IntoIterator<Item = (Name, Duration)>,
    ) -> Self {
        let results = LruCache::new(NonZeroUsize::new(results).unwrap_or(NonZeroUsize::MIN));
        let times = times.into_iter().map(|(name, time)| (name.into(), time)).collect();
        Self(Arc::new(Cache { times, results: Lock::new(results) }))
    }

    /// Returns the key of a request, and the time for which its result is kept; `None` if it is not.
    fn key(&self, call: &Call) -> Option<(String, Duration)> {
        let target = call.target().filter(|_| uses_an_offer(call))?;
        let time = *self.0.times.get(target)?;
        let is_first = call.leg() == 1 && call.answers().next().is_none();
        let principal = call.principal().map(|who| (who.issuer(), who.client_id(), who.subject()));
        let arguments = call.arguments().map_or("", RawValue::get);
        // The server checks scopes behind this layer: a token with fewer of them gets nothing that another one got.
        let scopes: BTreeSet<_> = call.bearer().into_iter().flat_map(Bearer::scopes).collect();
        let key = (call.method(), target, call.protocol_version(), principal, scopes, arguments);
        let is_kept = is_first && !call.is_of_task() && call.is_visible() == Some(true);
        is_kept.then(|| (format!("{key:?}"), time))
    }

    fn find(&self, key: &str) -> Option<Box<RawValue>> {
        let mut results = self.0.results.lock();
        let (until, result) = results.get(key)?;
        (*until > Instant::now()).then(|| result.clone())
    }

    fn keep(&self, key: String, time: Duration, result: Box<RawValue>) {
        let mut results = self.0.results.lock();
        results.put(key, (Instant::now() + time, result));
    }
}

impl Layer<CallService> for ResultCache {
    type Service = CallService;

    fn layer(&self, inner: CallService) -> CallService {
        let cache = self.clone();
        inner.inside_of(move |call, mut inner| {
            let (cache, key) = (cache.clone(), cache.key(&call));
            async move {
                let Some((key, time)) = key else { return inner.call(call).await };
                if let Some(result) = cache.find(&key) {
                    return Ok(CallReply::again(result));
                }
                let reply = inner.call(call).await?;
                if reply.outcome() == (Outcome::Complete { is_error: false })
                    && let Some(result) = reply.result()
                {
                    cache.keep(key, time, result);
                }
                Ok(reply)
            }
        })
    }
}

impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache").finish_non_exhaustive()
    }
}
