//! Names of fields, choices and arguments, and the check that each is there once.

use proc_macro2::Span;
use syn::{Error, Result, ext::IdentExt as _};

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
