//! The store in Redis or Valkey, for all instances: each operation is one script with one key. The feed of changes is `PUBLISH`
//! on the connection of the operations, and `SUBSCRIBE` on a connection of the watch.

mod link;

pub use link::RedisOptions;

use crate::{
    changes::{self, ChangeChannel, ChangeFeed, ChangeWatch},
    check,
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Conflict, Fence, Owner, Unknown},
    clock::{StoreClock, micros},
    error::{StoreError, StoreErrorKind, StoreFuture, Written},
    step::{Appended, StepAttempt, StepEvent, StepRecord},
    store::{CallStore, StoreReach, Swept},
};
use futures_util::StreamExt as _;
use link::{Link, Reply, is_connection, of_script};
use redis::{Script, ScriptInvocation, aio::PubSub, cmd};
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// A store in Redis 6 or later, or in Valkey, for all instances.
///
/// Each operation is one script with one key. The clock is the server's. **A claim or an outcome that was confirmed can be lost**:
/// replication is asynchronous, so a failover may forget the last writes, and a crash forgets what `appendfsync` had not yet
/// written. Then a leg may run twice. Use PostgreSQL where that is not acceptable.
///
/// The server removes expired keys itself, so [`sweep`](CallStore::sweep) does nothing.
#[derive(Clone)]
pub struct RedisStore {
    link: Link,
    scripts: Arc<Scripts>,
    prefix: Arc<str>,
    test_clock: Option<StoreClock>,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects to a server: `redis://host:6379/0`, `rediss://..` with TLS, `redis+unix:///path`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Invalid`](crate::StoreErrorKind::Invalid) for a wrong URL or password, and for a server that removes
    /// keys when its memory is full; other kinds if the server is not reachable.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let link = Link::connect(url, &options).await?;
        let prefix = options.key_prefix.into();
        Ok(Self { link, scripts: Arc::new(Scripts::new()), prefix, test_clock: options.test_clock })
    }

    /// Returns a script with its key and the time of a test, or an empty time. The braces are the hash tag of a cluster.
    fn script<'s>(&self, script: &'s Script, key: impl fmt::Display) -> ScriptInvocation<'s> {
        let mut invocation = script.key(format!("{}{{{key}}}", self.prefix));
        invocation.arg(self.test_clock.as_ref().map_or(String::new(), |clock| clock.now().get().to_string()));
        invocation
    }

    /// Runs a write under a fence.
    async fn write(&self, name: &'static str, script: &ScriptInvocation<'_>) -> Result<Reply, StoreError> {
        let reply = self.link.run(name, Written::Unknown, script).await?;
        match word(&reply.values) {
            "lost" => Err(StoreError::fence_lost(name)),
            "written" | "existing" => Ok(reply),
            _ => Err(wrong(name)),
        }
    }

    async fn claim_now(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        check::claim(request)?;
        let mut script = self.script(&self.scripts.claim, request.call);
        script.arg(request.leg).arg(&request.fingerprint.as_bytes()[..]).arg(&request.runner.as_bytes()[..]);
        script.arg(u8::from(request.take_over));
        match &request.after {
            Some(after) => script.arg(after.leg).arg(&after.fingerprint.as_bytes()[..]),
            None => script.arg("").arg(""),
        };
        script.arg(micros(request.lease)).arg(micros(request.keep));
        let reply = self.link.run("claim", Written::Unknown, &script).await?;
        claim(request.call, reply.values)
    }

    async fn append_now(&self, fence: &Fence, record: &StepRecord) -> Result<Appended, StoreError> {
        check::record(record)?;
        let mut script = self.script(&self.scripts.append, fence.call());
        script.arg(fence.number()).arg(record.step()).arg(record.event().to_number()).arg(record.value());
        let mut reply = self.write("append", &script).await?;
        match reply.values.pop() {
            Some(value) if !reply.values.is_empty() => {
                // This runner's own record, of the attempt whose connection broke.
                let own = reply.repeated && value == record.value();
                Ok(if own { Appended::First } else { Appended::Existing(value) })
            }
            _ => Ok(Appended::First),
        }
    }
}

impl CallStore for RedisStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        Box::pin(self.claim_now(request))
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::lease("renew", lease)?;
            let mut script = self.script(&self.scripts.renew, fence.call());
            script.arg(fence.number()).arg(micros(lease));
            self.write("renew", &script).await.map(drop)
        })
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        Box::pin(self.append_now(fence, record))
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::value("commit", outcome)?;
            let mut script = self.script(&self.scripts.commit, fence.call());
            script.arg(fence.number()).arg(outcome);
            self.write("commit", &script).await.map(drop)
        })
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut script = self.script(&self.scripts.release, fence.call());
            script.arg(fence.number());
            self.write("release", &script).await.map(drop)
        })
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        Box::pin(async move {
            let script = self.script(&self.scripts.load, call);
            let reply = self.link.run("load", Written::No, &script).await?;
            steps(&reply.values)
        })
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, _owner: Owner) -> StoreFuture<'a, BlobDigest> {
        Box::pin(async move {
            check::value("put", blob)?;
            check::keep("put", keep)?;
            let digest = BlobDigest::of(blob);
            let mut script = self.script(&self.scripts.put, digest);
            script.arg(blob).arg(micros(keep));
            self.write("put", &script).await?;
            Ok(digest)
        })
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let script = self.script(&self.scripts.get, digest);
            let mut reply = self.link.run("get", Written::No, &script).await?;
            reply.values.pop().map(|blob| digest.verify(blob)).transpose()
        })
    }

    fn sweep(&self, _limit: usize) -> StoreFuture<'_, Swept> {
        Box::pin(async { Ok(Swept::default()) })
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Fleet
    }

    /// Reaches all instances, by `PUBLISH`. A watch has a connection of its own.
    fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>> {
        Some(Arc::new(RedisChanges { link: self.link.clone(), prefix: Arc::clone(&self.prefix) }))
    }
}

// Replies of the scripts: a word and its values.

/// Returns the claim of a reply.
fn claim(call: CallKey, mut reply: Vec<Vec<u8>>) -> Result<Claim, StoreError> {
    let claim = match (word(&reply), reply.len()) {
        ("fresh", 2) => number(&reply[1]).map(|fence| Claim::Fresh(Fence::new(call, fence))),
        ("in_flight", 2) => {
            number(&reply[1]).map(|micros| Claim::InFlight { retry_after: Duration::from_micros(micros) })
        }
        ("done", 2) => Some(Claim::Done(reply.swap_remove(1))),
        ("earlier", 1) => Some(Claim::Conflict(Conflict::EarlierLeg)),
        ("answers", 1) => Some(Claim::Conflict(Conflict::OtherAnswers)),
        ("predecessor", 1) => Some(Claim::Conflict(Conflict::OtherPredecessor)),
        ("unknown", 2) => number(&reply[1]).map(|leg| Claim::Unknown(Unknown { leg, step: None })),
        ("unknown", 4) => match (number(&reply[1]), number(&reply[2]), text(&reply[3])) {
            (Some(leg), Some(attempt), Some(step)) => {
                let step = Some(StepAttempt { step: step.to_owned(), attempt });
                Some(Claim::Unknown(Unknown { leg, step }))
            }
            _ => None,
        },
        _ => None,
    };
    claim.ok_or_else(|| wrong("claim"))
}

/// Returns the steps of a reply.
fn steps(reply: &[Vec<u8>]) -> Result<Vec<StepRecord>, StoreError> {
    let record = |fields: &[Vec<u8>]| {
        let [event, step, value] = fields else { return None };
        Some(StepRecord::from_parts(text(step)?, StepEvent::from_number(number(event)?), value.as_slice()))
    };
    reply.chunks(3).map(|fields| record(fields).ok_or_else(|| wrong("load"))).collect()
}

/// Returns the first value, as text.
fn word(reply: &[Vec<u8>]) -> &str {
    reply.first().and_then(|word| text(word)).unwrap_or("")
}

/// Returns the error of a reply that no script of this version sends.
fn wrong(operation: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        Written::Unknown,
        operation,
        "the script returned an unknown reply",
    )
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    text(value)?.parse().ok()
}

// The scripts: one for each operation, each with one key.

/// The scripts of the operations.
#[derive(Debug)]
struct Scripts {
    claim: Script,
    renew: Script,
    append: Script,
    commit: Script,
    release: Script,
    load: Script,
    put: Script,
    get: Script,
}

impl Scripts {
    fn new() -> Self {
        let script = |own| Script::new(&[include_str!("common.lua"), own].concat());
        Self {
            claim: script(include_str!("claim.lua")),
            renew: script(include_str!("renew.lua")),
            append: script(include_str!("append.lua")),
            commit: script(include_str!("commit.lua")),
            release: script(include_str!("release.lua")),
            load: script(include_str!("load.lua")),
            put: script(include_str!("put.lua")),
            get: script(include_str!("get.lua")),
        }
    }
}

struct RedisChanges {
    link: Link,
    prefix: Arc<str>,
}

impl fmt::Debug for RedisChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisChanges").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisChanges {
    /// Returns the name of a channel. All databases of a server have the same channels.
    fn name(&self, channel: ChangeChannel) -> String {
        format!("{}changes:{channel}", self.prefix)
    }
}

impl ChangeFeed for RedisChanges {
    fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            changes::check(message)?;
            let mut publish = cmd("PUBLISH");
            publish.arg(self.name(channel)).arg(message);
            let deadline = Instant::now() + self.link.timeout;
            let mut repeated = false;
            loop {
                let mut connection = self.link.connection.clone();
                match timeout_at(deadline, publish.query_async::<()>(&mut connection)).await {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(error)) if is_connection(&error) && !repeated => repeated = true,
                    Ok(Err(error)) => return Err(of_script("publish", Written::Unknown, error)),
                    Err(elapsed) => {
                        let written = Written::Unknown;
                        return Err(StoreError::new(StoreErrorKind::Timeout, written, "publish", elapsed));
                    }
                }
            }
        })
    }

    fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>> {
        Box::pin(async move {
            let open = async {
                let mut messages = self.link.client.get_async_pubsub().await?;
                messages.subscribe(self.name(channel)).await?;
                Ok(messages)
            };
            match timeout_at(Instant::now() + self.link.timeout, open).await {
                Ok(Ok(messages)) => Ok(Box::new(RedisWatch(messages)) as Box<dyn ChangeWatch>),
                Ok(Err(error)) => Err(of_script("watch", Written::No, error)),
                Err(elapsed) => Err(StoreError::read(StoreErrorKind::Timeout, "watch", elapsed)),
            }
        })
    }
}

struct RedisWatch(PubSub);

impl ChangeWatch for RedisWatch {
    fn next(&mut self) -> StoreFuture<'_, String> {
        Box::pin(async {
            let message = self.0.on_message().next().await;
            // The server closes the connection of a watch that reads too slowly.
            let message = message.ok_or_else(|| changes::lost("the connection was closed"))?;
            message.get_payload().map_err(changes::lost)
        })
    }
}
