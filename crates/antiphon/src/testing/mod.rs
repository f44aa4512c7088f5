//! A test bench for tools, prompts and resources that ask: a scripted person answers, everything goes wrong once, and
//! the result and the effects are compared with those of a call in which nothing does.
//!
#![cfg_attr(feature = "macros", doc = "```")]
#![cfg_attr(not(feature = "macros"), doc = "```ignore")]
//! use antiphon::{Form, Result, server::{Ctx, Server, ServerBuilder, State}, tool};
//! use antiphon::testing::{Bench, Effects, Guarantee, Person};
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
//! let bench = Bench::new(server).person(Person::new().accept("region", json!({"region": "eu-west-1"})));
//!
//! let done = bench.call("order_database", json!({"name": "orders"})).await;
//! done.expect_text("orders is db-1 in eu-west-1.").expect_asked(&["region"]);
//! assert_eq!(done.effects().runs("create"), 1);
//!
//! let report = bench.torture("order_database", json!({"name": "orders"})).await;
//! report.expect_same_result().expect_effects(Guarantee::OneKeyEach);
//! # });
//! ```
//!
//! # How it works
//!
//! The bench makes a call once as it is, and counts its legs and how often the handler of each is polled. Then it makes it
//! again for each [`Fault`] at each boundary, in a world of its own: new replicas from the factory, a clock that only the
//! bench moves, new [`Effects`]. Requests are JSON-RPC as a correct client writes them, and go to
//! [`Server::respond`](crate::server::Server::respond) in memory; the bench polls them itself, so that the same happens
//! each time. No real time passes, if the test runs with tokio's time paused.
//!
//! | what happens | what must come of it |
//! |---|---|
//! | [`Crash`](Fault::Crash), [`Disconnect`](Fault::Disconnect), [`Drain`](Fault::Drain), [`Move`](Fault::Move) | the same result |
//! | [`Duplicate`](Fault::Duplicate), [`Replay`](Fault::Replay) | the same reply again, and the same result |
//! | [`Tamper`](Fault::Tamper) | each is refused, and no handler runs; then the same result |
//! | [`Expire`](Fault::Expire) | refused, or asked again and the same result, as the server is set |
//! | [`Upgrade`](Fault::Upgrade) | the result of the newer build |
//! | [`PartOfTheAnswers`](Fault::PartOfTheAnswers), [`AnswersReversed`](Fault::AnswersReversed), [`UnaskedAnswer`](Fault::UnaskedAnswer), [`Nonsense`](Fault::Nonsense), [`Slow`](Fault::Slow) | the same result |
//!
//! # Effects
//!
//! A step runs once as long as nothing goes wrong. When something does, a server without a store promises "at least
//! once", under one idempotency key: a crash between an effect and the end of its leg runs it again. So effects are counted
//! in two ways. [`Effects::runs`] is how often the provider was called, [`Effects::distinct_keys`] how often one that
//! knows idempotency keys acted. [`Guarantee`] says what to expect. Have the fake of your provider call
//! [`Effects::perform`], so that the bench can crash the replica right before it acts and right after.
//!
//! What the bench catches that way: effects outside of a step (they happen again in the next leg), keys that are made
//! anew, answers kept in the memory of one replica, questions that hold the time or the order of a `HashMap`, paths that
//! depend on chance, results that tell what is different each time (which [`Bench::disregard`] can allow).
//!
//! # One fault
//!
#![cfg_attr(feature = "macros", doc = "```")]
#![cfg_attr(not(feature = "macros"), doc = "```ignore")]
//! # use antiphon::{Form, Result, server::{Ctx, Server, State}, tool};
//! use antiphon::{client::Call, testing::{Bench, Effects, Fault, Person}};
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
//! #     .person(Person::new().accept("region", json!({"region": "eu-west-1"})));
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//!
//! // The second poll of leg 2 lets the effect happen; then the replica is gone, and nobody knows.
//! let call = Call::tool("order", json!({}))?;
//! let done = bench.run(&call, Some(&Fault::Crash { leg: 2, polls: 2 })).await;
//! done.expect_text("db-1 in eu-west-1");
//! assert_eq!((done.effects().runs("create"), done.effects().distinct_keys("create")), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # What it does not see
//!
//! It stops a handler where that waits: between two lines that are ready at once, nothing can go wrong here. An effect that
//! the fake does not tell [`Effects`] did not happen. Faults come one at a time. A server's
//! [state codec](crate::server::ServerBuilder::codec) is kept and put to the test; its key ring, clock and the way it
//! learns who calls over HTTP are the bench's. What only a transport can get wrong is not tried, except by
//! [`Bench::run_through_client`].

mod client;
mod done;
mod effects;
mod fault;
mod finding;
mod inject;
mod message;
mod person;
mod refuse;
mod report;
mod run;
mod tally;
mod world;

