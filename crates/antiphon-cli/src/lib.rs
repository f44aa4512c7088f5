//! The `antiphon` program: a server whose tools ask, and a client that asks you.
//!
//! ```text
//! antiphon demo                                     the whole of it, in one terminal
//! antiphon call provision --args '{"name": "orders"}' http://127.0.0.1:8000/mcp
//! antiphon call provision --args '{"name": "orders"}' -- antiphon serve-demo --stdio
//! ```
//!
//! [`run`] is the program. The server of `antiphon demo` and `antiphon serve-demo` is the crate `antiphon-demo`.
//!
//! How it works inside: a command makes a call and hands it to `drive`, which walks from leg to leg; in between,
//! `ask` answers each question from the command line or at the terminal. `observe` counts and narrates the legs.
//! Texts of servers reach a terminal only through `show`, which takes out what would steer it, and everything is
//! printed in `console`.

mod answers;
mod args;
mod ask;
mod commands;
mod console;
mod drive;
mod failure;
mod hear;
mod live;
mod observe;
mod report;
mod show;
mod target;
mod values;

pub use commands::run;
