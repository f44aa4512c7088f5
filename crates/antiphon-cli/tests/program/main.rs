//! Tests of the program `antiphon` from its arguments to its exit code.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advice;
mod call;
mod consent;
mod demo;
mod events;
mod exits;
mod keys;
mod listen;
mod lists;
mod modes;
mod options;
mod pending;
mod receipt;
mod serve;
mod sign_in;
mod signals;
mod support;
mod tasks;
mod tasks_demo;
mod tasks_stdio;
mod terminal;
