//! How to write tools that ask: twelve chapters, each about one thing, each example compiled and most of them run.
//!
//! | chapter | answers |
//! |---|---|
//! | [`replay`] | what does `await` mean, when nothing is kept between two requests? |
//! | [`steps`] | what runs twice, and what never? |
//! | [`mistakes`] | what do I see when I get it wrong? |
//! | [`forms`] | what can I ask, and what becomes of an answer that does not fit? |
//! | [`cannot_ask`] | what if the client cannot ask? |
//! | [`urls`] | what must the page behind a URL do? |
//! | [`macros`] | which attributes are there, and what are resolvers? |
//! | [`testing`] | how do I test it? |
//! | [`migrating`] | how does what I have look here? |
//! | [`auth`] | who is calling, and what may they do? |
//! | [`eras`] | what do clients of 2025 get? |
//! | [`fleets`] | how do I upgrade and stop instances while calls are open? |
//!
//! Words: a *call* is one logical tools/call, prompts/get or resources/read, from its first request to its final result. A
//! *leg* is one request of it. Whatever is said of tools holds for prompts and resources.

#[doc = include_str!("replay.md")]
pub mod replay {}

#[doc = include_str!("steps.md")]
pub mod steps {}

#[doc = include_str!("mistakes.md")]
pub mod mistakes {}

#[doc = include_str!("forms.md")]
pub mod forms {}

#[doc = include_str!("cannot_ask.md")]
pub mod cannot_ask {}

#[doc = include_str!("urls.md")]
pub mod urls {}

#[doc = include_str!("macros.md")]
pub mod macros {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("migrating.md")]
pub mod migrating {}

#[doc = include_str!("auth.md")]
pub mod auth {}

#[doc = include_str!("eras.md")]
pub mod eras {}

#[doc = include_str!("fleets.md")]
pub mod fleets {}
