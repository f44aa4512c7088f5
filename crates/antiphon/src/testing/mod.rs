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
//! again for each [`Fault`] at each boundary, in a world of its own: new replicas from the factory, a clock that goes with
//! tokio's and that the bench moves on, new [`Effects`]. Requests are JSON-RPC as a correct client writes them, and go to
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
//! A first request that is sent twice is two calls, with a secret each: of their questions the bench compares the keys, not
//! the words, which may hold a [`random_u64`](crate::server::Ctx::random_u64).
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
//! Every replica runs with [`ReplayCheck::Always`](crate::server::ReplayCheck::Always), and what that reports fails the
//! bench: a question that is not asked again, one given up by `select!` or `timeout`, a step before a question that the tool
//! does not [`need`](crate::server::Tool::needs).
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

mod bench;
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

pub use bench::Bench;
pub use done::{Done, Leg, Outcome};
pub use effects::{Effect, Effects};
pub use fault::{Fault, Second};
pub use finding::{About, Finding};
pub use person::{Person, Question, Says};
pub use report::Report;
pub use tally::Guarantee;
