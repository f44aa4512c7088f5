//! A guide to tools that ask, in twenty-two chapters. All examples are compiled.
//!
//! | chapter | question |
//! |---|---|
//! | [`replay`] | what does `await` mean if the server stores nothing between two requests? |
//! | [`steps`] | which code can run twice, and which cannot? |
//! | [`stores`] | what does a store of calls add, and which one? |
//! | [`mistakes`] | what does each common mistake look like? |
//! | [`forms`] | what can a form ask, and what if the client cannot ask? |
//! | [`urls`] | what must the page behind a URL do? |
//! | [`by_hand`] | what is my duty if a handler returns its questions? |
//! | [`macros`] | which attributes exist, and what is a resolver? |
//! | [`contents`] | what can a result have besides text? |
//! | [`testing`] | how do I test a tool that asks? |
//! | [`migrating`] | how do I port code from rmcp or Python? |
//! | [`clients`] | how does a program call servers, and answer them? |
//! | [`subscriptions`] | how do changes reach the clients? |
//! | [`tasks`] | how does a call go on while nobody is connected? |
//! | [`auth`] | who is calling, and what may they do? |
//! | [`sign_in`] | how does a client get its tokens? |
//! | [`eras`] | how are clients of the 2025 revisions served? |
//! | [`deprecated`] | how do sampling, roots and log messages work? |
//! | [`layers`] | what stands around a call, and what does a handler see of its request? |
//! | [`extensions`] | how do I add methods of my own to the protocol? |
//! | [`fleets`] | how do I run, upgrade and stop several instances? |
//! | [`operations`] | how do I mount a server, and watch it? |
//!
//! Words: a *call* is one logical tools/call, prompts/get or resources/read, from its first request to its final result. A
//! *leg* is one request of a call. Statements about tools also apply to prompts and resources.

#[doc = include_str!("replay.md")]
pub mod replay {}

#[doc = include_str!("steps.md")]
pub mod steps {}

#[doc = include_str!("stores.md")]
pub mod stores {}

#[doc = include_str!("mistakes.md")]
pub mod mistakes {}

#[doc = include_str!("forms.md")]
pub mod forms {}

#[doc = include_str!("urls.md")]
pub mod urls {}

#[doc = include_str!("by_hand.md")]
pub mod by_hand {}

#[doc = include_str!("macros.md")]
pub mod macros {}

#[doc = include_str!("contents.md")]
pub mod contents {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("migrating.md")]
pub mod migrating {}

#[doc = include_str!("clients.md")]
pub mod clients {}

#[doc = include_str!("subscriptions.md")]
pub mod subscriptions {}

#[doc = include_str!("layers.md")]
pub mod layers {}

#[doc = include_str!("extensions.md")]
pub mod extensions {}

#[doc = include_str!("tasks.md")]
pub mod tasks {}

#[doc = include_str!("auth.md")]
pub mod auth {}

#[doc = include_str!("sign_in.md")]
pub mod sign_in {}

// The picture of the chapter, for rustdoc; `scripts/pictures` writes it. On GitHub the chapter refers to docs/pictures.
#[doc = include_str!("carriers_picture.md")]
#[doc = include_str!("eras.md")]
pub mod eras {}

#[doc = include_str!("deprecated.md")]
pub mod deprecated {}

#[doc = include_str!("fleets.md")]
pub mod fleets {}

// `scripts/house log-events` compares the list with the sources.
#[doc = include_str!("operations.md")]
#[doc = include_str!("log_events.md")]
pub mod operations {}
