//! The demo server of `antiphon demo` and `antiphon serve-demo`: one small tool for each way of asking,
//! written to be copied.
//!
//! | offer | asks for |
//! |---|---|
//! | tool `echo` | nothing; that of [`draft_server`], one form in a task |
//! | tool `provision` | one form |
//! | tool `get_weather` | one form, by hand |
//! | tool `update_work_item` | two forms in order, the second depends on the first answer |
//! | tool `book_table` | one form, repeated until the answer is a free date |
//! | tool `delete_folder` | one form from a resolver, only if the folder has files |
//! | tool `pick_file` | a form with choices that are known at run time, then a confirmation |
//! | tool `pay_deposit` | a URL; the tool `deposit_status` reports the payment |
//! | tool `charge_once` | one form before a step with an effect, one form after it |
//! | tool `rolling_upgrade` | two forms at once; the two builds differ in the second form |
//! | tool `load_shedding` | nothing; the call can move to another server at a checkpoint |
//! | tool `ask_the_model` | a sample, roots, a URL and a form at once |
//! | tool `provision_cluster` | one form, then a task works, then one confirmation in the task |
//! | tool `confirm_delete` | one confirmation, in a task |
//! | prompt `briefing` | one form, by hand |
//! | resource template `report://{id}` | one form, by hand |
//!
//! The last two tools need a place for their tasks: a store, or one process that keeps them in memory. See [`with_tasks`].
//!
//! A tool that asks with `await` reads from top to bottom; the server runs the tool again from its top for each answer.
//! A tool that asks by hand returns its question, and looks for the answer when the server calls the tool again.
//! If the user declines or cancels, the result is a normal result or a tool error whose text says so.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use antiphon::serve::http::{HttpOptions, serve_http};
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
//! let server = antiphon_demo::server(None)?;
//! serve_http(listener, server, HttpOptions::default()).await?;
//! # Ok(()) }
//! ```

pub mod backend;

mod by_hand;
mod tools;
mod user;

pub use backend::Backend;
pub use tools::long_work::Build;

use antiphon::{
    seal::KeyRing,
    server::{BuildError, Server, ServerBuilder, TaskOptions},
    store::CallStore,
};
use std::{sync::Arc, time::Duration};
use tools::{charge_once, effects, long_work, questions};

/// Builds the demo server, with the backend that [`Backend::from_env`] returns.
///
/// All processes with the same key ring can continue each other's calls. Without a key ring the server makes a random
/// key, and only this process can continue its calls.
///
/// # Errors
/// [`BuildError`], if the operating system gives no random bytes for a key.
pub fn server(keys: Option<KeyRing>) -> Result<Server, BuildError> {
    server_with_store(keys, None)
}

/// Builds the demo server, with a store of calls if there is one: each state of a call is then used at most once. It offers the tools
/// of [`with_tasks`], unless it has keys and no store: other processes with the same keys would not find its tasks.
///
/// # Errors
/// [`BuildError`], if the operating system gives no random bytes for a key, or if the store is in memory and the keys are
/// not.
pub fn server_with_store(
    keys: Option<KeyRing>,
    store: Option<Arc<dyn CallStore>>,
) -> Result<Server, BuildError> {
    let builder = builder(Backend::from_env(), Build::New);
    let builder = if keys.is_none() || store.is_some() { with_tasks(builder) } else { builder };
    build(builder, keys, store)
}

/// Builds the demo server, which also serves tasks as the draft before the extension had them. Its `echo` is that of the draft's
/// example.
///
/// # Errors
/// As [`server_with_store`], and if it has keys and no store: other processes with the same keys would not find its tasks.
pub fn draft_server(keys: Option<KeyRing>, store: Option<Arc<dyn CallStore>>) -> Result<Server, BuildError> {
    let builder = with_others(empty().tool(long_work::echo), Backend::from_env(), Build::New);
    // As in the example.
    let options = TaskOptions::default().poll_interval(Duration::from_millis(100));
    build(with_tasks(builder).draft_tasks(true).task_options(options), keys, store)
}

fn build(
    builder: ServerBuilder,
    keys: Option<KeyRing>,
    store: Option<Arc<dyn CallStore>>,
) -> Result<Server, BuildError> {
    let builder = match keys {
        Some(ring) => builder.keys(ring),
        None => builder,
    };
    match store {
        Some(store) => builder.store(store).single_use(true).build(),
        None => builder.build(),
    }
}

/// Adds the tools whose calls become tasks: `provision_cluster` and `confirm_delete`.
pub fn with_tasks(builder: ServerBuilder) -> ServerBuilder {
    builder.tool(long_work::provision_cluster).tool(long_work::confirm_delete)
}

/// Returns a builder of the demo server, with this backend and this build of `rolling_upgrade`.
pub fn builder(backend: Backend, build: Build) -> ServerBuilder {
    with_others(empty().tool(questions::echo), backend, build)
}

fn empty() -> ServerBuilder {
    Server::builder("antiphon-demo", env!("CARGO_PKG_VERSION"))
        .instructions("Tools that ask: try `provision` with a name.")
}

/// Adds everything but `echo`.
fn with_others(builder: ServerBuilder, backend: Backend, build: Build) -> ServerBuilder {
    let builder = builder
        .bind_principal(user::principal_of)
        .state(backend)
        .tool(questions::provision)
        .tool(by_hand::tool())
        .tool(questions::update_work_item)
        .tool(questions::book_table)
        .tool(effects::delete_folder)
        .tool(questions::pick_file)
        .tool(effects::pay_deposit)
        .tool(effects::deposit_status)
        .tool(charge_once::charge_once)
        .tool(long_work::load_shedding)
        .tool(questions::ask_the_model)
        .prompt(by_hand::prompt())
        .template(by_hand::template());
    match build {
        Build::Old => builder.tool(long_work::old),
        Build::New => builder.tool(long_work::new),
    }
}
