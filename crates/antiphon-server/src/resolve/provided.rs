//! The server's state for resolvers.

use crate::{
    define::{State, States},
    errors::build_error::BuildError,
};
use std::any::Any;

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
