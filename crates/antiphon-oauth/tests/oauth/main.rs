//! The client against an authorization server on loopback.

mod attacks;
mod machines;
mod stores;
mod support;
mod tokens;
