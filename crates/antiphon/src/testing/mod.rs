//! A test bench for tools, prompts and resources that ask. A scripted user answers, each fault is injected once, and the
//! bench compares the result and the effects with those of a call without faults.
//!
#![cfg_attr(feature = "macros", doc = "```")]
#![cfg_attr(not(feature = "macros"), doc = "```ignore")]
//! use antiphon::{Form, Result, server::{Ctx, Server, ServerBuilder, State}, tool};
//! use antiphon::testing::{Bench, Effects, Guarantee, ScriptedUser};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, Form)]
//! struct Region {
//!     region: String,
//! }
//!
//! /// Orders a database.
//! #[tool]
//! async fn order_database(ctx: &Ctx, name: String, cloud: State<Effects>) -> Result<String> {
//!     let Region { region } = ctx.elicit("Which region?").await?;
//!     let number: usize = ctx.step("create", async |s| Ok(cloud.perform("create", s.key()).await)).await?;
//!     Ok(format!("{name} is db-{number} in {region}."))
//! }
//!
//! /// One replica.
//! fn server(effects: &Effects) -> ServerBuilder {
//!     Server::builder("databases", "1.0").state(effects.clone()).tool(order_database)
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! // In a #[tokio::test(start_paused = true)]:
//! let bench = Bench::new(server).user(ScriptedUser::new().accept("region", json!({"region": "eu-west-1"})));
//!
//! let done = bench.call("order_database", json!({"name": "orders"})).await;
//! done.expect_text("orders is db-1 in eu-west-1.").expect_asked(&["region"]);
//! assert_eq!(done.effects().runs("create"), 1);
//!
//! let report = bench.run_all_faults("order_database", json!({"name": "orders"})).await;
//! report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
//! # });
//! ```
//!
//! # How it works
//!
//! The bench makes a call once without faults, and counts the legs and the polls of each leg's handler. Then it makes the
//! call again for each [`Fault`] at each boundary, each time with new replicas from the factory, new [`Effects`], and a
//! new clock that follows tokio's clock and that the bench can advance. The requests are valid JSON-RPC and go to
//! [`Server::respond`](crate::server::Server::respond) in memory. The bench polls them itself, so runs are repeatable. No
//! real time passes if tokio's time is paused, apart from the work of a database.
//!
//! | fault | expected outcome |
//! |---|---|
//! | [`Crash`](Fault::Crash), [`Disconnect`](Fault::Disconnect), [`Drain`](Fault::Drain), [`Move`](Fault::Move) | the same result; of a tool with a store, what its [level](#stores) promises |
//! | [`Duplicate`](Fault::Duplicate), [`Replay`](Fault::Replay) | an equal reply to the repeated request, and the same result |
//! | [`Tamper`](Fault::Tamper) | each altered state is refused without running a handler; then the same result |
//! | [`Expire`](Fault::Expire) | refused, or asked again and then the same result, depending on the server's setting |
//! | [`Upgrade`](Fault::Upgrade) | the result of the newer build |
//! | [`PartialAnswers`](Fault::PartialAnswers), [`ReversedAnswers`](Fault::ReversedAnswers), [`UnsolicitedAnswer`](Fault::UnsolicitedAnswer), [`InvalidAnswers`](Fault::InvalidAnswers), [`SlowUser`](Fault::SlowUser) | the same result |
//! | [`Session`](Fault::Session) | the same result, and each effect as often as without faults |
//! | [`SessionCrash`](Fault::SessionCrash) | the call that somebody makes then succeeds; it does at least what the lost one left undone, and neither does anything more often than a call without faults |
//!
//! A first request that is sent twice makes two calls with different secrets. The bench compares the keys of their
//! questions only, because the texts may contain a [`random_u64`](crate::server::Ctx::random_u64).
//!
//! # Stores
//!
//! All replicas of a run share its store: `effects.shared::<MemoryStore>()`, or what [`Bench::provide`] made for the run. A
//! reply with `retryAfterMs` is followed: that time passes on tokio's clock, and the bench sends the same request again, as
//! clients do. So a lease ends if the store has the run's clock; the `MemoryStore` of a run has it, another store gets it from
//! [`Effects::store_clock`].
//!
//! | the level of the tool | after [`Crash`](Fault::Crash) and [`Disconnect`](Fault::Disconnect) in a handler | after [`Duplicate`](Fault::Duplicate) | after [`Replay`](Fault::Replay) | effects |
//! |---|---|---|---|---|
//! | none | the same result | an equal reply | an equal reply | [`AtLeastOnce`](Guarantee::AtLeastOnce) |
//! | `single_use` | the same result, or `outcome_unknown` | the stored reply | the stored reply, or `used` | [`AtMostOnce`](Guarantee::AtMostOnce) |
//! | `write_ahead` | the same result, or `outcome_unknown` with the name of the interrupted step | the stored reply | the stored reply, or `used` | [`AtMostOnce`](Guarantee::AtMostOnce) |
//! | `write_ahead`, each step with `reconcile` | the same result | the stored reply | the stored reply, or `used` | [`AtMostOnce`](Guarantee::AtMostOnce) |
//! | either with `rerun_after_crash` | the same result | the stored reply | the stored reply, or `used` | [`OneKeyEach`](Guarantee::OneKeyEach) |
//! | a step in a transaction | the same result | the stored reply | the stored reply, or `used` | exactly once: count the rows |
//!
//! [`Report::unknown`] lists the runs that ended as `outcome_unknown`. No other error of a store is an expected outcome.
//!
//! With a paused clock, SQLite works as the memory store does. PostgreSQL and Redis have the clock of their server: use
//! `#[tokio::test]` without `start_paused`, and a short [lease](crate::server::ClaimOptions::lease). The polls of a handler that
//! waits for a database are not the same in each run: a crash may come a poll earlier or later.
//!
//! # Effects
//!
//! Without faults a step runs once. With faults, a server without a store guarantees "at least once" under one idempotency
//! key: after a crash between an effect and the end of its leg, the step runs again. Therefore effects are counted in two
//! ways: [`Effects::runs`] is the number of calls of the provider, and [`Effects::distinct_keys`] is the number of times
//! that a provider with idempotency keys acts. [`Guarantee`] lists what to expect. Call [`Effects::perform`] in the fake of
//! your provider, so that the bench can crash the replica right before and right after the effect.
//!
//! The bench finds effects outside of a step (they happen again in the next leg), keys that change, answers in the memory
//! of one replica, questions that contain the time or the order of a `HashMap`, control flow that depends on randomness,
//! and results that differ between runs (use [`Bench::disregard`] to allow them).
//!
//! Every replica runs with [`ReplayCheck::Always`](crate::server::operations::ReplayCheck::Always), and each report of that check is a
//! finding: a question that the replay does not ask, a question abandoned by `select!` or `timeout`, a step before a
//! question that the tool does not [`need`](crate::server::Tool::needs).
//!
//! # One fault
//!
#![cfg_attr(feature = "macros", doc = "```")]
#![cfg_attr(not(feature = "macros"), doc = "```ignore")]
//! # use antiphon::{Form, Result, server::{Ctx, Server, State}, tool};
//! use antiphon::{client::Call, testing::{Bench, Effects, Fault, ScriptedUser}};
//! # use serde_json::json;
//! # #[derive(serde::Deserialize, Form)] struct Region { region: String }
//! # /// Orders.
//! # #[tool]
//! # async fn order(ctx: &Ctx, cloud: State<Effects>) -> Result<String> {
//! #     let Region { region } = ctx.elicit("Which region?").await?;
//! #     let number: usize = ctx.step("create", async |s| Ok(cloud.perform("create", s.key()).await)).await?;
//! #     Ok(format!("db-{number} in {region}"))
//! # }
//! # let bench = Bench::new(|effects| Server::builder("databases", "1.0").state(effects.clone()).tool(order))
//! #     .user(ScriptedUser::new().accept("region", json!({"region": "eu-west-1"})));
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//!
//! // The effect happens in the second poll of leg 2. Then the replica crashes, and the result of the effect is lost.
//! let call = Call::tool("order", json!({}))?;
//! let done = bench.run(&call, Some(&Fault::Crash { leg: 2, polls: 2 })).await;
//! done.expect_text("db-1 in eu-west-1");
//! assert_eq!((done.effects().runs("create"), done.effects().distinct_keys("create")), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Limits
//!
//! The bench injects faults only where a handler waits, not between two statements that are ready at once. It counts only
//! effects that the fake records in [`Effects`]. Each run has at most one fault; a call in a session has none but the
//! crash of its instance. A server's [state codec](crate::server::ServerBuilder::codec) is used; the bench replaces the server's key ring, clock and
//! authentication. Transports are not tested, except by [`Bench::run_through_client`]. Calls that become tasks are not
//! supported.

