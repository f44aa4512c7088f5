//! `#[derive(Form)]`.

pub(crate) mod attributes;
mod casing;
mod choice;
mod field;
mod field_kind;
mod format;
mod secret;
mod serde_names;
mod shape;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use serde_names::TypeAttributes;
use syn::{Data, DeriveInput, Error, Fields, FieldsNamed, Result, ext::IdentExt as _, spanned::Spanned as _};

/// Returns the impl of `Form` for a struct, or of `FormChoice` for an enum.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let generics = &input.generics;
    if !generics.params.is_empty() {
        return Err(Error::new(generics.span(), "a form cannot have type parameters or lifetimes"));
    }
    attributes::Attributes::read(&input.attrs)?.reject_unknown(&[], "a type")?;
    let names = TypeAttributes::of_type(&input.attrs)?;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => structure(&input, fields, &names),
            _ => Err(Error::new(
                input.ident.span(),
                "the fields of a form must have names: `struct Place { region: String }`",
            )),
        },
        Data::Enum(data) => choice::expand(&input.ident, data, &names),
        Data::Union(_) => {
            Err(Error::new(input.ident.span(), "a form must be a struct or an enum without data"))
        }
    }
}

fn structure(input: &DeriveInput, fields: &FieldsNamed, names: &TypeAttributes) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let (mut expanded, mut checks) = (Vec::new(), Vec::new());
    let mut seen = UniqueNames::new("field");
    for field in &fields.named {
        let Some(mut field) = errors.note(field::Field::read(field, names)).flatten() else { continue };
        errors.note(seen.add(&field.name, field.span));
        if let Some(kind) = errors.note(field_kind::expand(&mut field)) {
            expanded.push(field.expand(&kind.tokens));
            checks.extend(kind.checks);
        }
    }
    errors.done()?;
    let ident = &input.ident;
    let key = casing::Casing::Snake.variant(&plain(ident));
    Ok(quote! {
        #[automatically_derived]
        impl ::antiphon::Form for #ident {
            fn key() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#key)
            }

            fn schema() -> ::antiphon::wire::FormSchema {
                static SCHEMA: ::std::sync::OnceLock<::antiphon::wire::FormSchema> = ::std::sync::OnceLock::new();
                SCHEMA.get_or_init(|| ::antiphon::wire::FormSchema::new(::std::vec![#(#expanded),*])).clone()
            }
        }
        #(#checks)*
    })
}

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
