//! Errors of one macro call, which the compiler reports together, and the check that each name is there once.

use proc_macro2::Span;
use syn::{Error, Result, ext::IdentExt as _};

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

/// The names that are in use.
pub(crate) struct UniqueNames {
    what: &'static str,
    names: Vec<String>,
}

impl UniqueNames {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, names: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str, span: Span) -> Result<()> {
        if self.names.iter().any(|seen| seen == name) {
            return Err(Error::new(span, format!("another {} has the name `{name}`", self.what)));
        }
        self.names.push(name.to_owned());
        Ok(())
    }
}

/// Returns the name of an identifier as serde reads it, without `r#`.
pub(crate) fn plain(ident: &syn::Ident) -> String {
    ident.unraw().to_string()
}
