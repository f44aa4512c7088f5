//! The resolvers of one leg: each runs once, and independent ones run concurrently.

use crate::{
    call::{Scope, ctx::Ctx},
    define::States,
    errors::{BuildError, Error},
    resolve::{Arguments, FromValue, Provided, Source},
};
use antiphon_wire::lock::Lock;
use futures_util::future::BoxFuture;
use std::{
    any::{Any, TypeId},
    fmt,
    future::poll_fn,
    sync::{Arc, MutexGuard},
    task::{Context, Poll},
};

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
