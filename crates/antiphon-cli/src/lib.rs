//! The `antiphon` program: a client for MCP servers that asks you in the terminal, and a demo server whose tools ask.
//!
//! ```text
//! antiphon demo                                     a server and a client in one terminal
//! antiphon call provision --args '{"name": "orders"}' http://127.0.0.1:8000/mcp
//! antiphon call provision --args '{"name": "orders"}' -- antiphon serve-demo --stdio
//! ```
//!
//! [`run`] is the program. The server of `antiphon demo` and `antiphon serve-demo` is the crate `antiphon-demo`.
//!
//! The parts: a command makes a call and passes it to `drive`, which sends one request per leg. Between two legs, `ask`
//! answers each question from the command line or at the terminal. A transport in `drive` counts and logs the legs. All texts
//! of servers pass through `sanitize` before they are printed on a terminal, and `console` prints everything.

mod answer_flags;
mod args;
mod arguments;
mod ask;
mod commands;
mod console;
mod drive;
mod ended_by_signal;
mod failure;
mod flag_text;
mod outcome;
mod servers_file;
#[cfg(feature = "oauth")]
mod sign_in;
#[cfg(not(feature = "oauth"))]
#[path = "no_sign_in.rs"]
mod sign_in;
mod store_file;
mod target;

pub use commands::run;
