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
//! are types, and `description` compares them as text, to report a missing one with a clear error.

mod description;
mod round;

use crate::{
    call::{
        ctx::{Answer, Ctx},
        handler::Failure,
    },
    define::{State, States},
    errors::{BuildError, Error, awaited::AskError},
};
use std::{any::Any, marker::PhantomData, sync::Arc};

/// The items that expanded code calls.
pub(crate) mod expanded {
    pub use super::{
        Arguments, HasArgument, Lends, Name, Provided, Returned, borrowed,
        description::{Checked, Deeper, Depth, Described, Description, check, check_cycles},
        owned,
        round::{Resolver, Resolves, Round, Running, boxed_resolver},
        settle,
    };
}

/// The return type of a resolver: a `Result`.
#[diagnostic::on_unimplemented(
    message = "a resolver returns a `Result`, not `{Self}`",
    label = "no `Result`",
    note = "write `antiphon::Result<{Self}>`, or a `Result` with an error of your own"
)]
pub trait Returned {
    /// The type of the value.
    type Value;
    /// Returns the value, or the error that ends the call.
    ///
    /// # Errors
    /// The error of the resolver.
    fn returned(self) -> Result<Self::Value, Error>;
}

impl<V, E: Failure> Returned for Result<V, E> {
    type Value = V;

    fn returned(self) -> Result<V, Error> {
        self.map_err(Into::into)
    }
}

/// Returns the value of a resolver that has finished.
///
/// # Errors
/// The error of the resolver.
pub fn settle<R: Returned>(returned: R) -> Result<R::Value, Error> {
    returned.returned()
}

/// The origin of a value.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The context of the call.
    pub(crate) ctx: &'a Ctx,
    /// The resolver's name.
    pub(crate) name: &'static str,
}

impl Source<'_> {
    /// Returns the refusal of this resolver's question, if it asked one.
    fn refused(self, otherwise: fn(&str, &str) -> AskError) -> Error {
        let scope = self.ctx.scope(self.name);
        let asked = self.ctx.leg_runtime().refused_below(scope.scope_prefix());
        asked.unwrap_or_else(|| otherwise(self.name, "")).into()
    }
}

/// A parameter that receives a resolver's value: the value itself, if it is `Clone`, the shared value, or the value
/// that a person accepted.
#[diagnostic::on_unimplemented(
    message = "the resolver gives `{V}`, which is not taken as `{Self}`",
    label = "wrong type, or a copy of a type that is not `Clone`",
    note = "take `{V}` if it is `Clone`, `&{V}`, or `Arc<{V}>`; of an `Answer<T>` also `T`, and a decline then ends the call"
)]
pub trait FromValue<V>: Sized {
    /// Converts the value.
    ///
    /// # Errors
    /// If the person refused a value that must be accepted.
    fn from_value(value: &Arc<V>, from: Source<'_>) -> Result<Self, Error>;
}

impl<V: Clone> FromValue<V> for V {
    fn from_value(value: &Arc<V>, _: Source<'_>) -> Result<Self, Error> {
        Ok(V::clone(value))
    }
}

impl<V> FromValue<V> for Arc<V> {
    fn from_value(value: &Arc<V>, _: Source<'_>) -> Result<Self, Error> {
        Ok(Arc::clone(value))
    }
}

impl<T: Clone> FromValue<Answer<T>> for T {
    fn from_value(value: &Arc<Answer<T>>, from: Source<'_>) -> Result<Self, Error> {
        match &**value {
            Answer::Accept(value) => Ok(value.clone()),
            Answer::Decline => Err(from.refused(AskError::declined)),
            Answer::Cancel => Err(from.refused(AskError::cancelled)),
        }
    }
}

/// A name as a type, letter by letter: `Name<'i', Name<'d', ()>>`.
#[derive(Debug)]
pub struct Name<const LETTER: char, Rest>(PhantomData<Rest>);

/// Arguments that resolvers read.
pub trait Arguments: Sync + 'static {}

/// Arguments that include one of this name.
#[diagnostic::on_unimplemented(
    message = "a resolver takes an argument that does not exist",
    label = "takes `{N}`",
    note = "a parameter of a resolver is `&Ctx`, `State<..>`, marked `#[resolve(..)]`, or called as an argument of the tool"
)]
pub trait HasArgument<N>: Arguments {
    /// The argument's type.
    type Type: 'static;
    /// Returns the argument.
    fn argument(&self) -> &Self::Type;
}

/// An argument that can be borrowed as an `X`.
#[diagnostic::on_unimplemented(
    message = "the argument is a `{Self}`, and the resolver takes a `{X}`",
    label = "an argument of this resolver is of another type"
)]
pub trait Lends<X: ?Sized> {
    /// Borrows the argument.
    fn lend(&self) -> &X;
}

impl<T> Lends<T> for T {
    fn lend(&self) -> &T {
        self
    }
}

impl Lends<str> for String {
    fn lend(&self) -> &str {
        self
    }
}

/// Returns the argument of this name, borrowed.
pub fn borrowed<N, X: ?Sized, A: HasArgument<N, Type: Lends<X>>>(arguments: &A) -> &X {
    arguments.argument().lend()
}

/// Returns a copy of the argument of this name.
pub fn owned<N, X: Clone, A: HasArgument<N, Type: Lends<X>>>(arguments: &A) -> X {
    arguments.argument().lend().clone()
}

/// The states that the resolvers of one tool take. They are found when the server is built.
#[derive(Debug, Default)]
pub struct Provided(Vec<Box<dyn Any + Send + Sync>>);

impl Provided {
    /// Adds this state, for a resolver of this name.
    ///
    /// # Errors
    /// If the server does not have it.
    pub fn add<T: Send + Sync + 'static>(
        &mut self,
        states: &States,
        resolver: &str,
    ) -> Result<(), BuildError> {
        if self.find::<T>().is_none() {
            self.0.push(Box::new(states.get::<T>(&format!("the resolver `{resolver}`"))?));
        }
        Ok(())
    }

    /// Returns the state of this type.
    ///
    /// # Panics
    /// If it was not added: the code of `#[resolver]` adds it first.
    pub fn get<T: Send + Sync + 'static>(&self) -> State<T> {
        self.find().cloned().expect("the state of a resolver is added when the server is built")
    }

    fn find<T: Send + Sync + 'static>(&self) -> Option<&State<T>> {
        self.0.iter().find_map(|state| state.downcast_ref())
    }
}
