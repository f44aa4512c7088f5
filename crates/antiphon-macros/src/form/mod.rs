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

use crate::{
    errors::Errors,
    names::{UniqueNames, plain},
};
use proc_macro2::TokenStream;
use quote::quote;
use serde_names::TypeAttributes;
use syn::{Data, DeriveInput, Error, Fields, FieldsNamed, Result, spanned::Spanned as _};

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
    let (mut expanded, mut permitted, mut checks) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = UniqueNames::new("field");
    for field in &fields.named {
        let Some(mut field) = errors.note(field::Field::read(field, names)).flatten() else { continue };
        errors.note(seen.add(&field.name, field.span));
        if let Some(kind) = errors.note(field_kind::expand(&mut field)) {
            expanded.push(field.expand(&kind.tokens));
            let name = &field.name;
            permitted.extend(field.not_secret.then(|| quote! { .not_secret(#name) }));
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

            fn schema() -> ::antiphon::wire::forms::FormSchema {
                static SCHEMA: ::std::sync::OnceLock<::antiphon::wire::forms::FormSchema> = ::std::sync::OnceLock::new();
                SCHEMA
                    .get_or_init(|| ::antiphon::wire::forms::FormSchema::new(::std::vec![#(#expanded),*]) #(#permitted)*)
                    .clone()
            }
        }
        #(#checks)*
    })
}
