//! The code behind `#[resolver]` and `#[resolve(..)]`: parameters that another function fills in before the handler
//! runs.
//!
//! ```text
//!  #[resolve(confirm)] ─▶ Round::take ─▶ begin confirm, and what it takes ─▶ all polled together, by one poll function
//!                              ▲                                                     │ values, by the resolver's type
//!                              └────────── FromValue: whole, shared, unwrapped ◀─────┘
//! ```
//!
//! A macro sees one signature only, so a tool and its resolvers are connected by types. The names of a tool's arguments
//! are types (`argument`), and `description` compares them as text, to report a missing one with a clear error.

mod argument;
mod description;
mod provided;
mod round;
mod value;

/// The items that expanded code calls.
pub(crate) mod expanded {
    pub use super::{
        argument::{Arguments, HasArgument, Lends, Name, borrowed, owned},
        description::{Checked, Deeper, Depth, Described, Description, check, check_cycles},
        provided::Provided,
        round::{Resolver, Resolves, Round, Running, boxed_resolver},
        value::{Returned, settle},
    };
}
