//! State that handlers share.

use crate::errors::build_error::BuildError;
use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::Arc,
};

/// A value of the server that a handler receives: a parameter `db: State<Db>`, or `State(db): State<Db>` for the
/// [`Arc`] inside. It is set once, with [`ServerBuilder::state`](crate::ServerBuilder::state). It is not an argument of
/// the tool, and no caller can set it.
///
/// It derefs to `T`. A clone shares the same value.
/// ```
/// use antiphon::{server::{Server, State}, tool};
///
/// struct Greeting {
///     words: String,
/// }
///
/// /// Greets somebody.
/// #[tool]
/// async fn greet(name: String, greeting: State<Greeting>) -> String {
///     format!("{}, {name}!", greeting.words)
/// }
///
/// let greeting = Greeting { words: "Hello".to_owned() };
/// let server = Server::builder("greeter", "1.0").state(greeting).tool(greet).build();
/// # assert!(server.is_ok());
/// ```
pub struct State<T>(
    /// The value.
    pub Arc<T>,
);

impl<T> State<T> {
    /// Wraps a value, for example to call a handler in a test.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> From<Arc<T>> for State<T> {
    fn from(value: Arc<T>) -> Self {
        Self(value)
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for State<T> {
    /// Omits the value, which may hold data that does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State<{}>(..)", type_name::<T>())
    }
}

/// All state values, by type.
#[derive(Default)]
pub struct States {
    given: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    duplicate: Option<&'static str>,
}

impl States {
    pub(crate) fn give<T: Send + Sync + 'static>(&mut self, value: T) {
        if self.given.insert(TypeId::of::<T>(), Arc::new(value)).is_some() {
            self.duplicate = Some(type_name::<T>());
        }
    }

    /// # Errors If a type was given twice: the two values cannot be distinguished.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        self.duplicate.map_or(Ok(()), |name| {
            Err(BuildError(format!("the state `{name}` is given twice: wrap one in a type of its own")))
        })
    }

    /// Returns the state of this type, for `user` ("the tool `provision`").
    ///
    /// # Errors
    /// If there is none.
    pub fn get<T: Send + Sync + 'static>(&self, user: &str) -> Result<State<T>, BuildError> {
        let given = self.given.get(&TypeId::of::<T>()).cloned();
        given.and_then(|given| given.downcast().ok()).map(State).ok_or_else(|| {
            let name = type_name::<T>();
            BuildError(format!("{user} takes the state `{name}`, which was not given: use `.state(..)`"))
        })
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("given", &self.given.len()).finish_non_exhaustive()
    }
}
