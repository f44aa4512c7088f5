//! Errors of one macro call, which the compiler reports together.

use syn::{Error, Result};

/// A collection of errors, which the compiler reports together.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Returns the value, or adds the error and returns `None`.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        let fault = match result {
            Ok(value) => return Some(value),
            Err(fault) => fault,
        };
        match &mut self.0 {
            Some(first) => first.combine(fault),
            None => self.0 = Some(fault),
        }
        None
    }

    pub(crate) fn done(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
