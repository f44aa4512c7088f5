//! The arguments of a tool, by name.

use std::marker::PhantomData;

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
