//! The engine without a runtime: legs, questions by hand, random calls.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod driver;
mod random_program;

mod by_hand;
mod legs;
mod random_calls;
mod waits;
