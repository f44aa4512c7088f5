//! The demo server: a small tool for each way of asking, one file each, written to be copied.
//!
//! | | asks |
//! |---|---|
//! | tool `echo` | nothing |
//! | tool `provision` | one form |
//! | tool `get_weather` | one form |
//! | tool `update_work_item` | two forms, one after the other, the second depending on the first |
//! | prompt `briefing` | one form |
//! | resources `report://{id}` | one form |
//!
//! Each runs from its top on every request of a call: it asks for the answer to a question, and returns the question
//! where there is none yet. Someone who declines or goes away gets a normal result that says so.

mod briefing;
mod echo;
mod get_weather;
mod provision;
mod report;
mod update_work_item;

use antiphon::{
    seal::KeyRing,
    server::{BuildError, Server},
};

/// The demo server. With a key ring, every process that has the same one can finish its calls; without, only this one.
///
/// # Errors
/// [`BuildError`], if the system gives no random bytes for a key.
pub fn server(keys: Option<KeyRing>) -> Result<Server, BuildError> {
    let builder = Server::builder("antiphon-demo", env!("CARGO_PKG_VERSION"))
        .instructions("Tools that ask: try `provision` with a name.")
        .tool(echo::tool())
        .tool(provision::tool())
        .tool(get_weather::tool())
        .tool(update_work_item::tool())
        .prompt(briefing::prompt())
        .template(report::template());
    match keys {
        Some(ring) => builder.keys(ring).build(),
        None => builder.build(),
    }
}
