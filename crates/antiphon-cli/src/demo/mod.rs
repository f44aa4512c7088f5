//! The demo server: a small tool for each way of asking, one file each, written to be copied.
//!
//! | | asks |
//! |---|---|
//! | tool `echo` | nothing |
//! | tool `provision` | one form |
//! | tool `get_weather` | one form, by hand |
//! | tool `update_work_item` | two forms, one after the other, the second depending on the first |
//! | tool `book_table` | one form, only when it has to, and as often as it has to |
//! | tool `delete_folder` | one form, before the tool runs, only when it has to |
//! | tool `pick_file` | a form with choices that are known at run time, then a yes or no |
//! | tool `pay_deposit` | a URL; the tool `deposit_status` says what came of it |
//! | tool `charge_once` | a form before an effect, and one after it |
//! | tool `rolling_upgrade` | two forms at once; another build asks for another one |
//! | tool `load_shedding` | nothing, but may go on elsewhere |
//! | tool `ask_the_model` | the model, for roots, a URL and a form at once |
//! | prompt `briefing` | one form, by hand |
//! | resources `report://{id}` | one form, by hand |
//!
//! Asking with `await`, a tool reads from top to bottom, and runs again from its top for each answer. Asking by hand, it
//! returns its question, and looks for the answer when it is called again. Someone who declines or goes away gets a normal
//! result that says so, or a tool error that does.

pub mod world;

mod ask_the_model;
mod book_table;
mod briefing;
mod charge_once;
mod delete_folder;
mod echo;
mod get_weather;
mod load_shedding;
mod pay_deposit;
mod pick_file;
mod provision;
mod report;
mod rolling_upgrade;
mod update_work_item;

pub use rolling_upgrade::Build;
pub use world::World;

use antiphon::{
    seal::KeyRing,
    server::{BuildError, Server, ServerBuilder},
};

/// The demo server. With a key ring, every process that has the same one can finish its calls; without, only this one.
///
/// # Errors
/// [`BuildError`], if the system gives no random bytes for a key.
pub fn server(keys: Option<KeyRing>) -> Result<Server, BuildError> {
    let builder = builder(World::from_env(), Build::New);
    match keys {
        Some(ring) => builder.keys(ring).build(),
        None => builder.build(),
    }
}

/// The demo server in the making, in this world and as this build.
pub fn builder(world: World, build: Build) -> ServerBuilder {
    let builder = Server::builder("antiphon-demo", env!("CARGO_PKG_VERSION"))
        .instructions("Tools that ask: try `provision` with a name.")
        .bind_principal(world::caller)
        .state(world)
        .tool(echo::echo)
        .tool(provision::provision)
        .tool(get_weather::tool())
        .tool(update_work_item::update_work_item)
        .tool(book_table::book_table)
        .tool(delete_folder::delete_folder)
        .tool(pick_file::pick_file)
        .tool(pay_deposit::pay_deposit)
        .tool(pay_deposit::deposit_status)
        .tool(charge_once::charge_once)
        .tool(load_shedding::load_shedding)
        .tool(ask_the_model::ask_the_model)
        .prompt(briefing::prompt())
        .template(report::template());
    match build {
        Build::Old => builder.tool(rolling_upgrade::old),
        Build::New => builder.tool(rolling_upgrade::new),
    }
}
