//! The arguments of a tool, by name.

use std::marker::PhantomData;

/// A name as a type, letter by letter: `Name<'i', Name<'d', ()>>`.
#[derive(Debug)]
pub struct Name<const LETTER: char, Rest>(PhantomData<Rest>);

/// Arguments that resolvers read.
pub trait Arguments: Sync + 'static {}

/// Arguments with one of this name.
#[diagnostic::on_unimplemented(
    message = "a resolver takes an argument that there is not",
    label = "takes `{N}`",
    note = "a parameter of a resolver is `&Ctx`, `State<..>`, marked `#[resolve(..)]`, or called as an argument of the tool"
)]
pub trait HasArgument<N>: Arguments {
    /// Its type.
    type Type: 'static;
    /// The argument.
    fn argument(&self) -> &Self::Type;
}

/// An argument that can be lent as an `X`.
#[diagnostic::on_unimplemented(
    message = "the argument is a `{Self}`, and the resolver takes a `{X}`",
    label = "an argument of this resolver is of another type"
)]
pub trait Lends<X: ?Sized> {
    /// Lends it.
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

/// The argument of this name, lent.
pub fn borrowed<N, X: ?Sized, A: HasArgument<N, Type: Lends<X>>>(arguments: &A) -> &X {
    arguments.argument().lend()
}

/// A copy of the argument of this name.
pub fn owned<N, X: Clone, A: HasArgument<N, Type: Lends<X>>>(arguments: &A) -> X {
    arguments.argument().lend().clone()
}
