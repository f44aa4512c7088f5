//! The choices of an enum.

use super::{
    attributes::Attributes,
    serde_names::{FieldAttributes, TypeAttributes},
};
use crate::{errors::Errors, names::UniqueNames};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DataEnum, Error, Fields, Result, Variant};

pub(super) fn expand(ident: &Ident, data: &DataEnum, names: &TypeAttributes) -> Result<TokenStream> {
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
