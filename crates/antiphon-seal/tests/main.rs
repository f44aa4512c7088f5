//! Tokens, their keys, and what a token is bound to.

mod common;

mod binding;
mod key_file;
mod keys;
mod properties;
mod token;
