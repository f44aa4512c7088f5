//! The code behind `#[resolver]` and `#[resolve(..)]`: parameters that another function fills in before the handler runs.
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

use crate::{
    call::{
        Scope,
        ctx::{Answer, Ctx},
        handler::Failure,
    },
    define::{State, States},
    errors::{BuildError, Error, awaited::AskError},
};
use antiphon_wire::lock::Lock;
use futures_util::future::BoxFuture;
use std::{
    any::{Any, TypeId},
    fmt,
    future::poll_fn,
    marker::PhantomData,
    sync::{Arc, MutexGuard},
    task::{Context, Poll},
};

/// The items that expanded code calls.
pub(crate) mod expanded {
    pub use super::{
        Arguments, HasArgument, Lends, Name, Provided, Resolver, Resolves, Returned, Round, Running,
        borrowed, boxed_resolver,
        description::{Checked, Deeper, Depth, Described, Description, check, check_cycles},
        owned, settle,
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

/// The type of a resolver, independent of the tool: its value is known before the tool's arguments are checked.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resolver",
    label = "no resolver",
    note = "put `#[antiphon::resolver]` above the `async fn` of this name"
)]
pub trait Resolves: Sized + 'static {
    /// The type of the resolver's value.
    type Value: Send + Sync + 'static;
    /// The resolver's name, which is also its scope.
    const NAME: &'static str;
    /// Adds the states for this resolver and for those that it depends on.
    ///
    /// # Errors
    /// If the server lacks one of them.
    fn provide(states: &States, provided: &mut Provided) -> Result<(), BuildError>;
}

/// A resolver whose parameters are among these arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be resolved here",
    label = "no resolver for these arguments"
)]
pub trait Resolver<A: Arguments>: Resolves {
    /// Starts the resolver: those that it depends on start at once, and it runs when their values are ready.
    fn begin<'r>(round: &'r Round<'_, A>) -> Running<'r, Self::Value>;
}

/// The future of a resolver.
pub type Running<'r, T> = BoxFuture<'r, Result<T, Error>>;

/// Boxes the future of a resolver.
pub fn boxed_resolver<'r, T>(future: impl Future<Output = Result<T, Error>> + Send + 'r) -> Running<'r, T> {
    Box::pin(future)
}

type Value = Arc<dyn Any + Send + Sync>;
type Begin<'a, A> = for<'r> fn(&'r Round<'a, A>) -> Running<'r, Value>;

/// The resolvers of one leg.
pub struct Round<'a, A> {
    ctx: &'a Ctx,
    arguments: &'a A,
    provided: &'a Provided,
    table: Lock<Vec<Entry<'a, A>>>,
}

/// One resolver.
struct Entry<'a, A> {
    resolver: TypeId,
    begin: Begin<'a, A>,
    value: Option<Value>,
}

impl<'a, A: Arguments> Round<'a, A> {
    /// Returns the round of one leg of a call with these arguments.
    pub fn new(ctx: &'a Ctx, arguments: &'a A, provided: &'a Provided) -> Self {
        Self { ctx, arguments, provided, table: Lock::default() }
    }