mod call_run;
mod client;
mod effects;
mod fault;
mod fault_injection;
mod report;
mod run;
mod setup;
mod simulation;
mod user;

#[cfg(feature = "oauth")]
pub use antiphon_client::oauth::testing as authority;
pub use antiphon_store::contract as store_contract;
pub use call_run::{CallRun, Finding, FindingKind, Leg, Outcome};
pub use effects::{Effect, Effects};
pub use fault::{DuplicateTiming, Fault};
pub use report::{Guarantee, Report};
pub use user::{Question, ScriptedUser, UserAnswer};

use crate::{client::Call, server::ServerBuilder};
use antiphon_seal::Principal;
use serde::Serialize;
use serde_json::Value;
use setup::{Setup, Upgrade};
use std::{fmt, future::Future, sync::Arc};

/// A server under test, with as many replicas as a run needs, and a [`ScriptedUser`].
#[derive(Clone)]
pub struct Bench {
    setup: Setup,
}

impl Bench {
    /// Creates a bench for the server that `factory` builds: one replica per call of `factory`. Every run begins with
    /// new [`Effects`], which all its replicas share. The bench sets the key ring, the clock and the replay check of
    /// each replica. A server without keys of its own needs no `single_instance` for a store in memory.
    pub fn new(factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        Self { setup: Setup::new(Arc::new(factory)) }
    }

