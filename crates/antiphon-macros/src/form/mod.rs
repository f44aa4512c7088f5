//! `#[derive(Form)]`.

pub(crate) mod attributes;
mod field;
mod secret;
mod shape;

use crate::errors::{Errors, UniqueNames, plain};
use attributes::Attributes;
use attributes::{FieldAttributes, TypeAttributes};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, FieldsNamed, Result, Variant, spanned::Spanned as _};

/// Returns the impl of `Form` for a struct, or of `FormChoice` for an enum.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let generics = &input.generics;
    if !generics.params.is_empty() {
        return Err(Error::new(generics.span(), "a form cannot have type parameters or lifetimes"));
    }
    Attributes::read(&input.attrs)?.reject_unknown(&[], "a type")?;
    let names = TypeAttributes::of_type(&input.attrs)?;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => structure(&input, fields, &names),
            _ => Err(Error::new(
                input.ident.span(),
                "the fields of a form must have names: `struct Place { region: String }`",
            )),
        },
        Data::Enum(data) => choices(&input.ident, data, &names),
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
        if let Some(kind) = errors.note(field::expand(&mut field)) {
            expanded.push(field.expand(&kind.tokens));
            let name = &field.name;
            permitted.extend(field.not_secret.then(|| quote! { .not_secret(#name) }));
            checks.extend(kind.checks);
        }
    }
    errors.done()?;
    let ident = &input.ident;
    let key = attributes::Casing::Snake.variant(&plain(ident));
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

/// Returns the impl of `FormChoice` for an enum.
fn choices(ident: &Ident, data: &DataEnum, names: &TypeAttributes) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let mut seen = UniqueNames::new("choice");
    let mut choices = Vec::new();
    for variant in &data.variants {
        let Some((value, title)) = errors.note(read(variant, names)).flatten() else { continue };
        errors.note(seen.add(&value, variant.ident.span()));
        let title = match title {
            Some(title) => quote! { ::core::option::Option::Some(#title) },
            None => quote! { ::core::option::Option::None },
        };
        choices.push(quote! { (#value, #title) });
    }
    errors.done()?;
    if choices.is_empty() {
        return Err(Error::new(
            ident.span(),
            "the form has no choices: the enum has no variant that serde reads",
        ));
    }
    Ok(quote! {
        #[automatically_derived]
        impl ::antiphon::FormChoice for #ident {
            const CHOICES: &'static [(&'static str, ::core::option::Option<&'static str>)] = &[#(#choices),*];
        }
    })
}

/// Returns the value and the title of a choice, or `None` if serde never reads the variant.
fn read(variant: &Variant, names: &TypeAttributes) -> Result<Option<(String, Option<String>)>> {
    let own = FieldAttributes::read(&variant.attrs)?;
    let mut attributes = Attributes::read(&variant.attrs)?;
    if own.skipped {
        attributes.reject_unknown(&[], "a variant that serde skips")?;
        return Ok(None);
    }
    if !matches!(variant.fields, Fields::Unit) {
        return Err(Error::new(
            variant.ident.span(),
            "a choice cannot hold data: ask for the choice first, and for its data in a second question",
        ));
    }
    attributes.reject_unknown(&["title"], "a variant")?;
    let title = attributes.text("title")?.map(|(title, _)| title);
    Ok(Some((names.variant(&own, &variant.ident), title)))
}
