//! The choices of an enum.

use super::{
    Faults, Seen,
    attributes::Attributes,
    serde_names::{Names, Own},
};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DataEnum, Error, Fields, Result, Variant};

pub(super) fn expand(ident: &Ident, data: &DataEnum, names: &Names) -> Result<TokenStream> {
    let mut faults = Faults::default();
    let mut seen = Seen::new("choice");
    let mut choices = Vec::new();
    for variant in &data.variants {
        let Some((value, title)) = faults.note(read(variant, names)).flatten() else { continue };
        faults.note(seen.add(&value, variant.ident.span()));
        let title = match title {
            Some(title) => quote! { ::core::option::Option::Some(#title) },
            None => quote! { ::core::option::Option::None },
        };
        choices.push(quote! { (#value, #title) });
    }
    faults.done()?;
    if choices.is_empty() {
        return Err(Error::new(
            ident.span(),
            "there is nothing to choose: the enum has no variant that serde reads",
        ));
    }
    Ok(quote! {
        #[automatically_derived]
        impl ::antiphon::FormChoice for #ident {
            const CHOICES: &'static [(&'static str, ::core::option::Option<&'static str>)] = &[#(#choices),*];
        }
    })
}

/// The value and the title; `None` if serde never reads the variant.
fn read(variant: &Variant, names: &Names) -> Result<Option<(String, Option<String>)>> {
    let own = Own::read(&variant.attrs)?;
    let mut attributes = Attributes::read(&variant.attrs)?;
    if own.skipped {
        attributes.none_but(&[], "a variant that serde skips")?;
        return Ok(None);
    }
    if !matches!(variant.fields, Fields::Unit) {
        return Err(Error::new(
            variant.ident.span(),
            "a choice holds no data: ask for the choice first, and for what belongs to it in a second question",
        ));
    }
    attributes.none_but(&["title"], "a variant")?;
    let title = attributes.text("title")?.map(|(title, _)| title);
    Ok(Some((names.variant(&own, &variant.ident), title)))
}
