//! The future of a marked function, with the definition in its type.

use crate::define::definition::{DefinePrompt, DefineResource, DefineTool};
use futures_util::future::Either;
use std::{
    convert::Infallible,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

/// A future `F` that belongs to the definition `D`. The other variant of the `Either` cannot exist: it has no cost, and
/// carries the type.
type Tagged<D, F> = Either<F, Never<D, <F as Future>::Output>>;

/// A future without values, with this definition and this output.
pub struct Never<D, O>(Infallible, PhantomData<fn() -> (D, O)>);

impl<D, O> Future for Never<D, O> {
    type Output = O;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<O> {
        match self.0 {}
    }
}

/// Tags the future with its definition.
pub fn tagged<D, F: Future>(future: F) -> Tagged<D, F> {
    Either::Left(future)
}

macro_rules! tagged_futures {
    ($($name:ident, $definition:ident: $bound:ident, $word:literal;)*) => { $(
        #[doc = concat!("The future of a function marked `#[", $word, "]`.")]
        #[must_use = "futures do nothing unless you `.await` or poll them"]
        pub trait $name: Future {
            /// The definition.
            type $definition: $bound;
        }

        impl<D: $bound, F: Future> $name for Tagged<D, F> {
            type $definition = D;
        }
    )* };
}

tagged_futures! {
    ToolFuture, Tool: DefineTool, "tool";
    PromptFuture, Prompt: DefinePrompt, "prompt";
    ResourceFuture, Resource: DefineResource, "resource";
}