    /// Sets the user who answers. Default: [`ScriptedUser::new`], who has no answers.
    #[must_use]
    pub fn user(mut self, user: ScriptedUser) -> Self {
        self.setup.user = user;
        self
    }

    /// Sets the principal of each request, as an authentication layer in front of the server would. Default: none.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.setup.principal = Some(principal);
        self
    }

    /// Gives the caller an access token with these scopes, for tools with
    /// [`scopes`](crate::server::Tool::scopes). It is the token of the [`principal`](Self::principal), or of a user of the
    /// bench. Default: no token.
    #[must_use]
    pub fn bearer<Text: Into<String>>(mut self, scopes: impl IntoIterator<Item = Text>) -> Self {
        self.setup.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets an async function that makes one value for each run, before its first replica: a new database, for example. The
    /// factory gets the value from [`Effects::provided`].
    #[must_use]
    pub fn provide<T, Made>(mut self, make: impl Fn(Effects) -> Made + Send + Sync + 'static) -> Self
    where
        T: Send + Sync + 'static,
        Made: Future<Output = T> + Send + 'static,
    {
        self.setup.providers.push(Arc::new(move |effects| {
            let made = make(effects.clone());
            Box::pin(async move { effects.put(made.await) })
        }));
        self
    }

    /// Adds [`Fault::Upgrade`] for each leg: a newer build continues the call. The call must end as on the newer build
    /// alone.
    #[must_use]
    pub fn upgrade(mut self, factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        self.setup.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: false });
        self
    }

    /// Adds [`Fault::Upgrade`] for each leg: a newer build must reject calls that the older build began.
    #[must_use]
    pub fn upgrade_refused(
        mut self,
        factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static,
    ) -> Self {
        self.setup.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: true });
        self
    }

    /// Allows the call without a fault to end with a JSON-RPC error, for example a prompt whose user declines. By
    /// default [`run_all_faults`](Self::run_all_faults) reports that error as a finding.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        self.setup.may_fail = true;
        self
    }

    /// Sets a function that changes results before they are compared, to remove members that differ between runs, such as
    /// a time or an id. Default: no change.
    #[must_use]
    pub fn disregard(mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.setup.disregard = Arc::new(change);
        self
    }

    /// Limits [`run_all_faults`](Self::run_all_faults) to the faults for which `chosen` returns true. Default: all.
    #[must_use]
    pub fn only(mut self, chosen: impl Fn(&Fault) -> bool + Send + Sync + 'static) -> Self {
        self.setup.chosen = Arc::new(chosen);
        self
    }

    /// Calls a tool without faults. The arguments are an object; `()` means none.
    ///
    /// # Panics
    /// If the arguments are neither an object nor `()`, or the server cannot be built.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> CallRun {
        self.run(&tool_call(tool, arguments), None).await
    }

    /// Calls a tool once without faults, then once per [`Fault`] and boundary, and compares the results. Each call is a
    /// separate run.
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub async fn run_all_faults(&self, tool: &str, arguments: impl Serialize) -> Report {
        self.run_all_faults_on(&tool_call(tool, arguments)).await
    }

    /// Calls a tool, a prompt or a resource, with one fault or none.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn run(&self, call: &Call, fault: Option<&Fault>) -> CallRun {
        run::run(&self.setup, call, fault, false).await
    }

    /// Runs [`run_all_faults`](Self::run_all_faults) for a call of a tool, a prompt or a resource.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn run_all_faults_on(&self, call: &Call) -> Report {
        Report::make(&self.setup, call).await
    }

    /// Makes a call through a real [`Client`](crate::client::Client) over the [memory
    /// pair](crate::client::transport::memory::duplex). The client validates answers before it sends them, so an invalid or
    /// missing answer ends the call. The result has one [`Leg`] with all asks and no polls.
    ///
    /// # Panics
    /// If the server cannot be built, or outside of a tokio runtime.
    pub async fn run_through_client(&self, call: &Call) -> CallRun {
        client::run(&self.setup, call).await
    }
}

fn tool_call(tool: &str, arguments: impl Serialize) -> Call {
    Call::tool(tool, arguments).unwrap_or_else(|fault| panic!("{fault}"))
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("user", &self.setup.user).finish_non_exhaustive()
    }
}