pub use done::{Done, Leg, Outcome};
pub use effects::{Effect, Effects};
pub use fault::{Fault, Second};
pub use finding::{About, Finding};
pub use person::{Person, Question, Says};
pub use report::Report;
pub use tally::Guarantee;

use crate::{client::Call, server::ServerBuilder};
use antiphon_seal::Principal;
use serde::Serialize;
use serde_json::Value;
use std::{fmt, sync::Arc};

type Factory = Arc<dyn Fn(&Effects) -> ServerBuilder + Send + Sync>;

/// A server under test, with as many replicas as a run needs, and the person who is asked.
#[derive(Clone)]
pub struct Bench {
    factory: Factory,
    upgrade: Option<Upgrade>,
    person: Person,
    principal: Option<Principal>,
    may_fail: bool,
    disregard: Arc<dyn Fn(&mut Value) + Send + Sync>,
    chosen: Arc<dyn Fn(&Fault) -> bool + Send + Sync>,
}

/// The newer build.
#[derive(Clone)]
struct Upgrade {
    factory: Factory,
    is_refused: bool,
}

impl Bench {
    /// A bench for the server that this makes: one replica each time it is called. Every run begins with new
    /// [`Effects`], which all its replicas share. The bench sets the key ring and the clock of each.
    pub fn new(factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        Self {
            factory: Arc::new(factory),
            upgrade: None,
            person: Person::new(),
            principal: None,
            may_fail: false,
            disregard: Arc::new(|_| {}),
            chosen: Arc::new(|_| true),
        }
    }

    /// Who is asked.
    #[must_use]
    pub fn person(mut self, person: Person) -> Self {
        self.person = person;
        self
    }

    /// Who calls, as a layer in front of the server would have found out. Default: nobody in particular.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// A newer build, that takes over from each leg in turn: calls go on there, and end as they do on the newer build
    /// alone.
    #[must_use]
    pub fn upgrade(mut self, factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static) -> Self {
        self.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: false });
        self
    }

    /// A newer build, that refuses what an older one began.
    #[must_use]
    pub fn upgrade_refused(
        mut self,
        factory: impl Fn(&Effects) -> ServerBuilder + Send + Sync + 'static,
    ) -> Self {
        self.upgrade = Some(Upgrade { factory: Arc::new(factory), is_refused: true });
        self
    }

    /// The call is to end with a JSON-RPC error, as a prompt does whose person says no; without this,
    /// [`torture`](Self::torture) takes that for a fault of its own.
    #[must_use]
    pub fn may_fail(mut self) -> Self {
        self.may_fail = true;
        self
    }

    /// Changes results before they are compared: takes out what may differ from run to run, such as a time or an id.
    #[must_use]
    pub fn disregard(mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.disregard = Arc::new(change);
        self
    }

    /// Only these faults. Default: all.
    #[must_use]
    pub fn only(mut self, chosen: impl Fn(&Fault) -> bool + Send + Sync + 'static) -> Self {
        self.chosen = Arc::new(chosen);
        self
    }

    /// Calls a tool; nothing goes wrong. The arguments are an object; `()` means none.
    ///
    /// # Panics
    /// If the arguments are something else, or the server cannot be built.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Done {
        self.run(&tool_call(tool, arguments), None).await
    }

    /// Calls a tool under every fault at every boundary, each in a run of its own, and compares it with a run in which
    /// nothing goes wrong.
    ///
    /// # Panics
    /// As [`call`](Self::call).
    pub async fn torture(&self, tool: &str, arguments: impl Serialize) -> Report {
        self.torture_call(&tool_call(tool, arguments)).await
    }

    /// Makes any call: of a tool, a prompt or a resource, with a fault or without one.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn run(&self, call: &Call, fault: Option<&Fault>) -> Done {
        run::run(self, call, fault, false).await
    }

    /// As [`torture`](Self::torture), for any call.
    ///
    /// # Panics
    /// If the server cannot be built.
    pub async fn torture_call(&self, call: &Call) -> Report {
        Report::make(self, call).await
    }

    /// Makes a call through a real [`Client`](crate::client::Client) over the [memory
    /// pair](crate::transport::memory::pair). A client checks answers before it sends them, so a person who is wrong
    /// first ends the call there; a question left open ends it too. Legs and polls are not seen.
    ///
    /// # Panics
    /// If the server cannot be built, or outside of a tokio runtime.
    pub async fn run_through_client(&self, call: &Call) -> Done {
        client::run(self, call).await
    }
}

fn tool_call(tool: &str, arguments: impl Serialize) -> Call {
    Call::tool(tool, arguments).unwrap_or_else(|fault| panic!("{fault}"))
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("person", &self.person).finish_non_exhaustive()
    }
}