    /// Returns the arguments of the call.
    pub fn arguments(&self) -> &'a A {
        self.arguments
    }

    /// Returns the server's state.
    pub fn provided(&self) -> &'a Provided {
        self.provided
    }

    /// Returns the context of the resolver with this name.
    pub fn scope(&self, name: &'static str) -> Scope<'a> {
        self.ctx.scope(name)
    }

    /// Starts the resolver `R`, and returns a parameter `P` that receives its value.
    pub fn take<R: Resolver<A>, P: FromValue<R::Value>>(&self) -> Take<P> {
        let resolver = TypeId::of::<R>();
        let mut table = self.table();
        let known = table.iter().position(|entry| entry.resolver == resolver);
        let place = known.unwrap_or(table.len());
        if known.is_none() {
            table.push(Entry { resolver, begin: begin::<A, R>, value: None });
        }
        Take { place, name: R::NAME, read: read::<R::Value, P>, taken: None }
    }

    /// Runs all started resolvers until the handler has its parameters.
    ///
    /// All are polled with one waker, which is not stored, so that the engine still detects a handler that only an
    /// answer can wake.
    ///
    /// # Errors
    /// The error of the first resolver that fails, or an unhandled refusal.
    pub async fn run<T: Takes>(&self, mut takes: T) -> Result<T::Values, Error> {
        let mut running = self.begin_all();
        poll_fn(|cx| {
            loop {
                let moved = self.poll_each(&mut running, cx)?;
                if takes.fill(self)? {
                    return Poll::Ready(Ok::<_, Error>(()));
                }
                if !moved {
                    return Poll::Pending;
                }
            }
        })
        .await?;
        takes.values().ok_or_else(unfinished)
    }

    /// Waits, in a resolver, for those that it depends on. No waker is used: [`run`](Self::run) polls it again.
    ///
    /// # Errors
    /// An unhandled refusal.
    pub async fn wait<T: Takes>(&self, mut takes: T) -> Result<T::Values, Error> {
        poll_fn(|_| match takes.fill(self) {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        })
        .await?;
        takes.values().ok_or_else(unfinished)
    }

    /// Starts the resolvers that the handler needs, then those that they depend on.
    fn begin_all(&self) -> Vec<Option<Running<'_, Value>>> {
        let mut running = Vec::new();
        loop {
            // A resolver adds those that it depends on.
            let next = self.table().get(running.len()).map(|entry| entry.begin);
            match next {
                Some(begin) => running.push(Some(begin(self))),
                None => return running,
            }
        }
    }

    /// Returns whether one has ended.
    fn poll_each(
        &self,
        running: &mut [Option<Running<'_, Value>>],
        cx: &mut Context<'_>,
    ) -> Result<bool, Error> {
        let mut moved = false;
        for (place, resolver) in running.iter_mut().enumerate() {
            let Some(future) = resolver else { continue };
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                *resolver = None;
                moved = true;
                self.table()[place].value = Some(value?);
            }
        }
        Ok(moved)
    }

    fn table(&self) -> MutexGuard<'_, Vec<Entry<'a, A>>> {
        self.table.lock()
    }
}

impl<A> fmt::Debug for Round<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Round").finish_non_exhaustive()
    }
}

fn begin<'r, A: Arguments, R: Resolver<A>>(round: &'r Round<'_, A>) -> Running<'r, Value> {
    let running = R::begin(round);
    Box::pin(async move { Ok(Arc::new(running.await?) as Value) })
}

/// A parameter that waits for its value.
#[derive(Debug)]
pub struct Take<P> {
    place: usize,
    name: &'static str,
    read: fn(Value, Source<'_>) -> Option<Result<P, Error>>,
    taken: Option<P>,
}

fn read<V: Send + Sync + 'static, P: FromValue<V>>(
    value: Value,
    from: Source<'_>,
) -> Option<Result<P, Error>> {
    Some(P::from_value(&value.downcast().ok()?, from))
}

/// Parameters that wait for their values: a list, `(A, (B, ()))`.
pub trait Takes {
    /// The values.
    type Values;
    /// Takes the values that are ready. Returns true if all are.
    ///
    /// # Errors
    /// An unhandled refusal.
    fn fill<A: Arguments>(&mut self, round: &Round<'_, A>) -> Result<bool, Error>;
    /// Returns the values, if all are ready.
    fn values(self) -> Option<Self::Values>;
}

impl Takes for () {
    type Values = ();

    fn fill<A: Arguments>(&mut self, _: &Round<'_, A>) -> Result<bool, Error> {
        Ok(true)
    }

    fn values(self) -> Option<()> {
        Some(())
    }
}

impl<P, T: Takes> Takes for (Take<P>, T) {
    type Values = (P, T::Values);

    fn fill<A: Arguments>(&mut self, round: &Round<'_, A>) -> Result<bool, Error> {
        let (take, rest) = self;
        if take.taken.is_none() {
            let value = round.table()[take.place].value.clone();
            let from = Source { ctx: round.ctx, name: take.name };
            take.taken = value.and_then(|value| (take.read)(value, from)).transpose()?;
        }
        Ok(rest.fill(round)? & take.taken.is_some())
    }

    fn values(self) -> Option<Self::Values> {
        Some((self.0.taken?, self.1.values()?))
    }
}

/// Returns the error of a parameter without a value. It is not reached: the types match.
fn unfinished() -> Error {
    Error::user_facing("a resolver returned no value")
}
